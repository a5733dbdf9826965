/** What stands around the map: ticks in tokens, titles, the work of each row; and the cross-hair over it. */

import type { Translate } from '../core/i18n';
import { number } from '../core/text';
import type { BlockMap } from './maps';
import { ticks } from './scale';
import type { Viewport } from './scale';

export const LEFT = 72;
export const TOP = 24;
export const BOTTOM = 42;
export const GAP = 14;
export const BAR = 56;
const LARGE = 64; // pixels of a row

/** CSS colours. */
export interface Ink {
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly full: string;
  readonly partial: string;
  readonly cursor: string;
  readonly halo: string; // around the cross-hair
  readonly font: string;
}

export function drawAxes(c: CanvasRenderingContext2D, view: Viewport, ink: Ink, trans: Translate): void {
  const { width, height } = view;
  c.strokeStyle = ink.line;
  c.lineWidth = 1;
  c.strokeRect(LEFT - 0.5, TOP - 0.5, width + 1, height + 1);
  c.font = `12px ${ink.font}`;
  c.fillStyle = ink.text;
  c.textBaseline = 'middle';
  c.textAlign = 'right';
  c.beginPath();
  for (const at of ticks(view.q, view.queries, height, 44)) {
    const y = TOP + view.placeOf(at, 0)[1];
    c.moveTo(LEFT - 6, Math.round(y) - 0.5);
    c.lineTo(LEFT - 1, Math.round(y) - 0.5);
    c.fillText(number(at), LEFT - 9, Math.min(TOP + height - 5, Math.max(TOP + 6, y)));
  }
  c.textBaseline = 'top';
  c.textAlign = 'center';
  let free = 0; // where the last label ended
  for (const at of ticks(view.kv, view.keys, width, 84)) {
    const x = LEFT + view.placeOf(0, at)[0];
    const label = number(at);
    const half = c.measureText(label).width / 2;
    const middle = Math.min(LEFT + width + GAP - half, Math.max(LEFT + half - 4, x));
    c.moveTo(Math.round(x) - 0.5, TOP + height + 1);
    c.lineTo(Math.round(x) - 0.5, TOP + height + 6);
    if (middle - half > free) {
      c.fillText(label, middle, TOP + height + 8);
      free = middle + half + 8;
    }
  }
  c.stroke();
  c.fillStyle = ink.faint;
  c.textAlign = 'right';
  c.fillText(trans.__('query ↓'), LEFT - 9, 4);
  c.textAlign = 'center';
  c.fillText(trans.__('key →'), LEFT + width / 2, TOP + height + 25);
}

/** Blocks that each row issues, full and partial, against the busiest row. */
export function drawWork(c: CanvasRenderingContext2D, map: BlockMap, group: number, blockQ: number, view: Viewport, ink: Ink, trans: Translate): void {
  const work = map.workOf(group);
  const left = LEFT + view.width + GAP;
  const unit = work.most ? BAR / work.most : 0;
  for (let y = 0; y < view.height; y++) {
    const from = Math.floor((view.q + (y / view.height) * view.queries) / blockQ);
    const to = Math.max(from + 1, Math.floor((view.q + ((y + 1) / view.height) * view.queries) / blockQ));
    let [partial, full] = [0, 0];
    for (let row = from; row < Math.min(to, map.rows); row++) {
      full = Math.max(full, work.full[row] as number);
      partial = Math.max(partial, (work.partial[row] as number) + (work.full[row] as number));
    }
    c.fillStyle = ink.partial;
    c.fillRect(left, TOP + y, partial * unit, 1);
    c.fillStyle = ink.full;
    c.fillRect(left, TOP + y, full * unit, 1);
  }
  c.fillStyle = ink.line;
  c.fillRect(left - 1, TOP, 1, view.height);
  c.fillRect(left + work.mean * unit, TOP, 1, view.height);
  c.font = `12px ${ink.font}`;
  c.fillStyle = ink.faint;
  c.textBaseline = 'top';
  c.textAlign = 'left';
  c.fillText(trans.__('blocks/row'), left - 2, 4);
  c.textAlign = 'right';
  c.fillText(number(work.most), left + BAR + 4, TOP + view.height + 8);
}

/** The row of blocks under the cursor, and its cell. */
export function drawCursor(c: CanvasRenderingContext2D, at: { q: number; kv: number }, blockQ: number, view: Viewport, ink: Ink): void {
  const clip = (y: number): number => Math.min(view.height, Math.max(0, y));
  const row = Math.floor(at.q / blockQ);
  const top = clip(view.placeOf(row * blockQ, 0)[1]);
  const bottom = clip(view.placeOf((row + 1) * blockQ, 0)[1]);
  const from = bottom - top > LARGE ? LEFT + view.width + 1 : LEFT; // over large blocks it would only dim what one looks at
  c.globalAlpha = 0.16;
  c.fillStyle = ink.cursor;
  c.fillRect(from, TOP + top, LEFT + view.width + GAP + BAR - from, Math.max(1, bottom - top));
  c.globalAlpha = 1;
  const [x, y] = view.placeOf(at.q + 0.5, at.kv + 0.5);
  if (x < 0 || x > view.width || y < 0 || y > view.height) {
    return;
  }
  for (const [style, wide] of [[ink.halo, 3], [ink.cursor, 1]] as const) {
    c.strokeStyle = style;
    c.lineWidth = wide;
    c.beginPath();
    c.moveTo(LEFT, TOP + Math.round(y) + 0.5);
    c.lineTo(LEFT + view.width, TOP + Math.round(y) + 0.5);
    c.moveTo(LEFT + Math.round(x) + 0.5, TOP);
    c.lineTo(LEFT + Math.round(x) + 0.5, TOP + view.height);
    c.stroke();
  }
}
