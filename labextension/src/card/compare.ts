/** Two runs beside each other: one chart, what changed in the code, in the mask and in the machine code. */

import { Disposables, h } from '../core/dom';
import type { Disposable } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { CuteRecord, TargetReport } from '../core/record';
import { watchKeys } from '../mask/keys';
import { KEYS } from './actions';
import { entries } from './bench/series';
import { drawn, empty, shown, tableOf } from './blocks';
import { bounded } from './bounded';
import { chart } from './chart/chart';
import { recordDiffs } from './code/diffview';
import { maskDifference } from './maskdiff';
import { otherWords, sides, when } from './others';
import type { Surroundings } from './tab';
import { architecture, groupedShape } from './words/common';
import { areApart, costWords, figures, isCompiled } from './words/machine';
import { head, lines, table } from './words/page';
import type { Block } from './words/page';
import { number } from './words/quantities';
import { summary } from './words/summary';
import type { Said } from './words/summary';
import { telling } from './words/telling';

export function renderCompare(host: HTMLElement, records: readonly CuteRecord[], around: Surroundings): Disposable {
  const t = around.trans;
  const ends = new Disposables();
  const ordered = records.map(record => bounded(t, record).record).sort((a, b) => (a.created < b.created ? -1 : a.created > b.created ? 1 : 0));
  const root = h('article', { class: 'jp-Cute-card jp-Cute-compare', 'aria-label': t.__('Comparison of runs') });
  watchKeys();
  host.append(root);
  ends.add(() => root.remove());
  const [first, last] = [ordered[0], ordered[ordered.length - 1]];
  if (!first || !last || ordered.length < 2) {
    root.append(empty(t.__('Pin two runs to compare them: their speeds in one chart, their code, their masks and their machine code.')));
    return ends;
  }
  const select = (chosen: number): HTMLSelectElement => {
    const options = otherWords(ordered).map((words, i) => h('option', { value: i }, words));
    const made = h('select', { ...KEYS, class: 'jp-Cute-select' }, ...options);
    made.value = String(chosen);
    return made;
  };
  const [before, after] = [select(0), select(ordered.length - 1)];
  const labels = [h('span'), h('span')] as const;
  const place = h('div');
  let inside = new Disposables();
  const draw = (): void => {
    inside.dispose();
    inside = new Disposables();
    place.replaceChildren();
    const both = [ordered[Number(before.value)] ?? first, ordered[Number(after.value)] ?? last] as const;
    sides(t, ...both).forEach((name, i) => labels[i]?.replaceChildren(name.split(' · ')[0] ?? '')); // the list has the name
    pair(t, place, ...both, inside);
  };
  ends.on(before, 'change', draw);
  ends.on(after, 'change', draw);
  ends.add(() => inside.dispose());
  const speeds = h('section');
  root.append(
    h('header', { class: 'jp-Cute-top' }, h('label', { class: 'jp-Cute-choice' }, labels[0], before), h('label', { class: 'jp-Cute-choice' }, labels[1], after)),
    h('div', { class: 'jp-Cute-panel' }, ...(ordered.some(record => record.bench?.timings.length) ? [speeds, place] : [place, speeds]))
  );
  const part = throughput(t, speeds, ordered);
  ends.add(() => part.dispose());
  draw();
  return ends;
}

function throughput(t: Translate, host: HTMLElement, records: readonly CuteRecord[]): Disposable {
  const measured = records.filter(record => record.bench?.timings.length);
  host.append(...drawn(t, [head(t.__('Throughput'))]));
  if (!measured.length) {
    host.append(h('p', { class: 'jp-Cute-dim' }, t.__('None of these runs was measured on a GPU.')));
    return new Disposables();
  }
  const apart = telling(measured);
  const tags = measured.map((record, i) => {
    const alike = measured.filter(other => other.name === record.name).length;
    const words = apart[i] ?? '';
    const enough = words && measured.filter((other, j) => other.name === record.name && apart[j] === words).length === 1;
    return alike === 1 ? shown(record.name, 30) : enough ? words : `${words} ${when(record).slice(5, 19)}`.trim();
  });
  const all = measured.flatMap((record, i) => (record.bench ? entries(record.bench, i, tags[i] ?? '') : []));
  if (measured.length < records.length) {
    host.append(h('p', { class: 'jp-Cute-dim' }, t.__('%1 of the %2 runs were measured.', measured.length, records.length)));
  }
  return chart(t, host, all);
}

