/**
 * The arithmetic of the BlockSpec sandbox. The truth is `pallas_rungs.exhibits.blockspec`, which
 * asks the installed library; `test/vectors.test.js` holds this module to it.
 *
 * @typedef {'blocked' | 'squeezed' | 'element'} Kind
 * @typedef {'program' | 'scaled' | 'zero'} Index
 * @typedef {{array: number, block: number, kind: Kind, index: Index}} Dimension
 * @typedef {{dims: Dimension[], dtype: string, chip: string, step: number}} Setting
 * @typedef {{limit: number, capacity: number, leastRows: number, mostRows: number, lanes: number}} Chip
 * @typedef {{rung: 'simulate' | 'lower' | 'compile', kind: string, words: string}} Refusal
 * @typedef {{tiled: string, flat: Record<string, string>, scalar: string, mixed: string,
 *   dims: Record<Kind, string>}} Words
 * @typedef {{chips: Record<string, Chip>, dtypes: Record<string, number>, words: Words}} Data
 * @typedef {ReturnType<typeof derive>} Result
 */

import { byText, bytesText, tupleText } from './text.js';

/** Most elements that a dimension may have; all sizes stay exact below it. */
export const MOST = 65536;
export const MOST_DIMS = 3;

const product = (/** @type {number[]} */ numbers) => numbers.reduce((a, b) => a * b, 1);
const roundUp = (/** @type {number} */ n, /** @type {number} */ step) => Math.ceil(n / step) * step;

/** Elements of the window in a dimension: a squeezed dimension counts 1.
 * @param {Dimension} dim */
export const sizeOf = (dim) => (dim.kind === 'squeezed' ? 1 : dim.block);

/** Extent of the grid in a dimension: as many programs as cover it.
 * @param {Dimension} dim */
export function programsOf(dim) {
  if (dim.kind === 'element' && dim.index === 'program') {
    return Math.max(1, dim.array - dim.block + 1);
  }
  return Math.ceil(dim.array / sizeOf(dim));
}

/** What the index map returns for a dimension.
 * @param {Dimension} dim
 * @param {number} program */
export function indexOf(dim, program) {
  if (dim.index === 'zero') return 0;
  return dim.index === 'scaled' ? program * sizeOf(dim) : program;
}

/** Where the block starts: a block index counts blocks, all other indices count elements.
 * @param {Dimension} dim
 * @param {number} index */
export const startOf = (dim, index) => (dim.kind === 'blocked' ? dim.block * index : index);

/** Whether the windows that interpret mode writes reach every element of the dimension.
 * @param {Dimension} dim */
export function isCovered(dim) {
  const size = sizeOf(dim);
  const programs = programsOf(dim);
  if (programs === 1) return size >= dim.array;
  if (dim.index === 'zero') return false;
  if (dim.kind !== 'blocked' || dim.index === 'program') return true;
  // A block index that is already scaled: starts are `size` times too far apart, and all starts
  // beyond the last block are moved back to it.
  return size === 1 || programs === 2;
}

/** Program indices of the step-th program; the last grid axis runs fastest.
 * @param {number[]} grid
 * @param {number} step */
export function programAt(grid, step) {
  const program = grid.slice();
  let rest = step;
  for (let axis = grid.length - 1; axis >= 0; axis -= 1) {
    program[axis] = rest % grid[axis];
    rest = Math.floor(rest / grid[axis]);
  }
  return program;
}

/** Number of the program with these indices; the inverse of `programAt`.
 * @param {number[]} grid
 * @param {number[]} program */
export const stepOf = (grid, program) =>
  program.reduce((step, index, axis) => step * grid[axis] + index, 0);

/** The tile in which a window is stored.
 * @param {number[]} shape
 * @param {number} itemsize
 * @param {Chip} chip */
export function tileOf(shape, itemsize, chip) {
  const packing = 4 / itemsize;
  const least = chip.leastRows * packing;
  if (shape.length === 1) return [least * chip.lanes];
  let rows = least;
  while (rows < Math.min(shape[shape.length - 2], chip.mostRows)) rows *= 2;
  return [...shape.slice(0, -2).map(() => 1), rows, chip.lanes];
}

/** The shape rounded up to whole tiles.
 * @param {number[]} shape
 * @param {number} itemsize
 * @param {Chip} chip */
export function storedShape(shape, itemsize, chip) {
  const tile = tileOf(shape, itemsize, chip);
  return shape.map((extent, axis) => roundUp(extent, tile[axis]));
}

/** Whether the lowering takes the last two dimensions of the window, or the only one.
 * @param {number[]} window
 * @param {number[]} array
 * @param {number} itemsize
 * @param {Chip} chip */
