/** Two texts side by side, what is equal folded away. */

import { h } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import type { CuteRecord } from '../../core/record';
import { clean } from '../../core/text';
import { shown } from '../blocks';
import { number } from '../words/quantities';
import { counts, diff } from './diff';
import type { Change } from './diff';
import { marked } from './find';
import { openings, pieces } from './tokens';
import type { Language } from './tokens';

const AROUND = 3; // equal lines shown around a change
const MOST = 1_500; // rows

function split(text: string): string[] {
  return clean(text.replace(/\n+$/, '')).split('\n').slice(0, 20_000);
}

/** Of the cell and of the CuTeDSL. */
export function recordDiffs(t: Translate, before: CuteRecord, after: CuteRecord): HTMLElement {
  return h(
    'div',
    { class: 'jp-Cute-diffs' },
    textDiff(t, t.__('Your cell'), before.cell.text, after.cell.text, 'python', [before.cell.first_line, after.cell.first_line]),
    textDiff(t, t.__('Generated CuTeDSL'), uncommented(before.source.text), uncommented(after.source.text), 'python')
  );
}

/** A line's number in the trailing comment changes with every line above it: that is no change of the code. */
function uncommented(source: string): string {
  return source.replace(/[ \t]+# \d+\| .*$/gm, '');
}

function textDiff(t: Translate, title: string, before: string, after: string, language: Language, first: [number, number] = [1, 1]): HTMLElement {
  const [a, b] = [split(before), split(after)];
  const changes = diff(a, b);
  const { added, removed } = counts(changes);
  const words = added || removed ? t.__('%1 added, %2 removed', number(added), number(removed)) : t.__('no difference');
  const quotes = [openings(a), openings(b)] as const;
  const side = (which: 0 | 1, i: number, same: boolean): HTMLElement => {
    const lines = which ? b : a;
    const cls = i < 0 ? 'jp-Cute-none' : same ? '' : which ? 'jp-Cute-add' : 'jp-Cute-del';
    const body = i < 0 ? [] : marked(pieces(shown(lines[i] as string, 1_000), language, quotes[which][i] ?? ''), '', false);
    return h(
      'div',
      { class: `jp-Cute-diffLine ${cls}` },
      h('span', { class: 'jp-Cute-number' }, i < 0 ? '' : i + first[which]),
      h('span', { class: 'jp-Cute-mark' }, same || i < 0 ? '' : which ? '+' : '−'),
      h('span', { class: 'jp-Cute-text' }, ...body)
    );
  };
  const rows: HTMLElement[] = [];
  for (const part of folded(changes)) {
    if (typeof part === 'number') {
      rows.push(h('div', { class: 'jp-Cute-diffFold' }, t._n('… %2 equal line', '… %2 equal lines', part, number(part))));
    } else {
      rows.push(h('div', { class: 'jp-Cute-diffRow' }, side(0, part.a, part.same), side(1, part.b, part.same)));
    }
    if (rows.length > MOST) {
      rows.push(h('div', { class: 'jp-Cute-diffFold' }, t.__('… and more')));
      break;
    }
  }
  return h(
    'section',
    { class: 'jp-Cute-diff' },
    h('h4', { class: 'jp-Cute-head' }, title, h('span', { class: 'jp-Cute-dim' }, ` · ${words}`)),
    added || removed ? h('div', { class: 'jp-Cute-diffBody', tabindex: 0, role: 'group', 'aria-label': title }, ...rows) : null
  );
}

interface Row {
  readonly same: boolean;
  readonly a: number;
  readonly b: number;
}

/** Removed and added lines side by side, long equal runs as their length. */
function folded(changes: readonly Change[]): (Row | number)[] {
  const out: (Row | number)[] = [];
  let i = 0;
  while (i < changes.length) {
    let end = i;
    const same = changes[i]?.kind === 'same';
    while (end < changes.length && (changes[end]?.kind === 'same') === same) {
      end += 1;
    }
    const run = changes.slice(i, end);
    if (same) {
      const all = run.map(({ a, b }): Row => ({ same, a, b }));
      const head = i === 0 ? 0 : AROUND;
      const tail = end === changes.length ? 0 : AROUND;
      const fold = all.length - head - tail;
      out.push(...(fold > 1 ? [...all.slice(0, head), fold, ...all.slice(all.length - tail)] : all));
    } else {
      const gone = run.filter(c => c.kind === 'del');
      const come = run.filter(c => c.kind === 'add');
      for (let n = 0; n < Math.max(gone.length, come.length); n++) {
        out.push({ same, a: gone[n]?.a ?? -1, b: come[n]?.b ?? -1 });
      }
    }
    i = end;
  }
  return out;
}
