/** A line where a cell has sliders and nothing moves them: in a saved notebook, and after its kernel has gone. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { h } from './core/dom';
import { ENGLISH } from './core/i18n';
import { SLIDERS } from './core/record';
import { clean } from './core/text';

export class SlidersLine extends Widget implements IRenderMime.IRenderer {
  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data: unknown = model.data[SLIDERS];
    const words = typeof data === 'object' && data !== null ? (data as Record<string, unknown>)['words'] : '';
    const said = typeof words === 'string' && words ? clean(words.slice(0, 600)) : ENGLISH.__('run the cell for live sliders');
    this.addClass('jp-Cute');
    this.node.replaceChildren(h('p', { class: 'jp-Cute-sliders' }, said));
    return Promise.resolve();
  }
}
