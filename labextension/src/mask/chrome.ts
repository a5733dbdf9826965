/** The legend, and the choice of a batch entry and a head where the mask depends on them. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { BlockSummary } from '../core/record';
import { number } from '../core/text';
import { KEYS } from './keys';
import type { RowWork } from './maps';
import type { Look } from './paint';
import { percent } from './words';

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

export function tools(trans: Translate, act: { zoom(factor: number): void; whole(): void }): HTMLElement {
  const button = (label: string, title: string, onclick: () => void): HTMLElement =>
    h('button', { type: 'button', class: 'jp-CuteMask-button', ...KEYS, title, 'aria-label': title, onclick }, label);
  return h(
    'div',
    { class: 'jp-CuteMask-tools' },
    button('−', trans.__('Zoom out'), () => act.zoom(0.5)),
    button('+', trans.__('Zoom in'), () => act.zoom(2)),
    button(trans.__('Whole'), trans.__('The whole map'), () => act.whole())
  );
}

/** Counts of the map that is drawn, one of several perhaps; what stands beside them looks as the map does at this zoom. */
export class Legend {
  readonly element = h('div', { class: 'jp-CuteMask-legend' });
  private shown: { blocks: BlockSummary; work: RowWork } | null = null;
  private look: Look = 'hatched';

  constructor(private readonly trans: Translate) {}

  show(blocks: BlockSummary, work: RowWork): void {
    this.shown = { blocks, work };
    this.draw();
  }

  /** Called with every frame: it is made anew only where it changes. */
  follow(look: Look): void {
    if (look !== this.look) {
      this.look = look;
      this.draw();
    }
  }

  private draw(): void {
    if (this.shown) {
      this.element.replaceChildren(...legend(this.shown.blocks, this.shown.work, this.look, this.trans));
    }
  }
}

function legend(blocks: BlockSummary, work: RowWork, look: Look, trans: Translate): HTMLElement[] {
  const all = blocks.nq * blocks.nkv;
  const sum = (counts: Uint32Array): number => counts.reduce((total, n) => total + n, 0);
  const [full, partial] = [sum(work.full), sum(work.partial)];
  const mark = (kind: string, words: string, n: number | null): HTMLElement =>
    h(
      'div',
      { class: 'jp-CuteMask-mark' },
      h('span', { class: `jp-CuteMask-swatch jp-mod-${kind}` }),
      h('span', {}, words, n === null ? null : h('span', { class: 'jp-CuteMask-count' }, `${number(n)} · ${percent(n / all)}`))
    );
  const small = (words: string): HTMLElement => h('p', { class: 'jp-CuteMask-size' }, words);
  const cells = look === 'cells';
  const mean = work.mean.toLocaleString('en-US', { maximumFractionDigits: work.mean < 10 ? 1 : 0 });
  return [
    ...(blocks.Bm * blocks.Hm > 1 ? [small(trans.__('In the map that is drawn:'))] : []),
    mark('full', trans.__('full block: no mask is applied'), full),
    mark(cells ? 'cells' : look === 'hatched' ? 'partial' : 'kept', trans.__('partial block: masked cell by cell'), partial),
    ...(cells ? [mark('kept', trans.__('in it: a kept cell'), null), mark('dropped', trans.__('in it: a dropped cell'), null)] : []),
    mark('empty', trans.__('empty block: skipped'), all - full - partial),
    ...(look === 'shares' ? [small(trans.__('A pixel covers several blocks: the paler, the more of them are skipped.'))] : []),
    small(trans.__('A block is %1 × %2 cells.', number(blocks.block_q), number(blocks.block_kv))),
    h(
      'div',
      { class: 'jp-CuteMask-mark jp-CuteMask-size' },
      h('span', { class: 'jp-CuteMask-swatch jp-mod-rows' }),
      h('span', {}, trans.__('blocks/row, the bars at the right: blocks that each row issues, at most %1; the line is the mean, %2', number(work.most), mean))
    )
  ];
}
