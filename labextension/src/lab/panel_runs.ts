/** The runs of the notebook in the side panel. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { keyOf } from '../core/record';
import type { CuteRecord } from '../core/record';
import { clean } from '../core/text';
import { shapeWords } from '../card/words/common';
import { telling } from '../card/words/telling';
import { age, chips, drawChips } from './chips';
import type { Pins } from './pins';
import { reveal } from './places';
import type { Run } from './records';
import { isStale } from './surroundings';

export interface RunsDo {
  readonly trans: Translate;
  readonly pins: Pins;
  readonly tracker: INotebookTracker;
  readonly compare: () => void;
  readonly insertFirst: () => void;
  readonly newNotebook: () => void;
}

export function drawRuns(runs: readonly Run[], act: RunsDo): HTMLElement[] {
  const { trans, pins, tracker } = act;
  const here = new Set(runs.map(run => run.key));
  const elsewhere = pins.records.filter(record => !here.has(keyOf(record)));
  const n = pins.records.length;
  const out: HTMLElement[] = [];
  if (n > 0 || runs.length) {
    const words = n > 1 ? trans.__('%1 pinned', n) : n ? trans.__('1 pinned. Pin one more to compare.') : trans.__('Pin two runs to compare them.');
    out.push(
      h(
        'div',
        { class: 'jp-CuteLab-pinned', 'aria-live': 'polite' }, // without a pin too: the list must not move under the pointer
        h('span', {}, words),
        n > 1 ? h('button', { type: 'button', class: 'jp-CuteLab-button jp-CuteLab-primary', onclick: act.compare }, trans.__('Compare')) : null,
        n ? h('button', { type: 'button', class: 'jp-CuteLab-button', onclick: () => pins.clear() }, trans.__('Unpin all')) : null
      )
    );
  }
  if (!tracker.currentWidget) {
    const words = trans.__('Open a notebook to see its runs here: each variant that a %%cute_attention cell has made.');
    return [...out, empty(words, trans.__('New CuTe Lab notebook'), act.newNotebook)];
  }
  if (!runs.length && !elsewhere.length) {
    const words = trans.__('This notebook has no runs yet. Write a mask or a score in a cell, run it, and it appears here with its verdict.');
    return [...out, h('pre', { class: 'jp-CuteLab-sample' }, SAMPLE), empty(words, trans.__('Insert this cell'), act.insertFirst)];
  }
  const now = Date.now();
  const apart = telling([...runs.map(run => run.record), ...elsewhere]);
  const rows = runs.map((run, i) => row(run.record, run, act, now, apart[i] ?? ''));
  const others = elsewhere.map((record, i) => row(record, null, act, now, apart[runs.length + i] ?? ''));
  out.push(h('ul', { class: 'jp-CuteLab-runs', 'aria-label': trans.__('Runs of this notebook, newest first') }, ...rows, ...others));
  return out;
}

export const SAMPLE = `%%cute_attention --H 8 --Sq 4096
window = slider(64, 2048, 512, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    near = q_idx - kv_idx < window
    return (q_idx >= kv_idx) & near`;

function empty(words: string, button: string, act: () => void): HTMLElement {
  return h('div', { class: 'jp-CuteLab-empty' }, h('p', {}, words), h('button', { type: 'button', class: 'jp-CuteLab-button jp-CuteLab-primary', onclick: act }, button));
}

function row(record: CuteRecord, run: Run | null, act: RunsDo, now: number, apart: string): HTMLElement {
  const { trans, pins, tracker } = act;
  const panel = tracker.currentWidget;
  const cell = run ? panel?.content.widgets.find(widget => widget.model.id === run.cellId) : undefined;
  const stale = cell?.model.type === 'code' && isStale(cell.model as ICodeCellModel, record) === true;
  const pinned = pins.has(record);
  const name = clean(record.name || record.cell.name || trans.__('unnamed'));
  const prompt = run?.prompt ? `[${run.prompt}] ` : '';
  const full = `${prompt}${name} ${clean(apart)}`.trim();
  const jump = (): void => {
    const there = run ? panel?.content.widgets.find(widget => widget.model.id === run.cellId) : undefined; // as it is when clicked
    if (panel && there) {
      void reveal(panel, there);
    }
  };
  return h(
    'li',
    { class: `jp-CuteLab-run${pinned ? ' jp-CuteLab-run-pinned' : ''}` },
    h(
      'button',
      { type: 'button', class: 'jp-CuteLab-run-main', onclick: jump, title: run ? trans.__('Go to its cell') : trans.__('From another notebook') },
      h('span', { class: 'jp-CuteLab-run-head' }, h('span', { class: 'jp-CuteLab-run-name', title: full }, prompt && h('span', { class: 'jp-CuteLab-run-apart' }, prompt), name, apart && h('span', { class: 'jp-CuteLab-run-apart' }, ` ${clean(apart)}`)), h('span', { class: 'jp-CuteLab-faint' }, age(record.created, now, trans))),
      h('span', { class: 'jp-CuteLab-run-shape' }, shapeWords(record.shape)),
      drawChips(chips(record, trans), stale ? trans.__('from an earlier version') : run ? '' : trans.__('other notebook'))
    ),
    h(
      'button',
      {
        type: 'button',
        class: 'jp-CuteLab-pin',
        'aria-pressed': pinned ? 'true' : 'false',
        'aria-label': pinned ? trans.__('Unpin %1', full) : trans.__('Pin %1 to compare', full),
        title: pinned ? trans.__('Unpin') : trans.__('Pin to compare'),
        onclick: () => pins.toggle(record, run ? panel?.context.path : '')
      },
      pinIcon(pinned)
    )
  );
}

function pinIcon(pinned: boolean): HTMLElement {
  return h('span', { class: `jp-CuteLab-pin-icon${pinned ? ' jp-CuteLab-pin-on' : ''}`, 'aria-hidden': 'true' });
}
