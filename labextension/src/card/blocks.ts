/** Blocks of words as elements. What a user wrote stays text, and so little of it that no string can stop the page. */

import { h } from '../core/dom';
import type { Child } from '../core/dom';
import type { Translate } from '../core/i18n';
import { clean } from '../core/text';
import { copyButton } from './actions';
import type { Block, Words } from './words/page';
import { number } from './words/quantities';

const LONGEST = 6_000; // characters of one text
const MOST_ROWS = 400;

/** Text that can be shown: control characters visible, and cut with a word about it where it is too long to read. */
export function shown(text: string, most = LONGEST): string {
  return text.length <= most ? clean(text) : `${clean(text.slice(0, most))}… (${number(text.length)} characters)`;
}

/** Prose in which `backticks` mark code. */
export function prose(text: string, most = LONGEST): Child[] {
  return shown(text, most)
    .split(/`([^`\n]*[^`\s][^`\n]*)`/)
    .map((part, i) => (i % 2 ? h('code', {}, part) : part.replace(/(\d) %/g, '$1\u00a0%'))) // a number keeps its sign
    .filter(part => part !== '');
}

function worded(words: Words): Child[] {
  return typeof words === 'string' ? prose(words, 600) : [h('code', { class: 'jp-Cute-verbatim' }, shown(words.code, 600))];
}

export function drawn(t: Translate, blocks: readonly Block[]): HTMLElement[] {
  return blocks.map(block => one(t, block));
}

function one(t: Translate, block: Block): HTMLElement {
  switch (block.kind) {
    case 'head':
      return h('h4', { class: 'jp-Cute-head' }, ...prose(block.text));
    case 'lines':
      return h('div', { class: 'jp-Cute-lines' }, ...block.lines.slice(0, MOST_ROWS).map(line => h('p', {}, ...prose(line))));
    case 'code':
      return codeBlock(t, block.text);
    case 'table':
      return tableOf(t, block);
  }
}

export function codeBlock(t: Translate, text: string): HTMLElement {
  return h('div', { class: 'jp-Cute-code' }, h('pre', { tabindex: 0 }, h('code', {}, shown(text.replace(/\n+$/, ''), 60_000))), copyButton(t, () => text));
}

export function tableOf(t: Translate, block: Extract<Block, { kind: 'table' }>, mark?: (row: number, cell: number) => string): HTMLElement {
  const left = block.head.length - block.right;
  const cls = (i: number): string | null => (i >= left ? 'jp-Cute-right' : null);
  const rows = block.rows.slice(0, MOST_ROWS).map((row, r) =>
    h(
      'tr',
      {},
      ...row.map((words, i) => {
        const text = typeof words === 'string' ? words : '';
        const verdict = /^✔/.test(text) ? 'jp-Cute-good' : /^[✘⊘]/.test(text) ? 'jp-Cute-bad' : '';
        const name = [cls(i), verdict, mark?.(r, i)].filter(Boolean).join(' ');
        return i === 0
          ? h('th', { scope: 'row', class: name || null }, ...worded(words))
          : h('td', { class: name || null }, ...worded(words));
      })
    )
  );
  const more = block.rows.length - rows.length;
  return h(
    'div',
    { class: 'jp-Cute-scroll', tabindex: 0, role: 'group', 'aria-label': t.__('table') },
    h(
      'table',
      { class: 'jp-Cute-table' },
      h('thead', {}, h('tr', {}, ...block.head.map((text, i) => h('th', { scope: 'col', class: cls(i) }, ...prose(text, 200))))),
      h('tbody', {}, ...rows)
    ),
    more > 0 && h('p', {}, t.__('%1 more rows', number(more)))
  );
}

/** What to run where there is nothing yet to show. */
export function empty(text: string): HTMLElement {
  return h('div', { class: 'jp-Cute-empty' }, h('p', {}, ...prose(text)));
}
