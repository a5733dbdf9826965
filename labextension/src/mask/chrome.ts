/** The legend, and the choice of a batch entry and a head where the mask depends on them. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { BlockSummary } from '../core/record';
import { number, percent } from '../core/text';
import type { RowWork } from './maps';

export interface Place {
  readonly b: number;
  readonly h: number;
}

/** Nothing where there is one map only. */
export function chooser(blocks: BlockSummary, now: Place, trans: Translate, act: (place: Place) => void): HTMLElement[] {
  const place = { ...now };
  const one = (name: 'b' | 'h', label: string, size: number): HTMLElement[] => {
    if (size < 2) {
      return [];
    }
    const box = h('input', { type: 'number', min: 0, max: size - 1, step: 1, value: place[name], class: 'jp-CuteMask-number' });
    box.addEventListener('input', () => {
      const value = box.valueAsNumber;
      if (Number.isInteger(value) && value >= 0 && value < size) {
        place[name] = value;
        act({ ...place });
      }
    });
    return [h('label', { class: 'jp-CuteMask-label' }, label, box, trans.__('of 0 to %1', number(size - 1)))];
  };
  return [...one('b', trans.__('batch'), blocks.Bm), ...one('h', trans.__('head'), blocks.Hm)];
}

/** Counts of the map that is drawn, one of several perhaps. */
export function legend(blocks: BlockSummary, work: RowWork, trans: Translate): HTMLElement[] {
  const all = blocks.nq * blocks.nkv;
  const sum = (counts: Uint32Array): number => counts.reduce((total, n) => total + n, 0);
  const [full, partial] = [sum(work.full), sum(work.partial)];
  const rows = [
    ['full', trans.__('full: no mask is applied'), full],
    ['partial', trans.__('partial: masked cell by cell'), partial],
    ['empty', trans.__('empty: skipped'), all - full - partial]
  ] as const;
  const found: HTMLElement[] = rows.map(([kind, words, n]) =>
    h(
      'div',
      { class: 'jp-CuteMask-mark' },
      h('span', { class: `jp-CuteMask-swatch jp-mod-${kind}` }),
      h('span', {}, words, h('span', { class: 'jp-CuteMask-count' }, `${number(n)} · ${percent(n / all)}`))
    )
  );
  if (blocks.Bm * blocks.Hm > 1) {
    found.unshift(h('p', { class: 'jp-CuteMask-size' }, trans.__('In the map that is drawn:')));
  }
  found.push(h('p', { class: 'jp-CuteMask-size' }, trans.__('A block is %1 × %2 cells.', number(blocks.block_q), number(blocks.block_kv))));
  return found;
}
