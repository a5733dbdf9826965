/** The commands, for the palette, the launcher and the toolbar. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, InputDialog, Notification } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { runIcon, stopIcon } from '@jupyterlab/ui-components';

import type { Translate } from '../core/i18n';
import { clean } from '../core/text';
import type { Clients } from './client';
import type { Comparisons } from './compare';
import { cuteIcon } from './icon';
import { say } from './kernelwork';
import { LOAD, withBench } from './magicoptions';
import { create, EMPTY, FIRST, firstCells } from './newnotebook';
import type { Pins } from './pins';
import { isCute, isRunning, usesCute } from './places';
import { stopped } from './protocol';
import { ofCell, ofNotebook } from './records';
import type { Settings } from './settings';
import { checkSharing } from './sharing_dialog';
import { lacksGpu } from './situation';
import type { StatusModel } from './status';
import { GALLERY, insert } from './variants';

export const ID = {
  newNotebook: 'cute-lab:new-notebook',
  insert: 'cute-lab:insert-variant',
  insertFirst: 'cute-lab:insert-first',
  run: 'cute-lab:run-on-gpu',
  stop: 'cute-lab:stop',
  panel: 'cute-lab:open-panel',
  compare: 'cute-lab:compare-pinned',
  sharing: 'cute-lab:check-sharing',
  copy: 'cute-lab:copy-generated',
  load: 'cute-lab:load'
} as const;

export const IN_PALETTE: readonly string[] = Object.values(ID);

export interface Parts {
  readonly app: JupyterFrontEnd;
  readonly trans: Translate;
  readonly tracker: INotebookTracker;
  readonly pins: Pins;
  readonly clients: Clients;
  readonly status: StatusModel;
  readonly settings: Settings;
  readonly comparisons: Comparisons;
  readonly browser: IDefaultFileBrowser | null;
  readonly openPanel: () => void;
}

export function register(parts: Parts): void {
  const { app, trans, tracker, settings, pins, comparisons } = parts;
  const { commands } = app;
  const current = (): NotebookPanel | null => tracker.currentWidget;
  const here = (): boolean => usesCute(current());
  const busy = (): boolean => isRunning(current());
  const folder = (): string => parts.browser?.model.path ?? '';
  /** The palette seeks in labels before it seeks in categories: there, each begins with our name. */
  const found = (words: string) => (args: { isPalette?: unknown }): string => (args.isPalette ? `CuTe Lab: ${words}` : words);
  /** Into the notebook that is open, else into a new one; the cell has the focus then. */
  const put = async (cell: string): Promise<void> => {
    const panel = current() ?? (await create(app, folder(), [EMPTY]));
    if (panel instanceof NotebookPanel) {
      app.shell.activateById(panel.id);
      await panel.context.ready;
      await panel.sessionContext.ready;
      await insert(panel, cell.trimEnd(), settings.defaultTarget);
      if (parts.status.now.kind === 'not-loaded') {
        await commands.execute(ID.load);
      }
    }
  };

  commands.addCommand(ID.newNotebook, {
    label: args => (args['isPalette'] ? found(trans.__('New Notebook'))(args) : trans.__('CuTe Lab notebook')),
    caption: trans.__('A notebook that loads cute_lab, with a variant and its slider'),
    icon: args => (args['isPalette'] ? undefined : cuteIcon),
    execute: args => create(app, typeof args['cwd'] === 'string' ? args['cwd'] : folder(), firstCells(settings.defaultTarget, trans))
  });
  commands.addCommand(ID.insert, {
    label: found(trans.__('Insert Variant…')),
    execute: async args => {
      let variant = GALLERY.find(one => one.name === args['name']);
      if (!variant) {
        const items = GALLERY.map(one => `${one.title}: ${one.words}`);
        const chosen = await InputDialog.getItem({ title: trans.__('Insert a variant'), items, okLabel: trans.__('Insert') });
        variant = chosen.button.accept && chosen.value !== null ? GALLERY[items.indexOf(chosen.value)] : undefined;
      }
      if (variant) {
        await put(variant.cell);
      }
    }
  });
  commands.addCommand(ID.insertFirst, {
    label: found(trans.__('Insert a First Variant')),
    execute: () => put(FIRST)
  });
  commands.addCommand(ID.run, {
    label: found(trans.__('Run on GPU')),
    caption: trans.__('Runs the active variant with --bench: checked and timed on the GPU of its kernel'),
    icon: runIcon,
    isEnabled: () => here(),
    isVisible: () => here() && !busy(),
    execute: () => runOnGpu(parts)
  });
  commands.addCommand(ID.stop, {
    label: found(trans.__('Stop')),
    caption: trans.__('Interrupts the kernel; what was measured so far is kept'),
    icon: stopIcon,
    isEnabled: () => here() && busy(),
    isVisible: () => here() && busy(),
    execute: () => stop(parts)
  });
  commands.addCommand(ID.panel, { label: found(trans.__('Open the Side Panel')), execute: parts.openPanel });
  commands.addCommand(ID.compare, {
    label: found(trans.__('Compare Pinned Runs')),
    isEnabled: args => pins.records.length > 1 || Array.isArray(args['keys']),
    execute: async args => {
      const keys = Array.isArray(args['keys']) ? args['keys'].map(String) : null;
      const path = typeof args['path'] === 'string' && args['path'] ? args['path'] : (current()?.context.path ?? '');
      const records = keys ? await comparisons.find({ keys, path }) : pins.records;
      if (records.length > 1) {
        return comparisons.open(records, path);
      }
      Notification.info(trans.__('Pin two runs in the panel CuTe Lab to compare them.'));
      return undefined;
    }
  });
  commands.addCommand(ID.sharing, {
    label: found(trans.__('Check Before Sharing')),
    caption: trans.__('What the saved notebook holds, what is private in it, and what each viewer will show'),
    isEnabled: () => current() !== null,
    execute: () => checkSharing(parts)
  });
  commands.addCommand(ID.copy, {
    label: found(trans.__('Copy Generated CuTeDSL')),
    isEnabled: () => here(),
    execute: () => {
      const cell = tracker.activeCell?.model;
      const own = cell?.type === 'code' ? ofCell(cell as ICodeCellModel).at(-1) : undefined;
      const panel = current();
      const record = own ?? (panel ? ofNotebook(panel)[0]?.record : undefined);
      if (record) {
        Clipboard.copyToSystem(record.source.text);
        Notification.success(trans.__('The CuTeDSL of %1 is on the clipboard.', record.name || record.cell.name), { autoClose: 3000 });
      } else {
        Notification.info(trans.__('Run a %%cute_attention cell first: there is no generated code yet.'));
      }
    }
  });
  commands.addCommand(ID.load, {
    label: found(trans.__('Load cute_lab')),
    isEnabled: () => current() !== null,
    execute: async () => {
      const kernel = current()?.sessionContext.session?.kernel;
      const said = kernel ? await say(kernel, LOAD) : null;
      if (said && !said.ok) {
        Notification.error(clean(said.text.split('\n').at(-1) ?? ''));
      }
      await parts.status.ask();
    }
  });

  const changed = (): void => [ID.run, ID.stop, ID.copy].forEach(id => commands.notifyCommandChanged(id));
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      changed();
    }, 200);
  };
  tracker.currentChanged.connect(soon);
  tracker.activeCellChanged.connect(soon);
  parts.status.changed.connect(soon);
  tracker.widgetAdded.connect((_, panel) => {
    panel.sessionContext.statusChanged.connect(soon);
    panel.context.model.contentChanged.connect(soon);
    void panel.context.ready.then(soon);
  });
}

