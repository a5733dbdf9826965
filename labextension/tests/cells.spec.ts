/** The mask's code in the browser: what is computed, what is refused. That every op is torch's: tests/test_cells.py. */

import { deflateSync } from 'node:zlib';

import { describe, expect, it, vi } from 'vitest';

import type { CellCode } from '../src/core/blocks';
import { CellPlan, localSource } from '../src/mask/cells';
import type { CellRequest, CellSource } from '../src/mask/cells';
import { blockMap } from '../src/mask/maps';
import type { Frame } from '../src/mask/paint';
import { Tiles } from '../src/mask/tiles';
import { summaryOf } from './summaries';

type Node = CellCode['nodes'][number];
const inputs = ['b', 'h', 'q_idx', 'kv_idx'];
const first: Node[] = inputs.map(name => ({ op: 'input', dtype: 'i32', args: [], attr: name }));
const n = (op: string, dtype: string, args: number[] = [], attr: Node['attr'] = null): Node => ({ op, dtype, args, attr });
const code = (nodes: Node[], more: Partial<CellCode> = {}): CellCode => ({
  ...{ inputs, nodes: [...first, ...nodes], result: 3 + nodes.length, tables: [], scalars: [] },
  ...more
});
const causal = code([n('ge', 'bool', [2, 3])]);
const ask = (more: Partial<CellRequest> = {}): CellRequest => ({ b: 0, h: 0, q: 0, kv: 0, rows: 4, columns: 4, step: 1, ...more });
const cellsOf = (from: CellCode, more: Partial<CellRequest> = {}): number[] | null => {
  const found = CellPlan.of(from)?.cells(ask(more));
  return found ? [...found] : null;
};

describe('a plan', () => {
  it('computes a causal mask, anywhere and with a step', async () => {
    expect(cellsOf(causal)).toEqual([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]);
    expect(cellsOf(causal, { q: 100, kv: 101, rows: 2, columns: 3, step: 2 })).toEqual([0, 0, 0, 1, 0, 0]);
    expect([...((await localSource(CellPlan.of(causal)!).cells(ask({ rows: 1, columns: 2 }))) ?? [])]).toEqual([1, 0]);
  });

  it('reads tables, from their end too, and scalars', () => {
    const data = deflateSync(Buffer.from(Int32Array.of(5, 6, 7, 8).buffer)).toString('base64');
    const tables = [{ name: 't', dtype: 'i32', shape: [4], encoding: 'zlib-b64' as const, data }];
    const scalars = [{ name: 'w', dtype: 'i32', value: 7 }];
    const nodes = [n('neg', 'i32', [3]), n('gather', 'i32', [4], 0), n('scalar', 'i32', [], 0), n('eq', 'bool', [5, 6])];
    expect(cellsOf(code(nodes, { tables, scalars }), { rows: 1 })).toEqual([0, 0, 1, 0]);
    expect(cellsOf(code(nodes, { tables, scalars }), { rows: 1, columns: 6 })).toBeNull(); // beyond its end
  });

  it('counts in 64 bits where doubles do not', () => {
    const big = n('const', 'i64', [], '9007199254740993');
    const nodes = [big, n('cast', 'i64', [3]), n('add', 'i64', [4, 5]), n('const', 'i64', [], '9007199254740995'), n('eq', 'bool', [6, 7])];
    expect(cellsOf(code(nodes), { rows: 1 })).toEqual([0, 0, 1, 0]);
  });

  it('lets go of what it has read', () => {
    const nodes = Array.from({ length: 60 }, (_, i) => (i === 0 ? n('add', 'i32', [2, 3]) : n('add', 'i32', [3 + i, 3])));
    expect(cellsOf(code([...nodes, n('ge', 'bool', [63, 3])]), { rows: 1, columns: 2 })).toEqual([1, 1]);
  });

  it.each<[string, CellCode]>([
    ['a function that browsers round otherwise', code([n('cast', 'f32', [3]), n('exp', 'f32', [4]), n('ge', 'bool', [5, 5])])],
    ['an op that there is not', code([n('constructor', 'bool', [2, 3])])],
    ['an operand that does not exist yet', code([n('ge', 'bool', [2, 4])])],
    ['too few operands', code([n('ge', 'bool', [2])])],
    ['operands of two types', code([n('cast', 'f32', [3]), n('ge', 'bool', [2, 4])])],
    ['a wrong type', code([n('ge', 'i32', [2, 3])])],
    ['a result that is no bool', code([n('add', 'i32', [2, 3])])],
    ['a result that is not there', { ...causal, result: 99 }],
    ['an input of another name', { ...causal, inputs: ['b', 'h', 'kv_idx', 'q_idx'] }],
    ['a table that is not there', code([n('gather', 'i32', [3], 0), n('ge', 'bool', [4, 3])])],
    ['a scalar that is not there', code([n('scalar', 'i32', [], 2), n('ge', 'bool', [4, 3])])],
    ['a constant that is none', code([n('const', 'i32', [], 'x'), n('ge', 'bool', [4, 3])])],
    [
      'a table that does not fit its shape',
      code([n('gather', 'i32', [3], 0), n('ge', 'bool', [4, 3])], {
        tables: [{ name: 't', dtype: 'i32', shape: [4], encoding: 'zlib-b64', data: deflateSync(Buffer.alloc(12)).toString('base64') }]
      })
    ],
    [
      'a table without end',
      code([n('gather', 'i32', [3], 0), n('ge', 'bool', [4, 3])], {
        tables: [{ name: 't', dtype: 'i32', shape: [2 ** 40], encoding: 'zlib-b64', data: '' }]
      })
    ]
  ])('is none for %s', (_, bad) => {
    expect(CellPlan.of(bad)).toBeNull();
  });

  it('refuses more than a page can compute', () => {
    expect(cellsOf(causal, { rows: 1 << 12, columns: 1 << 12 })).toBeNull();
  });
});

