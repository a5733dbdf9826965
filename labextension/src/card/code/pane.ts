/** A listing of any length in a box: only the lines in sight are elements. Lines of one origin have one hue, here and in the other panes. */

import { Disposables, h } from '../../core/dom';
import type { Child, Disposable } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import { keys } from '../../mask/keys';
import { copyButton, download, fileName, iconButton } from '../actions';
import { passOn } from '../wheel';
import { number } from '../words/quantities';
import { Finder, marked } from './find';
import type { Listing, Loaded } from './listing';
import { openings, pieces, LONGEST } from './tokens';

export const LINE = 20; // pixels; style/card.css has the same
const BEYOND = 10; // lines above and below that are drawn too

export interface PaneOptions {
  readonly trans: Translate;
  readonly hues: ReadonlyMap<number, number>;
  /** A line of the cell is looked at (hover: picked false) or chosen; 0: none. */
  readonly onLine: (line: number, picked: boolean, from: Pane) => void;
  /** A line of the cell is picked; one that became no code of its own too, which `onLine` knows as none. */
  readonly onPick?: (line: number, from: Pane) => void;
  /** What stands at the right of a line of the cell: the heat strip. */
  readonly heat?: (line: number) => Child;
  /** Below the cell: what the strip means. */
  readonly heatKey?: string;
  /** The cell's text, shown dim behind the lines that came from it. */
  readonly ghost?: (line: number) => string;
  /** Above the listing: the selector, and buttons of the owner. */
  readonly tools?: readonly Child[];
}

let made = 0;

export class Pane implements Disposable {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly sizer = h('div', { class: 'jp-Cute-sizer' });
  private readonly view = h('div', { class: 'jp-Cute-view' });
  private readonly foot = h('div', { class: 'jp-Cute-paneFoot' });
  private readonly finder: Finder;
  private readonly ends = new Disposables();
  private readonly name = `jp-Cute-pane-${(made += 1)}`;
  private listing: Listing | null = null;
  private text: Loaded = { lines: [], numbers: [], userLines: [], total: 0, loop: null, problem: '' };
  private rows: number[] = []; // index of a line, or minus the lines of a gap
  private quotes: string[] = [];
  private drawn = '';
  private cursor = -1;
  private hot = 0;
  private begin = 0; // where to scroll to, once it is in the page

  constructor(private readonly options: PaneOptions) {
    const t = options.trans;
    this.finder = new Finder(t, row => this.reach(row), () => this.redraw());
    this.scroller = h('div', { class: 'jp-Cute-listing', tabindex: 0, role: 'listbox', ...keys('^f Escape'), onwheel: passOn }, this.sizer);
    this.sizer.append(this.view);
    const tools = h('div', { class: 'jp-Cute-paneTools' }, ...(options.tools ?? []), this.finder.element);
    tools.append(
      copyButton(t, () => this.whole(), t.__('Copy this text')),
      iconButton('download', t.__('Download this text'), () => download(fileName(this.listing?.file ?? 'text', ''), this.whole()))
    );
    this.element = h('section', { class: 'jp-Cute-pane' }, tools, this.scroller, this.foot);
    this.ends.on(this.scroller, 'scroll', () => this.draw());
    this.ends.on<MouseEvent>(this.view, 'mouseover', event => options.onLine(this.originAt(event), false, this));
    this.ends.on<MouseEvent>(this.view, 'mouseleave', () => options.onLine(0, false, this));
    this.ends.on<MouseEvent>(this.view, 'click', event => this.click(event));
    this.ends.on<KeyboardEvent>(this.scroller, 'keydown', event => this.key(event));
    if (typeof ResizeObserver === 'function') {
      const observer = new ResizeObserver(() => {
        if (this.begin && this.scroller.clientHeight) {
          this.scroller.scrollTop = this.begin;
          this.begin = 0;
        }
        this.draw();
      });
      observer.observe(this.scroller);
      this.ends.add(() => observer.disconnect());
    }
  }

