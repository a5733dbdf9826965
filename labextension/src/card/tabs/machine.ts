/** Machine code: what each compiler made of the kernel, the targets side by side; listings with the cell's line beside each instruction. */

import { Disposables, h } from '../../core/dom';
import type { Child } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import type { CuteRecord, TargetReport } from '../../core/record';
import { KEYS } from '../actions';
import { codeBlock, drawn, empty, prose, shown } from '../blocks';
import { hues, listings } from '../code/listing';
import type { Listing } from '../code/listing';
import { Pane } from '../code/pane';
import { otherChoice, sides } from '../others';
import type { Surroundings, Tab } from '../tab';
import { cellLines, column, noteWords } from '../words/common';
import { BAND } from '../words/heavy';
import { aboutCost, aboutLines, areApart, costTable, costWords, figures, isCalibrated, isCompiled, mixOf, mixWords, pipes, shareWords, timeWords } from '../words/machine';
import { head, missing } from '../words/page';
import { number, short, whole } from '../words/quantities';

export const TAB: Tab = {
  id: 'machine',
  title: t => t.__('Machine code'),
  render: (host, record, around) => {
    const t = around.trans;
    const ends = new Disposables();
    if (!record.targets.length) {
      host.append(empty(missing(t, 'targets', record.name)));
      return ends;
    }
    const place = h('div', { class: 'jp-Cute-columns' });
    const draw = (other: CuteRecord | null): void => {
      place.replaceChildren(...record.targets.slice(0, 16).map(report => targetColumn(t, report, record.targets, same(other, report), other ? sides(t, other, record)[0].replace(/^A · /, '') : '')));
    };
    const choice = otherChoice(record, around, draw);
    if (choice) {
      host.append(h('div', { class: 'jp-Cute-bar' }, choice.element));
      choice.apply();
    } else {
      draw(null);
    }
    host.append(place);
    if (record.targets.some(r => r.cost !== null)) {
      host.append(h('div', { class: 'jp-Cute-lines jp-Cute-dim' }, ...aboutCost(t).map(line => h('p', {}, ...prose(line)))));
    }
    if (costTable(record).rows.length) {
      host.append(...drawn(t, [head(t.__('Cost by line'))]), lineCosts(t, record));
    }
    host.append(...listed(t, record, around, ends));
    return ends;
  }
};

/** The other record's report of the same target and direction, if it has one. */
function same(other: CuteRecord | null, report: TargetReport): TargetReport | null {
  return other?.targets.find(r => r.target === report.target && r.direction === report.direction && isCompiled(r)) ?? null;
}

function targetColumn(t: Translate, report: TargetReport, all: readonly TargetReport[], before: TargetReport | null, name: string): HTMLElement {
  const ok = isCompiled(report);
  const state = h('span', { class: ok ? 'jp-Cute-good' : 'jp-Cute-warn' }, ok ? t.__('✔ compiled') : `⊘ ${report.status}`);
  const body: Child[] = ok ? [facts(t, report, before), pipeBars(t, report, all, before), rank(t, report, before, name)] : [h('p', {}, ...prose(`⊘ ${report.reason}`))];
  const advice = report.advice.slice(0, 50).flatMap(note => [
    h('p', { class: 'jp-Cute-advice' }, ...prose(noteWords(t, note))),
    ...(note.fix.includes('\n') ? [codeBlock(t, note.fix)] : [])
  ]);
  return h('section', { class: 'jp-Cute-column' }, h('h4', { class: 'jp-Cute-columnHead' }, shown(column(report, all), 80), ' ', state), ...body, ...advice);
}

function change(before: number | undefined, now: number): Child[] {
  if (before === undefined || before === now) {
    return [number(now)];
  }
  const cls = now < before ? 'jp-Cute-good' : 'jp-Cute-bad';
  return [h('span', { class: 'jp-Cute-dim' }, `${number(before)} → `), h('span', { class: cls }, number(now))];
}

