/** Rows of runs -> pixels. No object for a block, no call for a pixel: a million by a million tokens are painted in some milliseconds. */

import { FULL, PARTIAL } from './maps';
import type { BlockMap } from './maps';

/** Colours as a canvas stores them, 0xAABBGGRR. The light ones are those of the PNG (cute_lab/picture.py). */
export interface Palette {
  readonly paper: number;
  readonly grid: number;
  readonly edge: number;
  readonly full: number;
  readonly tint: number;
  readonly hatch: number;
}

function colour(hex: string): number {
  const [r, g, b] = [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16)) as [number, number, number];
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

const palette = (paper: string, grid: string, edge: string, full: string, tint: string, hatch: string): Palette => ({
  paper: colour(paper),
  grid: colour(grid),
  edge: colour(edge),
  full: colour(full),
  tint: colour(tint),
  hatch: colour(hatch)
});
export const LIGHT = palette('ffffff', 'd9dde2', '8b95a0', '0072b2', 'f9dfa6', 'd98200');
export const DARK = palette('14181d', '2c343d', '76828f', '3f9fd8', '3b2d12', 'e69f00');

export interface Frame {
  readonly width: number; // device pixels
  readonly height: number;
  readonly q: number; // the first token in view
  readonly kv: number;
  readonly perRow: number; // tokens of a pixel
  readonly perColumn: number;
  readonly ratio: number; // device pixels of a CSS pixel
  readonly blockQ: number;
  readonly blockKv: number;
  readonly group: number;
}

/** 256 steps from one colour to another. */
export function ramp(from: number, to: number): Uint32Array {
  const out = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    let found = 255 << 24;
    for (const shift of [0, 8, 16]) {
      const a = (from >>> shift) & 255;
      found |= Math.round(a + ((((to >>> shift) & 255) - a) * i) / 255) << shift;
    }
    out[i] = found >>> 0;
  }
  return out;
}

const FAINTEST = 0.3; // a stripe much narrower than a pixel must be seen

/** How partial blocks look at a zoom: as cells, hatched, of one colour, or in a pixel with others. The legend follows it. */
export type Look = 'cells' | 'hatched' | 'solid' | 'shares';

export function lookOf(frame: Frame): Look {
  const { perRow, perColumn, blockQ, blockKv, ratio } = frame;
  return blockQ < perRow || blockKv < perColumn ? 'shares' : Math.min(blockQ / perRow, blockKv / perColumn) / ratio >= 5 ? 'hatched' : 'solid';
}

export function paint(map: BlockMap, frame: Frame, colours: Palette, pixels: Uint32Array): void {
  if (lookOf(frame) !== 'shares') {
    paintBlocks(map, frame, colours, pixels);
  } else {
    paintShares(map, frame, colours, pixels);
  }
}

/** A block has a pixel at least: each in its kind's own look. */
function paintBlocks(map: BlockMap, frame: Frame, colours: Palette, pixels: Uint32Array): void {
  const { width, height, q, kv, perRow, perColumn, blockQ, blockKv, ratio } = frame;
  const line = new Uint8Array(width);
  const cell = Math.min(blockQ / perRow, blockKv / perColumn) / ratio;
  const hatched = lookOf(frame) === 'hatched';
  const period = Math.round((cell >= 24 ? 8 : 5) * ratio);
  const stroke = Math.round((cell >= 24 ? 3 : 2) * ratio);
  const shift = (Math.round(kv / perColumn + q / perRow) % period) + period;
  const column = (at: number): number => Math.min(width, Math.max(0, Math.round((at * blockKv - kv) / perColumn)));
  const end = Math.min(map.rows, Math.ceil((q + height * perRow) / blockQ));
  for (let row = Math.floor(q / blockQ); row < end; row++) {
    const last = map.offsets[frame.group * map.rows + row + 1] as number;
    for (let n = map.offsets[frame.group * map.rows + row] as number; n < last; n++) {
      const to = n + 1 < last ? column(map.start[n + 1] as number) : width;
      line.fill(map.kind[n] as number, column(map.start[n] as number), to);
    }
    const top = Math.max(0, Math.round((row * blockQ - q) / perRow));
    const bottom = row + 1 === map.rows ? height : Math.min(height, Math.round(((row + 1) * blockQ - q) / perRow));
    for (let y = top; y < bottom; y++) {
      for (let x = 0, at = y * width; x < width; x++, at++) {
        const kind = line[x];
        pixels[at] =
          kind === FULL
            ? colours.full
            : kind !== PARTIAL
              ? colours.paper
              : hatched && (x + y + shift) % period >= stroke
                ? colours.tint
                : colours.hatch;
      }
    }
  }
}

