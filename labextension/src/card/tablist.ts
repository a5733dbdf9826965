/** Tabs by the ARIA pattern: one of them is in the tab order, arrows, Home and End move, panels are drawn when first looked at. */

import { Disposables, h } from '../core/dom';
import type { Disposable } from '../core/dom';
import { KEYS } from './actions';

export interface Page {
  readonly id: string;
  readonly title: string;
  readonly draw: (host: HTMLElement) => Disposable;
}

let made = 0;

export class TabList implements Disposable {
  readonly bar: HTMLElement;
  readonly panels: HTMLElement;
  private readonly ends = new Disposables();
  private readonly tabs: HTMLButtonElement[];
  private readonly hosts: HTMLElement[];
  private readonly drawn = new Set<string>();
  chosen = '';

  constructor(
    label: string,
    private readonly pages: readonly Page[],
    chosen: string,
    private readonly onChoose: (id: string) => void = () => undefined
  ) {
    const name = `jp-Cute-tabs-${(made += 1)}`;
    this.tabs = pages.map(page =>
      h(
        'button',
        { class: 'jp-Cute-tab', type: 'button', ...KEYS, role: 'tab', id: `${name}-${page.id}`, 'aria-controls': `${name}-${page.id}-panel`, onclick: () => this.choose(page.id) },
        page.title
      )
    );
    this.hosts = pages.map(page =>
      h('div', {
        class: `jp-Cute-panel jp-Cute-panel-${page.id}`,
        role: 'tabpanel',
        id: `${name}-${page.id}-panel`,
        'aria-labelledby': `${name}-${page.id}`,
        tabindex: 0
      })
    );
    this.bar = h('div', { class: 'jp-Cute-tabs', role: 'tablist', 'aria-label': label }, ...this.tabs);
    this.panels = h('div', { class: 'jp-Cute-panels' }, ...this.hosts);
    this.ends.on<KeyboardEvent>(this.bar, 'keydown', event => this.key(event));
    this.choose(pages.some(page => page.id === chosen) ? chosen : (pages[0]?.id ?? ''));
  }

  choose(id: string): void {
    const at = this.pages.findIndex(page => page.id === id);
    const page = this.pages[at];
    if (!page) {
      return;
    }
    this.chosen = id;
    this.tabs.forEach((tab, i) => {
      tab.setAttribute('aria-selected', String(i === at));
      tab.tabIndex = i === at ? 0 : -1;
    });
    this.hosts.forEach((host, i) => (host.hidden = i !== at));
    if (!this.drawn.has(id)) {
      this.drawn.add(id);
      const part = page.draw(this.hosts[at] as HTMLElement);
      this.ends.add(() => part.dispose());
    }
    this.onChoose(id);
  }

  focus(): void {
    this.tabs.find(tab => tab.tabIndex === 0)?.focus();
  }

  dispose(): void {
    this.ends.dispose();
    this.bar.remove();
    this.panels.remove();
  }

  private key(event: KeyboardEvent): void {
    const at = this.pages.findIndex(page => page.id === this.chosen);
    const last = this.pages.length - 1;
    const to: Record<string, number> = { ArrowLeft: at ? at - 1 : last, ArrowRight: at < last ? at + 1 : 0, Home: 0, End: last };
    const next = Object.hasOwn(to, event.key) ? this.pages[to[event.key] as number] : undefined;
    if (next && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      event.stopPropagation(); // the notebook moves between cells with the same keys
      this.choose(next.id);
      this.focus();
    }
  }
}
