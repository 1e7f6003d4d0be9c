/**
 * Holds every logic module to the Python truth, case by case. The vectors are made by
 * `python -m pallas_rungs.exhibits.vectors --out exhibits/dist/vectors`.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const LEAST_CASES = 2000;
const folder = process.env.PALLAS_RUNGS_VECTORS ?? join(import.meta.dirname, '../dist/vectors');

/** @type {string[]} */
let files = [];
try {
  files = readdirSync(folder).filter((name) => name.endsWith('.json'));
} catch (error) {
  if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
}

test('there are vectors', () => {
  assert.ok(
    files.length > 0,
    `no vectors in ${folder}; make them with ` +
      '`python -m pallas_rungs.exhibits.vectors --out exhibits/dist/vectors`',
  );
});

for (const file of files) {
  const { exhibit, seed, data, cases } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  test(`${exhibit} agrees with Python on ${cases.length} cases of seed ${seed}`, async () => {
    const { derive } = await import(`../src/logic/${exhibit}.js`);
    assert.ok(cases.length >= LEAST_CASES, `only ${cases.length} cases, want ${LEAST_CASES}`);
    for (const [number, [setting, expected]] of cases.entries()) {
      assert.deepEqual(
        derive(setting, data),
        expected,
        `case ${number} of seed ${seed} differs: ${JSON.stringify(setting)}`,
      );
    }
  });
}