const frame: Frame = { width: 480, height: 480, q: 0, kv: 0, perRow: 1, perColumn: 1, ratio: 1, blockQ: 128, blockKv: 128, group: 0 };
const kinds = Array.from({ length: 4 }, (_, i) => Array.from({ length: 4 }, (_, j) => (j < i ? 2 : j === i ? 1 : 0)));
const sizes = { Sq: 500, Skv: 500, blockQ: 128, blockKv: 128 };

describe('tiles', () => {
  it('are computed for the partial blocks in view, to the very end of the tokens', () => {
    const tiles = new Tiles(blockMap(summaryOf(kinds)), sizes, { b: 0, h: 0 }, CellPlan.of(causal), undefined, () => undefined);
    expect(tiles.fits(frame)).toBe(true);
    expect(tiles.fits({ ...frame, perRow: 8, perColumn: 8 })).toBe(false);
    do {
      tiles.visible(frame, 0); // as many as a frame allows
    } while (tiles.unfinished);
    const found = tiles.visible(frame, 0);
    expect(found.map(t => [t.q, t.kv, t.rows, t.columns])).toEqual([[0, 0, 128, 128], [128, 128, 128, 128], [256, 256, 128, 128], [384, 384, 116, 116]]);
    expect([tiles.cell(130, 130), tiles.cell(130, 131), tiles.cell(0, 400)]).toEqual([true, false, null]);
  });

  it('tell the share of a block', async () => {
    const tiles = new Tiles(blockMap(summaryOf(kinds)), sizes, { b: 0, h: 0 }, CellPlan.of(causal), undefined, () => undefined);
    expect(await tiles.share(1, 1)).toBeCloseTo((129 * 64) / 128 ** 2, 12);
    expect(await tiles.share(3, 3)).toBeCloseTo((117 * 58) / 116 ** 2, 12);
  });

  it('are asked of a kernel: one question at a time, of one batch entry and head, and neighbours together', async () => {
    const asked: CellRequest[] = [];
    const source: CellSource = {
      cells: request => {
        asked.push(request);
        return Promise.resolve(new Uint8Array(request.rows * request.columns).fill(request.q === 0 ? 1 : 0));
      }
    };
    const arrived = vi.fn();
    const partial = summaryOf([[1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]);
    const tiles = new Tiles(blockMap(partial), sizes, { b: 1, h: 2 }, null, source, arrived);
    for (let turn = 1; turn <= 2; turn++) {
      tiles.visible(frame, 0);
      tiles.visible(frame, 0);
      await vi.waitFor(() => expect(arrived).toHaveBeenCalledTimes(turn));
    }
    expect(asked).toEqual([
      { b: 1, h: 2, q: 0, kv: 0, rows: 128, columns: 384, step: 1 },
      { b: 1, h: 2, q: 128, kv: 384, rows: 128, columns: 116, step: 1 }
    ]);
    const found = tiles.visible(frame, 0);
    expect(found.map(t => t.cells.length)).toEqual([128 * 128, 128 * 128, 128 * 128, 128 * 116]);
    expect(tiles.cell(5, 300)).toBe(true);
    expect(tiles.unfinished).toBe(false);
    expect(asked).toHaveLength(2);
  });

  it('stay unknown where nobody can tell, and are not asked for again', async () => {
    const cells = vi.fn(() => Promise.reject(new Error('the kernel is gone')));
    const arrived = vi.fn();
    const tiles = new Tiles(blockMap(summaryOf([[1]])), { ...sizes, Sq: 100, Skv: 100 }, { b: 0, h: 0 }, null, { cells }, arrived);
    tiles.visible(frame, 0);
    await vi.waitFor(() => expect(arrived).toHaveBeenCalled());
    expect(tiles.visible(frame, 0)).toEqual([]);
    expect(cells).toHaveBeenCalledTimes(1);
    expect(await tiles.share(0, 0)).toBeNull();
  });
});
