/** What a line became, and what it costs. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { clean, number, percent } from '../core/text';
import type { Hover } from './protocol';

const MOST = 14; // lines of generated code

export function hoverCard(found: Hover, trans: Translate): HTMLElement {
  const shown = dedent(found.generated.slice(0, MOST).map(clean));
  const more = found.generated.length - shown.length;
  return h(
    'div',
    { class: 'jp-CuteLab-hover' },
    h('div', { class: 'jp-CuteLab-hover-head' }, trans.__('Line %1 in CuTeDSL', found.line)),
    shown.length ? h('pre', {}, shown.join('\n')) : null,
    more > 0 ? h('div', { class: 'jp-CuteLab-hover-words' }, trans._n('and %1 more line', 'and %1 more lines', more)) : null,
    ...found.costs.map(cost =>
      h(
        'div',
        { class: 'jp-CuteLab-hover-cost' },
        h('span', {}, clean(cost.target)),
        meter(cost.share),
        h('span', {}, trans.__('%1 of the mod', percent(cost.share))),
        h('span', { class: 'jp-CuteLab-faint' }, trans._n('%1 instruction', '%1 instructions', Math.round(cost.instructions)).replace(/\d{4,}/, n => number(Number(n))))
      )
    ),
    found.words ? h('div', { class: 'jp-CuteLab-hover-words' }, clean(found.words)) : null
  );
}

function meter(share: number): HTMLElement {
  return h('meter', { min: 0, max: 1, value: Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0, class: 'jp-CuteLab-meter' });
}

function dedent(lines: readonly string[]): string[] {
  const indents = lines.filter(line => line.trim()).map(line => line.length - line.trimStart().length);
  return lines.map(line => line.slice(Math.min(...indents)));
}
