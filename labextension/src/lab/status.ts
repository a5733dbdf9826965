/** What the current notebook's kernel says of its GPU and targets; asked while somebody looks, and after a cell has run. */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { Clients, State } from './client';
import { NoAnswer } from './client';
import { usesCute } from './places';
import { status } from './protocol';
import type { Situation } from './situation';

const EVERY = 2000; // ms

export class StatusModel implements IDisposable {
  readonly changed = new Signal<StatusModel, void>(this);
  isDisposed = false;
  private situation: Situation = { kind: 'no-notebook' };
  private readonly lookers = new Set<object>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private last = '';

  constructor(
    private readonly tracker: INotebookTracker,
    private readonly clients: Clients
  ) {
    tracker.currentChanged.connect(this.follow, this);
    NotebookActions.executed.connect(this.onExecuted, this);
  }

  get now(): Situation {
    return this.situation;
  }

  /** While somebody looks, the GPU's clock and memory are asked for again and again. */
  look(who: object, looking: boolean): void {
    this.lookers[looking ? 'add' : 'delete'](who);
    clearInterval(this.timer);
    this.timer = undefined;
    if (this.lookers.size) {
      this.timer = setInterval(() => {
        if (document.visibilityState === 'visible') {
          void this.ask();
        }
      }, EVERY);
      void this.ask();
    }
  }

  async ask(): Promise<void> {
    const panel = this.tracker.currentWidget;
    const found = await this.find(panel);
    if (found && !this.isDisposed && panel === this.tracker.currentWidget) {
      const text = JSON.stringify(found);
      if (text !== this.last) {
        this.last = text;
        this.situation = found;
        this.changed.emit();
      }
    }
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.isDisposed = true;
      clearInterval(this.timer);
      this.tracker.currentChanged.disconnect(this.follow, this);
      NotebookActions.executed.disconnect(this.onExecuted, this);
      Signal.clearData(this);
    }
  }

  private async find(panel: NotebookPanel | null): Promise<Situation | null> {
    if (!panel) {
      return { kind: 'no-notebook' };
    }
    const cute = usesCute(panel);
    const client = this.clients.of(panel.sessionContext.session?.kernel);
    if (!client) {
      return { kind: 'no-kernel' };
    }
    client.changed.connect(this.onClient, this); // twice is once
    if (!cute && client.state !== 'open') {
      return { kind: 'not-loaded', cute }; // a notebook that has nothing to do with us is left alone
    }
    try {
      return { kind: 'known', status: await client.ask('status', {}, status, { timeout: 4000 }) };
    } catch (error) {
      if (!(error instanceof NoAnswer)) {
        return { kind: 'problem', words: error instanceof Error ? error.message : String(error) };
      }
      switch (error.why) {
        case 'absent':
        case 'closed':
          return { kind: 'not-loaded', cute };
        case 'version':
        case 'refused':
          return { kind: 'problem', words: error.message };
        default:
          return null; // what was known stays until it answers again
      }
    }
  }

  private soon(): void {
    void this.ask();
  }

  /** After a restart cute_lab is gone. */
  private onClient(_: unknown, state: State): void {
    if (state === 'unknown') {
      this.soon();
    }
  }

  private follow(): void {
    const panel = this.tracker.currentWidget;
    panel?.sessionContext.kernelChanged.connect(this.soon, this); // twice is once
    void panel?.context.ready.then(() => panel.sessionContext.ready).then(() => this.soon());
    this.soon();
  }

  private onExecuted(_: unknown, ran: { notebook: unknown }): void {
    const panel = this.tracker.currentWidget;
    if (panel && panel.content === ran.notebook && usesCute(panel)) {
      this.clients.of(panel.sessionContext.session?.kernel)?.retry();
      this.soon();
    }
  }
}
