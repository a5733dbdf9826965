/** The dearest lines: the same table as Python's, and the same notes from a saved record as from a kernel. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { BAND, HEAVY, heavyAsides, heavySummary } from '../src/card/words/heavy';
import { ENGLISH as t } from '../src/core/i18n';
import type { CuteRecord } from '../src/core/record';
import { costNotes } from '../src/lab/assistant';
import { printed, ROOT } from './card_records';

interface Case {
  costs: [number, number][];
  summary: string;
  asides: [number, string][];
}

const cases = JSON.parse(readFileSync(join(ROOT, 'tests', 'heavy.json'), 'utf-8')) as Case[];

it.each(cases)('$summary', ({ costs, summary, asides }) => {
  const all = costs.map(([line, share]) => ({ line, share }));
  expect(heavySummary(t, all)).toBe(summary);
  expect(heavyAsides(t, all, 'sm_90a')).toEqual(asides.map(([line, text]) => ({ line, text })));
});

it('has Python’s numbers', () => {
  const python = readFileSync(join(ROOT, 'cute_lab', 'heavy.py'), 'utf-8');
  expect(Number(/^HEAVY = ([\d.]+)/m.exec(python)?.[1])).toBe(HEAVY);
  expect(Number(/^BAND = ([\d.]+)/m.exec(python)?.[1])).toBe(BAND);
});

it('stands at the ends of a saved cell’s lines, for each target', () => {
  const record = printed().find(one => one.record.targets.length > 1)?.record as CuteRecord;
  const cost = (line: number, share: number): CuteRecord['targets'][number]['line_cost'][number] => ({ line, share, instructions: 1, by_pipe: {} });
  const targets = [[cost(3, 0.6), cost(4, 0.4)], [cost(3, 0.45), cost(4, 0.45)]].map((line_cost, i) => ({ ...record.targets[i]!, target: ['sm_90a', 'sm_100a'][i]!, direction: 'forward' as const, line_cost }));
  expect(costNotes({ ...record, targets }, t)).toEqual([
    { line: 3, text: '60 % of the cost on sm_90a, 45 % of the cost on sm_100a' },
    { line: 4, text: '45 % of the cost on sm_100a' }
  ]);
  expect(costNotes({ ...record, targets: targets.map(one => ({ ...one, direction: 'backward' as const })) }, t)).toEqual([]);
  expect(costNotes(null, t)).toEqual([]);
});
