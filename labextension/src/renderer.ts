/** The renderer of records: a card in a widget. JupyterLab makes one for each output, and one for each opened file. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { Card } from './card/card';
import type { Surroundings } from './card/tab';
import { h } from './core/dom';
import { ENGLISH } from './core/i18n';
import { MIME, parse, parseText } from './core/record';
import { SuiteView } from './suite';

/** Views of the kernel's side -> the tab that shows the same. */
const TABS: Record<string, string> = {
  source: 'code',
  graph: 'code',
  mask: 'mask',
  check: 'check',
  accuracy: 'check',
  targets: 'machine',
  lines: 'machine',
  throughput: 'throughput',
  timings: 'throughput',
  environment: 'environment'
};

/** The tab that was asked for: the output's metadata say which view it was published as. */
function asked(model: IRenderMime.IMimeModel): string {
  const metadata: unknown = model.metadata[MIME];
  const view = typeof metadata === 'object' && metadata !== null ? (metadata as Record<string, unknown>)['view'] : '';
  return typeof view === 'string' && Object.hasOwn(TABS, view) ? (TABS[view] as string) : '';
}

export class CuteRenderer extends Widget implements IRenderMime.IRenderer {
  private shown: Card | SuiteView | null = null;

  constructor(private readonly around: (widget: CuteRenderer) => Surroundings = () => ({ trans: ENGLISH })) {
    super();
    this.addClass('jp-Cute');
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data: unknown = model.data[MIME];
    const value = typeof data === 'string' ? parseText(data) : parse(data, true);
    const kind = value.kind === 'suite' ? SuiteView : Card;
    const fresh = !(this.shown instanceof kind);
    if (fresh) {
      this.shown?.dispose();
      this.node.replaceChildren();
      this.shown = new kind(this.node.appendChild(h('div')), this.around(this));
    }
    if (this.shown instanceof SuiteView) {
      if (value.kind === 'suite') {
        this.shown.show(value);
      }
    } else if (this.shown && value.kind !== 'suite') {
      this.shown.show(value);
      if (fresh && asked(model)) {
        this.shown.choose(asked(model));
      }
    }
    return Promise.resolve();
  }

  /** What surrounds the record has changed, not the record. */
  refresh(): void {
    if (this.shown instanceof Card) {
      this.shown.refresh();
    }
  }

  override dispose(): void {
    this.shown?.dispose();
    this.shown = null;
    super.dispose();
  }
}
