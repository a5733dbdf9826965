/** A block map in the browser: the runs of its rows, as cute_lab/runs.py packs them, and what is counted from them. */

import { Problem } from '../core/decode';
import { bytes } from '../core/inflate';
import type { BlockSummary } from '../core/record';

export const EMPTY = 0;
export const PARTIAL = 1;
export const FULL = 2;
export type Kind = 0 | 1 | 2;
/** Blocks of each kind. */
export type Counts = readonly [empty: number, partial: number, full: number];

/** More than these are not drawn: a record may be hostile, and 2^22 runs are a file of some MB. */
const MOST_RUNS = 1 << 22;
const MOST_ROWS = 1 << 22;
const MOST_BY_BLOCK = 1 << 24;

/** Maps of `rows` rows of `width` blocks: line r has the runs offsets[r] to offsets[r + 1] - 1, each reaching to the next one or to the end. */
export class BlockMap {
  private readonly work = new Map<number, RowWork>();

  constructor(
    readonly groups: number,
    readonly rows: number,
    readonly width: number,
    readonly offsets: Uint32Array,
    readonly start: Int32Array,
    readonly kind: Uint8Array
  ) {}

  kindAt(group: number, row: number, column: number): Kind {
    const line = group * this.rows + row;
    let low = this.offsets[line] as number;
    let high = (this.offsets[line + 1] as number) - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.start[middle] as number) <= column) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return this.kind[low] as Kind;
  }

  /** Blocks of each kind in a rectangle: rows [top, bottom), columns [left, right). */
  tile(group: number, top: number, left: number, bottom: number, right: number): Counts {
    const found: [number, number, number] = [0, 0, 0];
    for (let line = group * this.rows + top; line < group * this.rows + bottom; line++) {
      const last = this.offsets[line + 1] as number;
      for (let n = this.offsets[line] as number; n < last; n++) {
        const from = Math.max(left, this.start[n] as number);
        const to = Math.min(right, n + 1 < last ? (this.start[n + 1] as number) : this.width);
        if (to > from) {
          (found[this.kind[n] as Kind] as number) += to - from;
        }
      }
    }
    return found;
  }

  rowCounts(group: number, row: number): Counts {
    const { partial, full } = this.workOf(group);
    const p = partial[row] as number;
    const f = full[row] as number;
    return [this.width - p - f, p, f];
  }

  /** What each row of blocks costs, counted once for each map. */
  workOf(group: number): RowWork {
    let found = this.work.get(group);
    if (!found) {
      found = rowWork(this, group);
      this.work.set(group, found);
    }
    return found;
  }
}

export interface RowWork {
  readonly partial: Uint32Array;
  readonly full: Uint32Array;
  /** Blocks that are issued in the busiest row, and which it is. */
  readonly most: number;
  readonly busiest: number;
  readonly mean: number;
}

function rowWork(map: BlockMap, group: number): RowWork {
  const partial = new Uint32Array(map.rows);
  const full = new Uint32Array(map.rows);
  let [most, busiest, all] = [0, 0, 0];
  for (let row = 0; row < map.rows; row++) {
    const [, p, f] = map.tile(group, row, 0, row + 1, map.width);
    partial[row] = p;
    full[row] = f;
    all += p + f;
    if (p + f > most) {
      most = p + f;
      busiest = row;
    }
  }
  return { partial, full, most, busiest, mean: all / map.rows };
}

/** The map of a record, or a Problem that says why its data is none. */
export function blockMap(blocks: BlockSummary): BlockMap {
  const { nq, nkv } = blocks;
  const groups = blocks.Bm * blocks.Hm;
  const lines = groups * nq;
  if (blocks.block_q < 1 || blocks.block_kv < 1 || lines * nkv < 1) {
    throw new Problem('the block map has no blocks');
  }
  if (blocks.full + blocks.partial + blocks.empty !== lines * nkv) {
    throw new Problem(`full + partial + empty is not Bm * Hm * nq * nkv = ${lines * nkv}`);
  }
  if (lines > MOST_ROWS) {
    throw new Problem(`the block map has more than ${MOST_ROWS} rows`);
  }
  const map = blocks.encoding === 'zlib-runs-b64' ? byRuns(blocks.data, groups, nq, nkv) : byBlock(blocks.data, groups, nq, nkv);
  const found = total(map);
  if (found[EMPTY] !== blocks.empty || found[PARTIAL] !== blocks.partial || found[FULL] !== blocks.full) {
    throw new Problem('the block map does not agree with its counts');
  }
  return map;
}

