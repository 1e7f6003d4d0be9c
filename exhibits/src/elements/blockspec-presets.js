/** Settings worth a look, each showing one rule. */

/** @param {number} array @param {number} block */
const dim = (array, block, kind = 'blocked', index = 'program') => ({ array, block, kind, index });

/** @type {Array<{name: string, setting: {dims: object[], dtype: string, step: number}}>} */
export const PRESETS = [
  {
    name: 'ragged edges',
    setting: { dims: [dim(700, 256), dim(1000, 256)], dtype: 'float32', step: 7 },
  },
  {
    name: 'a block that no chip takes',
    setting: { dims: [dim(700, 100), dim(1000, 100)], dtype: 'float32', step: 33 },
  },
  {
    name: 'one row of a batch at a time',
    setting: {
      dims: [dim(16, 1, 'squeezed'), dim(1024, 256), dim(512, 512)],
      dtype: 'bfloat16',
      step: 6,
    },
  },
  {
    name: 'an index map that counts elements',
    setting: {
      dims: [dim(1024, 256, 'blocked', 'scaled'), dim(512, 128)],
      dtype: 'float32',
      step: 4,
    },
  },
  {
    name: 'element offsets, said to be so',
    setting: {
      dims: [dim(1024, 256, 'element', 'scaled'), dim(512, 128, 'element', 'scaled')],
      dtype: 'float32',
      step: 4,
    },
  },
  {
    name: 'more than VMEM holds',
    setting: { dims: [dim(8192, 2048), dim(8192, 2048)], dtype: 'float32', step: 0 },
  },
  {
    name: 'a single column, stored in whole tiles',
    setting: { dims: [dim(4096, 512), dim(1, 1)], dtype: 'float32', step: 1 },
  },
  {
    name: 'one dimension',
    setting: { dims: [dim(5000, 1024)], dtype: 'bfloat16', step: 4 },
  },
];
