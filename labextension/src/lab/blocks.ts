/** Thumbnails of block maps: quiet squares, in the colours of the theme. */

import type { BlockSummary } from '../core/blocks';
import { Problem } from '../core/decode';
import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { percent } from '../core/text';
import { colour } from '../core/theme';
import { blockMap, FULL, PARTIAL } from '../mask/maps';

const MOST = 64; // blocks a side: more would be smaller than a pixel

/** An empty canvas where there is no map, or a large one: the words beside it say what the variant does. */
export function thumbnail(blocks: BlockSummary | null, trans: Translate): HTMLCanvasElement {
  const label = blocks
    ? trans.__('Block map: %1 of the blocks are skipped', percent(blocks.empty / Math.max(1, blocks.full + blocks.partial + blocks.empty)))
    : trans.__('No mask: every block is computed');
  return h('canvas', { class: 'jp-CuteLab-thumb', role: 'img', 'aria-label': label, width: 128, height: 128 });
}

/** Draws when the canvas is in the page, since the colours are the page's. Null: no mask, so all is full. */
export function draw(canvas: HTMLCanvasElement, blocks: BlockSummary | null): void {
  const context = canvas.getContext('2d');
  if (!context) {
    return;
  }
  const [side, ink, paper] = [canvas.width, colour(canvas, '--jp-CuteLab-full', '#1f5fa8'), colour(canvas, '--jp-CuteLab-paper', '#f3f5f7')];
  context.clearRect(0, 0, side, side);
  context.fillStyle = paper;
  context.fillRect(0, 0, side, side);
  if (!blocks) {
    context.fillStyle = ink;
    context.fillRect(0, 0, side, side);
    return;
  }
  if (blocks.nq > MOST || blocks.nkv > MOST) {
    return;
  }
  let map;
  try {
    map = blockMap(blocks);
  } catch (error) {
    if (error instanceof Problem) {
      return;
    }
    throw error;
  }
  const [height, width] = [side / blocks.nq, side / blocks.nkv];
  for (let row = 0; row < blocks.nq; row++) {
    for (let column = 0; column < blocks.nkv; column++) {
      const kind = map.kindAt(0, row, column);
      if (kind === FULL || kind === PARTIAL) {
        const [x, y] = [Math.round(column * width), Math.round(row * height)];
        const [w, t] = [Math.round((column + 1) * width) - x, Math.round((row + 1) * height) - y];
        context.globalAlpha = kind === FULL ? 1 : 0.28;
        context.fillStyle = ink;
        context.fillRect(x, y, w, t);
        context.globalAlpha = 1;
        if (kind === PARTIAL) {
          hatch(context, ink, x, y, w, t);
        }
      }
    }
  }
}

/** A diagonal through each partial block, so that the two kinds differ without colour. */
function hatch(context: CanvasRenderingContext2D, ink: string, x: number, y: number, width: number, height: number): void {
  context.strokeStyle = ink;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, y + height);
  context.lineTo(x + width, y);
  context.stroke();
}
