/** Which blocks of the mask changed between two runs: counts, and a picture of the first map. */

import { Problem } from '../core/decode';
import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { BlockSummary, CuteRecord } from '../core/record';
import { colour } from '../core/theme';
import { blockMap, EMPTY } from '../mask/maps';
import type { BlockMap } from '../mask/maps';
import { prose } from './blocks';
import { sides } from './others';
import { noBlocks } from './words/common';
import { number } from './words/quantities';
import { maskWords } from './words/summary';

/** 0 skipped in both, 1 computed alike in both, 2 partial <-> full, 3 new, 4 gone. */
export type Step = 0 | 1 | 2 | 3 | 4;
export type Steps = readonly [number, number, number, number, number];

const PIXELS = 360;

/** Calls back for each run of blocks of one line that changed in one way. */
function walk(a: BlockMap, b: BlockMap, line: number, see: (from: number, to: number, step: Step) => void): void {
  let [i, j] = [a.offsets[line] as number, b.offsets[line] as number];
  const [endA, endB] = [a.offsets[line + 1] as number, b.offsets[line + 1] as number];
  let at = 0;
  while (at < a.width) {
    const toA = i + 1 < endA ? (a.start[i + 1] as number) : a.width;
    const toB = j + 1 < endB ? (b.start[j + 1] as number) : b.width;
    const to = Math.min(toA, toB);
    see(at, to, stepOf(a.kind[i] as number, b.kind[j] as number));
    i += Number(to === toA);
    j += Number(to === toB);
    at = to;
  }
}

function stepOf(before: number, after: number): Step {
  if (before === after) {
    return before === EMPTY ? 0 : 1;
  }
  return before === EMPTY ? 3 : after === EMPTY ? 4 : 2;
}

export function steps(a: BlockMap, b: BlockMap): Steps {
  const found: [number, number, number, number, number] = [0, 0, 0, 0, 0];
  for (let line = 0; line < a.groups * a.rows; line++) {
    walk(a, b, line, (from, to, step) => (found[step] += to - from));
  }
  return found;
}

export function maskDifference(t: Translate, before: CuteRecord, after: CuteRecord): HTMLElement[] {
  const names = sides(t, before, after);
  const said = [before, after].map((record, i) => {
    const words = record.blocks ? maskWords(t, record.blocks, record.shape) : noBlocks(t, record);
    return h('p', {}, h('span', { class: 'jp-Cute-dim' }, `${names[i]}: `), ...prose(words));
  });
  const [a, b] = [before.blocks, after.blocks];
  const lines = h('div', { class: 'jp-Cute-lines' }, ...said);
  if (!a || !b) {
    return [lines];
  }
  const same = (['Bm', 'Hm', 'nq', 'nkv', 'block_q', 'block_kv'] as const).every(field => a[field] === b[field]);
  if (!same) {
    return [lines, h('p', { class: 'jp-Cute-dim' }, t.__('The maps have different blocks or sizes, so that their blocks can’t be compared one by one.'))];
  }
  return [lines, ...compared(t, a, b)];
}

function compared(t: Translate, a: BlockSummary, b: BlockSummary): HTMLElement[] {
  let maps: [BlockMap, BlockMap];
  try {
    maps = [blockMap(a), blockMap(b)];
  } catch (error) {
    if (error instanceof Problem) {
      return [h('p', {}, t.__('A block map is damaged: %1.', error.message))];
    }
    throw error;
  }
  const found = steps(...maps);
  if (!found[2] && !found[3] && !found[4]) {
    return [h('p', { class: 'jp-Cute-good' }, t.__('No block changed.'))];
  }
  const key: [Step, string][] = [
    [3, t._n('%2 block is new', '%2 blocks are new', found[3], number(found[3]))],
    [4, t._n('%2 block is gone', '%2 blocks are gone', found[4], number(found[4]))],
    [2, t._n('%2 block is partial in one and full in the other', '%2 blocks are partial in one and full in the other', found[2], number(found[2]))],
    [1, t._n('%2 is computed alike', '%2 are computed alike', found[1], number(found[1]))]
  ];
  const legend = h('p', { class: 'jp-Cute-errorKey' }, ...key.map(([step, words]) => h('span', { class: 'jp-Cute-errorWord' }, h('span', { class: `jp-Cute-swatch jp-Cute-step${step}` }), words)));
  const canvas = h('canvas', { class: 'jp-Cute-maskDiff', role: 'img', 'aria-label': key.map(([, words]) => words).join(', ') });
  requestAnimationFrame(() => paint(canvas, ...maps)); // when it is in the page, and has its colours
  return [legend, canvas];
}

/** A pixel for each block, or for several: then what changed most visibly wins. */
function paint(canvas: HTMLCanvasElement, a: BlockMap, b: BlockMap): void {
  const [wide, high] = [Math.min(a.width, PIXELS), Math.min(a.rows, PIXELS)];
  canvas.width = wide;
  canvas.height = high;
  const context = canvas.getContext('2d');
  if (!context) {
    return;
  }
  const seen = new Uint8Array(wide * high);
  for (let row = 0; row < a.rows; row++) {
    const y = Math.floor((row * high) / a.rows);
    walk(a, b, row, (from, to, step) => {
      const last = Math.floor(((to - 1) * wide) / a.width);
      for (let x = Math.floor((from * wide) / a.width); x <= last; x++) {
        seen[y * wide + x] = Math.max(seen[y * wide + x] as number, step);
      }
    });
  }
  const inks = [0, 1, 2, 3, 4].map(step => colour(canvas, `--jp-Cute-step-${step}`, ['', '#c8d0da', '#a48cd0', '#0072b2', '#d55e00'][step] as string));
  for (let y = 0; y < high; y++) {
    for (let x = 0; x < wide; x++) {
      const step = seen[y * wide + x] as Step;
      if (step) {
        context.fillStyle = inks[step] as string;
        context.fillRect(x, y, 1, 1);
      }
    }
  }
}
