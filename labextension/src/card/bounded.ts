/** A record's lists, cut to what a card can show: a record may be hostile, and the page must stay quick. */

import type { Translate } from '../core/i18n';
import type { Bench, CuteRecord } from '../core/record';
import { number } from './words/quantities';

const MOST = { checks: 64, targets: 32, notes: 300, params: 300 } as const;
const MOST_BENCH = { timings: 4_000, conditions: 100_000, peaks: 2_000, work: 1_000, protocol: 200 } as const;
const MOST_SAMPLES = 10_000;

export interface Bounded {
  readonly record: CuteRecord;
  /** What is left out, in words; empty where nothing is. */
  readonly said: string;
}

export function bounded(t: Translate, record: CuteRecord): Bounded {
  const gone: string[] = [];
  const cut = <T>(list: readonly T[], most: number, name: string): T[] => {
    if (list.length > most) {
      gone.push(t.__('%1 of %2 %3', number(most), number(list.length), name));
    }
    return list.slice(0, most);
  };
  const small: CuteRecord = {
    ...record,
    checks: cut(record.checks, MOST.checks, 'checks'),
    targets: cut(record.targets, MOST.targets, 'targets').map(r => ({ ...r, line_cost: r.line_cost.slice(0, 2_000), advice: r.advice.slice(0, 50) })),
    notes: cut(record.notes, MOST.notes, 'notes'),
    params: cut(record.params, MOST.params, 'params'),
    bench: record.bench && benchOf(record.bench, cut)
  };
  return { record: small, said: gone.length ? t.__('This record is larger than a card: of it are shown %1. The download has all.', gone.join(', ')) : '' };
}

function benchOf(bench: Bench, cut: <T>(list: readonly T[], most: number, name: string) => T[]): Bench {
  return {
    ...bench,
    timings: cut(bench.timings, MOST_BENCH.timings, 'timings').map(one => (one.samples_us.length > MOST_SAMPLES ? { ...one, samples_us: one.samples_us.slice(0, MOST_SAMPLES) } : one)),
    conditions: bench.conditions.slice(0, MOST_BENCH.conditions),
    peaks: bench.peaks.slice(0, MOST_BENCH.peaks),
    work: cut(bench.work, MOST_BENCH.work, 'shapes'),
    protocol: bench.protocol.slice(0, MOST_BENCH.protocol)
  };
}