function facts(t: Translate, report: TargetReport, before: TargetReport | null): HTMLElement {
  const rows = figures(t).map(([name, of]) => h('tr', {}, h('th', { scope: 'row' }, name), h('td', { class: 'jp-Cute-right' }, ...change(before ? of(before) : undefined, of(report)))));
  const time = h('tr', {}, h('th', { scope: 'row' }, t.__('compile time')), h('td', { class: 'jp-Cute-right' }, report.cached ? t.__('%1 s at first; now from the cache', short(report.seconds)) : timeWords(t, report)));
  return h('table', { class: 'jp-Cute-table jp-Cute-facts' }, h('tbody', {}, ...rows, time));
}

function pipeBars(t: Translate, report: TargetReport, all: readonly TargetReport[], before: TargetReport | null): HTMLElement {
  const names = pipes(all).slice(0, 24);
  const most = Math.max(1, ...all.flatMap(r => names.map(pipe => mixOf(r, pipe))));
  const rows = names.map(pipe => {
    const n = mixOf(report, pipe);
    const fill = h('span', { class: 'jp-Cute-barFill' });
    fill.style.width = `${(100 * n) / most}%`;
    const cells = change(before ? mixOf(before, pipe) : undefined, n);
    return h('tr', {}, h('th', { scope: 'row' }, shown(pipe, 24)), h('td', { class: 'jp-Cute-barCell' }, h('span', { class: 'jp-Cute-barTrack' }, fill)), h('td', { class: 'jp-Cute-right' }, ...cells));
  });
  return h('table', { class: 'jp-Cute-table jp-Cute-pipes' }, h('caption', {}, t.__('instructions in the main loop, a tile')), h('tbody', {}, ...rows));
}

/** The estimate as a band on a scale that holds the other record's too: bands that overlap are no difference. No band where the error is not known. */
function rank(t: Translate, report: TargetReport, before: TargetReport | null, name: string): HTMLElement | null {
  if (report.cost === null) {
    return null;
  }
  const cost = report.cost;
  const other = before?.cost ?? null;
  const top = Math.max(cost, other ?? 0) * (1 + BAND) * 1.04 || 1;
  const band = (value: number, cls: string): HTMLElement => {
    const bar = h('span', { class: `jp-Cute-band ${cls}` });
    bar.style.left = `${(100 * value * (1 - BAND)) / top}%`;
    bar.style.width = `${(100 * value * 2 * BAND) / top}%`;
    return h('span', { class: 'jp-Cute-bandTrack' }, bar);
  };
  const apart = other !== null && before !== null && areApart(report, before);
  const words =
    other === null || !before
      ? ''
      : apart === null
        ? t.__('%1: %2', name, costWords(t, before))
        : apart
          ? t.__('%1 than %2: %3', cost < other ? t.__('cheaper') : t.__('dearer'), name, costWords(t, before))
          : t.__('no difference from %1: %2', name, costWords(t, before));
  return h(
    'div',
    { class: 'jp-Cute-rank' },
    h('p', {}, t.__('estimated cost'), ' ', h('strong', {}, costWords(t, report)), ' ', t.__('cycles a tile')),
    ...(isCalibrated(report)
      ? [
          band(cost, 'jp-Cute-bandNow'),
          other === null ? null : band(other, 'jp-Cute-bandBefore'),
          h('p', { class: 'jp-Cute-dim jp-Cute-ends' }, h('span', {}, '0'), h('span', {}, t.__('bar: the range')), h('span', {}, whole(top)))
        ]
      : [h('p', { class: 'jp-Cute-dim' }, t.__('No bar: its error is not known here.'))]),
    words ? h('p', { class: apart ? (cost < (other ?? 0) ? 'jp-Cute-good' : 'jp-Cute-bad') : 'jp-Cute-dim' }, words) : null
  );
}

