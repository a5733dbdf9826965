/** Statistics as Python's, styles as Python's table, and a chart that hides, reads out and hatches. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeEach, describe, expect, it, vi } from 'vitest';

import { entries, labelOf, places, sheet, ticks } from '../src/card/bench/series';
import { estimate, ratio, tflops, verdict } from '../src/card/bench/statistics';
import { style, STYLES } from '../src/card/bench/styles';
import { chart } from '../src/card/chart/chart';
import { csvOf, TAB } from '../src/card/tabs/throughput';
import { ENGLISH as t } from '../src/core/i18n';
import type { Bench, CuteRecord, Timing } from '../src/core/record';
import { printed, ROOT, suite } from './card_records';

vi.setConfig({ testTimeout: 60_000 }); // a busy machine is no failure

function sweep(): CuteRecord {
  return printed().find(one => one.record.bench && new Set(one.record.bench.timings.map(x => x.shape.Sq)).size > 1)?.record as CuteRecord;
}

function benchOf(record: CuteRecord): Bench {
  return record.bench as Bench;
}

describe('statistics', () => {
  it('take the sign-test interval by rank, as Python prints for 5 to 40 samples', () => {
    // [estimate(range(n)).low, .high] of cute_lab/throughput.py
    const known: Record<number, [number, number]> = { 1: [0, 0], 5: [0, 4], 6: [0, 5], 8: [0, 7], 9: [1, 7], 10: [1, 8], 12: [2, 9], 17: [4, 12], 20: [5, 14], 25: [7, 17], 40: [13, 26] };
    for (const [n, interval] of Object.entries(known)) {
      const e = estimate(Array.from({ length: Number(n) }, (_, i) => i));
      expect([e.low, e.high], n).toEqual(interval);
    }
    expect(estimate([3, 1, 2, 10]).median).toBe(2.5);
  });

  it('pair the rounds of a ratio, and say where there is no difference', () => {
    const timing = (samples: number[]): Timing => ({ samples_us: samples }) as unknown as Timing;
    const found = ratio(timing([10, 20, 40]), timing([20, 40, 80]));
    expect(found).toEqual({ median: 2, low: 2, high: 2 });
    expect(verdict({ median: 1.014, low: 0.994, high: 1.04 })).toBe('no difference 1.01× [0.99, 1.04]');
    expect(verdict(null)).toBe('');
  });

  it('count FLOP of kept cells only', () => {
    const bench = benchOf(sweep());
    const ours = bench.timings.find(one => one.contender === 'cute_lab' && one.samples_us.length) as Timing;
    const work = bench.work.find(w => w.shape.Sq === ours.shape.Sq) as Bench['work'][number];
    const us = [...ours.samples_us].sort((a, b) => a - b);
    const middle = ((us[Math.floor((us.length - 1) / 2)] as number) + (us[Math.ceil((us.length - 1) / 2)] as number)) / 2;
    const expected = (4 * work.shape.D * work.kept_cells) / middle / 1e6;
    expect((tflops(bench, ours)?.median ?? 0) / expected).toBeCloseTo(1, 2);
  });
});

describe('styles', () => {
  const python = readFileSync(join(ROOT, 'cute_lab', 'series.py'), 'utf-8');
  const names = new Map<string, string>();
  for (const [, left = '', right = ''] of python.matchAll(/^([A-Z]+(?:, [A-Z]+)*) = ("#[0-9a-f]{6}"(?:, "#[0-9a-f]{6}")*)$/gm)) {
    const values = right.split(', ');
    left.split(', ').forEach((name, i) => names.set(name, (values[i] as string).replace(/"/g, '')));
  }

  it('are those of cute_lab/series.py, in its order', () => {
    const table = /^STYLES = \{\n([\s\S]*?)^\}/m.exec(python)?.[1] ?? '';
    const rows = [...table.matchAll(/^ {4}"(\w+)": Style\((.*)\),$/gm)].map(([, name, args = '']) => {
      const [colour = '', marker = '"circle"', dash = '"solid"', width = '2', size = '10'] = args.split(', ');
      return [name, { colour: names.get(colour), marker: marker.replace(/"/g, ''), dash: dash.replace(/"/g, ''), width: Number(width), size: Number(size) }];
    });
    expect(rows.length).toBeGreaterThan(8);
    expect(Object.entries(STYLES)).toEqual(rows);
  });

  it('of unknown contenders are the same in every chart: crc32 as zlib has it', () => {
    // series.style("my_kernel") and series.style("naïve") in Python
    expect(style('my_kernel')).toMatchObject({ colour: '#009e73', marker: 'cross', dash: 'dashdot' });
    expect(style('naïve')).toMatchObject({ colour: '#8d6e63', marker: 'triangle-left', dash: 'dashdot' });
    expect(style('constructor').colour).toMatch(/^#/);
  });
});

describe('axes', () => {
  it('have round numbers, and no two that touch', () => {
    expect(ticks(843)).toEqual([0, 200, 400, 600, 800]);
    expect(ticks(1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    const many = Array.from({ length: 20 }, (_, i) => ({ B: 1, H: 1, Hkv: 1, Sq: 2 ** i, Skv: 1, D: 1, dtype: 'bf16' }));
    expect(places(many, 'Sq', 7).length).toBeLessThanOrEqual(7);
    expect(places(many, 'Sq', 7).at(-1)).toBe(2 ** 19);
  });
});

describe('the chart', () => {
  let host: HTMLElement;
  beforeEach(() => {
    host = document.createElement('div');
    document.body.replaceChildren(host);
  });

  it('draws a panel for each direction and shape group, and a button for each contender', () => {
    const bench = benchOf(sweep());
    chart(t, host, entries(bench));
    const page = sheet(entries(bench));
    expect(host.querySelectorAll('.jp-Cute-plot').length).toBe(page.rows.flat().length);
    const labels = [...host.querySelectorAll('.jp-Cute-legendItem')].map(one => one.textContent);
    for (const one of new Set(bench.timings.map(labelOf))) {
      expect(labels.some(label => label?.startsWith(one))).toBe(true);
    }
  });

  it('hides a contender by its button', () => {
    chart(t, host, entries(benchOf(sweep())));
    const strokes = (): number => host.querySelectorAll('svg.jp-Cute-chart path[stroke="#d55e00"]').length;
    const button = [...host.querySelectorAll<HTMLButtonElement>('.jp-Cute-legendItem')].find(one => one.textContent?.startsWith('FlexAttention Triton')) as HTMLButtonElement;
    expect(strokes()).toBeGreaterThan(0);
    button.click();
    expect(button.getAttribute('aria-pressed')).toBe('false');
    expect(strokes()).toBe(0);
    button.click();
    expect(strokes()).toBeGreaterThan(0);
  });

  it('reads numbers out by keyboard, the fastest first', () => {
    chart(t, host, entries(benchOf(sweep())));
    const plot = host.querySelector('.jp-Cute-plot') as HTMLElement;
    plot.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
    const tip = plot.querySelector('.jp-Cute-tip') as HTMLElement;
    expect(tip.hidden).toBe(false);
    const medians = [...tip.querySelectorAll('tr')].slice(0, 3).map(row => Number((row.children[2]?.textContent ?? '').split(' ')[0]?.replace(/,/g, '')));
    expect([...medians].sort((a, b) => b - a)).toEqual(medians);
    plot.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    expect(tip.hidden).toBe(true);
  });

  it('draws no speed for what is wrong, and hatches its place', () => {
    const wrong = suite('h200_2k_32k').find(record => benchOf(record).timings.some(one => one.status === 'wrong' || one.accuracy.some(a => !a.ok))) as CuteRecord;
    chart(t, host, entries(benchOf(wrong)));
    expect(host.querySelectorAll('.jp-Cute-hatch').length).toBeGreaterThan(0);
    expect(host.textContent).toContain('✘ wrong');
    const bad = sheet(entries(benchOf(wrong))).rows.flat().flatMap(p => p.lines.flatMap(l => l.points)).filter(p => p.wrong);
    expect(bad.length).toBeGreaterThan(0);
    expect(bad.every(point => point.speed === null)).toBe(true);
  });

  it('draws bars where there is one shape', () => {
    const one = suite('h200_mha_d128')[0] as CuteRecord;
    chart(t, host, entries(benchOf(one)));
    expect(host.querySelectorAll('rect').length).toBeGreaterThan(2);
    expect(host.querySelector('.jp-Cute-plot')).toBeNull();
  });

  it('tells two benchmarks’ contenders apart', () => {
    const bench = benchOf(sweep());
    const both = sheet([...entries(bench, 0, 'a'), ...entries(bench, 1, 'b')]);
    expect(both.names.length).toBe(2 * new Set(bench.timings.map(one => one.contender)).size);
    expect(new Set(both.names.map(n => n.label)).size).toBe(both.names.length);
  });

  it('gives its samples as CSV that no spreadsheet runs', () => {
    const bench = benchOf(sweep());
    const rows = csvOf(bench).trim().split('\r\n');
    expect(rows.length).toBe(bench.timings.length + 1);
    const evil = csvOf({ ...bench, device: '=cmd|"/c calc"!A1', timings: bench.timings.slice(0, 1) });
    expect(evil.split('\r\n')[1]?.startsWith(`"'=cmd`)).toBe(true);
  });

  it('says what to run where nothing was measured', () => {
    TAB.render(host, { ...sweep(), bench: null }, { trans: t });
    expect(host.textContent).toContain('.bench()');
  });
});