/** Several blocks share a pixel: the colour of what is issued most, the paler the more of it is skipped. */
function paintShares(map: BlockMap, frame: Frame, colours: Palette, pixels: Uint32Array): void {
  const { width, height, q, kv, perRow, perColumn, blockQ, blockKv } = frame;
  const looks = [ramp(colours.paper, colours.hatch), ramp(colours.paper, colours.full)] as const;
  const steps = [new Float64Array(width + 2), new Float64Array(width + 2)] as const; // from one pixel's share to the next one's
  const edge = (into: Float64Array, at: number, weight: number): void => {
    const x = Math.min(width, Math.max(0, (at * blockKv - kv) / perColumn));
    const whole = Math.floor(x);
    into[whole] = (into[whole] as number) + weight * (whole + 1 - x);
    into[whole + 1] = (into[whole + 1] as number) + weight * (x - whole);
  };
  for (let y = 0; y < height; y++) {
    const from = q + y * perRow;
    const to = from + perRow;
    steps[0].fill(0);
    steps[1].fill(0);
    const end = Math.min(map.rows, Math.ceil(to / blockQ));
    for (let row = Math.floor(from / blockQ); row < end; row++) {
      const weight = (Math.min(to, (row + 1) * blockQ) - Math.max(from, row * blockQ)) / perRow;
      const last = map.offsets[frame.group * map.rows + row + 1] as number;
      for (let n = map.offsets[frame.group * map.rows + row] as number; n < last; n++) {
        const kind = map.kind[n] as number;
        if (kind) {
          const into = steps[kind === FULL ? 1 : 0];
          edge(into, map.start[n] as number, weight);
          edge(into, n + 1 < last ? (map.start[n + 1] as number) : map.width, -weight);
        }
      }
    }
    let [partial, full] = [0, 0];
    for (let x = 0, at = y * width; x < width; x++, at++) {
      partial += steps[0][x] as number;
      full += steps[1][x] as number;
      const issued = partial + full;
      const strength = issued < 1e-9 ? 0 : Math.min(255, Math.round(255 * (FAINTEST + (1 - FAINTEST) * issued)));
      pixels[at] = looks[full > partial ? 1 : 0][strength] as number;
    }
  }
}

/** Cells of a tile within one partial block. */
export interface Tile {
  readonly q: number;
  readonly kv: number;
  readonly rows: number;
  readonly columns: number;
  readonly cells: Uint8Array;
}

/** Kept cells in the partial blocks' strong colour, dropped ones in its tint; shares of them where a cell is less than a pixel. */
export function paintTile(tile: Tile, frame: Frame, colours: Palette, look: Uint32Array, pixels: Uint32Array): void {
  const { width, height, q, kv, perRow, perColumn, ratio } = frame;
  const [left, right] = span(tile.kv, tile.columns, kv, perColumn, width);
  const [top, bottom] = span(tile.q, tile.rows, q, perRow, height);
  const lined = Math.min(1 / perRow, 1 / perColumn) >= 10 * ratio;
  for (let y = top; y < bottom; y++) {
    const [i0, i1] = covered(q + y * perRow - tile.q, perRow, tile.rows);
    const border = lined && covered(q + (y - 1) * perRow - tile.q, perRow, tile.rows)[0] !== i0;
    for (let x = left, at = y * width + left; x < right; x++, at++) {
      const [j0, j1] = covered(kv + x * perColumn - tile.kv, perColumn, tile.columns);
      let kept = 0;
      for (let i = i0; i < i1; i++) {
        for (let j = j0, n = i * tile.columns + j0; j < j1; j++, n++) {
          kept += tile.cells[n] as number;
        }
      }
      const share = Math.round((255 * kept) / ((i1 - i0) * (j1 - j0)));
      const side = border || (lined && covered(kv + (x - 1) * perColumn - tile.kv, perColumn, tile.columns)[0] !== j0);
      pixels[at] = side ? colours.grid : (look[share] as number);
    }
  }
}

function span(first: number, count: number, from: number, per: number, most: number): [number, number] {
  return [Math.max(0, Math.round((first - from) / per)), Math.min(most, Math.round((first + count - from) / per))];
}

/** The cells under a pixel: one where a cell is larger than it. */
function covered(at: number, per: number, count: number): [number, number] {
  const first = Math.min(count - 1, Math.max(0, Math.floor(per < 1 ? at + per / 2 : at)));
  return [first, per < 1 ? first + 1 : Math.min(count, Math.max(first + 1, Math.floor(at + per)))];
}

/** Lines between the blocks, where they are large enough for that. */
export function paintGrid(frame: Frame, line: number, pixels: Uint32Array): void {
  const { width, height, q, kv, perRow, perColumn, blockQ, blockKv, ratio } = frame;
  if (Math.min(blockQ / perRow, blockKv / perColumn) < 12 * ratio) {
    return;
  }
  for (let row = Math.ceil(q / blockQ); row * blockQ < q + height * perRow; row++) {
    const y = Math.round((row * blockQ - q) / perRow);
    if (y > 0 && y < height) {
      pixels.fill(line, y * width, (y + 1) * width);
    }
  }
  for (let column = Math.ceil(kv / blockKv); column * blockKv < kv + width * perColumn; column++) {
    const x = Math.round((column * blockKv - kv) / perColumn);
    for (let at = x; x > 0 && x < width && at < pixels.length; at += width) {
      pixels[at] = line;
    }
  }
}