function lineCosts(t: Translate, record: CuteRecord): HTMLElement {
  const { reports, rows } = costTable(record);
  const cell = cellLines(record);
  const colours = hues(record);
  const body = rows.slice(0, 400).map(({ line, costs }) => {
    const hue = colours.get(line);
    const cells = costs.flatMap(cost => {
      const fill = h('span', { class: 'jp-Cute-barFill' });
      fill.style.width = `${100 * Math.min(1, Math.max(0, cost?.share || 0))}%`;
      return [
        h('td', { class: 'jp-Cute-barCell' }, cost ? h('span', { class: 'jp-Cute-barTrack' }, fill) : null, cost ? ` ${shareWords(cost)}` : ''),
        h('td', { class: 'jp-Cute-dim' }, cost ? mixWords(cost) : '')
      ];
    });
    const code = line ? h('code', { class: 'jp-Cute-verbatim' }, shown((cell.get(line) ?? '').trim(), 200)) : h('span', { class: 'jp-Cute-dim' }, t.__('(from no line of yours)'));
    return h('tr', { class: hue === undefined ? null : `jp-Cute-hue${hue}` }, h('th', { scope: 'row', class: 'jp-Cute-lineNumber' }, line || ''), h('td', {}, code), ...cells);
  });
  const titles = [t.__('line'), t.__('your code'), ...reports.flatMap(r => [column(r, reports), t.__('instructions')])];
  return h(
    'div',
    { class: 'jp-Cute-scroll', tabindex: 0, role: 'group', 'aria-label': t.__('Cost by line') },
    h('table', { class: 'jp-Cute-table jp-Cute-costs' }, h('thead', {}, h('tr', {}, ...titles.map(text => h('th', { scope: 'col' }, shown(text, 80))))), h('tbody', {}, ...body)),
    h('p', { class: 'jp-Cute-dim' }, aboutLines(t))
  );
}

/** A pane per target; which text it shows is chosen for all of them. */
function listed(t: Translate, record: CuteRecord, around: Surroundings, ends: Disposables): HTMLElement[] {
  const all = listings(t, record).filter(one => one.group === 'machine');
  const title = drawn(t, [head(t.__('Listing'))]);
  if (!all.length) {
    const words = t.__('This record holds no listing. `lab.compile(…).sass` and `.ptx` print them; a run with this version of cute_lab records them.');
    return [...title, h('p', { class: 'jp-Cute-dim' }, ...prose(words))];
  }
  const cell = cellLines(record);
  const panes: Pane[] = [];
  const row = h('div', { class: 'jp-Cute-paneRow' });
  const of = (language: string): Listing[] => all.filter(one => one.language === language).slice(0, 4);
  let picked = 0;
  const show = (language: string): void => {
    panes.splice(0).forEach(pane => pane.dispose());
    for (const listing of of(language)) {
      const pane = new Pane({
        trans: around.trans,
        hues: hues(record),
        onLine: (line, chosen, from) => {
          picked = chosen ? line : picked;
          panes.forEach(one => one.highlight(line || picked, one !== from));
        },
        ghost: line => `${(cell.get(line) ?? '').trim()}`,
        tools: [h('strong', { class: 'jp-Cute-paneTitle' }, shown(listing.title, 80))]
      });
      panes.push(pane);
      row.append(pane.element);
      pane.show(listing);
    }
    row.classList.toggle('jp-Cute-onePane', panes.length === 1);
  };
  const buttons = (['sass', 'ptx'] as const).map(language =>
    h('button', { class: 'jp-Cute-button', type: 'button', ...KEYS, 'aria-pressed': String(language === 'sass'), onclick: () => press(language) }, language.toUpperCase())
  );
  const press = (language: string): void => {
    buttons.forEach(button => button.setAttribute('aria-pressed', String(button.textContent === language.toUpperCase())));
    show(language);
  };
  show('sass');
  ends.add(() => panes.splice(0).forEach(pane => pane.dispose()));
  const key = t.__('The number beside an instruction is the line of your cell that it comes from; a bar at the left marks the main loop.');
  return [...title, h('div', { class: 'jp-Cute-bar' }, ...buttons, h('span', { class: 'jp-Cute-dim' }, key)), row];
}
