/** Block maps: what is decoded, counted, painted; what is refused. That Python's data are read as Python reads them: tests/test_front_maps.py. */

import { deflateSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';

import type { BlockSummary } from '../src/core/blocks';
import { Problem } from '../src/core/decode';
import { blockMap, FULL, PARTIAL } from '../src/mask/maps';
import { LIGHT, paint, paintGrid, paintTile, ramp } from '../src/mask/paint';
import type { Frame } from '../src/mask/paint';
import { sides, ticks, Viewport } from '../src/mask/scale';
import { tileSide } from '../src/mask/tiles';
import { causal, summaryOf } from './summaries';

let seed = 7;
const random = (): number => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
const noise = (rows: number, columns: number): number[][] =>
  Array.from({ length: rows }, () => Array.from({ length: columns }, () => Math.floor(random() * 3)));

describe('queries', () => {
  it('finds the kind of every block and counts any rectangle', () => {
    const kinds = noise(2 * 13, 29);
    const map = blockMap(summaryOf(kinds, { Hm: 2 }));
    for (let i = 0; i < 26; i++) {
      for (let j = 0; j < 29; j++) {
        expect(map.kindAt(Math.floor(i / 13), i % 13, j)).toBe(kinds[i]![j]);
      }
    }
    for (let n = 0; n < 50; n++) {
      const [top, left] = [Math.floor(random() * 13), Math.floor(random() * 29)];
      const [bottom, right] = [top + Math.floor(random() * (14 - top)), left + Math.floor(random() * (30 - left))];
      const inside = kinds.slice(13 + top, 13 + bottom).flatMap(row => row.slice(left, right));
      expect(map.tile(1, top, left, bottom, right)).toEqual([0, 1, 2].map(kind => inside.filter(k => k === kind).length));
    }
  });

  it('says which row works most', () => {
    const map = blockMap(summaryOf(causal(16)));
    expect(map.workOf(0)).toMatchObject({ most: 16, busiest: 15, mean: 8.5 });
    expect(map.rowCounts(0, 4)).toEqual([11, 1, 4]);
  });
});

describe('damaged data', () => {
  const good = summaryOf(causal(8));
  const runs = (counts: number[], starts: number[], kinds: number[]): string =>
    deflateSync(Buffer.concat([Buffer.from(Int32Array.from([...counts, ...starts]).buffer), Buffer.from(kinds)])).toString('base64');
  const byRuns = (data: string): BlockSummary => ({ ...good, nq: 2, nkv: 4, empty: 4, partial: 2, full: 2, encoding: 'zlib-runs-b64', data });

  it('reads runs', () => {
    const map = blockMap(byRuns(runs([3, 3], [0, 1, 2, 0, 0, 0], [2, 1, 0, 2, 1, 0])));
    expect([0, 1, 2, 3].map(j => map.kindAt(0, 1, j))).toEqual([2, 1, 0, 0]);
  });

  it.each<[string, Partial<BlockSummary>]>([
    ['other counts', { full: good.full - 1, partial: good.partial + 1 }],
    ['counts of another size', { full: good.full + 1 }],
    ['too few blocks', { data: summaryOf(causal(7)).data }],
    ['a kind 3', { data: deflateSync(new Uint8Array(16).fill(255)).toString('base64') }],
    ['no zlib', { data: 'AAAA' }],
    ['nothing', { nq: 0, full: 0, partial: 0, empty: 0 }],
    ['rows without end', { Bm: 2 ** 20, Hm: 2 ** 20, empty: 2 ** 40 * 64, full: 0, partial: 0 }],
    ['a run that is missing', byRuns(runs([3, 4], [0, 1, 2, 0, 0, 0], [2, 1, 0, 2, 1, 0]))],
    ['no run in a row', byRuns(runs([6, 0], [0, 1, 2, 0, 0, 0], [2, 1, 0, 2, 1, 0]))],
    ['a negative count', byRuns(runs([-3, 3], [0, 1, 2, 0, 0, 0], [2, 1, 0, 2, 1, 0]))],
    ['a row that begins late', byRuns(runs([3, 3], [1, 1, 2, 0, 0, 0], [2, 1, 0, 2, 1, 0]))],
    ['a run beyond the end', byRuns(runs([3, 3], [0, 1, 4, 0, 0, 0], [2, 1, 0, 2, 1, 0]))],
    ['runs that go back', byRuns(runs([3, 3], [0, 2, 1, 0, 0, 0], [2, 1, 0, 2, 1, 0]))],
    ['a kind that is none', byRuns(runs([3, 3], [0, 1, 2, 0, 0, 0], [2, 1, 9, 2, 1, 0]))]
  ])('is refused: %s', (_, more) => {
    expect(() => blockMap({ ...good, ...more })).toThrow(Problem);
  });
});

const frameOf = (blocks: BlockSummary, width: number, tokens: number, at = 0): Frame => ({
  ...{ width, height: width, q: at, kv: at, perRow: tokens / width, perColumn: tokens / width, ratio: 1 },
  ...{ blockQ: blocks.block_q, blockKv: blocks.block_kv, group: 0 }
});
const painted = (blocks: BlockSummary, frame: Frame): Uint32Array => {
  const pixels = new Uint32Array(frame.width * frame.height);
  paint(blockMap(blocks), frame, LIGHT, pixels);
  return pixels;
};

describe('painting', () => {
  it('gives each block its look, and leaves no pixel out', () => {
    const blocks = summaryOf(causal(8));
    const frame = frameOf(blocks, 240, 1024);
    const pixels = painted(blocks, frame);
    const at = (x: number, y: number): number => pixels[y * 240 + x]!;
    expect(at(10, 100)).toBe(LIGHT.full);
    expect(at(200, 20)).toBe(LIGHT.paper);
    const diagonal = new Set(Array.from({ length: 900 }, (_, n) => at(30 + (n % 30), 30 + Math.floor(n / 30))));
    expect(diagonal).toEqual(new Set([LIGHT.tint, LIGHT.hatch]));
    expect(pixels.includes(0)).toBe(false);
    paintGrid(frame, LIGHT.grid, pixels);
    expect(at(30, 100)).toBe(LIGHT.grid);
  });

  it('mixes what shares a pixel: all of it full is solid, none is paper, one stripe is seen', () => {
    const kinds = Array.from({ length: 1024 }, (_, i) => Array.from({ length: 1024 }, (_, j) => (j < 512 ? 2 : i === 700 && j < 1000 ? 1 : 0)));
    const blocks = summaryOf(kinds);
    const pixels = painted(blocks, frameOf(blocks, 64, 1024 * 128));
    expect(pixels[10 * 64 + 31]).toBe(LIGHT.full);
    expect(pixels[10 * 64 + 32]).toBe(LIGHT.paper);
    const stripe = pixels[43 * 64 + 40]!;
    expect([LIGHT.paper, LIGHT.full, LIGHT.hatch]).not.toContain(stripe);
    expect(stripe & 255).toBeGreaterThan((stripe >> 16) & 255); // more red than blue: the partial blocks' orange
    expect(pixels.includes(0)).toBe(false);
  });

  it('draws cells, and shares of them where they are small', () => {
    const look = ramp(LIGHT.tint, LIGHT.hatch);
    const cells = Uint8Array.from({ length: 128 * 128 }, (_, n) => Number(n % 128 <= Math.floor(n / 128)));
    const tile = { q: 0, kv: 0, rows: 128, columns: 128, cells };
    for (const [width, tokens] of [[512, 128], [64, 128]] as const) {
      const pixels = new Uint32Array(width * width);
      paintTile(tile, frameOf(summaryOf(causal(1)), width, tokens), LIGHT, look, pixels);
      expect(pixels[(width - 2) * width + 1]).toBe(LIGHT.hatch);
      expect(pixels[width + width - 2]).toBe(LIGHT.tint);
      expect(pixels.includes(0)).toBe(false);
    }
    const half = new Uint32Array(1);
    paintTile(tile, { ...frameOf(summaryOf(causal(1)), 1, 128) }, LIGHT, look, half);
    expect(half[0]).toBe(look[Math.round((255 * 129) / 256)]);
  });

  it('paints a million tokens in a moment', () => {
    const n = 8192;
    const starts = new Int32Array(3 * n);
    const kinds = Uint8Array.from({ length: 3 * n }, (_, i) => [2, 1, 0][i % 3]!);
    const counts = new Int32Array(n).fill(3);
    for (let i = 0; i < n; i++) {
      // as rows of a causal mask begin, but for the first and the last ones
      const row = Math.min(n - 2, Math.max(1, i));
      const above = i === 0 ? [0, 0, 0] : [0, Math.min(n - 2, Math.max(1, i - 1)), Math.min(n - 2, Math.max(1, i - 1)) + 1];
      starts.set([0, row - above[1]!, row + 1 - above[2]!], 3 * i);
    }
    const data = deflateSync(Buffer.concat([Buffer.from(counts.buffer), Buffer.from(starts.buffer), Buffer.from(kinds)])).toString('base64');
    const full = Array.from({ length: n }, (_, i) => Math.min(n - 2, Math.max(1, i))).reduce((a, b) => a + b, 0);
    const counted = { full, partial: n, empty: n * n - full - n };
    const blocks = { ...summaryOf(causal(1)), nq: n, nkv: n, ...counted, encoding: 'zlib-runs-b64' as const, data };
    const begin = performance.now();
    const map = blockMap(blocks);
    expect(map.kindAt(0, 5000, 5000)).toBe(PARTIAL);
    expect(map.kindAt(0, 5000, 4999)).toBe(FULL);
    paint(map, frameOf(blocks, 960, n * 128), LIGHT, new Uint32Array(960 * 960));
    expect(performance.now() - begin).toBeLessThan(1500); // some 40 ms on an idle machine; this one may be busy
  });
});

describe('scale', () => {
  it('zooms around a place, within the map, down to a cell', () => {
    const view = new Viewport(4096, 4096, 480, 480);
    const before = view.tokenAt(100, 200);
    view.zoomAt(7, 100, 200);
    view.tokenAt(100, 200).forEach((at, i) => expect(at).toBeCloseTo(before[i]!, 6));
    view.zoomAt(1e9, 100, 200);
    expect(view.queries).toBeCloseTo(480 / 32, 6);
    view.pan(1e9, -1e9);
    expect([view.q + view.queries, view.kv]).toEqual([4096, 0]);
    view.whole();
    expect([view.q, view.kv, view.keys]).toEqual([0, 0, 4096]);
    const [x, y] = view.placeOf(...view.tokenAt(11, 22));
    expect([x, y].map(Math.round)).toEqual([11, 22]);
  });

  it('shows one query as well as a million', () => {
    const [width, height] = sides(1, 1 << 20, 480);
    expect([width, height]).toEqual([480, 64]);
    const view = new Viewport(1, 1 << 20, width, height);
    view.zoomAt(1e9, 0, 0);
    expect([view.queries, view.keys]).toEqual([1, 15]);
    expect(view.reveal(0, 1 << 19)).toBe(true);
    expect(view.reveal(0, 1 << 19)).toBe(false);
  });

  it('has round ticks, apart from each other', () => {
    expect(ticks(0, 4096, 480, 84)).toEqual([0, 1024, 2048, 3072, 4096]);
    expect(ticks(1000.5, 10, 480, 44)).toEqual([1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010]);
    expect(ticks(70_000, 20_000, 480, 84)).toEqual([73_728, 77_824, 81_920, 86_016]);
  });

  it('cuts blocks into tiles that lie within one', () => {
    expect([64, 128, 192, 256, 80, 1024, 1031].map(tileSide)).toEqual([64, 128, 96, 128, 80, 128, 0]);
  });
});
