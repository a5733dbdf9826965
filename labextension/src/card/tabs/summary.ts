/** Summary: plain sentences, each with its number and the tab that proves it; then what to change. */

import { h } from '../../core/dom';
import type { Disposable } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import type { CuteRecord } from '../../core/record';
import { icon, KEYS } from '../actions';
import type { IconName } from '../actions';
import { codeBlock, prose } from '../blocks';
import type { Said } from '../words/summary';
import { advised, summary } from '../words/summary';

/** Emoji look different on each machine, and some fonts lack the signs: these are drawn. */
const MARKS: Readonly<Record<string, readonly [IconName, string]>> = {
  '✔': ['done', 'good'],
  '✘': ['close', 'bad'],
  '⊘': ['refused', 'warn'],
  '⚠': ['warn', 'warn'],
  '○': ['circle', 'none'],
  '▦': ['mask', 'plain'],
  '⚙': ['chip', 'plain'],
  '⏱': ['clock', 'plain'],
  '💡': ['bulb', 'plain']
};

export function renderSummary(host: HTMLElement, record: CuteRecord, t: Translate, choose: (tab: string) => void, titles: ReadonlyMap<string, string>): Disposable {
  const all = summary(t, record);
  const split = all.length - advised(record).length;
  const list = (some: readonly Said[]): HTMLElement => h('ul', { class: 'jp-Cute-said' }, ...some.slice(0, 200).map(said => sentence(t, said, choose, titles)));
  host.append(list(all.slice(0, split)));
  if (split < all.length) {
    host.append(h('h4', { class: 'jp-Cute-head' }, t.__('What to change')), list(all.slice(split)));
  }
  return { dispose: () => host.replaceChildren() };
}

function sentence(t: Translate, said: Said, choose: (tab: string) => void, titles: ReadonlyMap<string, string>): HTMLElement {
  const [picture, state] = (Object.hasOwn(MARKS, said.mark) ? MARKS[said.mark] : undefined) ?? (['circle', 'none'] as const);
  const title = titles.get(said.tab);
  return h(
    'li',
    { class: `jp-Cute-sentence jp-Cute-is-${state}` },
    h('span', { class: 'jp-Cute-sentenceMark' }, icon(picture)),
    h('div', { class: 'jp-Cute-sentenceText' }, h('p', {}, ...prose(said.text)), said.fix ? codeBlock(t, said.fix) : null),
    title ? h('button', { class: 'jp-Cute-link', type: 'button', ...KEYS, onclick: () => choose(said.tab) }, title, h('span', { 'aria-hidden': 'true' }, ' →')) : null
  );
}
