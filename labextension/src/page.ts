/** The script of an exported page: draws a card over the static form of each record. It asks nothing of the network. */

import { Card } from './card/card';
import type { Surroundings } from './card/tab';
import { h } from './core/dom';
import { ENGLISH } from './core/i18n';
import { parseText } from './core/record';
import type { CuteRecord } from './core/record';

function start(): void {
  const records: CuteRecord[] = [];
  const around: Surroundings = { trans: ENGLISH, others: () => [...records].reverse() };
  const found = [...document.querySelectorAll<HTMLElement>('div.jp-Cute-record')].flatMap(place => {
    const script = [...place.children].find(child => child.matches('script[type="application/json"]'));
    return script ? [{ place, parsed: parseText(script.textContent ?? '') }] : [];
  });
  for (const { parsed } of found) {
    if (parsed.kind === 'record') {
      records.push(parsed.record);
    }
  }
  for (const { place, parsed } of found) {
    if (parsed.kind === 'record' || parsed.kind === 'problem') {
      const before = [...place.children].filter((child): child is HTMLElement => child instanceof HTMLElement && !child.matches('script'));
      const host = place.appendChild(h('div'));
      new Card(host, around).show(parsed);
      before.forEach(child => (child.hidden = true)); // only now: where drawing fails, the static form stays
    }
  }
}

if (document.readyState === 'loading') {
  document.addEventListener('DOMContentLoaded', start, { once: true });
} else {
  start();
}
