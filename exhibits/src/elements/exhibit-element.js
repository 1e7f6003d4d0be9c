/**
 * What all exhibits share: reading the page's data, taking over from the static fallback, and
 * keeping the setting in the page's address.
 */

import { render } from 'lit-html';

import { fromFragment, toFragment } from '../logic/fragment.js';

/**
 * @template Setting, Data
 */
export class ExhibitElement extends HTMLElement {
  /** @type {Data} */
  data;

  /** @type {Setting} */
  setting;

  #started = false;

  connectedCallback() {
    if (this.#started) return;
    const script = this.querySelector('script.pr-exhibit-data');
    if (!script) return; // Without data the static fallback stays.
    const page = JSON.parse(script.textContent ?? '');
    this.#started = true;
    this.data = page.data;
    this.setting = this.readSetting(this.#fragmentValues() ?? {}, page.setting);
    this.replaceChildren();
    this.draw();
    if (this.#fragmentValues()) this.scrollIntoView();
    addEventListener('hashchange', () => {
      const values = this.#fragmentValues();
      if (!values) return;
      this.setting = this.readSetting(values, this.setting);
      this.draw();
    });
  }

  /** Change the setting, draw it, and note it in the address.
   * @param {Partial<Setting>} change */
  change(change) {
    this.setting = { ...this.setting, ...change };
    this.draw();
    history.replaceState(history.state, '', this.fragment);
  }

  /** The address of the present setting within the page. */
  get fragment() {
    return toFragment(this.localName, this.writeSetting(this.setting));
  }

  draw() {
    render(this.template(), this);
  }

  #fragmentValues() {
    return fromFragment(this.localName, location.hash);
  }

  /** @param {Record<string, string>} _values @param {Setting} _fallback @returns {Setting} */
  readSetting(_values, _fallback) {
    throw new Error(`${this.localName} does not read its setting`);
  }

  /** @param {Setting} _setting @returns {Record<string, string>} */
  writeSetting(_setting) {
    throw new Error(`${this.localName} does not write its setting`);
  }

  /** @returns {unknown} what lit-html draws */
  template() {
    throw new Error(`${this.localName} draws nothing`);
  }
}
