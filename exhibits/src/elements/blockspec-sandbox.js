import { html, nothing, svg } from 'lit-html';
import { live } from 'lit-html/directives/live.js';

import { HEIGHT, WIDTH, pictureOf } from '../logic/blockspec-picture.js';
import {
  MOST,
  MOST_DIMS,
  derive,
  fromValues,
  programsOf,
  sizeOf,
  sourceOf,
  stepOf,
  toValues,
} from '../logic/blockspec-sandbox.js';
import { rungsOf } from '../logic/blockspec-rungs.js';
import { byText, bytesText, countText, tupleText } from '../logic/text.js';
import { ExhibitElement } from './exhibit-element.js';
import { PRESETS } from './blockspec-presets.js';

const KINDS = [
  ['blocked', 'Blocked'],
  ['squeezed', 'Squeezed (None)'],
  ['element', 'Element'],
];
const NAMES = [['i'], ['i', 'j'], ['b', 'i', 'j']];
const NEW_DIM = { array: 8, block: 1, kind: 'squeezed', index: 'program' };

/** @param {string} id @param {unknown} label @param {unknown} control */
const dial = (id, label, control) =>
  html`<div class="pr-ex-dial"><label for=${id}>${label}</label>${control}</div>`;

/** @param {string} id @param {string} label @param {Array<[string, string]>} options
 *  @param {string} chosen @param {(value: string) => void} choose */
const choice = (id, label, options, chosen, choose) => dial(id, label, html`<select
  id=${id}
  .value=${live(chosen)}
  @change=${(/** @type {Event} */ event) => choose(event.target.value)}
>
  ${options.map(
    ([value, name]) => html`<option value=${value} ?selected=${value === chosen}>${name}</option>`,
  )}
</select>`);

/** @param {import('../logic/blockspec-picture.js').Box} box @param {string} name */
const rect = (box, name, fill = nothing) => svg`<rect class=${name} x=${box.x} y=${box.y}
  width=${box.width} height=${box.height} fill=${fill} />`;

export class BlockSpecSandbox extends ExhibitElement {
  readSetting(values, fallback) {
    return fromValues(values, fallback, this.data);
  }

  writeSetting(setting) {
    return toValues(setting);
  }

  /** @param {number} axis @param {Partial<import('../logic/blockspec-sandbox.js').Dimension>} to */
  changeDim(axis, to) {
    const dims = this.setting.dims.map((dim, at) => (at === axis ? { ...dim, ...to } : dim));
    this.change({ dims });
  }

  /** @param {number} rank */
  changeRank(rank) {
    let { dims } = this.setting;
    while (dims.length > rank) dims = dims.slice(1);
    while (dims.length < rank) {
      dims = [dims.length === 1 ? { ...dims[0] } : { ...NEW_DIM }, ...dims];
    }
    this.change({ dims });
  }

  template() {
    const result = derive(this.setting, this.data);
    return html`<div class="pr-bs">
      ${this.picture(result)} ${this.dials(result)} ${this.report(result)}
    </div>`;
  }

  dials() {
    const { dims, dtype, chip } = this.setting;
    const same = (/** @type {string[]} */ names) => names.map((name) => [name, name]);
    const presets = [['', 'own setting'], ...PRESETS.map(({ name }) => [name, name])];
    const ranks = Array.from({ length: MOST_DIMS }, (_, n) => String(n + 1));
    return html`<form class="pr-bs-dials" @submit=${(event) => event.preventDefault()}>
      <div class="pr-bs-row">
        ${choice(this.idOf('from'), 'Start from', presets, this.presetName(), (name) => {
          const preset = PRESETS.find((found) => found.name === name);
          if (preset) this.change(preset.setting);
        })}
        ${choice(this.idOf('rank'), 'Dimensions', same(ranks), String(dims.length), (rank) =>
          this.changeRank(Number(rank)),
        )}
        ${choice(this.idOf('dtype'), 'dtype', same(Object.keys(this.data.dtypes)), dtype, (to) =>
          this.change({ dtype: to }),
        )}
        ${choice(this.idOf('chip'), 'Chip', same(Object.keys(this.data.chips)), chip, (to) =>
          this.change({ chip: to }),
        )}
      </div>
      ${dims.map((dim, axis) => this.dimension(dim, axis))}
    </form>`;
  }

