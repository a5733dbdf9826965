/** The choice of another record to compare with: the previous run of the same name at first. */

import { h } from '../core/dom';
import { keyOf } from '../core/record';
import type { CuteRecord } from '../core/record';
import { KEYS } from './actions';
import { shown } from './blocks';
import { bounded } from './bounded';
import type { Surroundings } from './tab';
import { shapeWords } from './words/common';

const MOST = 50;

export interface OtherChoice {
  readonly element: HTMLElement;
  /** Calls back with the chosen record, at first and at each change. */
  readonly apply: () => void;
}

export function others(record: CuteRecord, around: Surroundings): CuteRecord[] {
  const own = keyOf(record);
  return (around.others?.() ?? []).filter(other => keyOf(other) !== own).slice(0, MOST).map(other => bounded(around.trans, other).record);
}

/** Earlier runs of the same name come first. */
export function previous(record: CuteRecord, all: readonly CuteRecord[]): CuteRecord | undefined {
  return all.find(other => other.name === record.name && other.created <= record.created) ?? all[0];
}

export function otherChoice(record: CuteRecord, around: Surroundings, act: (other: CuteRecord) => void): OtherChoice | null {
  const t = around.trans;
  const all = others(record, around);
  const first = previous(record, all);
  if (!first) {
    return null;
  }
  const select = h('select', { ...KEYS, class: 'jp-Cute-select' }, ...all.map((other, i) => h('option', { value: i }, otherWords(other))));
  select.value = String(all.indexOf(first));
  const apply = (): void => act(all[Number(select.value)] ?? first);
  select.addEventListener('change', apply);
  return { element: h('label', { class: 'jp-Cute-choice' }, t.__('compared with'), ' ', select), apply };
}

export function otherWords(other: CuteRecord): string {
  return shown(`${other.name} · ${shapeWords(other.shape)} · ${when(other)}`, 90);
}

/** 2026-11-30T17:09:48Z -> 2026-11-30 17:09:48 UTC */
export function when(record: CuteRecord): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(record.created) ? record.created.replace('T', ' ').replace('Z', ' UTC') : shown(record.created, 40);
}
