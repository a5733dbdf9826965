/** A file with the records of many variants: a list to choose from above the card of the chosen one. */

import { Card } from './card/card';
import type { Surroundings } from './card/tab';
import { Disposables, h } from './core/dom';
import type { Disposable } from './core/dom';
import { parse } from './core/record';
import type { Suite } from './core/record';
import { clean } from './core/text';

export class SuiteView implements Disposable {
  private readonly card: Card;
  private readonly choice = h('select', { class: 'jp-Cute-suite-choice' });
  private readonly head = h('p', { class: 'jp-Cute-suite-about' });
  private readonly ends = new Disposables();
  private suite: Suite | null = null;

  constructor(host: HTMLElement, around: Surroundings) {
    const { trans } = around;
    const place = h('div');
    host.append(
      h('div', { class: 'jp-Cute-suite' }, this.head, h('label', {}, trans.__('variant'), ' ', this.choice)),
      place
    );
    this.card = new Card(place, { ...around, others: () => this.records() });
    this.ends.on(this.choice, 'change', () => this.choose());
  }

  show(suite: Suite): void {
    const before = this.choice.value;
    this.suite = suite;
    this.head.textContent = clean(`${suite.name}: ${suite.about}`);
    this.choice.replaceChildren(
      ...suite.records.map((record, i) => h('option', { value: i }, nameOf(record, i)))
    );
    if (before) {
      this.choice.value = before;
    }
    this.choose();
  }

  dispose(): void {
    this.ends.dispose();
    this.card.dispose();
  }

  private choose(): void {
    this.card.show(parse(this.suite?.records[Number(this.choice.value || 0)]));
  }

  private records() {
    return (this.suite?.records ?? []).map(parse).flatMap(found => (found.kind === 'record' ? [found.record] : []));
  }
}

function nameOf(record: unknown, i: number): string {
  const found = parse(record);
  if (found.kind !== 'record') {
    return `${i + 1}`;
  }
  const { B, H, Sq, D } = found.record.shape;
  return clean(`${found.record.name} · B${B} H${H} S${Sq} D${D}`);
}
