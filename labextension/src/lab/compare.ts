/** Two or more runs beside each other, in the main area; restored with the layout. */

import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { renderCompare } from '../card/compare';
import { telling } from '../card/words/telling';
import type { Disposable } from '../core/dom';
import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { keyOf } from '../core/record';
import type { CuteRecord } from '../core/record';
import { clean } from '../core/text';
import { cuteIcon } from './icon';
import { ofJson } from './records';

class CompareView extends Widget {
  private drawn: Disposable | null = null;

  constructor(
    readonly records: readonly CuteRecord[],
    private readonly trans: Translate
  ) {
    super();
    this.addClass('jp-Cute');
    this.addClass('jp-CuteLab-compare-host');
    this.node.tabIndex = 0;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (!this.drawn) {
      const host = this.node.appendChild(h('div'));
      this.drawn = renderCompare(host, this.records, { trans: this.trans });
    }
  }

  override dispose(): void {
    this.drawn?.dispose();
    this.drawn = null;
    super.dispose();
  }
}

/** How the layout names what was compared: the runs' keys, and the notebook that holds them. */
export interface Wanted {
  readonly keys: readonly string[];
  readonly path: string;
}

type CompareWidget = MainAreaWidget<CompareView> & { wanted?: Wanted };

export class Comparisons {
  private readonly tracker = new WidgetTracker<CompareWidget>({ namespace: 'cute-lab-compare' });

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly trans: Translate
  ) {}

  restore(restorer: ILayoutRestorer, command: string): void {
    void restorer.restore(this.tracker, {
      command,
      args: widget => ({ keys: [...(widget.wanted?.keys ?? [])], path: widget.wanted?.path ?? '' }),
      name: widget => (widget.wanted ? widget.id : '')
    });
  }

  open(records: readonly CuteRecord[], path: string): CompareWidget {
    const keys = records.map(keyOf);
    const id = `cute-lab-compare-${hash(keys.join('\n'))}`;
    const there = this.tracker.find(widget => widget.id === id);
    if (there) {
      this.app.shell.activateById(id);
      return there;
    }
    const apart = telling(records);
    const widget: CompareWidget = new MainAreaWidget({ content: new CompareView(records, this.trans) });
    widget.id = id;
    widget.wanted = { keys, path };
    widget.title.icon = cuteIcon;
    widget.title.label = records.map((record, i) => clean(`${record.name || record.cell.name} ${apart[i] ?? ''}`.trim())).join(' · ');
    widget.title.caption = this.trans.__('Comparison of %1 runs', records.length);
    widget.title.closable = true;
    this.app.shell.add(widget, 'main');
    void this.tracker.add(widget);
    this.app.shell.activateById(id);
    return widget;
  }

  /** The records that a saved notebook holds. */
  async load(path: string): Promise<CuteRecord[]> {
    const file = await this.app.serviceManager.contents.get(path, { type: 'notebook', content: true });
    return ofJson(file.content);
  }

  /** The runs of a layout that is restored: from the saved notebook. */
  async find(wanted: Wanted): Promise<CuteRecord[]> {
    const all = new Map((await this.load(wanted.path)).map(record => [keyOf(record), record]));
    return wanted.keys.map(key => all.get(key)).filter(found => found !== undefined);
  }
}

/** FNV-1a: a short name, nothing more. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return (value >>> 0).toString(16);
}
