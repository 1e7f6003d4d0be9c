import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as sandbox from '../src/logic/blockspec-sandbox.js';
import { fromFragment, toFragment } from '../src/logic/fragment.js';

const data = { dtypes: { float32: 4, bfloat16: 2 }, chips: { v5e: {}, v4: {} } };
const fallback = {
  dims: [{ array: 1000, block: 256, kind: 'blocked', index: 'program' }],
  dtype: 'float32',
  chip: 'v5e',
  step: 1,
};

test('a setting survives the way through the address', () => {
  const setting = {
    dims: [
      { array: 16, block: 4, kind: 'squeezed', index: 'program' },
      { array: 1000, block: 64, kind: 'element', index: 'scaled' },
      { array: 700, block: 700, kind: 'blocked', index: 'zero' },
    ],
    dtype: 'bfloat16',
    chip: 'v4',
    step: 77,
  };
  const fragment = toFragment('blockspec-sandbox', sandbox.toValues(setting));
  assert.match(fragment, /^#blockspec-sandbox:[\w=;,%]+$/);
  const values = fromFragment('blockspec-sandbox', fragment);
  assert.deepEqual(sandbox.fromValues(values, fallback, data), setting);
});

test("another exhibit's address and a plain anchor are left alone", () => {
  assert.equal(fromFragment('blockspec-sandbox', '#blockspec-sandbox'), null);
  assert.equal(fromFragment('blockspec-sandbox', '#blockspec-sandbox-2:dtype=int8'), null);
  assert.equal(fromFragment('blockspec-sandbox', ''), null);
});

for (const fragment of [
  'array=0;block=1;kinds=b;index=p',
  'array=8,8;block=8;kinds=bb;index=pp',
  'array=8;block=8;kinds=x;index=p',
  'array=1e9;block=8;kinds=b;index=p',
  'array=70000;block=8;kinds=b;index=p',
  'array=8,8,8,8;block=8,8,8,8;kinds=bbbb;index=pppp',
  'dtype=constructor;chip=__proto__;program=-1',
  'dtype=%E0%A4%A',
  ';;==;a',
]) {
  test(`a damaged address falls back: ${fragment}`, () => {
    const values = fromFragment('x', `#x:${fragment}`);
    const setting = sandbox.fromValues(values, fallback, data);
    assert.deepEqual(setting.dims, fallback.dims);
    assert.ok(Object.hasOwn(data.dtypes, setting.dtype), setting.dtype);
    assert.ok(Object.hasOwn(data.chips, setting.chip), setting.chip);
    assert.equal(setting.step, 1);
  });
}

test('the source is what a reader would write', () => {
  const dims = [
    { array: 8, block: 1, kind: 'squeezed', index: 'program' },
    { array: 1000, block: 64, kind: 'element', index: 'scaled' },
    { array: 700, block: 700, kind: 'blocked', index: 'zero' },
  ];
  assert.equal(
    sandbox.sourceOf({ ...fallback, dims }),
    'grid = (8, 16, 1)\n' +
      'spec = pl.BlockSpec((None, pl.Element(64), 700),\n' +
      '                    lambda b, i, j: (b, i * 64, 0))',
  );
});

test('program numbers and program indices are inverse', () => {
  const grid = [3, 1, 5];
  for (let step = 0; step < 15; step += 1) {
    assert.equal(sandbox.stepOf(grid, sandbox.programAt(grid, step)), step);
  }
});
