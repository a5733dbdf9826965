/** Code: the cell beside what was made of it, linked line by line; or what changed since another run. */

import { Disposables, h } from '../../core/dom';
import type { Disposable } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import type { CuteRecord } from '../../core/record';
import { iconButton, KEYS } from '../actions';
import { prose, shown } from '../blocks';
import { counts, diff } from '../code/diff';
import { recordDiffs } from '../code/diffview';
import { heatKey, heatOf, lineWords } from '../code/heat';
import { hues, listings } from '../code/listing';
import type { Listing } from '../code/listing';
import { LINE, Pane } from '../code/pane';
import { otherChoice } from '../others';
import type { Surroundings, Tab } from '../tab';
import { cellLines } from '../words/common';

const MOST_PANES = 4;

export const TAB: Tab = {
  id: 'code',
  title: t => t.__('Code'),
  render: (host, record, around) => new CodeTab(host, record, around)
};

class CodeTab implements Disposable {
  private readonly ends = new Disposables();
  private readonly panes: Pane[] = [];
  private readonly selects = new WeakMap<Pane, HTMLSelectElement>(); // which text each of them shows
  private readonly row = h('div', { class: 'jp-Cute-paneRow' });
  private readonly said = h('div', { class: 'jp-Cute-readout', role: 'status', 'aria-live': 'polite' });
  private readonly add: HTMLButtonElement;
  private readonly all: Listing[];
  private readonly hues: Map<number, number>;
  private readonly cell: Map<number, string>;
  private picked = 0;

  constructor(
    host: HTMLElement,
    private readonly record: CuteRecord,
    private readonly around: Surroundings
  ) {
    const t = around.trans;
    this.all = listings(t, record);
    this.hues = hues(record);
    this.cell = cellLines(record);
    this.add = h('button', { class: 'jp-Cute-button', type: 'button', ...KEYS, onclick: () => this.open(this.next()) }, t.__('+ pane'));
    const linked = h('div', { class: 'jp-Cute-linked' }, this.row, this.said);
    const place = h('div', { class: 'jp-Cute-diffPlace', hidden: true });
    host.append(h('div', { class: 'jp-Cute-bar' }, ...this.changes(t, linked, place), this.add), linked, place);
    // As high as the text needs, within bounds, and then fixed: the notebook must not jump.
    const longest = Math.max(record.cell.text.split('\n').length, record.source.user_lines.length + 1);
    this.row.style.setProperty('--jp-Cute-listingHeight', `${LINE * Math.min(22, Math.max(12, longest))}px`);
    this.open(this.all[0] as Listing);
    this.open(this.next());
    this.look(0, false, null);
  }

  dispose(): void {
    this.ends.dispose();
    this.panes.splice(0).forEach(pane => pane.dispose());
  }

  /** The switch between the panes and the difference; nothing where there is no other record. */
  private changes(t: Translate, linked: HTMLElement, place: HTMLElement): HTMLElement[] {
    const choice = otherChoice(this.record, this.around, other => {
      button.disabled = !other;
      if (!other) {
        button.textContent = t.__('Changes');
        show(false);
        return;
      }
      const n = counts(diff(other.cell.text.split('\n').slice(0, 5_000), this.record.cell.text.split('\n').slice(0, 5_000)));
      button.textContent = t.__('Changes (+%1 −%2)', n.added, n.removed);
      place.replaceChildren(recordDiffs(t, other, this.record));
    });
    if (!choice) {
      return [];
    }
    const button = h('button', { class: 'jp-Cute-button', type: 'button', ...KEYS, 'aria-pressed': 'false' }, t.__('Changes'));
    const show = (on: boolean): void => {
      place.hidden = !on;
      linked.hidden = on;
      this.add.hidden = on;
      button.setAttribute('aria-pressed', String(on));
    };
    this.ends.on(button, 'click', () => show(place.hidden));
    choice.apply();
    return [button, choice.element];
  }

