/** The card's first line: name, shape, chips for the state, buttons. A chip opens the tab that proves it. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { CuteRecord, TargetReport } from '../core/record';
import { copyButton, download, fileName, iconButton, KEYS, recordText } from './actions';
import { isWrong, speed } from './bench/series';
import { OURS, spread } from './bench/statistics';
import { shown } from './blocks';
import type { Surroundings } from './tab';
import { architecture, groupedShape, place, registerWords } from './words/common';
import { fixed, oneLine, short, whole } from './words/quantities';
import { checkLines, largest, paramWords, summary } from './words/summary';

export type State = 'good' | 'bad' | 'warn' | 'none';

export interface Chip {
  readonly state: State;
  readonly text: string;
  /** The whole of it, for a reader who asks. */
  readonly title: string;
  readonly tab: string;
}

export function chips(t: Translate, record: CuteRecord): Chip[] {
  return [checkChip(t, record), ...targetChips(t, record), ...speedChips(t, record)];
}

function checkChip(t: Translate, record: CuteRecord): Chip {
  const title = checkLines(t, record.checks, record.name)
    .map(said => said.text)
    .join(' ');
  const differs = record.checks.find(check => !check.ok);
  if (differs) {
    return { state: 'bad', text: t.__('✘ differs%1', place(differs.worst)), title, tab: 'check' };
  }
  if (!record.checks.length) {
    return { state: 'none', text: t.__('○ not checked'), title, tab: 'check' };
  }
  const worst = Math.max(...record.checks.map(check => check.max_rel_error));
  return { state: 'good', text: t.__('✔ verified %1', worst === 0 ? t.__('exactly') : short(worst)), title, tab: 'check' };
}

function targetChips(t: Translate, record: CuteRecord): Chip[] {
  const names = [...new Set(record.targets.map(r => r.target))];
  return names.map(name => {
    const reports = record.targets.filter(r => r.target === name);
    const bad = reports.find(r => r.status !== 'compiled');
    if (bad) {
      const which = reports.length > 1 ? ` ${bad.direction}` : '';
      return { state: 'warn', text: `⊘ ${name}${which} ${bad.status}`, title: `${architecture(name)}, ${bad.direction}: ${bad.status}. ${bad.reason}`, tab: 'machine' };
    }
    const spills = reports.reduce((sum, r) => sum + r.spill_stores + r.spill_loads, 0);
    return { state: spills ? 'warn' : 'good', text: spills ? t.__('%1 spills', name) : name, title: reports.map(r => compiledWords(t, r)).join(' '), tab: 'machine' };
  });
}

function compiledWords(t: Translate, report: TargetReport): string {
  return t.__('%1, %2: compiled, %3.', architecture(report.target), report.direction, registerWords(t, report).join(', '));
}

function speedChips(t: Translate, record: CuteRecord): Chip[] {
  const { bench } = record;
  if (!bench) {
    return [];
  }
  const card = oneLine(bench.device, 40).replace(/^NVIDIA /, '');
  const direction = bench.timings.some(one => one.contender === OURS && one.direction === 'forward') ? 'forward' : 'forward+backward';
  const ours = bench.timings.filter(one => one.contender === OURS && one.direction === direction);
  if (!ours.length) {
    return [];
  }
  const said = summary(t, record).find(one => one.tab === 'throughput');
  const title = `${t.__('Measured %1.', record.created)} ${said?.text ?? ''}`;
  if (ours.some(isWrong)) {
    return [{ state: 'bad', text: t.__('✘ %1: wrong on the GPU', card), title, tab: 'throughput' }];
  }
  const best = largest(ours);
  const reached = speed(bench, best);
  if (!reached) {
    return [{ state: 'none', text: best.status === 'checked' ? t.__('%1 checked, not timed', card) : t.__('%1 not measured', card), title, tab: 'throughput' }];
  }
  const text = t.__('%1 %2 TFLOP/s ±%3 %', card, whole(reached.median), spreadWords(spread(reached)));
  return [{ state: best.accuracy.length ? 'good' : 'none', text, title, tab: 'throughput' }];
}

function spreadWords(share: number): string {
  return fixed(100 * share, share < 0.0095 ? 1 : 0);
}

/** `whole`: what is copied and saved. */
export function headLine(record: CuteRecord, whole: CuteRecord, around: Surroundings, choose: (tab: string) => void): HTMLElement {
  const t = around.trans;
  const stale = around.isStale?.() === true;
  const { pin, reveal } = around;
  const pinned = around.isPinned?.();
  return h(
    'header',
    { class: `jp-Cute-top${stale ? ' jp-Cute-stale' : ''}` },
    h('span', { class: 'jp-Cute-name' }, shown(record.name, 80) || t.__('unnamed')),
    h('span', { class: 'jp-Cute-shape' }, shown(groupedShape(record.shape) + paramWords(record), 160)),
    h(
      'span',
      { class: 'jp-Cute-chips' },
      ...chips(t, record).map(chip =>
        h(
          'button',
          {
            class: `jp-Cute-chip jp-Cute-is-${stale ? 'none' : chip.state}`,
            type: 'button', ...KEYS,
            title: shown(chip.title, 800),
            'aria-description': shown(chip.title, 800),
            onclick: () => choose(chip.tab)
          },
          shown(chip.text, 60)
        )
      ),
      stale && h('span', { class: 'jp-Cute-staleWords' }, t.__('from an earlier version'))
    ),
    h(
      'span',
      { class: 'jp-Cute-actions' },
      reveal && iconButton('reveal', t.__('Show the cell'), reveal),
      pin && iconButton('pin', pinned ? t.__('Unpin') : t.__('Pin to compare'), pin, pinned),
      copyButton(t, () => recordText(whole), t.__('Copy the record as JSON')),
      iconButton('download', t.__('Download the record'), () => download(fileName(record.name, '.cute.json'), recordText(whole), 'application/json'))
    )
  );
}