  show(listing: Listing): void {
    const t = this.options.trans;
    this.listing = listing;
    this.text = listing.load();
    const { lines, numbers } = this.text;
    this.rows = [];
    lines.forEach((_, i) => {
      const gap = i ? (numbers[i] as number) - (numbers[i - 1] as number) - 1 : (numbers[0] as number) - 1;
      if (gap > 0 && (i || this.text.total > lines.length)) {
        this.rows.push(-gap);
      }
      this.rows.push(i);
    });
    const left = this.text.total - (numbers[numbers.length - 1] ?? 0);
    if (left > 0 && lines.length < this.text.total && numbers.length) {
      this.rows.push(-left);
    }
    this.quotes = listing.language === 'python' ? openings(lines) : [];
    const widest = lines.reduce((most, line) => Math.max(most, Math.min(line.length, LONGEST)), 20);
    this.sizer.style.height = `${this.rows.length * LINE}px`;
    this.sizer.style.minWidth = `${widest + 16}ch`;
    this.scroller.setAttribute('aria-label', listing.title);
    const digits = numbers.reduce((most, n) => Math.max(most, n), 0).toString().length;
    this.sizer.style.setProperty('--jp-Cute-digits', `${Math.max(3, digits) + 2}ch`);
    this.cursor = -1;
    this.finder.search(lines, this.rows);
    this.foot.textContent = this.text.problem || this.footWords(t);
    const { loop } = this.text;
    const begin = loop ? this.rows.findIndex(row => row >= 0 && (numbers[row] as number) >= loop[0]) : 0;
    this.begin = begin > 0 ? (begin - 1) * LINE : 0; // what costs time stands in the main loop
    this.scroller.scrollTop = this.begin;
    this.begin = this.scroller.clientHeight ? 0 : this.begin;
    const { hot } = this;
    this.hot = 0;
    this.redraw();
    this.highlight(hot, true); // what is marked elsewhere is marked here too
  }

  /** Marks the lines of an origin; scrolls to the first of them where none is in sight, the first in the main loop if there is one. */
  highlight(line: number, scroll: boolean): void {
    if (line === this.hot) {
      return;
    }
    this.hot = line;
    if (line && scroll) {
      const [top, bottom] = this.sight();
      const at = this.rows.flatMap((row, i) => (row >= 0 && this.text.userLines[row] === line ? [i] : []));
      if (at.length && !at.some(i => i >= top + 1 && i < bottom - 1)) {
        const { loop, numbers } = this.text;
        const inside = loop ? at.find(i => (numbers[this.rows[i] as number] as number) >= loop[0]) : undefined;
        this.reach(inside ?? (at[0] as number));
      }
    }
    this.redraw();
  }

  get id(): string {
    return this.listing?.id ?? '';
  }

  /** How many lines here come from a line of the cell. */
  results(line: number): number {
    return this.text.userLines.reduce((n, one) => n + Number(one === line), 0);
  }

  dispose(): void {
    this.ends.dispose();
    this.finder.dispose();
    this.element.remove();
  }

  private footWords(t: Translate): string {
    const { lines, total } = this.text;
    const all = t._n('%2 line', '%2 lines', total, number(total));
    const key = this.id === 'cell' && this.options.heatKey ? ` · ${this.options.heatKey}` : '';
    return (lines.length < total ? t.__('%1 of %2 shown', number(lines.length), all) : all) + key;
  }

  private whole(): string {
    return `${this.text.lines.join('\n')}\n`;
  }

  private originAt(event: Event): number {
    const row = (event.target as Element).closest<HTMLElement>('.jp-Cute-row');
    return row ? this.originOf(this.rows[Number(row.dataset['row'])]) : 0;
  }

  private originOf(row: number | undefined): number {
    const line = row !== undefined && row >= 0 ? (this.text.userLines[row] ?? 0) : 0;
    return this.options.hues.has(line) ? line : 0;
  }

  private click(event: MouseEvent): void {
    if (String(document.getSelection() ?? '')) {
      return; // text is being selected
    }
    const row = (event.target as Element).closest<HTMLElement>('.jp-Cute-row');
    this.cursor = row ? Number(row.dataset['row']) : -1;
    this.options.onPick?.(this.text.userLines[this.rows[this.cursor] ?? -1] ?? 0, this);
    this.options.onLine(this.originAt(event), true, this);
    this.redraw();
  }