  /** What is most worth seeing of what no pane shows: the generated code, then machine code, then the rest. */
  private next(): Listing {
    const open = new Set(this.panes.map(pane => pane.id));
    const free = this.all.filter(listing => !open.has(listing.id));
    return free.find(l => l.id.startsWith('cutedsl')) ?? free.find(l => l.id.startsWith('sass')) ?? free[0] ?? (this.all[0] as Listing);
  }

  private open(listing: Listing): void {
    const t = this.around.trans;
    const select = this.selector(t);
    const close = iconButton('close', t.__('Close this pane'), () => {
      this.panes.splice(this.panes.indexOf(pane), 1);
      pane.dispose();
      this.settle();
    });
    close.classList.add('jp-Cute-closePane');
    const pane: Pane = new Pane({
      trans: t,
      hues: this.hues,
      onLine: (line, picked, from) => this.look(line, picked, from),
      onPick: (line, from) => this.turn(line, from),
      heat: heatOf(t, this.record),
      heatKey: heatKey(t, this.record),
      ghost: line => (this.cell.get(line) ?? '').trim(),
      tools: [select, close]
    });
    select.value = listing.id;
    select.addEventListener('change', () => pane.show(this.all.find(one => one.id === select.value) ?? listing));
    this.selects.set(pane, select);
    this.panes.push(pane);
    this.row.append(pane.element);
    pane.show(listing);
    pane.highlight(this.picked, true);
    this.settle();
  }

  private settle(): void {
    this.row.classList.toggle('jp-Cute-onePane', this.panes.length === 1);
    this.add.disabled = this.panes.length >= MOST_PANES || this.panes.length >= this.all.length;
  }

  private selector(t: Translate): HTMLSelectElement {
    const groups = { source: t.__('source'), generated: t.__('generated'), machine: t.__('machine code'), other: t.__('for comparison') };
    const made = Object.entries(groups).map(([id, label]) => {
      const options = this.all.filter(one => one.group === id).map(one => h('option', { value: one.id }, shown(one.title, 60)));
      if (id === 'machine' && !options.length) {
        options.push(h('option', { value: '', disabled: true }, t.__('PTX, SASS: not in this record')));
      }
      return options.length ? h('optgroup', { label }, ...options) : null;
    });
    return h('select', { ...KEYS, class: 'jp-Cute-select', 'aria-label': t.__('What this pane shows') }, ...made);
  }

  /** A picked line whose result no other pane shows: the pane with generated code turns to the function that has it. */
  private turn(line: number, from: Pane): void {
    const others = this.panes.filter(pane => pane !== from);
    const pane = others.find(one => one.id.startsWith('cutedsl'));
    if (!line || !pane || others.some(one => one.id !== 'cell' && one.results(line))) {
      return;
    }
    const functions = this.all.filter(one => one.id.startsWith('cutedsl:'));
    const wanted = functions.find(one => one.load().userLines.includes(line)) ?? functions.find(one => one.id === `cutedsl:${this.functionOf(line)}`);
    const select = this.selects.get(pane);
    if (wanted && select && pane.id !== wanted.id) {
      select.value = wanted.id;
      pane.show(wanted);
    }
  }

  /** The function of the cell that a line stands in: its `def` and its comments became no code of their own. */
  private functionOf(line: number): string {
    for (let at = line; this.cell.has(at); at--) {
      const text = this.cell.get(at) ?? '';
      const name = /^def\s+(\w+)/.exec(text)?.[1];
      if (name || /^[^\s#)]/.test(text)) {
        return name ?? '';
      }
    }
    return '';
  }

  private look(line: number, picked: boolean, from: Pane | null): void {
    if (picked) {
      this.picked = line === this.picked && from && line === 0 ? 0 : line;
    }
    const shownLine = line || this.picked;
    for (const pane of this.panes) {
      pane.highlight(shownLine, pane !== from && shownLine !== 0);
    }
    const t = this.around.trans;
    const idle = t.__('Point at a line to see what it became, and what it costs. A click or the arrow keys keep it.');
    this.said.replaceChildren(h('p', {}, ...prose(shownLine ? lineWords(t, this.record, shownLine, this.cell.get(shownLine) ?? '') : idle, 900)));
    this.said.classList.toggle('jp-Cute-dim', !shownLine);
  }
}
