/** The renderer of records: a card in a widget. JupyterLab makes one for each output, and one for each opened file. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { Card } from './card/card';
import type { Surroundings } from './card/tab';
import { h } from './core/dom';
import { ENGLISH } from './core/i18n';
import { MIME, parse, parseText } from './core/record';
import { SuiteView } from './suite';

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
    if (!(this.shown instanceof kind)) {
      this.shown?.dispose();
      this.node.replaceChildren();
      this.shown = new kind(this.node.appendChild(h('div')), this.around(this));
    }
    if (this.shown instanceof SuiteView) {
      if (value.kind === 'suite') {
        this.shown.show(value);
      }
    } else if (value.kind !== 'suite') {
      this.shown.show(value);
    }
    return Promise.resolve();
  }

  override dispose(): void {
    this.shown?.dispose();
    this.shown = null;
    super.dispose();
  }
}