  private key(event: KeyboardEvent): void {
    const last = this.rows.length - 1;
    const page = Math.max(1, Math.floor(this.height() / LINE) - 2);
    const from = this.cursor < 0 ? this.sight()[0] - 1 : this.cursor;
    const to: Record<string, number> = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: last };
    if ((event.ctrlKey || event.metaKey) && event.key === 'f') {
      this.finder.focus();
    } else if (event.key === 'Escape') {
      this.cursor = -1;
      this.options.onLine(0, true, this);
    } else if (Object.hasOwn(to, event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this.cursor = Math.min(last, Math.max(0, to[event.key] as number));
      this.reach(this.cursor, true);
      this.options.onPick?.(this.text.userLines[this.rows[this.cursor] ?? -1] ?? 0, this);
      this.options.onLine(this.originOf(this.rows[this.cursor]), true, this);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this.redraw();
  }

  /** Brings a row into sight: a third from the top, or only as far as needed. */
  private reach(row: number, little = false): void {
    const [top, bottom] = this.sight();
    if (little && row >= top + 1 && row < bottom - 1) {
      return;
    }
    const height = this.height();
    const above = little ? (row <= top ? LINE : height - 2 * LINE) : height / 3;
    this.scroller.scrollTop = Math.max(0, row * LINE - above);
    this.draw();
  }

  private height(): number {
    return this.scroller.clientHeight || 400;
  }

  private sight(): [number, number] {
    const top = Math.floor(this.scroller.scrollTop / LINE);
    return [top, top + Math.ceil(this.height() / LINE)];
  }

  private redraw(): void {
    this.drawn = '';
    this.draw();
  }

  private draw(): void {
    const [top, bottom] = this.sight();
    const first = Math.max(0, top - BEYOND);
    const last = Math.min(this.rows.length, bottom + BEYOND);
    if (this.drawn === `${first} ${last}`) {
      return;
    }
    this.drawn = `${first} ${last}`;
    this.view.style.top = `${first * LINE}px`;
    this.view.replaceChildren(...this.rows.slice(first, last).map((row, i) => this.row(row, first + i)));
    if (this.cursor >= first && this.cursor < last) {
      this.scroller.setAttribute('aria-activedescendant', `${this.name}-${this.cursor}`);
    } else {
      this.scroller.removeAttribute('aria-activedescendant');
    }
  }

  private row(row: number, at: number): HTMLElement {
    const { trans: t, hues, heat, ghost } = this.options;
    if (row < 0) {
      return h('div', { class: 'jp-Cute-row jp-Cute-gap', 'data-row': at }, t._n('… %2 line', '… %2 lines', -row, number(-row)));
    }
    const { lines, numbers, userLines, loop } = this.text;
    const line = lines[row] as string;
    const origin = userLines[row] ?? 0;
    const hue = hues.get(origin);
    const n = numbers[row] as number;
    const isCell = this.id === 'cell';
    const cls = ['jp-Cute-row'];
    cls.push(...(hue === undefined ? [] : [`jp-Cute-hue${hue}`]), ...(origin && origin === this.hot ? ['jp-Cute-hot'] : []));
    cls.push(...(at === this.cursor ? ['jp-Cute-cursor'] : []), ...(loop && n >= loop[0] && n <= loop[1] ? ['jp-Cute-inLoop'] : []));
    const cut = line.length > LONGEST ? `${line.slice(0, LONGEST)}… (${number(line.length)} characters)` : line;
    const body = marked(pieces(cut, this.listing?.language ?? 'text', this.quotes[row] ?? ''), this.finder.wanted, this.finder.isAt(at));
    const behind = this.listing?.group === 'machine' && hue !== undefined && ghost ? ghost(origin) : '';
    return h(
      'div',
      { class: cls.join(' '), role: 'option', id: `${this.name}-${at}`, 'data-row': at, 'aria-selected': String(at === this.cursor) },
      h('span', { class: 'jp-Cute-number' }, n),
      !isCell && h('span', { class: 'jp-Cute-origin', title: hue === undefined ? null : t.__('from line %1 of the cell', origin) }, hue === undefined ? '' : origin),
      isCell && heat?.(n),
      h('span', { class: 'jp-Cute-text' }, ...body),
      behind && h('span', { class: 'jp-Cute-ghost' }, behind)
    );
  }
}
