/** The mask above a panel's card: an anywidget module, so that it is the same in JupyterLab, Notebook, VS Code, Colab and marimo. */

import style from '../style/mask.css';
import { blockSummary, cellCode } from './core/blocks';
import { natural, object, optional, plain, Problem } from './core/decode';
import { h } from './core/dom';
import { ENGLISH } from './core/i18n';
import type { CellRequest, CellSource } from './mask/cells';
import { MaskView } from './mask/view';

/** What of anywidget's model is used. */
interface Model {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: string, act: (...given: never[]) => void): void;
  off(event: string, act: (...given: never[]) => void): void;
}

const tokens = natural(2 ** 40);
const state = object({ blocks: blockSummary, Sq: tokens, Skv: tokens, cells: optional(cellCode) });
const PATIENCE = 5000; // milliseconds until an answer counts as none: the kernel may be gone

interface Answer {
  readonly mask?: unknown;
  readonly bytes: Uint8Array | null;
}

/** Asks the kernel that owns the widget: for cells that the browser can't compute, for a map that is too large for the widget's state. */
class Kernel implements CellSource {
  private readonly waiting = new Map<number, (answer: Answer | null) => void>();
  private last = 0;
  private readonly answered = (content: unknown, buffers: readonly (DataView | ArrayBuffer)[]): void => {
    const { id, mask } = (content ?? {}) as { id?: unknown; mask?: unknown };
    const [buffer] = buffers ?? [];
    const bytes = buffer ? (ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer)) : null;
    this.waiting.get(id as number)?.({ mask, bytes });
  };

  constructor(private readonly model: Model) {
    model.on('msg:custom', this.answered);
  }

  ask(what: object): Promise<Answer | null> {
    const id = ++this.last;
    return new Promise(resolve => {
      const end = (answer: Answer | null): void => {
        clearTimeout(timer);
        this.waiting.delete(id);
        resolve(answer);
      };
      const timer = setTimeout(() => end(null), PATIENCE);
      this.waiting.set(id, end);
      this.model.send({ id, ...what });
    });
  }

  async cells(request: CellRequest): Promise<Uint8Array | null> {
    return (await this.ask(request))?.bytes ?? null;
  }

  dispose(): void {
    this.model.off('msg:custom', this.answered);
    [...this.waiting.values()].forEach(end => end(null));
  }
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const kernel = new Kernel(model);
  const host = h('div', { class: 'jp-CuteMask-widget' });
  const words = h('p', { class: 'jp-CuteMask-problem' });
  el.append(h('style', {}, style), host, words);
  const view = new MaskView(host, { trans: ENGLISH, cellSource: kernel });
  let turn = 0;
  const show = (given: unknown): void => {
    try {
      const found = plain(given, 'mask');
      const large = Object.hasOwn(found, 'large');
      if (large) {
        const asked = ++turn;
        void kernel.ask({ whole: true }).then(answer => asked === turn && answer && show(answer.mask));
      } else if (Object.keys(found).length) {
        turn++;
        const { blocks, ...shown } = state(found, 'mask');
        view.show(blocks, shown);
        host.hidden = false;
      }
      words.textContent = '';
    } catch (error) {
      if (!(error instanceof Problem)) {
        throw error;
      }
      host.hidden = true;
      words.textContent = `This block map can't be shown: ${error.message}.`;
    }
  };
  const changed = (): void => show(model.get('mask'));
  host.hidden = true;
  model.on('change:mask', changed);
  changed();
  return () => {
    turn++;
    model.off('change:mask', changed);
    kernel.dispose();
    view.dispose();
  };
}

export default { render };