async function runOnGpu({ trans, tracker, status }: Parts): Promise<void> {
  const panel = tracker.currentWidget;
  const cell = tracker.activeCell;
  if (!panel || !cell || !isCute(cell.model.sharedModel.getSource())) {
    Notification.info(trans.__('Select a cell that begins with %%cute_attention.'));
    return;
  }
  if (lacksGpu(status.now)) {
    Notification.warning(trans.__('This kernel sees no GPU. The cell is checked on the CPU and compiled without one; the panel CuTe Lab says how to reach a GPU.'), { autoClose: 8000 });
    return;
  }
  const shared = cell.model.sharedModel;
  const wanted = withBench(shared.getSource());
  if (wanted !== shared.getSource()) {
    const end = shared.getSource().includes('\n') ? shared.getSource().indexOf('\n') : shared.getSource().length;
    shared.updateSource(0, end, wanted.slice(0, wanted.includes('\n') ? wanted.indexOf('\n') : wanted.length)); // the cursor stays
  }
  await NotebookActions.run(panel.content, panel.sessionContext);
}

/** A benchmark keeps what it has measured; anything else is interrupted. */
async function stop({ tracker, clients }: Parts): Promise<void> {
  const kernel = tracker.currentWidget?.sessionContext.session?.kernel;
  const client = clients.of(kernel);
  if (client?.state === 'open') {
    try {
      if ((await client.ask('stop', {}, stopped, { timeout: 1500 })).stopped) {
        return;
      }
    } catch {
      // a kernel that does not answer is interrupted
    }
  }
  await kernel?.interrupt();
}
