/** How the exhibits write numbers, shapes and sizes. The Python side writes them the same way. */

const UNITS = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
];

/**
 * Write a number of bytes with at most one decimal, e.g. "1.5 MiB".
 * @param {number} count
 * @returns {string}
 */
export function bytesText(count) {
  for (const [unit, size] of UNITS) {
    if (count >= size) {
      const tenths = Math.floor((count * 10 + size / 2) / size);
      const rest = tenths % 10;
      const whole = (tenths - rest) / 10;
      return rest ? `${whole}.${rest} ${unit}` : `${whole} ${unit}`;
    }
  }
  return `${count} B`;
}

/**
 * Write numbers as Python writes a tuple.
 * @param {ReadonlyArray<number | string>} items
 * @returns {string}
 */
export function tupleText(items) {
  return items.length === 1 ? `(${items[0]},)` : `(${items.join(', ')})`;
}

/**
 * Write a shape as people say it, e.g. "256 × 128".
 * @param {ReadonlyArray<number>} shape
 * @returns {string}
 */
export function byText(shape) {
  return shape.join(' × ');
}

/**
 * Write a whole number with thin spaces between groups of three digits.
 * @param {number} count
 * @returns {string}
 */
export function countText(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}
