/** The renderer of records in a notebook: the card with its surroundings, and the parts of a card folded away below it. */

import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { Message } from '@lumino/messaging';
import { Panel, Widget } from '@lumino/widgets';

import { h } from '../core/dom';
import { keyOf, MIME, parse } from '../core/record';
import type { CuteRecord } from '../core/record';
import { CuteRenderer } from '../renderer';
import { around } from './places';
import { surroundingsFor } from './surroundings';
import type { Means } from './surroundings';

const FOLDED = 'jp-CuteLab-folded'; // on the row of the output area: nothing of it is to be seen
const BEFORE = ['image/png', 'text/markdown', 'text/plain'];

/** In place of the plain renderer, which the MIME extension has registered under the same type. */
export function register(registry: IRenderMimeRegistry, means: Means): void {
  registry.addFactory(
    { safe: true, mimeTypes: [MIME], defaultRank: -1, createRenderer: () => new LabRenderer(registry, means) },
    -1
  );
}

/** A card, or a quiet line where an earlier output of the same cell draws the card that this is a part of. */
export class LabRenderer extends Panel implements IRenderMime.IRenderer {
  private card: CuteRenderer | null = null;
  private model: IRenderMime.IMimeModel | null = null;
  private record: CuteRecord | null = null;
  private line: HTMLButtonElement | null = null;
  private open = false;
  private stale: boolean | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watched: { changed: { disconnect(slot: () => void, self: unknown): boolean } } | null = null;

  constructor(
    private readonly registry: IRenderMimeRegistry,
    private readonly means: Means
  ) {
    super();
    this.addClass('jp-CuteLab-output');
    means.pins.changed.connect(this.onPins, this);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.model = model;
    const found = parse(model.data[MIME]);
    this.record = found.kind === 'record' ? found.record : null;
    return this.draw();
  }

  /** The key of the run whose card this is, or which this is a part of. */
  get of(): { key: string; whole: boolean; bench: boolean } | null {
    if (this.record) {
      return { key: keyOf(this.record), whole: true, bench: this.record.bench !== null };
    }
    const found = this.model ? parse(this.model.data[MIME]) : null;
    return found?.kind === 'part' ? { key: found.of, whole: false, bench: false } : null;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.watch();
    if (this.card && !this.group().main && this.staleNow() === this.stale) {
      this.group().parts.forEach(part => part.refold()); // the card is drawn, and keeps its tab and its zoom
    } else {
      void this.draw();
    }
  }

  protected override onBeforeDetach(message: Message): void {
    this.unwatch();
    super.onBeforeDetach(message);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      clearTimeout(this.timer);
      this.unwatch();
      this.means.pins.changed.disconnect(this.onPins, this);
      super.dispose(); // with its children
    }
  }

  private async draw(): Promise<void> {
    const model = this.model;
    if (!model || this.isDisposed) {
      return;
    }
    const { main, parts } = this.group();
    if (!main) {
      this.row?.classList.remove(FOLDED);
      await this.drawCard(model);
      this.group().parts.forEach(part => part.refold()); // a part may have been drawn before its card
    } else {
      this.drawFold(model, parts);
      if (parts[0] !== this) {
        parts[0]?.say(parts.length); // it has the line for all of them
      }
    }
  }

  /** The output that draws the card of this run, where it is an earlier one, and all that are parts of that card. */
  private group(): { main: LabRenderer | null; parts: LabRenderer[] } {
    const own = this.of;
    const alike = own ? this.siblings().filter(other => other.of?.key === own.key) : [];
    const isMain = (card: LabRenderer, part: LabRenderer): boolean => card.of?.whole === true && (card.of.bench || !part.of?.bench);
    const mainOf = (part: LabRenderer): LabRenderer | null => alike.slice(0, Math.max(0, alike.indexOf(part))).find(card => isMain(card, part)) ?? null;
    const main = mainOf(this);
    const card = main ?? this;
    return { main, parts: alike.filter(part => mainOf(part) === card) };
  }

  private refold(): void {
    if (this.isAttached && this.of && this.card) {
      void this.draw();
    }
  }

  private async drawCard(model: IRenderMime.IMimeModel): Promise<void> {
    if (!this.card) {
      this.clear();
      this.card = new CuteRenderer(() => surroundingsFor(this, this.means, () => this.record));
      this.addWidget(this.card);
    }
    this.stale = this.staleNow();
    await this.card.renderModel(model);
  }

  /** The first part has the line for all of them; the others have nothing until they are unfolded. */
  private drawFold(model: IRenderMime.IMimeModel, parts: LabRenderer[]): void {
    this.clear();
    const first = parts[0] === this;
    const open = parts[0]?.open ?? false;
    this.row?.classList.toggle(FOLDED, !first && !open);
    if (first) {
      const toggle = (): void => {
        this.open = !this.open;
        this.group().parts.forEach(part => void part.draw());
      };
      this.line = h('button', { type: 'button', class: 'jp-CuteLab-fold', 'aria-expanded': open ? 'true' : 'false', onclick: toggle });
      this.say(parts.length);
      this.addWidget(new Widget({ node: h('div', {}, this.line) }));
    }
    if (open) {
      const mime = BEFORE.find(name => name in model.data);
      if (mime) {
        const part = this.registry.createRenderer(mime);
        this.addWidget(part);
        void part.renderModel(model);
      }
    }
  }

  private say(n: number): void {
    const { trans } = this.means;
    if (this.line) {
      this.line.textContent = this.open
        ? trans.__('Hide what the card’s tabs show too')
        : trans._n('%1 more output, shown in the card’s tabs', '%1 more outputs, shown in the card’s tabs', n);
    }
  }

  private clear(): void {
    this.card = null;
    this.line = null;
    for (const child of [...this.widgets]) {
      child.dispose();
    }
  }

  /** The row of the output area, with its prompt. */
  private get row(): HTMLElement | null {
    return this.node.closest<HTMLElement>('.jp-OutputArea-child');
  }

  private siblings(): LabRenderer[] {
    const place = around(this);
    const out: LabRenderer[] = [];
    const look = (widget: Widget): void => {
      if (widget instanceof LabRenderer) {
        out.push(widget);
      } else {
        for (const child of widget.children()) {
          look(child);
        }
      }
    };
    place?.cell.outputArea.widgets.forEach(look);
    return out;
  }

  private staleNow(): boolean | undefined {
    return surroundingsFor(this, this.means, () => this.record).isStale?.();
  }

  /** The chips turn grey when the cell is edited, and back. */
  private watch(): void {
    const shared = around(this)?.cell.model.sharedModel;
    shared?.changed.connect(this.onEdit, this);
    this.watched = shared ? { changed: shared.changed as never } : null;
  }

  private unwatch(): void {
    this.watched?.changed.disconnect(this.onEdit, this);
    this.watched = null;
  }

  private onPins(): void {
    this.card?.refresh();
  }

  private onEdit(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.card && this.model && this.staleNow() !== this.stale) {
        void this.drawCard(this.model);
      }
    }, 400);
  }
}
