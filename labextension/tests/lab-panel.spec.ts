import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

import { ENGLISH } from '../src/core/i18n';
import { parse } from '../src/core/record';
import type { CuteRecord } from '../src/core/record';
import { hoverOf } from '../src/lab/assistant';
import { age, chips } from '../src/lab/chips';
import gallery from '../src/lab/gallery.json';
import { quiet } from '../src/lab/gone';
import { hoverCard } from '../src/lab/hover';
import { withBench, withTarget } from '../src/lab/magicoptions';
import { drawDevice } from '../src/lab/panel_device';
import { drawGallery } from '../src/lab/panel_gallery';
import { status, variants } from '../src/lab/protocol';
import { KEPT, keep, Pins } from '../src/lab/pins';
import { ofJson } from '../src/lab/records';
import { lacksGpu, shortWords } from '../src/lab/situation';
import { check } from '../src/lab/static';
import { MIME, SLIDERS } from '../src/core/record';


function example(): CuteRecord {
  const found = parse(JSON.parse(readFileSync(resolve(__dirname, '../../tests/records/example.cute.json'), 'utf8')));
  if (found.kind !== 'record') {
    throw new Error(found.kind === 'problem' ? found.message : found.kind);
  }
  return found.record;
}

const H200 = { name: 'NVIDIA H200', target: 'sm_90a', memory_used: 3.2e9, memory_total: 150.7e9, sm_mhz: 1980, utilization: 43, celsius: 51, watts: 212.4 };
const known = (more: object): ReturnType<typeof status> => status({ words: 'w', cuda: true, gpus: [H200], targets: ['sm_90a'], running: null, ...more }, 'status');
const act = { trans: ENGLISH, load: () => undefined, stop: () => undefined };

test('every variant of the gallery can be read, and has nothing wrong that its text alone would show', () => {
  const all = variants(gallery, 'gallery');
  expect(all.length).toBeGreaterThan(8);
  for (const variant of all) {
    expect([variant.name, check(variant.cell, ENGLISH)]).toEqual([variant.name, []]);
  }
});

test('choosing a variant inserts that one', () => {
  const all = variants(gallery, 'gallery');
  const chosen: string[] = [];
  const { node } = drawGallery(all, ENGLISH, variant => chosen.push(variant.name));
  node.querySelectorAll('button')[2]?.click();
  expect(chosen).toEqual([all[2]?.name]);
  expect(node.querySelectorAll('canvas[role=img][aria-label]').length).toBe(all.length);
});

test('options are added to the magic line once', () => {
  expect(withTarget('%%cute_attention --H 8 \nx', 'sm_90a')).toBe('%%cute_attention --H 8 --target sm_90a\nx');
  expect(withTarget('%%cute_attention --target none\nx', 'sm_90a')).toBe('%%cute_attention --target none\nx');
  expect(withTarget('%%cute_attention\nx', 'auto')).toBe('%%cute_attention\nx');
  expect(withTarget('x = 1', 'sm_90a')).toBe('x = 1');
  expect(withBench(withBench('%%cute_attention'))).toBe('%%cute_attention --bench');
});

test('the age of a run', () => {
  const now = Date.parse('2026-01-03T12:00:00Z');
  const then = ['2026-01-03T11:59:30Z', '2026-01-03T11:18:00Z', '2026-01-02T22:00:00Z', '2026-01-01T11:00:00Z', '2027-01-01T00:00:00Z', 'soon'];
  expect(then.map(time => age(time, now, ENGLISH))).toEqual(['just now', '42 min ago', '14 h ago', '2 days ago', 'just now', '']);
});

test('chips say what a run has proved', () => {
  const record = example();
  const good = { ...record, checks: record.checks.map(one => ({ ...one, ok: true })) };
  expect(chips(good, ENGLISH)[0]?.words).toBe('✔ verified');
  expect(chips({ ...good, checks: [...good.checks, { ...good.checks[0]!, name: 'mask_mod', ok: false }] }, ENGLISH)[0]).toMatchObject({ words: '✘ differs', kind: 'bad' });
  expect(chips({ ...good, checks: [] }, ENGLISH)[0]?.words).toBe('not checked');
  const refused = { ...record.targets[0]!, target: 'sm_120a', status: 'refused' as const, reason: 'no block sparsity' };
  expect(chips({ ...good, targets: [refused] }, ENGLISH)[1]).toMatchObject({ words: '✘ sm_120a', title: 'no block sparsity' });
});

test('records of a notebook that is not open; hostile outputs are none', () => {
  const file = JSON.parse(readFileSync(resolve(__dirname, '../../tests/records/example.cute.json'), 'utf8')) as unknown;
  const outputs = [{ data: { [MIME]: file } }, { data: { [MIME]: { schema: 99 } } }, { data: { [MIME]: '<img src=x>' } }, { data: {} }, {}];
  expect(ofJson({ cells: [{ outputs }, {}] }).map(record => record.hash)).toEqual([example().hash]);
  expect(ofJson(null)).toEqual([]);
});

test('pins', () => {
  const [pins, record] = [new Pins(), example()];
  const other = { ...record, created: '2026-01-01T00:00:00Z' };
  pins.toggle(record);
  pins.toggle(other);
  expect([pins.has(record), pins.records.length]).toEqual([true, 2]);
  pins.toggle(record);
  expect(pins.records).toEqual([other]);
});