function total(map: BlockMap): number[] {
  const found = [0, 0, 0];
  for (let line = 0; line < map.groups * map.rows; line++) {
    const last = map.offsets[line + 1] as number;
    for (let n = map.offsets[line] as number; n < last; n++) {
      const to = n + 1 < last ? (map.start[n + 1] as number) : map.width;
      (found[map.kind[n] as Kind] as number) += to - (map.start[n] as number);
    }
  }
  return found;
}

function byRuns(data: string, groups: number, rows: number, width: number): BlockMap {
  const lines = groups * rows;
  const most = Math.min(lines * width, MOST_RUNS);
  const raw = bytes(data, 4 * lines + 5 * most);
  if (raw.length < 4 * lines) {
    throw new Problem("the block map's rows are missing");
  }
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const offsets = new Uint32Array(lines + 1);
  let runs = 0;
  for (let line = 0; line < lines; line++) {
    const count = view.getInt32(4 * line, true);
    runs += count;
    if (count < 1 || runs > most) {
      throw new Problem("the block map's runs are not as many as its rows say");
    }
    offsets[line + 1] = runs;
  }
  if (raw.length !== 4 * lines + 5 * runs) {
    throw new Problem("the block map's runs are not as many as its rows say");
  }
  const start = new Int32Array(runs);
  const kind = raw.slice(4 * lines + 4 * runs);
  for (let line = 0; line < lines; line++) {
    const first = offsets[line] as number;
    const above = line > 0 ? (offsets[line - 1] as number) : 0;
    const last = offsets[line + 1] as number;
    for (let n = first; n < last; n++) {
      const at = above + n - first; // the same run of the row above, where there is one
      const from = view.getInt32(4 * lines + 4 * n, true) + (line > 0 && at < first ? (start[at] as number) : 0);
      const good = n === first ? from === 0 : from > (start[n - 1] as number) && from < width;
      if (!good || (kind[n] as number) > FULL) {
        throw new Problem("the block map's runs do not cover its rows");
      }
      start[n] = from;
    }
  }
  return new BlockMap(groups, rows, width, offsets, start, kind);
}

function byBlock(data: string, groups: number, rows: number, width: number): BlockMap {
  const blocks = groups * rows * width;
  if (blocks > MOST_BY_BLOCK) {
    throw new Problem(`the block map has more than ${MOST_BY_BLOCK} blocks, one by one`);
  }
  const size = Math.ceil(blocks / 4);
  const raw = bytes(data, size);
  if (raw.length !== size) {
    throw new Problem(`the block map does not hold ${blocks} blocks`);
  }
  const kindOf = (at: number): number => ((raw[at >> 2] as number) >> ((at & 3) << 1)) & 3;
  const offsets = new Uint32Array(groups * rows + 1);
  let runs = 0;
  for (let line = 0, at = 0; line < groups * rows; line++) {
    for (let column = 0, before = -1; column < width; column++, at++) {
      const kind = kindOf(at);
      if (kind > FULL) {
        throw new Problem('the block map has a kind that there is not');
      }
      runs += Number(kind !== before);
      before = kind;
    }
    offsets[line + 1] = runs;
  }
  const start = new Int32Array(runs);
  const kinds = new Uint8Array(runs);
  for (let line = 0, at = 0, n = 0; line < groups * rows; line++) {
    for (let column = 0, before = -1; column < width; column++, at++) {
      const kind = kindOf(at);
      if (kind !== before) {
        start[n] = column;
        kinds[n++] = kind;
        before = kind;
      }
    }
  }
  return new BlockMap(groups, rows, width, offsets, start, kinds);
}
