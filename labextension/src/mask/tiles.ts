/** The cells of partial blocks that are in view: computed here piece by piece, or asked of a kernel, and kept for a while. */

import { CellPlan } from './cells';
import type { CellRequest, CellSource } from './cells';
import { PARTIAL } from './maps';
import type { BlockMap } from './maps';
import type { Frame, Tile } from './paint';

const SMALLEST = 24; // CSS pixels of a tile: smaller ones are too many
const FINEST = 1.25; // cells of a CSS pixel: with more of them, a few kept columns are a line that nobody sees, and blocks stay hatched
const SIDE = 128; // tokens of a tile
const KEPT = 2048; // tiles in memory
const ONE_ANSWER = 1 << 20; // cells
const SLICE = 8; // milliseconds of computing in a frame

/** The largest side of a tile that divides a block, so that a tile lies within one; 0 where there is none of a good size. */
export function tileSide(block: number): number {
  for (let side = Math.min(block, SIDE); side >= 32; side--) {
    if (block % side === 0) {
      return side;
    }
  }
  return block <= 1024 ? block : 0;
}

export interface Place {
  readonly b: number;
  readonly h: number;
}

export class Tiles {
  private readonly found = new Map<number, Tile | null>(); // null: nobody can tell
  private readonly tq: number;
  private readonly tk: number;
  private readonly across: number;
  private wanted: number[] = [];
  private asking = false;
  private ended = false;

  constructor(
    private readonly map: BlockMap,
    private readonly sizes: { Sq: number; Skv: number; blockQ: number; blockKv: number },
    private readonly place: Place,
    private readonly plan: CellPlan | null,
    private readonly source: CellSource | undefined,
    private readonly arrived: () => void
  ) {
    this.tq = tileSide(sizes.blockQ);
    this.tk = tileSide(sizes.blockKv);
    this.across = this.tk ? Math.ceil(sizes.Skv / this.tk) : 0;
  }

  get known(): boolean {
    return this.plan !== null || this.source !== undefined;
  }

  /** Are single cells to be drawn at this zoom? */
  fits(frame: Frame): boolean {
    const [q, kv] = [frame.perRow * frame.ratio, frame.perColumn * frame.ratio];
    return Math.max(q, kv) <= FINEST && Math.min(this.tq / q, this.tk / kv) >= SMALLEST;
  }

  /** The tiles in view that are there. Before that, those that are missing are computed for as long as a frame allows, or asked for. */
  visible(frame: Frame, group: number): Tile[] {
    const keys = this.inView(frame, group);
    this.wanted = keys.filter(key => !this.found.has(key));
    if (this.plan) {
      this.compute(this.plan);
    } else {
      void this.ask();
    }
    return keys.map(key => this.found.get(key)).filter(tile => tile !== undefined && tile !== null);
  }

  /** Is more to be computed, in the next frame? */
  get unfinished(): boolean {
    return this.plan !== null && this.wanted.length > 0;
  }

  private inView(frame: Frame, group: number): number[] {
    const out: number[] = [];
    const lastRow = Math.min(this.sizes.Sq, frame.q + frame.height * frame.perRow);
    const lastColumn = Math.min(this.sizes.Skv, frame.kv + frame.width * frame.perColumn);
    for (let i = Math.floor(frame.q / this.tq); i * this.tq < lastRow; i++) {
      for (let j = Math.floor(frame.kv / this.tk); j * this.tk < lastColumn; j++) {
        const block = [Math.floor((i * this.tq) / this.sizes.blockQ), Math.floor((j * this.tk) / this.sizes.blockKv)] as const;
        if (this.map.kindAt(group, ...block) === PARTIAL) {
          out.push(i * this.across + j);
        }
      }
    }
    return out;
  }

  private compute(plan: CellPlan): void {
    const end = performance.now() + SLICE;
    let done = 0;
    for (; done < this.wanted.length && performance.now() < end; done++) {
      const key = this.wanted[done] as number;
      const request = this.request(key);
      const cells = plan.cells(request);
      this.keep(key, cells ? { ...request, cells } : null);
    }
    this.wanted = this.wanted.slice(done);
  }

  /** The share of a block's cells that are kept: null where that isn't known (yet). */
  async share(row: number, column: number): Promise<number | null> {
    const { Sq, Skv, blockQ, blockKv } = this.sizes;
    const [q, kv] = [row * blockQ, column * blockKv];
    const [rows, columns] = [Math.min(blockQ, Sq - q), Math.min(blockKv, Skv - kv)];
    const request = { ...this.place, q, kv, rows, columns, step: 1 };
    const small = rows * columns <= ONE_ANSWER;
    const cells = !small ? null : this.plan ? this.plan.cells(request) : ((await this.source?.cells(request).catch(() => null)) ?? null);
    return cells && cells.length === rows * columns ? cells.reduce((a, b) => a + b, 0) / cells.length : null;
  }

  /** Is this very cell kept? Known where its tile has been drawn. */
  cell(q: number, kv: number): boolean | null {
    const tile = this.tk ? this.found.get(Math.floor(q / this.tq) * this.across + Math.floor(kv / this.tk)) : null;
    return tile ? tile.cells[(q - tile.q) * tile.columns + kv - tile.kv] === 1 : null;
  }

  dispose(): void {
    this.ended = true;
    this.wanted = [];
    this.found.clear();
  }

  private request(key: number, wide = 1): CellRequest {
    const [q, kv] = [Math.floor(key / this.across) * this.tq, (key % this.across) * this.tk];
    const columns = Math.min(this.tk * wide, this.sizes.Skv - kv);
    return { ...this.place, q, kv, rows: Math.min(this.tq, this.sizes.Sq - q), columns, step: 1 };
  }

  private keep(key: number, tile: Tile | null): void {
    this.found.set(key, tile);
    for (const old of this.found.keys()) {
      if (this.found.size <= KEPT) {
        break;
      }
      this.found.delete(old);
    }
  }

  /** One question at a time, about neighbours of one row of tiles. */
  private async ask(): Promise<void> {
    const [first] = this.wanted;
    if (this.asking || first === undefined || !this.source) {
      return;
    }
    this.asking = true;
    let wide = 1;
    while (this.wanted[wide] === first + wide && (first + wide) % this.across !== 0 && this.tq * this.tk * (wide + 1) <= ONE_ANSWER) {
      wide++;
    }
    const request = this.request(first, wide);
    const cells = await this.source.cells(request).catch(() => null);
    this.asking = false;
    if (this.ended) {
      return;
    }
    const good = cells !== null && cells.length === request.rows * request.columns;
    for (let k = 0; k < wide; k++) {
      const one = this.request(first + k);
      this.keep(first + k, good ? { ...one, cells: cut(cells, request, one) } : null);
    }
    this.arrived();
  }
}

function cut(cells: Uint8Array, all: CellRequest, one: CellRequest): Uint8Array {
  const out = new Uint8Array(one.rows * one.columns);
  for (let i = 0; i < one.rows; i++) {
    const from = i * all.columns + one.kv - all.kv;
    out.set(cells.subarray(from, from + one.columns), i * one.columns);
  }
  return out;
}