test('pins outlast a reload: what is stored names runs, and finds them in their notebooks again', async () => {
  const record = example();
  const other = { ...record, created: '2026-01-01T00:00:00Z' };
  const data = new Map<string, unknown>();
  const store = { fetch: (id: string) => Promise.resolve(data.get(id)), save: (id: string, value: unknown) => Promise.resolve(data.set(id, value)) };
  const load = (path: string): Promise<CuteRecord[]> => (path === 'a.ipynb' ? Promise.resolve([other, record]) : Promise.reject(new Error('gone')));
  const before = new Pins();
  await keep(before, store, load);
  before.toggle(record, 'a.ipynb');
  before.toggle({ ...record, created: '2026-02-01T00:00:00Z' }, 'gone.ipynb');
  before.toggle(other, 'a.ipynb');
  const after = new Pins();
  let told = 0;
  after.changed.connect(() => (told += 1));
  await keep(after, store, load);
  expect(after.records).toEqual([record, other]);
  expect(told).toBe(2); // panel and cards redraw
  expect(JSON.stringify(data.get(KEPT))).not.toContain('gone.ipynb');
  after.moved('a.ipynb', 'b/a.ipynb');
  after.moved('b', 'c d');
  after.moved('c', 'nothing'); // no folder of theirs
  expect(JSON.stringify(data.get(KEPT)).match(/"path":"[^"]*"/g)).toEqual(['"path":"c d/a.ipynb"', '"path":"c d/a.ipynb"']);
  after.clear();
  expect(data.get(KEPT)).toEqual({ pins: [] });
  data.set(KEPT, { pins: 'broken' });
  await keep(after, store, load);
  expect(after.records).toEqual([]);
});

test('sliders without a kernel make way for their line; all other outputs stay', () => {
  const [WIDGET, words] = ['application/vnd.jupyter.widget-view+json', { words: 'window = 512' }];
  const list = (...all: object[]): object => ({
    length: all.length,
    get: (i: number) => ({ data: all[i], toJSON: () => ({ output_type: 'display_data', metadata: { a: 1 }, data: all[i] }) }),
    set: (i: number, output: { data: object }) => ((all[i] = output.data), expect(output).toMatchObject({ output_type: 'display_data', metadata: { a: 1 } })),
    all
  });
  const own = (id: string): object => ({ [WIDGET]: { model_id: id }, [SLIDERS]: words });
  const foreign = { [WIDGET]: { model_id: 'x' }, 'text/plain': 'IntSlider()' };
  const outputs = list(own('old'), own('live'), foreign, { [SLIDERS]: words });
  quiet({ cells: [{ type: 'markdown' }, { type: 'code', outputs }] } as never, id => id === 'live');
  expect((outputs as { all: object[] }).all).toEqual([{ [SLIDERS]: words }, own('live'), foreign, { [SLIDERS]: words }]);
});

test('hover from the last run: the lines that a line became, and its cost', () => {
  const record = example();
  const line = record.source.user_lines.find(one => one > 0) ?? 0;
  const found = hoverOf(record, line, ENGLISH);
  expect(found?.generated.length).toBeGreaterThan(0);
  expect(hoverOf(record, 9999, ENGLISH)).toBeNull();
  const card = hoverCard({ line: 3, generated: ['    a <b>', '      c'], costs: [{ target: 'sm_90a', share: 0.41, instructions: 12 }], words: '' }, ENGLISH);
  expect(card.querySelector('pre')?.textContent).toBe('a <b>\n  c');
  expect(card.textContent).toContain('41.0 % of the mod');
});

test('the GPU, with and without what a driver tells', () => {
  const text = (now: Parameters<typeof drawDevice>[0]): string => drawDevice(now, act).map(node => node.textContent).join(' ');
  expect(text({ kind: 'known', status: known({}) })).toContain('3.2 of 151 GB in use');
  const silent = { ...H200, memory_used: null, memory_total: null, sm_mhz: null, utilization: null, celsius: null, watts: null };
  expect(text({ kind: 'known', status: known({ gpus: [silent] }) })).not.toMatch(/null|NaN|GB/);
  expect(text({ kind: 'known', status: known({ running: { what: 'measuring local', left_seconds: 11.2 } }) })).toContain('measuring local, about 12 s left');
  expect(text({ kind: 'known', status: known({ gpus: [], cuda: false, words: 'No GPU here: …' }) })).toContain('Works without one');
  expect(shortWords(known({}))).toBe('H200 · 3.2 / 151 GB');
  expect(shortWords(known({ gpus: [] }))).toBe('sm_90a');
});

test('a kernel that can not ask the driver is not taken for one without a GPU', () => {
  expect(lacksGpu({ kind: 'known', status: known({ cuda: false, gpus: [], words: 'No GPU here' }) })).toBe(true);
  expect(lacksGpu({ kind: 'known', status: known({ cuda: false, gpus: [], words: 'nvidia-ml-py is not installed' }) })).toBe(false);
  expect(lacksGpu({ kind: 'no-kernel' })).toBe(false);
});
