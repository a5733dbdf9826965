/** What tells runs of one name apart, and where it is said. */

import { afterEach, describe, expect, it, vi } from 'vitest';

import { renderCompare } from '../src/card/compare';
import { otherWords } from '../src/card/others';
import { telling } from '../src/card/words/telling';
import { ENGLISH as t } from '../src/core/i18n';
import type { CuteRecord } from '../src/core/record';
import { keyOf } from '../src/core/record';
import { drawRuns } from '../src/lab/panel_runs';
import { Pins } from '../src/lab/pins';
import { printed } from './card_records';

vi.mock('../src/lab/places', () => ({ isCute: () => true })); // else all of JupyterLab is loaded

const base = printed().find(one => one.record.bench === null)?.record as CuteRecord;
const run = (shape: Partial<CuteRecord['shape']>, params: Record<string, number | boolean> = {}, more: Partial<CuteRecord> = {}): CuteRecord => ({
  ...base,
  name: 'local',
  shape: { ...base.shape, ...shape },
  params: Object.entries(params).map(([name, value]) => ({ name, value, runtime: true })),
  ...more
});

afterEach(() => document.body.replaceChildren());

describe('the words that tell runs apart', () => {
  it('name the number that differs, and no other', () => {
    expect(telling([run({}, { window: 512, scale: 2 }), run({}, { window: 1024, scale: 2 })])).toEqual(['window=512', 'window=1024']);
  });

  it('name lengths, heads, head dimension and dtype', () => {
    const two = (a: Partial<CuteRecord['shape']>, b: Partial<CuteRecord['shape']>): string[] => telling([run(a), run(b)]);
    expect(two({ Sq: 4096, Skv: 4096 }, { Sq: 1024, Skv: 2048 })).toEqual(['S4096', 'Sq1024 Skv2048']);
    expect(two({ H: 8 }, { H: 16 })).toEqual(['H8', 'H16']);
    expect(two({ Hkv: 2 }, { Hkv: 4 })).toEqual(['Hkv2', 'Hkv4']);
    expect(two({ D: 64 }, { D: 128 })).toEqual(['D64', 'D128']);
    expect(two({ dtype: 'float16' }, { dtype: 'bfloat16' })).toEqual(['float16', 'bfloat16']);
  });

  it('are as few as it takes', () => {
    const all = [run({ H: 8 }, { window: 1, seed: 1 }), run({ H: 16 }, { window: 2, seed: 1 }), run({ H: 16 }, { window: 3, seed: 2 })];
    expect(telling(all)).toEqual(['window=1', 'window=2', 'window=3']);
    const grid = [run({ H: 8 }, { window: 1 }), run({ H: 8 }, { window: 2 }), run({ H: 16 }, { window: 1 }), run({ H: 16 }, { window: 2 })];
    expect(telling(grid)).toEqual(['window=1 H8', 'window=2 H8', 'window=1 H16', 'window=2 H16']);
  });

  it('are none where the name or only the time tells, and say what one run has more', () => {
    expect(telling([run({ H: 8 }), run({ H: 16 }, {}, { name: 'other' }), run({ H: 8 })])).toEqual(['', '', '']);
    expect(telling([run({}, { window: 0.1 + 0.2 }), run({})])).toEqual(['window=0.3', '']);
  });
});

describe('they are said', () => {
  const pair = [run({}, { window: 512 }, { created: '2026-01-01T00:00:00Z' }), run({}, { window: 1024 }, { created: '2026-01-02T00:00:00Z' })];

  it('in the choice of a run, beside the time', () => {
    expect(otherWords(pair)).toEqual(['local · window=512 · 2026-01-01 00:00:00 UTC', 'local · window=1024 · 2026-01-02 00:00:00 UTC']);
    const host = document.body.appendChild(document.createElement('div'));
    renderCompare(host, pair, { trans: t });
    expect(host.querySelector('select')?.textContent).toContain('window=512');
  });

  it('in the panel’s list', () => {
    const act = { trans: t, pins: new Pins(), tracker: { currentWidget: { content: { widgets: [] }, context: { path: '' } } } as never, compare: () => 0, insertFirst: () => 0, newNotebook: () => 0 };
    const nodes = drawRuns(pair.map(record => ({ record, key: keyOf(record), cellId: 'x' })), act);
    const names = nodes.flatMap(node => [...node.querySelectorAll('.jp-CuteLab-run-name')]).map(node => node.textContent);
    expect(names).toEqual(['local window=512', 'local window=1024']);
  });
});