export function shapeIsLegal(window, array, itemsize, chip) {
  const last = window.length - 1;
  const whole = window[last] === array[last];
  if (last === 0) {
    const size = window[0];
    const powerOfTwo = Number.isInteger(Math.log2(size));
    const flatTile = (chip.lanes * 4) / itemsize;
    return whole || size % (8 * chip.lanes) === 0 || (size >= flatTile && powerOfTwo);
  }
  const wholeRows = window[last - 1] === array[last - 1];
  return (whole || window[last] % 128 === 0) && (wholeRows || window[last - 1] % 8 === 0);
}

/** What lowering and compiling refuse; VMEM is not looked at.
 * @param {Setting} setting
 * @param {Data} data
 * @returns {Refusal[]} */
export function refusalsOf({ dims, dtype, chip }, data) {
  const { words } = data;
  const itemsize = data.dtypes[dtype];
  const window = dims.map(sizeOf);
  const array = dims.map((dim) => dim.array);
  const lower = (/** @type {string} */ kind, /** @type {string} */ text) =>
    /** @type {Refusal[]} */ ([{ rung: 'lower', kind, words: text }]);
  if (!shapeIsLegal(window, array, itemsize, data.chips[chip])) {
    const block = tupleText(dims.map((d) => words.dims[d.kind].replace('{size}', String(d.block))));
    const template = dims.length === 1 ? words.flat[dtype] : words.tiled;
    return lower('shape', template.replace('{block}', block).replace('{array}', tupleText(array)));
  }
  if (dims.every((dim) => dim.kind === 'squeezed')) return lower('scalar', words.scalar);
  const element = dims.some((dim) => dim.kind === 'element');
  if (element && dims.some((dim) => dim.kind === 'blocked')) return lower('mixed', words.mixed);
  if (!element) return [];
  // An element window: every start must be a multiple of the tile, squeezed dimensions' too.
  const tile = tileOf(window, itemsize, data.chips[chip]);
  for (const [axis, dim] of dims.entries()) {
    if (indexOf(dim, 1) % tile[axis]) {
      return [{ rung: 'compile', kind: 'aligned', words: `tiling (${tile[axis]}), dimension ${axis}` }];
    }
  }
  return [];
}

/** VMEM of an input window and an output window, held to the compiler's budget.
 * @param {Setting} setting
 * @param {number} buffers
 * @param {Data} data */
export function inFlight({ dims, dtype, chip }, buffers, data) {
  const itemsize = data.dtypes[dtype];
  const { limit, capacity } = data.chips[chip];
  const window = dims.map(sizeOf);
  const stored = storedShape(window, itemsize, data.chips[chip]);
  const storedBytes = product(stored) * itemsize;
  const array = storedShape(dims.map((dim) => dim.array), itemsize, data.chips[chip]);
  const total = 2 * buffers * storedBytes;
  const mayStay = 2 * product(array) * itemsize <= capacity;
  return {
    tile: tileOf(window, itemsize, data.chips[chip]),
    stored,
    blockBytes: product(window) * itemsize,
    storedBytes,
    inFlight: total,
    limit,
    budget: total <= limit ? 'fits' : mayStay ? 'depends' : 'over',
  };
}

/** All that the sandbox shows of a setting.
 * @param {Setting} setting
 * @param {Data} data */
export function derive(setting, data) {
  const { dims } = setting;
  const grid = dims.map(programsOf);
  const programs = product(grid);
  const step = Math.min(Math.max(setting.step, 0), programs - 1);
  const program = programAt(grid, step);
  const startAt = (/** @type {number[]} */ where) =>
    dims.map((dim, axis) => startOf(dim, indexOf(dim, where[axis])));
  const start = startAt(program);
  const last = startAt(grid.map((extent) => extent - 1));
  const window = dims.map(sizeOf);
  const padded = dims.map((dim) => roundUp(dim.array, sizeOf(dim)));
  const valid = dims.map((dim, axis) =>
    Math.max(0, Math.min(start[axis] + window[axis], dim.array) - start[axis]),
  );
  const strays = dims.some((dim, axis) => last[axis] >= dim.array);
  const buffers = last.every((end) => end === 0) ? 1 : 2;
  const memory = inFlight(setting, buffers, data);
  /** @type {Refusal[]} */
  const refusals = strays ? [{ rung: 'simulate', kind: 'outside', words: '' }] : [];
  refusals.push(...refusalsOf(setting, data));
  if (memory.budget === 'over') refusals.push({ rung: 'compile', kind: 'vmem', words: '' });
  const inside = valid.every((count, axis) => count === window[axis]);
  const result = {
    grid,
    programs,
    step,
    program,
    index: dims.map((dim, axis) => indexOf(dim, program[axis])),
    start,
    read: start.map((at, axis) => Math.min(at, padded[axis] - window[axis])),
    lastStart: last,
    window,
    ref: window.filter((_, axis) => dims[axis].kind !== 'squeezed'),
    padded,
    valid,
    reach: valid.includes(0) ? 'outside' : inside ? 'inside' : 'overhang',
    strays,
    covers: dims.every(isCovered),
    buffers,
    ...memory,
    refusals,
  };
  return { ...result, sentence: sentenceOf(setting, result) };
}

