/** Sliders whose kernel is gone: ipywidgets leaves them to be dragged, and after a reload shows an error in their place. */

import type { INotebookModel, INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { ICodeCellModel } from '@jupyterlab/cells';

import { SLIDERS } from '../core/record';

const WIDGET = 'application/vnd.jupyter.widget-view+json';
const OVER = ['restarting', 'autorestarting', 'dead'];

export function watch(tracker: INotebookTracker): void {
  tracker.forEach(follow);
  tracker.widgetAdded.connect((_, panel) => follow(panel));
}

function follow(panel: NotebookPanel): void {
  const session = panel.sessionContext;
  const look = async (): Promise<void> => {
    await Promise.all([panel.context.ready, session.ready]);
    const kernel = session.session?.kernel;
    const asked = kernel && !OVER.includes(kernel.status) ? await kernel.requestCommInfo({ target_name: 'jupyter.widget' }) : null;
    const comms = asked?.content.status === 'ok' ? asked.content.comms : {};
    if (!panel.isDisposed && panel.model) {
      const { dirty } = panel.model;
      quiet(panel.model, id => Object.hasOwn(comms, id));
      panel.model.dirty = dirty; // the file says the same: opening it changes nothing
    }
  };
  const over = (): void => void (panel.model && quiet(panel.model, () => false));
  void look().catch(() => undefined); // the kernel went while it was asked; what comes next is told below
  session.kernelChanged.connect(() => void look().catch(() => undefined));
  session.statusChanged.connect((_, status) => OVER.includes(status) && over());
}

/** Takes the widgets that no kernel moves out of the outputs of sliders, which have a line, or a picture, to show instead. */
export function quiet(model: Pick<INotebookModel, 'cells'>, lives: (id: string) => boolean): void {
  for (const cell of model.cells) {
    const { outputs } = cell as ICodeCellModel;
    for (let i = 0; cell.type === 'code' && i < outputs.length; i++) {
      const { [WIDGET]: view, ...rest } = outputs.get(i).data as Record<string, unknown>;
      if (view && rest[SLIDERS] && !lives(String((view as Record<string, unknown>)['model_id']))) {
        outputs.set(i, { ...outputs.get(i).toJSON(), data: rest } as never);
      }
    }
  }
}
