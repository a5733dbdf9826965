/** Copy and download, without a request: what is copied stands in the page already. */

import { h, svg } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { CuteRecord } from '../core/record';
import { KEYS } from '../mask/keys';
import { encoded } from './encoded';

export { KEYS };

const PATHS = {
  copy: 'M5 5V2.5h8.5V11H11M2.5 5H11v8.5H2.5z',
  download: 'M8 2v8M4.5 6.8 8 10.3l3.5-3.5M2.5 13.5h11',
  pin: 'M6 2.5h4l-.6 4 2.1 2.5h-7L6.6 6.5zM8 9v4.5',
  reveal: 'M8 3C4.5 3 2.3 6 1.5 8c.8 2 3 5 6.5 5s5.7-3 6.5-5C13.7 6 11.5 3 8 3zM8 6.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z',
  done: 'M3 8.5 6.5 12 13 4.5',
  up: 'M3.5 10 8 5.5 12.5 10',
  down: 'M3.5 6 8 10.5 12.5 6',
  close: 'M4 4l8 8M12 4l-8 8',
  mask: 'M2.5 2.5h11v11h-11zM2.5 8h11M8 2.5v11',
  chip: 'M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14',
  clock: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11zM8 5v3.2l2.2 1.4',
  bulb: 'M6.4 13.8h3.2M8 1.8a4.2 4.2 0 0 0-2.5 7.6c.6.5.8 1 .8 2.1h3.4c0-1.1.2-1.6.8-2.1A4.2 4.2 0 0 0 8 1.8z',
  warn: 'M8 2.3 14.3 13.2H1.7zM8 6.5v3.2M8 11.3v.2',
  refused: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11zM4.2 11.8l7.6-7.6',
  circle: 'M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z'
} as const;
export type IconName = keyof typeof PATHS;

export function icon(name: IconName): SVGElement {
  return svg(
    'svg',
    { class: 'jp-Cute-icon', viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { d: PATHS[name], fill: 'none', stroke: 'currentColor', 'stroke-width': 1.4, 'stroke-linejoin': 'round', 'stroke-linecap': 'round' })
  );
}

/** `pressed`: of a button that stays down. */
export function iconButton(name: IconName, label: string, act: () => void, pressed?: boolean): HTMLButtonElement {
  const state = pressed === undefined ? {} : { 'aria-pressed': pressed ? 'true' : 'false' };
  return h('button', { class: 'jp-Cute-button jp-Cute-iconButton', type: 'button', ...KEYS, ...state, 'aria-label': label, title: label, onclick: act }, icon(name));
}

/** A button that says for a moment that it has worked, or why not. */
export function copyButton(t: Translate, text: () => string, label = t.__('Copy')): HTMLButtonElement {
  const button = iconButton('copy', label, () => {
    void copy(text()).then(worked => {
      button.replaceChildren(icon(worked ? 'done' : 'copy'));
      const said = worked ? t.__('Copied') : t.__('The browser did not allow copying');
      button.title = said;
      button.setAttribute('aria-label', said);
      setTimeout(() => {
        button.replaceChildren(icon('copy'));
        button.title = label;
        button.setAttribute('aria-label', label);
      }, 1500);
    });
  });
  return button;
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page opened from a file or over plain http has no clipboard: the old way, which needs an element.
    const area = h('textarea', { class: 'jp-Cute-offscreen', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    const worked = typeof document.execCommand === 'function' && document.execCommand('copy');
    area.remove();
    return worked;
  }
}

export function download(name: string, text: string, type = 'text/plain'): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h('a', { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A name that every file system takes. */
export function fileName(name: string, end: string): string {
  const plain = name.replace(/[^\p{L}\p{N}_.-]+/gu, '_').replace(/^[_.-]+/, '').slice(0, 80);
  return `${plain || 'record'}${end}`;
}

export function recordText(record: CuteRecord): string {
  return `${JSON.stringify(encoded(record), null, 1)}\n`;
}
