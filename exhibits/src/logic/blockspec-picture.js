/**
 * Where the BlockSpec sandbox draws what: pure geometry, in the units of a fixed view box.
 *
 * The last two dimensions are drawn to scale, the last one to the right; a leading dimension is a
 * strip at the left. A single dimension is a bar.
 *
 * @typedef {import('./blockspec-sandbox.js').Setting} Setting
 * @typedef {import('./blockspec-sandbox.js').Result} Result
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 */

import { indexOf, programsOf, sizeOf, startOf } from './blockspec-sandbox.js';

export const WIDTH = 560;
export const HEIGHT = 400;
const MARGIN = { left: 62, top: 30, right: 14, bottom: 14 };
const STRIP = { left: 16, width: 22, gap: 62 };
const BAR = 84;
/** Grid lines closer than this are not drawn. */
const CLOSEST = 3;
/** An array longer than this many times its other side is drawn with two scales. */
const LONGEST = 6;

const round = (/** @type {number} */ value) => Math.round(value * 10) / 10;

/** Element positions at which blocks start, and the end of the last; empty when too many.
 * @param {import('./blockspec-sandbox.js').Dimension} dim
 * @param {number} padded
 * @param {number} scale */
function edges(dim, padded, scale) {
  const programs = programsOf(dim);
  const step = startOf(dim, indexOf(dim, 1));
  if (programs > 1 && step > 0 && step * scale < CLOSEST) return [];
  /** @type {Set<number>} */
  const found = new Set();
  for (let program = 0; program < programs; program += 1) {
    const start = startOf(dim, indexOf(dim, program));
    if (start >= padded) break;
    found.add(start);
    found.add(Math.min(start + sizeOf(dim), padded));
    if (step === 0) break;
  }
  return [...found];
}

/**
 * @param {Setting} setting
 * @param {Result} result
 */
export function pictureOf({ dims }, result) {
  const rank = dims.length;
  const column = rank - 1;
  const row = rank - 2;
  const left = MARGIN.left + (rank === 3 ? STRIP.gap : 0);
  const room = {
    width: WIDTH - left - MARGIN.right,
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
  };
  const columns = result.padded[column];
  const rows = rank === 1 ? 1 : result.padded[row];
  let across = room.width / columns;
  let down = rank === 1 ? BAR : room.height / rows;
  let toScale = true;
  if (rank > 1) {
    const even = Math.min(across, down);
    toScale = Math.max(rows / columns, columns / rows) <= LONGEST;
    if (toScale) {
      across = even;
      down = even;
    } else if (rows > columns) across = Math.min(across, (room.height / columns / LONGEST) * 2);
    else down = Math.min(down, (room.width / rows / LONGEST) * 2);
  }
  const top = rank === 1 ? MARGIN.top + 60 : MARGIN.top;
  const box = (/** @type {number[]} */ at, /** @type {number[]} */ size) => ({
    x: round(left + at[1] * across),
    y: round(top + at[0] * down),
    width: round(size[1] * across),
    height: round(size[0] * down),
  });
  const pair = (/** @type {number[]} */ list, /** @type {number} */ lone) =>
    rank === 1 ? [lone, list[column]] : [list[row], list[column]];

  const whole = box([0, 0], [rows, columns]);
  const acrossEdges = edges(dims[column], columns, across);
  const downEdges = rank === 1 ? [0, 1] : edges(dims[row], rows, down);
  const lines = [
    ...acrossEdges.map((at) => {
      const x = round(left + at * across);
      return `M${x} ${whole.y}V${round(whole.y + whole.height)}`;
    }),
    ...downEdges.map((at) => {
      const y = round(top + at * down);
      return `M${whole.x} ${y}H${round(whole.x + whole.width)}`;
    }),
  ].join('');
  const strip = rank === 3 ? stripOf(dims[0], result) : null;
  return {
    whole,
    array: box([0, 0], pair(dims.map((dim) => dim.array), 1)),
    block: box(pair(result.read, 0), pair(result.window, 1)),
    elsewhere: result.reach === 'outside',
    lines,
    strip,
    toScale,
    tooFine: acrossEdges.length === 0 || downEdges.length === 0,
    left,
    top,
    /** Element position of a point of the drawing, per drawn dimension. */
    locate(/** @type {number} */ x, /** @type {number} */ y) {
      return pair([0, 0, 0], 0).map((_, axis) =>
        axis === 0 ? Math.floor((y - top) / down) : Math.floor((x - left) / across),
      );
    },
  };
}

/** The leading dimension: a strip with the window of the program marked.
 * @param {import('./blockspec-sandbox.js').Dimension} dim
 * @param {Result} result */
function stripOf(dim, result) {
  const height = HEIGHT - MARGIN.top - MARGIN.bottom;
  const scale = height / result.padded[0];
  const box = (/** @type {number} */ at, /** @type {number} */ size) => ({
    x: STRIP.left,
    y: round(MARGIN.top + at * scale),
    width: STRIP.width,
    height: round(size * scale),
  });
  const lines = edges(dim, result.padded[0], scale)
    .map((at) => `M${STRIP.left} ${round(MARGIN.top + at * scale)}h${STRIP.width}`)
    .join('');
  return {
    whole: box(0, result.padded[0]),
    array: box(0, dim.array),
    block: box(result.read[0], result.window[0]),
    lines,
  };
}