function pair(t: Translate, host: HTMLElement, before: CuteRecord, after: CuteRecord, ends: Disposables): void {
  host.append(...drawn(t, [head(t.__('In words')), ...inWords(t, before, after)]));
  host.append(...drawn(t, [head(t.__('Machine code'))]), ...machine(t, before, after));
  host.append(...drawn(t, [head(t.__('Mask'))]), ...maskDifference(t, before, after));
  host.append(...drawn(t, [head(t.__('Code'))]), recordDiffs(t, before, after));
  ends.add(() => host.replaceChildren());
}

/** What both runs say alike is left out. */
function inWords(t: Translate, before: CuteRecord, after: CuteRecord): Block[] {
  const topics = [
    ['check', t.__('check')],
    ['mask', t.__('mask')],
    ['machine', t.__('machine code')],
    ['throughput', t.__('throughput')]
  ] as const;
  const [a, b] = [summary(t, before), summary(t, after)];
  const of = (all: readonly Said[], tab: string): string => all.filter(said => said.tab === tab).map(said => said.text).join(' ') || '–';
  const same = (x: CuteRecord): string => groupedShape(x.shape);
  const rows: string[][] = [...(same(before) === same(after) ? [] : [[t.__('shape'), same(before), same(after)]]), ...params(t, before, after)];
  for (const [tab, name] of topics) {
    if (of(a, tab) !== of(b, tab)) {
      rows.push([name, of(a, tab), of(b, tab)]);
    }
  }
  return rows.length ? [table(['', ...sides(t, before, after)], rows)] : [lines(t.__('Both runs say the same.'))];
}

function params(t: Translate, before: CuteRecord, after: CuteRecord): string[][] {
  const values = (record: CuteRecord): Map<string, string> => new Map(record.params.map(p => [p.name, String(p.value)]));
  const [a, b] = [values(before), values(after)];
  const names = [...new Set([...a.keys(), ...b.keys()])].slice(0, 50);
  return names.filter(name => a.get(name) !== b.get(name)).map(name => [name, a.get(name) ?? t.__('–'), b.get(name) ?? t.__('–')]);
}

function machine(t: Translate, before: CuteRecord, after: CuteRecord): HTMLElement[] {
  const key = (r: TargetReport): string => `${architecture(r.target)}, ${r.direction}`;
  const of = (record: CuteRecord): Map<string, TargetReport> => new Map(record.targets.map(r => [key(r), r]));
  const [a, b] = [of(before), of(after)];
  const names = [...new Set([...a.keys(), ...b.keys()])].slice(0, 32);
  if (!names.length) {
    return [h('p', { class: 'jp-Cute-dim' }, t.__('Neither run was compiled for a target.'))];
  }
  const marks = new Map<string, string>();
  const rows: string[][] = [];
  const add = (cells: string[], verdict = 0): void => {
    if (verdict) {
      marks.set(`${rows.length} 3`, verdict < 0 ? 'jp-Cute-good' : 'jp-Cute-bad');
    }
    rows.push(cells);
  };
  for (const name of names) {
    const [x, y] = [a.get(name), b.get(name)];
    const [okX, okY] = [x && isCompiled(x) ? x : null, y && isCompiled(y) ? y : null];
    if (!okX || !okY) {
      const state = (r: TargetReport | undefined): string => (r ? (isCompiled(r) ? t.__('✔ compiled') : `⊘ ${r.status}`) : t.__('not compiled'));
      add([name, t.__('result'), state(x), state(y)]);
    }
    for (const [figure, value] of okX || okY ? figures(t) : []) {
      const [p, q] = [okX ? value(okX) : null, okY ? value(okY) : null];
      add([name, figure, p === null ? '–' : number(p), q === null ? '–' : number(q)], p !== null && q !== null ? Math.sign(q - p) : 0);
    }
    if (okX?.cost != null || okY?.cost != null) {
      const [p, q] = [okX?.cost ?? null, okY?.cost ?? null];
      const apart = okX && okY && p !== null && q !== null && areApart(okX, okY);
      add([name, t.__('estimated cost'), okX ? costWords(t, okX) : '–', okY ? costWords(t, okY) : '–'], apart ? Math.sign((q ?? 0) - (p ?? 0)) : 0);
    }
  }
  const block = table([t.__('target'), '', ...sides(t, before, after)], rows.map((row, i) => (i && rows[i - 1]?.[0] === row[0] ? ['', ...row.slice(1)] : row)), 2);
  return block.kind === 'table' ? [tableOf(t, block, (row, cell) => marks.get(`${row} ${cell}`) ?? '')] : [];
}
