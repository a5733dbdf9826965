/** The side panel: this notebook's runs, the GPU, and the gallery. */

import type { INotebookTracker } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { Disposables, h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { onTheme } from '../core/theme';
import { cuteIcon } from './icon';
import { drawDevice } from './panel_device';
import { drawGallery } from './panel_gallery';
import type { Drawn } from './panel_gallery';
import { drawRuns } from './panel_runs';
import type { Pins } from './pins';
import type { Variant } from './protocol';
import { Runs } from './records';
import type { StatusModel } from './status';
import { GALLERY } from './variants';

export interface PanelDo {
  readonly trans: Translate;
  readonly tracker: INotebookTracker;
  readonly pins: Pins;
  readonly status: StatusModel;
  readonly insert: (variant: Variant) => void;
  readonly insertFirst: () => void;
  readonly compare: () => void;
  readonly newNotebook: () => void;
  readonly load: () => void;
  readonly stop: () => void;
}

export class CutePanel extends Widget {
  private readonly runs = new Runs();
  private readonly ends = new Disposables();
  private readonly places: Record<'runs' | 'device' | 'gallery', HTMLElement>;
  private readonly gallery: Drawn;
  private readonly drawn: { runs?: HTMLElement; device?: HTMLElement } = {};

  constructor(private readonly act: PanelDo) {
    super();
    const { trans } = act;
    this.id = 'cute-lab-panel';
    this.title.icon = cuteIcon;
    this.title.caption = trans.__('CuTe Lab: runs of this notebook, GPU, variants');
    this.addClass('jp-CuteLab-panel');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'CuTe Lab');
    this.places = { runs: h('div'), device: h('div'), gallery: h('div') };
    this.gallery = drawGallery(GALLERY, trans, act.insert);
    this.places.gallery.append(this.gallery.node);
    this.node.append(
      section(trans.__('Runs'), this.places.runs),
      section(trans.__('GPU and targets'), this.places.device),
      section(trans.__('Variants to start from'), this.places.gallery)
    );
    const connect = <S, A>(signal: { connect(slot: (s: S, a: A) => void): boolean; disconnect(slot: (s: S, a: A) => void): boolean }, slot: () => void): void => {
      signal.connect(slot);
      this.ends.add(() => signal.disconnect(slot));
    };
    connect(this.runs.changed, () => this.drawRuns());
    connect(act.pins.changed, () => this.drawRuns());
    connect(act.status.changed, () => this.drawDevice());
    connect(act.tracker.currentChanged, () => this.isVisible && this.follow());
    connect(NotebookActions.executed, () => this.drawRuns());
    const theme = onTheme(() => this.isVisible && this.gallery.paint());
    this.ends.add(() => theme.dispose());
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.act.status.look(this, false);
      this.ends.dispose();
      this.runs.dispose();
      super.dispose();
    }
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.start();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this.start();
    }
  }

  protected override onBeforeHide(message: Message): void {
    this.end();
    super.onBeforeHide(message);
  }

  protected override onBeforeDetach(message: Message): void {
    this.end();
    super.onBeforeDetach(message);
  }

  private start(): void {
    this.end();
    this.follow();
    this.act.status.look(this, true);
    this.drawDevice();
    requestAnimationFrame(() => this.gallery.paint());
  }

  private end(): void {
    this.act.status.look(this, false);
    this.runs.follow(null);
  }

  private follow(): void {
    this.runs.follow(this.act.tracker.currentWidget);
    this.drawRuns();
  }

  private drawRuns(): void {
    if (this.isVisible) {
      this.replace('runs', drawRuns(this.runs.runs, this.act));
    }
  }

  private drawDevice(): void {
    if (this.isVisible) {
      this.replace('device', drawDevice(this.act.status.now, this.act));
    }
  }

  /** Only where something looks different: a redraw every two seconds must not take the focus, nor close what is open. */
  private replace(name: 'runs' | 'device', nodes: HTMLElement[]): void {
    const host = this.places[name];
    const looks = h('div', {}, ...nodes.map(node => node.cloneNode(true))); // as drawn: what a person opens since is no difference
    if (this.drawn[name]?.isEqualNode(looks)) {
      return;
    }
    this.drawn[name] = looks;
    const focused = [...host.querySelectorAll('button')].indexOf(document.activeElement as HTMLButtonElement);
    const open = host.querySelector('details')?.open ?? false;
    host.replaceChildren(...nodes);
    if (open) {
      host.querySelector('details')?.setAttribute('open', '');
    }
    if (focused >= 0) {
      host.querySelectorAll('button')[focused]?.focus();
    }
  }
}

function section(title: string, body: HTMLElement): HTMLElement {
  body.className = 'jp-CuteLab-section-body';
  return h('section', { class: 'jp-CuteLab-section' }, h('h2', {}, title), body);
}
