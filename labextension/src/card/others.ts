/** The choice of another record to compare with: the previous run of the same name at first, nothing where there is none. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { keyOf } from '../core/record';
import type { CuteRecord } from '../core/record';
import { KEYS } from './actions';
import { shown } from './blocks';
import { bounded } from './bounded';
import type { Surroundings } from './tab';
import { groupedShape } from './words/common';
import { telling } from './words/telling';

const MOST = 50;

export interface OtherChoice {
  readonly element: HTMLElement;
  /** Calls back with the chosen record or null, at first and at each change. */
  readonly apply: () => void;
}

export function others(record: CuteRecord, around: Surroundings): CuteRecord[] {
  const own = keyOf(record);
  return (around.others?.() ?? []).filter(other => keyOf(other) !== own).slice(0, MOST).map(other => bounded(around.trans, other).record);
}

/** The newest earlier run of the same name. */
export function previous(record: CuteRecord, all: readonly CuteRecord[]): CuteRecord | undefined {
  return all.find(other => other.name === record.name && other.created <= record.created);
}

export function otherChoice(record: CuteRecord, around: Surroundings, act: (other: CuteRecord | null) => void): OtherChoice | null {
  const t = around.trans;
  const all = others(record, around);
  if (!all.length) {
    return null;
  }
  const first = previous(record, all);
  const none = h('option', { value: -1 }, t.__('nothing'));
  const select = h('select', { ...KEYS, class: 'jp-Cute-select' }, none, ...otherWords([record, ...all]).slice(1).map((words, i) => h('option', { value: i }, words)));
  select.value = String(first ? all.indexOf(first) : -1);
  const apply = (): void => act(all[Number(select.value)] ?? null);
  select.addEventListener('change', apply);
  return { element: h('label', { class: 'jp-Cute-choice' }, t.__('compared with'), ' ', select), apply };
}

/** Name, what tells it from its namesakes in the list, else the shape, and the time. */
export function otherWords(all: readonly CuteRecord[]): string[] {
  const apart = telling(all);
  return all.map((other, i) => shown(`${shown(other.name, 40)} · ${apart[i] || groupedShape(other.shape)} · ${when(other)}`, 160));
}

/** What two runs are called beside each other: only runs of one name are earlier and later. */
export function sides(t: Translate, before: CuteRecord, after: CuteRecord): [string, string] {
  return before.name === after.name ? [t.__('before'), t.__('after')] : [`A · ${shown(before.name, 40)}`, `B · ${shown(after.name, 40)}`];
}

/** 2026-11-30T17:09:48.123Z -> 2026-11-30 17:09:48 UTC */
export function when(record: CuteRecord): string {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(record.created) ?? [];
  return day ? `${day} ${time} UTC` : shown(record.created, 40);
}
