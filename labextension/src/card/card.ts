/** The card of a run: one line for its state, and tabs. Made of the record's JSON alone, so a saved notebook shows the same. */

import { same } from '../core/decode';
import { h } from '../core/dom';
import type { Disposable } from '../core/dom';
import type { CuteRecord, Parsed } from '../core/record';
import { watchKeys } from '../mask/keys';
import { prose, shown } from './blocks';
import { bounded } from './bounded';
import { headLine } from './head';
import type { Surroundings, Tab } from './tab';
import { TabList } from './tablist';
import { TAB as CHECK } from './tabs/check';
import { TAB as CODE } from './tabs/code';
import { TAB as ENVIRONMENT } from './tabs/environment';
import { TAB as MACHINE } from './tabs/machine';
import { TAB as MASK } from './tabs/mask';
import { renderSummary } from './tabs/summary';
import { TAB as THROUGHPUT } from './tabs/throughput';

const PROVING: readonly Tab[] = [CODE, MASK, CHECK, MACHINE, THROUGHPUT, ENVIRONMENT];

export class Card implements Disposable {
  private readonly root = h('article', { class: 'jp-Cute-card' });
  private tabs: TabList | null = null;
  private chosen = 'summary';
  private shown: CuteRecord | null = null;
  private head: (() => void) | null = null;

  constructor(
    host: HTMLElement,
    private readonly around: Surroundings
  ) {
    watchKeys();
    host.append(this.root);
  }

  /** Draws it; called again when the output is updated in place: the tab that was looked at stays. */
  show(parsed: Parsed): void {
    const t = this.around.trans;
    const record = parsed.kind === 'record' ? parsed.record : null;
    if (record && same(record, this.shown)) {
      this.refresh(); // the same record: what was opened, searched and zoomed stays
      return;
    }
    this.clear();
    this.shown = record;
    if (parsed.kind === 'problem') {
      this.root.className = 'jp-Cute-card jp-Cute-quiet jp-Cute-problem';
      this.root.append(h('p', { role: 'alert' }, h('span', { 'aria-hidden': 'true' }, '⚠ '), shown(parsed.message, 1_000)));
    } else if (parsed.kind === 'part') {
      this.root.className = 'jp-Cute-card jp-Cute-quiet';
      const words = parsed.leftOut || t.__('%1: shown in the card above', shown(parsed.view, 40));
      this.root.append(h('p', {}, ...prose(words, 1_000)));
    } else {
      this.root.className = 'jp-Cute-card';
      this.record(parsed.record);
    }
  }

  /** Opens a tab by its id. */
  choose(tab: string): void {
    this.tabs?.choose(tab);
  }

  /** Looks again whether the cell has changed since, and whether it is pinned; the tabs stay as they are. */
  refresh(): void {
    this.head?.();
  }

  dispose(): void {
    this.clear();
    this.root.remove();
  }

  private clear(): void {
    this.tabs?.dispose();
    this.tabs = null;
    this.head = null;
    this.shown = null;
    this.root.replaceChildren();
  }

  private record(whole: CuteRecord): void {
    const t = this.around.trans;
    const { record, said } = bounded(t, whole);
    const titles = new Map(PROVING.map(tab => [tab.id, tab.title(t)]));
    const open = (tab: string): void => {
      this.choose(tab);
      this.tabs?.focus();
    };
    const pages = [
      { id: 'summary', title: t.__('Summary'), draw: (host: HTMLElement) => renderSummary(host, record, t, open, titles) },
      ...PROVING.map(tab => ({ id: tab.id, title: tab.title(t), draw: (host: HTMLElement) => tab.render(host, record, this.around) }))
    ];
    this.root.setAttribute('aria-label', t.__('Run of %1', shown(record.name, 80)));
    const tabs = new TabList(t.__('What this run shows'), pages, this.chosen, id => (this.chosen = id));
    this.tabs = tabs;
    const note = said ? h('p', { class: 'jp-Cute-bounded' }, said) : '';
    let top = headLine(record, whole, this.around, open);
    this.head = () => {
      const next = headLine(record, whole, this.around, open);
      const focused = [...top.querySelectorAll('button')].indexOf(document.activeElement as HTMLButtonElement);
      top.replaceWith(next);
      top = next;
      next.querySelectorAll('button')[focused]?.focus(); // who has pressed Pin stays on it
    };
    this.root.append(top, note, tabs.bar, tabs.panels);
  }
}
