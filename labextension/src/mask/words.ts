/** What the mask view says. */

import type { Translate } from '../core/i18n';
import type { BlockSummary } from '../core/record';
import { number, percent as spaced } from '../core/text';
import { FULL, PARTIAL } from './maps';
import type { Kind, RowWork } from './maps';

/** In one piece: a line must not end before the sign. */
export function percent(share: number): string {
  return spaced(share).replaceAll(' ', '\u00a0');
}

export function useful(blocks: BlockSummary, trans: Translate): string {
  const maps = blocks.Bm * blocks.Hm;
  const kept = percent(blocks.total_cells ? blocks.kept_cells / blocks.total_cells : 0);
  const issued = percent((blocks.full + blocks.partial) / (maps * blocks.nq * blocks.nkv));
  return maps > 1
    ? trans.__('%1 of cells kept; the kernel issues %2 (mean over %3 maps)', kept, issued, number(maps))
    : trans.__('%1 of cells kept; the kernel issues %2', kept, issued);
}

export function kindWord(kind: Kind, trans: Translate): string {
  return kind === FULL ? trans.__('full') : kind === PARTIAL ? trans.__('partial') : trans.__('empty');
}

export interface Reading {
  readonly q: number;
  readonly kv: number;
  readonly kind: Kind;
  readonly share: number | null;
  readonly cell: boolean | null;
}

/** `q 4,101 kv 3,077 · partial, 61 % kept`. */
export function readOut(at: Reading, trans: Translate): string {
  const place = `q ${number(at.q)} kv ${number(at.kv)}`;
  const kind = kindWord(at.kind, trans);
  const whole = at.kind === PARTIAL ? at.share : at.kind === FULL ? 1 : 0;
  const share = whole === null ? kind : trans.__('%1, %2 kept', kind, percent(whole));
  const cell = at.cell === null || at.kind !== PARTIAL ? '' : ` · ${at.cell ? trans.__('this cell is kept') : trans.__('this cell is dropped')}`;
  return `${place} · ${share}${cell}`;
}

/** How evenly the rows of blocks share the work: a thread block takes one. */
export function balance(work: RowWork, blockQ: number, trans: Translate): string {
  if (work.most === 0) {
    return trans.__('No row issues a block.');
  }
  const times = work.most / work.mean;
  const most = `${number(work.most)} ${work.most === 1 ? trans.__('block') : trans.__('blocks')}`;
  return times < 1.05
    ? trans.__('Rows are even: each issues about %1.', most)
    : trans.__('The busiest row (q %1) issues %2, %3× the mean.', number(work.busiest * blockQ), most, times.toFixed(times < 10 ? 1 : 0));
}

export function summary(blocks: BlockSummary, Sq: number, Skv: number, work: RowWork, trans: Translate): string {
  return [
    trans.__('Block map, %1 queries by %2 keys, blocks of %3 by %4.', number(Sq), number(Skv), blocks.block_q, blocks.block_kv),
    `${useful(blocks, trans)}:`,
    trans.__('%1 full, %2 partial, %3 empty.', number(blocks.full), number(blocks.partial), number(blocks.empty)),
    balance(work, blocks.block_q, trans)
  ].join(' ');
}
