/**
 * What each rung would say of a setting, in a line each.
 *
 * `status` is a status of the ladder and gives the colour; `word` is what is shown, which for the
 * compiler is an estimate's word.
 *
 * @typedef {import('./blockspec-sandbox.js').Result} Result
 * @typedef {{rung: string, status: string, word: string, note: string, words: string}} Line
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

/** @param {string} rung @param {string} status @param {string} note
 *  @param {{word?: string, words?: string}} [more]
 *  @returns {Line} */
const line = (rung, status, note, { word = status, words = '' } = {}) => ({
  rung,
  status,
  word,
  note,
  words,
});

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
    const last = tupleText(result.lastStart);
    return line('simulate', 'refused', `the last block would start at ${last}: out of bounds.`);
  }
  return result.covers
    ? line('simulate', 'passed', 'no block starts outside the array.')
    : line('simulate', 'wrong', 'what is never written stays NaN.');
}

/** @param {Result} result @param {number} rank */
function lower(result, rank) {
  const refusal = result.refusals.find(({ rung }) => rung === 'lower');
  if (refusal) return line('lower', 'refused', '', { words: refusal.words });
  const rule = rank === 1 ? 'the block is' : 'the last two dimensions of the block are';
  return line('lower', 'passed', `${rule} of a legal size.`);
}

/** @param {Result} result @param {string} chip */
function compile(result, chip) {
  if (result.refusals.some(({ rung }) => rung === 'lower')) {
    return line('compile', 'no kernel', 'nothing gets this far.', { word: 'not reached' });
  }
  const aligned = result.refusals.find(({ kind }) => kind === 'aligned');
  if (aligned) {
    const rule = 'with Element dimensions, each index must be a multiple of the tile for all to see';
    return line('compile', 'refused', `${rule}: ${aligned.words}.`);
  }
  const limit = bytesText(result.limit);
  if (result.budget === 'over') {
    const note = `${bytesText(result.inFlight)} are more than the ${limit} that ${chip} allows.`;
    return line('compile', 'refused', note, { word: 'too large' });
  }
  if (result.budget === 'depends') {
    const note = `over ${limit}, unless XLA keeps these small arrays in VMEM as a whole.`;
    return line('compile', 'unchecked', note, { word: 'depends' });
  }
  return line('compile', 'passed', `within ${limit}, by estimate.`, { word: 'fits' });
}
