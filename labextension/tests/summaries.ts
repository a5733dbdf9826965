/** Block maps for tests. */

import { deflateSync } from 'node:zlib';

import type { BlockSummary } from '../src/core/blocks';

/** A map by blocks, four in a byte; of several maps the rows follow each other. */
export function summaryOf(kinds: readonly (readonly number[])[], more: Partial<BlockSummary> = {}): BlockSummary {
  const flat = kinds.flat();
  const packed = new Uint8Array(Math.ceil(flat.length / 4));
  flat.forEach((kind, i) => (packed[i >> 2]! |= kind << ((i & 3) * 2)));
  const count = (kind: number): number => flat.filter(k => k === kind).length;
  const groups = (more.Bm ?? 1) * (more.Hm ?? 1);
  return {
    ...{ block_q: 128, block_kv: 128, Bm: 1, Hm: 1, nq: kinds.length / groups, nkv: kinds[0]!.length },
    ...{ empty: count(0), partial: count(1), full: count(2), kept_cells: 10, total_cells: 100, seconds: 0 },
    ...{ encoding: 'zlib-2bit-b64' as const, data: deflateSync(packed).toString('base64') },
    ...more
  };
}

export const causal = (n: number): number[][] =>
  Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (j < i ? 2 : j === i ? 1 : 0)));
