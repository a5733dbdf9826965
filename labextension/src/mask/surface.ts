/** The two canvases of the view: the map with its axes, and over it the cross-hair, which moves without the map being painted again. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { BlockSummary } from '../core/record';
import { colour, isDark } from '../core/theme';
import { BAR, BOTTOM, drawAxes, drawCursor, drawWork, GAP, LEFT, TOP } from './axes';
import type { Ink } from './axes';
import { keys, watchKeys } from './keys';
import type { BlockMap } from './maps';
import { DARK, LIGHT, lookOf, paint, paintGrid, paintTile, ramp } from './paint';
import type { Frame, Look } from './paint';
import type { Viewport } from './scale';
import type { Tiles } from './tiles';

export interface Cell {
  readonly q: number;
  readonly kv: number;
}

export interface Scene {
  readonly blocks: BlockSummary;
  readonly map: BlockMap;
  readonly group: number;
  readonly tiles: Tiles;
}

export class Surface {
  readonly canvas = h('canvas', { class: 'jp-CuteMask-map', tabindex: 0, role: 'application', ...keys('+ = - 0 ^Home ^End') });
  private readonly over = h('canvas', { class: 'jp-CuteMask-over', 'aria-hidden': 'true' });
  readonly element = h('div', { class: 'jp-CuteMask-stage' }, this.canvas, this.over);
  private image: ImageData | null = null;
  private ink: Ink | null = null;
  private dark = false;
  private ratio = 1;

  constructor(private readonly trans: Translate) {
    watchKeys();
  }

  /** True where the sizes are others than before. */
  resize(width: number, height: number): boolean {
    const ratio = globalThis.devicePixelRatio || 1;
    const all = [LEFT + width + GAP + BAR + 8, TOP + height + BOTTOM] as const;
    const [w, t] = [Math.round(all[0] * ratio), Math.round(all[1] * ratio)];
    if (this.canvas.width === w && this.canvas.height === t) {
      return false;
    }
    this.ratio = ratio;
    for (const canvas of [this.canvas, this.over]) {
      [canvas.width, canvas.height] = [w, t];
      canvas.style.width = `${all[0]}px`;
      canvas.style.height = `${all[1]}px`;
    }
    this.element.style.height = `${all[1]}px`; // before anything is painted: the notebook must not jump
    return true;
  }

  /** The page's colours are read anew. */
  recolour(): void {
    this.ink = null;
  }

  /** How partial blocks look now, and words on what is not shown: single cells, where nobody can tell them. */
  draw(scene: Scene, view: Viewport): { look: Look; note: string } {
    const c = this.canvas.getContext('2d');
    if (!c) {
      return { look: 'hatched', note: '' };
    }
    const ink = this.colours();
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const drawn = this.drawMap(c, scene, view);
    drawAxes(c, view, ink, this.trans);
    drawWork(c, scene.map, scene.group, scene.blocks.block_q, view, ink, this.trans);
    return drawn;
  }

  drawCursor(at: Cell | null, blockQ: number, view: Viewport): void {
    const c = this.over.getContext('2d');
    if (c) {
      c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      c.clearRect(0, 0, this.over.width, this.over.height);
      if (at) {
        drawCursor(c, at, blockQ, view, this.colours());
      }
    }
  }

  private drawMap(c: CanvasRenderingContext2D, { blocks, map, group, tiles }: Scene, view: Viewport): { look: Look; note: string } {
    const { ratio } = this;
    const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = c.createImageData(width, height);
    }
    const frame: Frame = {
      ...{ width, height, q: view.q, kv: view.kv, perRow: view.queries / height, perColumn: view.keys / width, ratio },
      ...{ blockQ: blocks.block_q, blockKv: blocks.block_kv, group }
    };
    const palette = this.dark ? DARK : LIGHT;
    const pixels = new Uint32Array(this.image.data.buffer);
    paint(map, frame, palette, pixels);
    const close = tiles.fits(frame);
    if (close) {
      const look = ramp(palette.tint, palette.hatch);
      tiles.visible(frame, group).forEach(tile => paintTile(tile, frame, palette, look, pixels));
    }
    paintGrid(frame, close ? palette.edge : palette.grid, pixels);
    c.putImageData(this.image, Math.round(LEFT * ratio), Math.round(TOP * ratio));
    const note = this.trans.__('Single cells need a kernel here: this mask reads large tensors, or functions that a browser rounds otherwise.');
    return { look: close && tiles.known ? 'cells' : lookOf(frame), note: close && !tiles.known ? note : '' };
  }

  private colours(): Ink {
    if (this.ink) {
      return this.ink;
    }
    const { element } = this;
    this.dark = isDark(element);
    element.closest('.jp-CuteMask')?.classList.toggle('jp-mod-dark', this.dark);
    const own = (name: string, light: string, dark: string): string => colour(element, name, this.dark ? dark : light);
    this.ink = {
      text: own('--jp-ui-font-color1', '#1f2d3a', '#e2e6ea'),
      faint: own('--jp-ui-font-color2', '#5a6672', '#a6adb5'),
      line: this.dark ? '#76828f' : '#8b95a0',
      full: this.dark ? '#3f9fd8' : '#0072b2',
      partial: this.dark ? '#e69f00' : '#d98200',
      cursor: this.dark ? '#ffffff' : '#1f2d3a',
      halo: this.dark ? 'rgba(11, 14, 17, .7)' : 'rgba(255, 255, 255, .75)',
      font: own('--jp-ui-font-family', 'system-ui, sans-serif', 'system-ui, sans-serif')
    };
    return this.ink;
  }
}
