/** A block map and its cells as data: the guards that make them of what a notebook or a widget's state holds. */

import { float, list, natural, object, oneOf, Problem, string } from './decode';
import type { Decoder } from './decode';

export const blockSummary = object({
  block_q: natural(2 ** 30),
  block_kv: natural(2 ** 30),
  Bm: natural(2 ** 20),
  Hm: natural(2 ** 20),
  nq: natural(2 ** 24),
  nkv: natural(2 ** 24),
  full: natural(),
  partial: natural(),
  empty: natural(),
  kept_cells: natural(),
  total_cells: natural(),
  encoding: oneOf('zlib-2bit-b64', 'zlib-runs-b64'),
  data: string,
  seconds: float
});
export const scalar: Decoder<boolean | number> = (value, at) => (typeof value === 'boolean' ? value : float(value, at));
const attribute: Decoder<null | boolean | number | string> = (value, at) => {
  if (value === null || value === undefined || typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string') {
    return value ?? null;
  }
  throw new Problem(`${at} is not a plain value`);
};
export const cellCode = object({
  inputs: list(string, 4),
  nodes: list(object({ op: string, dtype: string, args: list(natural()), attr: attribute }), 20_000),
  result: natural(),
  tables: list(object({ name: string, dtype: string, shape: list(natural(), 8), encoding: oneOf('zlib-b64'), data: string }), 64),
  scalars: list(object({ name: string, dtype: string, value: scalar }), 256)
});

export type BlockSummary = ReturnType<typeof blockSummary>;
export type CellCode = ReturnType<typeof cellCode>;
