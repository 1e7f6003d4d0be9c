/**
 * What each rung makes of a setting, in a line each.
 *
 * @typedef {import('./blockspec-sandbox.js').Result} Result
 * @typedef {{rung: string, status: string, note: string, words: string}} Line
 */

import { bytesText, tupleText } from './text.js';

/**
 * @param {Result} result
 * @param {number} rank
 * @param {string} chip
 * @returns {Line[]}
 */
export function rungsOf(result, rank, chip) {
  return [interpret(result), simulate(result), lower(result, rank), compile(result, chip)];
}

const line = (
  /** @type {string} */ rung,
  /** @type {string} */ status,
  /** @type {string} */ note,
  words = '',
) => ({ rung, status, note, words });

/** @param {Result} result */
function interpret(result) {
  if (result.strays && result.covers) {
    return line('interpret', 'passed', 'by luck: blocks that start outside are moved back inside.');
  }
  if (result.strays) {
    return line('interpret', 'wrong', 'silently: blocks that start outside are moved back inside.');
  }
  return result.covers
    ? line('interpret', 'passed', 'every element of the output is written.')
    : line('interpret', 'wrong', 'part of the output is never written.');
}

/** @param {Result} result */
function simulate(result) {
  if (result.strays) {
    return line(
      'simulate',
      'refused',
      `the last program's block would start at ${tupleText(result.lastStart)}: out of bounds.`,
    );
  }
  return result.covers
    ? line('simulate', 'passed', 'no block starts outside the array.')
    : line('simulate', 'wrong', 'what is never written stays NaN.');
}

/** @param {Result} result @param {number} rank */
function lower(result, rank) {
  const refusal = result.refusals.find(({ rung }) => rung === 'lower');
  if (refusal) return line('lower', 'refused', '', refusal.words);
  const rule = rank === 1 ? 'the block is' : 'the last two dimensions of the block are';
  return line('lower', 'passed', `${rule} of a legal size.`);
}

/** @param {Result} result @param {string} chip */
function compile(result, chip) {
  if (result.refusals.some(({ rung }) => rung === 'lower')) {
    return line('compile', 'unchecked', 'not reached.');
  }
  const aligned = result.refusals.find(({ kind }) => kind === 'aligned');
  if (aligned) {
    return line(
      'compile',
      'refused',
      'with Element dimensions each index must be a multiple of the tile, and the compiler must see it: ' +
        `${aligned.words}.`,
    );
  }
  const limit = bytesText(result.limit);
  if (result.budget === 'over') {
    return line('compile', 'refused', `${bytesText(result.inFlight)} are more than the ${limit} that ${chip} allows.`);
  }
  return result.budget === 'depends'
    ? line('compile', 'unchecked', `over ${limit}, unless XLA keeps these small arrays in VMEM as a whole.`)
    : line('compile', 'passed', `the windows fit into ${limit}, by estimate.`);
}
