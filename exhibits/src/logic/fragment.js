/**
 * The part of a page's address that holds an exhibit's setting: `#name:key=value;key=value`.
 * It begins with the exhibit's name, so that several exhibits and plain anchors stay apart.
 */

/**
 * @param {string} name the exhibit's tag name
 * @param {Record<string, string>} values
 * @returns {string} the fragment, with its `#`
 */
export function toFragment(name, values) {
  const pairs = Object.entries(values).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
  return `#${name}:${pairs.join(';')}`;
}

/**
 * @param {string} name the exhibit's tag name
 * @param {string} fragment `location.hash`
 * @returns {Record<string, string> | null} null when the fragment is not this exhibit's
 */
export function fromFragment(name, fragment) {
  const start = `#${name}:`;
  if (!fragment.startsWith(start)) return null;
  /** @type {Record<string, string>} */
  const values = {};
  for (const pair of fragment.slice(start.length).split(';')) {
    const [key, value] = pair.split('=');
    if (!key || value === undefined) continue;
    try {
      values[key] = decodeURIComponent(value);
    } catch {
      // A damaged escape: that one value keeps its default.
    }
  }
  return values;
}
