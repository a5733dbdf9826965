/** One line in the status bar: which GPU, or which targets. It opens the panel. */

import type { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { clean } from '../core/text';
import { shortWords } from './situation';
import type { StatusModel } from './status';

export function register(bar: IStatusBar, status: StatusModel, trans: Translate, open: () => void): void {
  const text = h('span');
  const button = h('button', { type: 'button', class: 'jp-CuteLab-status', title: trans.__('Open the panel CuTe Lab'), onclick: open }, text);
  const item = new Widget({ node: h('div', { class: 'jp-StatusBar-TextItem' }, button) });
  const active = new Signal<Widget, void>(item);
  const draw = (): void => {
    const { now } = status;
    if (now.kind === 'known') {
      const { gpus, running } = now.status;
      const short = clean(shortWords(now.status));
      text.textContent = gpus.length ? `CuTe: ${short}` : trans.__('CuTe: no GPU · %1', short);
      text.textContent += running ? ` · ${clean(running.what)}` : '';
    } else {
      text.textContent = now.kind === 'problem' ? trans.__('CuTe: ?') : trans.__('CuTe: not loaded');
    }
    active.emit();
  };
  status.changed.connect(draw);
  draw();
  bar.registerStatusItem('cute-lab:status', {
    item,
    align: 'left',
    rank: 5,
    isActive: () => {
      const { now } = status;
      return now.kind === 'known' || now.kind === 'problem' || (now.kind === 'not-loaded' && now.cute);
    },
    activeStateChanged: active
  });
}
