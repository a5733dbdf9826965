/** The mask as a picture that one can walk in: from the whole map down to single cells. Card, widget and exported page show it. */

import { Problem } from '../core/decode';
import { Disposables, h } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { BlockSummary, CellCode } from '../core/record';
import { onTheme } from '../core/theme';
import { BAR, GAP, LEFT, TOP } from './axes';
import { CellPlan } from './cells';
import type { CellSource } from './cells';
import { chooser, Legend, tools } from './chrome';
import { gestures } from './gestures';
import type { Asked } from './gestures';
import { blockMap, PARTIAL } from './maps';
import type { BlockMap } from './maps';
import { sides, Viewport } from './scale';
import { Surface } from './surface';
import type { Cell, Scene } from './surface';
import { Tiles } from './tiles';
import { balance, readOut, summary, useful } from './words';

export interface Shown {
  readonly Sq: number;
  readonly Skv: number;
  /** With it, single cells are computed here. */
  readonly cells?: CellCode | null;
}

const [ROOM, NARROWEST] = [480, 160]; // CSS pixels of the map's longer side
const [WIDE, SIDE, LEAST] = [600, 260, 300]; // from here on words stand beside the map; what they want, and what is left to it at least
const QUIET = 400; // milliseconds until the read-out is spoken

export class MaskView {
  private readonly kept = new Disposables();
  private readonly trans: Translate;
  private readonly surface: Surface;
  private readonly words = h('p', { class: 'jp-CuteMask-words' });
  private readonly even = h('p', { class: 'jp-CuteMask-even' });
  private readonly reading = h('p', { class: 'jp-CuteMask-reading', 'aria-hidden': 'true' });
  private readonly spoken = h('p', { class: 'jp-CuteMask-spoken', 'aria-live': 'polite' });
  private readonly note = h('p', { class: 'jp-CuteMask-note' });
  private readonly choice = h('div', { class: 'jp-CuteMask-choice' });
  private readonly marks: Legend;
  private readonly root: HTMLElement;
  private blocks: BlockSummary | null = null;
  private map: BlockMap | null = null;
  private tiles: Tiles | null = null;
  private shown: Shown = { Sq: 1, Skv: 1 };
  private plan: CellPlan | null = null;
  private view = new Viewport(1, 1, ROOM, ROOM);
  private place = { b: 0, h: 0 };
  private cursor: Cell | null = null;
  private shares = new Map<string, number | null>();
  private frame = 0;
  private stale = { map: true, cursor: true };
  private visible = true;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly host: HTMLElement,
    private readonly options: { trans: Translate; cellSource?: CellSource }
  ) {
    const { trans } = options;
    this.trans = trans;
    this.surface = new Surface(trans);
    this.marks = new Legend(trans);
    const { canvas, element } = this.surface;
    const ask: Asked = {
      point: (x, y) => this.point(x, y),
      leave: () => canvas.matches(':focus') || this.look(null),
      pan: (dx, dy) => (this.view.pan(dx, dy), this.change()),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      step: (down, right, unit) => this.step(down, right, unit),
      edge: (last, all) => {
        const far = last ? Infinity : -Infinity;
        this.step(all ? far : 0, far, 'cell');
      },
      whole: () => this.whole()
    };
    const help = trans.__('Click, then: wheel or + − zoom, 0 whole, drag pans, arrows move by a block (shift: ten, alt: a cell), Home and End to a row’s ends.');
    this.root = h(
      'div',
      { class: 'jp-CuteMask' },
      h('div', { class: 'jp-CuteMask-main' }, element, h('div', { class: 'jp-CuteMask-bar' }, this.reading, tools(trans, ask))),
      h(
        'div',
        { class: 'jp-CuteMask-side' },
        ...[this.words, this.choice, this.marks.element, this.even, this.note],
        h('p', { class: 'jp-CuteMask-help' }, help)
      ),
      this.spoken
    );
    host.append(this.root);
    gestures(canvas, { x: LEFT, y: TOP }, ask, this.kept);
    this.watch();
    this.layOut();
  }

  /** Another map takes the place of what is shown; where the sizes are the same, the place that one looks at stays. */
  show(blocks: BlockSummary, shown: Shown): void {
    try {
      this.map = blockMap(blocks);
    } catch (error) {
      if (!(error instanceof Problem)) {
        throw error;
      }
      this.map = null;
      this.words.textContent = this.trans.__('This block map is damaged: %1.', error.message);
      this.root.classList.add('jp-mod-damaged');
      return;
    }
    this.root.classList.remove('jp-mod-damaged');
    this.blocks = blocks;
    this.shown = shown;
    this.place = { b: Math.min(this.place.b, blocks.Bm - 1), h: Math.min(this.place.h, blocks.Hm - 1) };
    this.plan = shown.cells ? CellPlan.of(shown.cells) : null;
    this.words.textContent = `${useful(blocks, this.trans)}.`;
    this.choice.replaceChildren(...chooser(blocks, this.place, this.trans, place => ((this.place = place), this.choose())));
    this.layOut();
    this.choose();
  }

  dispose(): void {
    this.kept.dispose();
    this.tiles?.dispose();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.root.remove();
  }

  private get group(): number {
    return this.place.b * (this.blocks?.Hm ?? 1) + this.place.h;
  }

  private get scene(): Scene | null {
    const { blocks, map, tiles, group } = this;
    return blocks && map && tiles ? { blocks, map, tiles, group } : null;
  }

  /** Another map of the same record, or another record. */
  private choose(): void {
    const { blocks, map, shown } = this;
    if (!blocks || !map) {
      return;
    }
    this.tiles?.dispose();
    const sizes = { Sq: shown.Sq, Skv: shown.Skv, blockQ: blocks.block_q, blockKv: blocks.block_kv };
    this.tiles = new Tiles(map, sizes, this.place, this.plan, this.options.cellSource, () => this.change());
    this.shares = new Map();
    const work = map.workOf(this.group);
    this.marks.show(blocks, work);
    this.even.textContent = balance(work, blocks.block_q, this.trans);
    this.surface.canvas.setAttribute('aria-label', summary(blocks, shown.Sq, shown.Skv, work, this.trans));
    if (this.cursor && (this.cursor.q >= shown.Sq || this.cursor.kv >= shown.Skv)) {
      this.cursor = null;
    }
    this.change();
    this.read();
  }

  private watch(): void {
    const theme = onTheme(() => (this.surface.recolour(), this.change()));
    this.kept.add(() => theme.dispose());
    if (typeof ResizeObserver === 'function') {
      const sizes = new ResizeObserver(() => this.layOut());
      sizes.observe(this.host);
      this.kept.add(() => sizes.disconnect());
    }
    if (typeof IntersectionObserver === 'function') {
      const seen = new IntersectionObserver(entries => {
        this.visible = entries.at(-1)?.isIntersecting ?? true;
        this.soon();
      });
      seen.observe(this.root);
      this.kept.add(() => seen.disconnect());
    }
  }

  /** Sizes of everything, from the room that there is and the sequences' lengths. */
  private layOut(): void {
    const room = (this.root.clientWidth || LEFT + ROOM + GAP + BAR + 8) - LEFT - GAP - BAR - 16; // the host may have a margin inside
    const wide = this.root.clientWidth >= WIDE;
    this.root.classList.toggle('jp-mod-wide', wide);
    const most = Math.min(ROOM, wide ? Math.max(LEAST, room - SIDE) : Math.max(NARROWEST, room));
    const { Sq, Skv } = this.shown;
    const [width, height] = sides(Sq, Skv, most);
    const before = this.view;
    if (this.surface.resize(width, height) || before.Sq !== Sq || before.Skv !== Skv) {
      this.view = new Viewport(Sq, Skv, width, height);
      this.view.follow(before);
      this.change();
    }
  }

  private change(): void {
    this.stale = { map: true, cursor: true };
    this.soon();
  }

  /** In the next frame, where it can be seen and something has changed. */
  private soon(): void {
    if (!this.frame && this.visible && (this.stale.map || this.stale.cursor)) {
      this.frame = requestAnimationFrame(() => this.draw());
    }
  }

  private draw(): void {
    const { scene, stale } = this;
    this.frame = 0;
    if (!scene) {
      return;
    }
    this.stale = { map: false, cursor: false };
    if (stale.map) {
      const { look, note } = this.surface.draw(scene, this.view);
      this.note.textContent = note;
      this.marks.follow(look);
      this.read();
      if (scene.tiles.unfinished) {
        this.change();
      }
    }
    this.surface.drawCursor(this.cursor, scene.blocks.block_q, this.view);
  }

  /** Around a place in the map; without one around the cursor, or the middle. */
  private zoom(factor: number, x?: number, y?: number): void {
    const { width, height } = this.view;
    const [cx, cy] = this.cursor ? this.view.placeOf(this.cursor.q + 0.5, this.cursor.kv + 0.5) : [-1, -1];
    const inside = cx >= 0 && cy >= 0 && cx <= width && cy <= height;
    if (this.view.zoomAt(factor, x ?? (inside ? cx : width / 2), y ?? (inside ? cy : height / 2))) {
      this.change();
    }
  }

  private whole(): void {
    this.view.whole();
    this.change();
  }

  private point(x: number, y: number): void {
    const inside = x >= 0 && y >= 0 && x < this.view.width && y < this.view.height;
    const [q, kv] = this.view.tokenAt(x, y);
    this.look(inside ? { q: Math.min(this.shown.Sq - 1, Math.floor(q)), kv: Math.min(this.shown.Skv - 1, Math.floor(kv)) } : null);
  }

  private step(down: number, right: number, unit: 'block' | 'cell'): void {
    const { blocks, shown, view } = this;
    if (blocks) {
      const [q, kv] = view.tokenAt(view.width / 2, view.height / 2);
      const from = this.cursor ?? { q: Math.floor(q), kv: Math.floor(kv) };
      const [tall, wide] = unit === 'cell' ? [1, 1] : [blocks.block_q, blocks.block_kv];
      const within = (at: number, size: number): number => Math.min(size - 1, Math.max(0, at));
      const to = { q: within(from.q + down * tall, shown.Sq), kv: within(from.kv + right * wide, shown.Skv) };
      if (view.reveal(to.q, to.kv)) {
        this.change();
      }
      this.look(to);
    }
  }

  private look(at: Cell | null): void {
    this.cursor = at;
    this.stale.cursor = true;
    this.soon();
    this.read();
  }

  private read(): void {
    const words = this.cursor && this.scene ? this.readingOf(this.cursor, this.scene) : '';
    if (this.reading.textContent !== words) {
      this.reading.textContent = words;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => (this.spoken.textContent = words), QUIET);
    }
  }

  private readingOf(cursor: Cell, { blocks, map, tiles, group }: Scene): string {
    const row = Math.min(map.rows - 1, Math.floor(cursor.q / blocks.block_q));
    const column = Math.min(map.width - 1, Math.floor(cursor.kv / blocks.block_kv));
    const kind = map.kindAt(group, row, column);
    const key = `${row} ${column}`;
    const { shares } = this;
    if (kind === PARTIAL && tiles.known && !shares.has(key)) {
      shares.set(key, null);
      void tiles.share(row, column).then(share => {
        shares.set(key, share);
        if (shares === this.shares) {
          this.read();
        }
      });
    }
    const [share, cell] = [shares.get(key) ?? null, tiles.cell(cursor.q, cursor.kv)];
    return readOut({ ...cursor, kind, share, cell }, this.trans);
  }
}
