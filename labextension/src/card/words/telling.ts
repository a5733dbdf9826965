/** The shortest words that tell the runs of a list apart where they have one name: `window=512`, `S4096`, `bfloat16`. */

import type { CuteRecord } from '../../core/record';
import { oneLine } from './quantities';

/** What runs may differ in, as words; '' where a run has no such thing. The first ones are preferred. */
function features(record: CuteRecord): Map<string, string> {
  const { shape } = record;
  const params = record.params.slice(0, 50).map(({ name, value }): [string, string] => [`param ${name}`, `${name}=${plain(value)}`]);
  const lengths = shape.Sq === shape.Skv ? `S${shape.Sq}` : `Sq${shape.Sq} Skv${shape.Skv}`;
  return new Map([
    ...params,
    ['length', lengths],
    ['H', `H${shape.H}`],
    ['Hkv', `Hkv${shape.Hkv}`],
    ['D', `D${shape.D}`],
    ['B', `B${shape.B}`],
    ['dtype', shape.dtype],
    ['targets', [...new Set(record.targets.map(report => report.target))].join(' ')],
    ['bench', record.bench ? oneLine(record.bench.device, 30).replace(/^NVIDIA /, '') : '']
  ]);
}

function plain(value: boolean | number): string {
  return typeof value === 'number' ? String(Number(value.toPrecision(6))) : String(value);
}

/** In the order of `records`; '' for a run whose name says enough, and for runs that only their time tells apart. */
export function telling(records: readonly CuteRecord[]): string[] {
  const said = records.map(() => '');
  const groups = new Map<string, number[]>();
  records.forEach((record, i) => groups.set(record.name, [...(groups.get(record.name) ?? []), i]));
  for (const group of groups.values()) {
    if (group.length > 1) {
      const all = group.map(i => features(records[i] as CuteRecord));
      const chosen = fewest(all);
      group.forEach((i, at) => (said[i] = oneLine(chosen.map(name => all[at]?.get(name) ?? '').filter(Boolean).join(' '), 60)));
    }
  }
  return said;
}

/** The features that together part the runs as far as all features do: each time the one that parts most, of equals the first. */
function fewest(all: readonly Map<string, string>[]): string[] {
  const names = [...new Set(all.flatMap(one => [...one.keys()]))].filter(name => new Set(all.map(one => one.get(name) ?? '')).size > 1);
  const parts = (by: readonly string[]): number => new Set(all.map(one => JSON.stringify(by.map(name => one.get(name) ?? '')))).size;
  const chosen: string[] = [];
  for (let most = parts(names); parts(chosen) < most; ) {
    chosen.push(names.reduce((best, name) => (parts([...chosen, name]) > parts([...chosen, best]) ? name : best)));
  }
  return names.filter(name => chosen.includes(name));
}
