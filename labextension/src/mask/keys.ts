/** Which keys JupyterLab leaves to an element of ours. */

const PLAIN = /^(Enter| |Arrow.*|Home|End|Page.*)$/; // what buttons, tabs and lists take

/** For what takes keys of its own: the plain ones, `more` that it names (`^` for Ctrl), and letters in a box. */
export function keys(more = ''): { 'data-cute-keys': string } {
  return { 'data-cute-keys': more };
}
export const KEYS = keys();

function takes(at: Element, { key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  const far = ctrlKey || metaKey || (key === 'Enter' && (shiftKey || altKey)); // those run the cell
  const name = far ? `^${key}` : key;
  return PLAIN.test(name) || (at.getAttribute('data-cute-keys') ?? '').split(' ').includes(name) || (name.length === 1 && at.matches('input, select'));
}

function decide(event: KeyboardEvent): void {
  const at = event.target instanceof Element ? event.target.closest('[data-cute-keys]') : null;
  at?.toggleAttribute('data-lm-suppress-shortcuts', takes(at, event));
}

/** JupyterLab looks at keys in the document, before any element does. Its attribute would stop all shortcuts: it is set for each key anew, one step earlier. */
export function watchKeys(): void {
  window.addEventListener('keydown', decide, true); // once, however often it is asked for
}