/** Say what the program on show reads, and what the rungs make of the block.
 * @param {Setting} setting
 * @param {Omit<Result, 'sentence'>} result
 * @returns {string} */
function sentenceOf({ dims, chip }, result) {
  const who = `Program ${tupleText(result.program)}, ${result.step + 1} of ${result.programs},`;
  const at = tupleText(result.start);
  let where;
  if (result.reach === 'inside') {
    where = `starts at ${at} and holds ${byText(result.window)} elements of the array.`;
  } else if (result.reach === 'overhang') {
    where =
      `starts at ${at}; ${byText(result.valid)} of its ${byText(result.window)} elements ` +
      'are in the array, the rest is padding.';
  } else {
    where =
      `asks for ${at}, outside the array of ${byText(dims.map((dim) => dim.array))}; ` +
      `interpret mode reads at ${tupleText(result.read)} instead.`;
  }
  const memory =
    `In flight: ${bytesText(result.inFlight)} of VMEM, by estimate; ` +
    `the ${chip} compiler allows ${bytesText(result.limit)}.`;
  const rungs = [...new Set(result.refusals.map((refusal) => refusal.rung))];
  let verdict = 'Legal to lower, and it fits.';
  if (rungs.length) verdict = `Refused at: ${rungs.join(', ')}.`;
  else if (result.budget === 'depends') {
    verdict = 'Legal to lower; whether it compiles depends on where XLA places the arrays.';
  }
  return `${who} ${where} ${memory} ${verdict}`;
}

/** The lines of Python that a setting stands for.
 * @param {Setting} setting
 * @returns {string} */
export function sourceOf({ dims }) {
  const names = dims.length === 1 ? ['i'] : dims.length === 2 ? ['i', 'j'] : ['b', 'i', 'j'];
  const block = dims.map((dim) => {
    if (dim.kind === 'squeezed') return 'None';
    return dim.kind === 'element' ? `pl.Element(${dim.block})` : String(dim.block);
  });
  const index = dims.map((dim, axis) => {
    if (dim.index === 'zero') return '0';
    return dim.index === 'scaled' ? `${names[axis]} * ${sizeOf(dim)}` : names[axis];
  });
  return (
    `grid = ${tupleText(dims.map(programsOf))}\n` +
    `spec = pl.BlockSpec(${tupleText(block)},\n` +
    `                    lambda ${names.join(', ')}: ${tupleText(index)})`
  );
}

const KINDS = { b: 'blocked', s: 'squeezed', e: 'element' };
const INDEXES = { p: 'program', s: 'scaled', z: 'zero' };

/** The setting as short strings, for the page's address.
 * @param {Setting} setting
 * @returns {Record<string, string>} */
export function toValues({ dims, dtype, chip, step }) {
  return {
    array: dims.map((dim) => dim.array).join(','),
    block: dims.map((dim) => dim.block).join(','),
    kinds: dims.map((dim) => dim.kind[0]).join(''),
    index: dims.map((dim) => dim.index[0]).join(''),
    dtype,
    chip,
    program: String(step),
  };
}

/** Read a setting back; whatever is missing or makes no sense is taken from `fallback`.
 * @param {Record<string, string>} values
 * @param {Setting} fallback
 * @param {Data} data
 * @returns {Setting} */
export function fromValues(values, fallback, data) {
  const extents = (/** @type {string | undefined} */ text) =>
    (text ?? '').split(',').map((part) => (/^\d{1,5}$/.test(part) ? Number(part) : 0));
  const array = extents(values.array);
  const block = extents(values.block);
  const kinds = [...(values.kinds ?? '')].map((letter) => KINDS[letter]);
  const index = [...(values.index ?? '')].map((letter) => INDEXES[letter]);
  const rank = array.length;
  const whole =
    rank <= MOST_DIMS &&
    [block, kinds, index].every((list) => list.length === rank && list.every(Boolean)) &&
    [...array, ...block].every((extent) => extent >= 1 && extent <= MOST);
  const dims = whole
    ? array.map((extent, axis) => ({
        array: extent,
        block: block[axis],
        kind: kinds[axis],
        index: index[axis],
      }))
    : fallback.dims;
  return {
    dims,
    dtype: Object.hasOwn(data.dtypes, values.dtype) ? values.dtype : fallback.dtype,
    chip: Object.hasOwn(data.chips, values.chip) ? values.chip : fallback.chip,
    step: /^\d{1,12}$/.test(values.program ?? '') ? Number(values.program) : fallback.step,
  };
}