  /** @param {string} part */
  idOf(part) {
    return `${this.localName}-${part}`;
  }

  presetName() {
    const written = (setting) => {
      const { array, block, kinds, index, dtype } = toValues(setting);
      return [array, block, kinds, index, dtype].join(' ');
    };
    const now = written(this.setting);
    return PRESETS.find(({ setting }) => written(setting) === now)?.name ?? '';
  }

  dimension(dim, axis) {
    const name = NAMES[this.setting.dims.length - 1][axis];
    const id = (/** @type {string} */ part) => this.idOf(`${part}-${axis}`);
    const number = (/** @type {'array' | 'block'} */ which, disabled = false) => html`<input
      id=${id(which)}
      type="number"
      inputmode="numeric"
      min="1"
      max=${MOST}
      step="1"
      required
      ?disabled=${disabled}
      .value=${live(String(disabled ? 1 : dim[which]))}
      @input=${(event) => {
        const { target } = event;
        if (target.validity.valid) this.changeDim(axis, { [which]: target.valueAsNumber });
      }}
      @change=${(event) => {
        if (!event.target.validity.valid) event.target.value = String(dim[which]);
      }}
    />`;
    const indexes = [
      ['program', name],
      ['scaled', `${name} * ${sizeOf(dim)}`],
      ['zero', '0'],
    ];
    return html`<fieldset class="pr-bs-dim">
      <legend>Dimension ${axis}</legend>
      ${dial(id('array'), 'Array', number('array'))}
      ${dial(id('block'), 'Block', number('block', dim.kind === 'squeezed'))}
      ${choice(id('kind'), 'Kind', KINDS, dim.kind, (kind) => this.changeDim(axis, { kind }))}
      ${choice(id('index'), 'Index map returns', indexes, dim.index, (index) =>
        this.changeDim(axis, { index }),
      )}
    </fieldset>`;
  }

  picture(result) {
    const { dims } = this.setting;
    const rank = dims.length;
    const drawn = pictureOf(this.setting, result);
    const hatch = `url(#${this.hatchId})`;
    const label =
      `The array of ${byText(dims.map((dim) => dim.array))}, cut into a grid of ` +
      `${byText(result.grid)} blocks; the block of program ${tupleText(result.program)} is marked.`;
    const notes = [
      drawn.toScale ? '' : 'Two scales: the array is too long to draw with one.',
      drawn.tooFine ? 'Blocks start too close together to draw.' : '',
      drawn.elsewhere ? 'Dashed: where interpret mode reads instead.' : '',
    ].filter(Boolean);
    const strip = drawn.strip;
    return html`<div class="pr-bs-view">
      <svg
        class="pr-bs-picture"
        viewBox="0 0 ${WIDTH} ${HEIGHT}"
        width=${WIDTH}
        height=${HEIGHT}
        role="img"
        aria-label=${label}
        @click=${(event) => this.pick(event, drawn)}
      >
        <defs>
          <pattern id=${this.hatchId} width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <path class="pr-bs-hatch" d="M0 0V7" />
          </pattern>
        </defs>
        ${rect(drawn.whole, 'pr-bs-padding', hatch)} ${rect(drawn.array, 'pr-bs-array')}
        <path class="pr-bs-grid" d=${drawn.lines} />
        ${rect(drawn.block, drawn.elsewhere ? 'pr-bs-block pr-bs-elsewhere' : 'pr-bs-block')}
        <text class="pr-bs-size" x=${drawn.left} y=${drawn.top - 9}>${dims[rank - 1].array}</text>
        ${rank === 1
          ? nothing
          : svg`<text class="pr-bs-size" x=${drawn.left - 9} y=${drawn.top + 13} text-anchor="end">${
              dims[rank - 2].array
            }</text>`}
        ${strip
          ? svg`${rect(strip.whole, 'pr-bs-padding', hatch)}${rect(strip.array, 'pr-bs-array')}
              <path class="pr-bs-grid" d=${strip.lines} />${rect(strip.block, 'pr-bs-block')}
              <text class="pr-bs-size" x="16" y="21">${dims[0].array}</text>`
          : nothing}
        <text
          class="pr-bs-program"
          x=${drawn.block.x + drawn.block.width / 2}
          y=${drawn.block.y + drawn.block.height / 2}
          text-anchor="middle"
          dominant-baseline="central"
        >
          ${drawn.block.width > 70 && drawn.block.height > 24 ? tupleText(result.program) : ''}
        </text>
      </svg>
      <p class="pr-bs-note">${notes.join(' ')}</p>
      ${dial(
        this.idOf('program'),
        html`Program <b>${tupleText(result.program)}</b> of grid ${tupleText(result.grid)}`,
        html`<input
          id=${this.idOf('program')}
          type="range"
          min="0"
          max=${result.programs - 1}
          step="1"
          .value=${live(String(result.step))}
          aria-valuetext="program ${tupleText(result.program)}"
          @input=${(event) => this.change({ step: event.target.valueAsNumber })}
        />`,
      )}
      <output class="pr-bs-said">${result.sentence}</output>
      <pre class="pr-bs-source" tabindex="0" aria-label="The grid and the BlockSpec as code"><code>${sourceOf(this.setting)}</code></pre>
    </div>`;
  }

