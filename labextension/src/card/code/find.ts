/** Find in a pane: the browser's own search sees only the lines that are drawn. */

import { Disposables, h } from '../../core/dom';
import type { Child, Disposable } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import { iconButton, KEYS } from '../actions';
import { number } from '../words/quantities';
import type { Piece } from './tokens';

const MOST = 100_000; // matching lines

export class Finder implements Disposable {
  readonly element: HTMLElement;
  private readonly box: HTMLInputElement;
  private readonly said = h('span', { class: 'jp-Cute-found', role: 'status' });
  private readonly ends = new Disposables();
  private lines: readonly string[] = [];
  private rows: readonly number[] = [];
  private found: number[] = [];
  private at = -1;
  wanted = '';

  constructor(
    private readonly t: Translate,
    private readonly reach: (row: number) => void,
    private readonly changed: () => void
  ) {
    this.box = h('input', {
      class: 'jp-Cute-find',
      type: 'search',
      placeholder: t.__('find'),
      'aria-label': t.__('Find in this text'),
      ...KEYS,
      spellcheck: 'false'
    });
    this.element = h(
      'span',
      { class: 'jp-Cute-finder' },
      this.box,
      this.said,
      h('span', { class: 'jp-Cute-findSteps' }, iconButton('up', t.__('Previous match'), () => this.step(-1)), iconButton('down', t.__('Next match'), () => this.step(1)))
    );
    this.ends.on(this.box, 'input', () => {
      this.search(this.lines, this.rows);
      this.step(0);
    });
    this.ends.on<KeyboardEvent>(this.box, 'keydown', event => {
      event.stopPropagation();
      if (event.key === 'Enter') {
        event.preventDefault();
        this.step(event.shiftKey ? -1 : 1);
      } else if (event.key === 'Escape' && this.box.value) {
        this.box.value = '';
        this.search(this.lines, this.rows);
        this.changed();
      }
    });
  }

  search(lines: readonly string[], rows: readonly number[]): void {
    this.lines = lines;
    this.rows = rows;
    this.wanted = this.box.value.toLowerCase();
    this.found = [];
    for (let i = 0; this.wanted && i < rows.length && this.found.length < MOST; i++) {
      const row = rows[i] as number;
      if (row >= 0 && (lines[row] as string).toLowerCase().includes(this.wanted)) {
        this.found.push(i);
      }
    }
    this.at = this.found.length ? 0 : -1;
    this.say();
  }

  isAt(row: number): boolean {
    return this.found[this.at] === row;
  }

  focus(): void {
    this.box.focus();
    this.box.select();
  }

  dispose(): void {
    this.ends.dispose();
  }

  private step(by: number): void {
    if (this.found.length) {
      this.at = (this.at + by + this.found.length) % this.found.length;
      this.reach(this.found[this.at] as number);
    }
    this.say();
    this.changed();
  }

  private say(): void {
    this.element.classList.toggle('jp-Cute-finding', this.wanted !== '');
    this.said.textContent = !this.wanted ? '' : this.found.length ? this.t.__('%1 of %2', number(this.at + 1), number(this.found.length)) : this.t.__('none');
  }
}

/** Coloured pieces, with what was found marked in them. */
export function marked(found: readonly Piece[], wanted: string, current: boolean): Child[] {
  const text = wanted ? found.map(piece => piece.text).join('') : '';
  const spans: [number, number][] = [];
  const low = text.toLowerCase();
  for (let at = wanted ? low.indexOf(wanted) : -1; at >= 0 && spans.length < 200; at = low.indexOf(wanted, at + wanted.length)) {
    spans.push([at, at + wanted.length]);
  }
  const out: Child[] = [];
  let at = 0;
  for (const piece of found) {
    const end = at + piece.text.length;
    const cuts = [...new Set([at, end, ...spans.flat().filter(cut => cut > at && cut < end)])].sort((a, b) => a - b);
    for (let i = 0; i + 1 < cuts.length; i++) {
      const [from, to] = [cuts[i] as number, cuts[i + 1] as number];
      const part = piece.text.slice(from - at, to - at);
      const words = piece.kind === 'plain' ? part : h('span', { class: `jp-Cute-t-${piece.kind}` }, part);
      const hit = spans.some(([a, b]) => from >= a && to <= b);
      out.push(hit ? h('mark', { class: current ? 'jp-Cute-current' : null }, words) : words);
    }
    at = end;
  }
  return out;
}