  get hatchId() {
    return this.idOf('hatch');
  }

  /** Choose the program whose block was clicked, where blocks lie side by side. */
  pick(event, drawn) {
    const { dims } = this.setting;
    const area = event.currentTarget.getBoundingClientRect();
    const at = drawn.locate(
      ((event.clientX - area.left) * WIDTH) / area.width,
      ((event.clientY - area.top) * HEIGHT) / area.height,
    );
    const grid = dims.map(programsOf);
    const { program } = derive(this.setting, this.data);
    const drawnAxes = dims.length === 1 ? [0] : [dims.length - 2, dims.length - 1];
    for (const axis of drawnAxes) {
      const position = at[axis - drawnAxes[0] + (dims.length === 1 ? 1 : 0)];
      const dim = dims[axis];
      const sideBySide = dim.kind === 'element' ? dim.index === 'scaled' : dim.index === 'program';
      const index = Math.floor(position / sizeOf(dim));
      if (!sideBySide || index < 0 || index >= grid[axis]) return;
      program[axis] = index;
    }
    this.change({ step: stepOf(grid, program) });
  }

  report(result) {
    const { chip, dims } = this.setting;
    const rank = dims.length;
    const share = Math.min(1, result.inFlight / result.limit);
    const fact = (name, value, more = '') =>
      html`<div><dt>${name}</dt><dd>${value}${more ? html` <span>${more}</span>` : nothing}</dd></div>`;
    return html`<div class="pr-bs-report">
      <dl class="pr-bs-facts">
        ${fact('Programs', countText(result.programs), `grid ${tupleText(result.grid)}`)}
        ${fact('Index map returns', tupleText(result.index))}
        ${fact('Block starts at', tupleText(result.start))}
        ${fact('The kernel sees', result.ref.length ? byText(result.ref) : 'a scalar')}
        ${fact('Padded array', byText(result.padded))}
        ${fact(
          'One block',
          bytesText(result.blockBytes),
          result.storedBytes === result.blockBytes
            ? `whole tiles of ${byText(result.tile.slice(-2))}`
            : `${bytesText(result.storedBytes)} in tiles of ${byText(result.tile.slice(-2))}`,
        )}
      </dl>
      <div class="pr-bs-budget" data-budget=${result.budget}>
        <p>
          <b>VMEM in flight: ${bytesText(result.inFlight)}</b> of ${bytesText(result.limit)}
          <span
            >(input and output, ${result.buffers === 2 ? 'two buffers each' : 'one buffer each'};
            an estimate)</span
          >
        </p>
        <div class="pr-bs-bar" aria-hidden="true"><div style="width: ${share * 100}%"></div></div>
      </div>
      <ul class="pr-bs-rungs" aria-label="What each rung would say">
        ${rungsOf(result, rank, chip).map(
          ({ rung, status, word, note, words }) => html`<li>
            <span class="pr-rung" data-rung=${rung}>${rung}</span>
            <span class="pr-verdict" data-status=${status}>${word}</span>
            <span>${note}</span>
            ${words ? html`<q class="pr-bs-words">${words}</q>` : nothing}
          </li>`,
        )}
      </ul>
      <p class="pr-bs-link"><a href=${this.fragment}>Link to this setting</a></p>
    </div>`;
  }
}

customElements.define('blockspec-sandbox', BlockSpecSandbox);
