/** The commands, for the palette, the launcher and the toolbar. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, Dialog, InputDialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import { runIcon, stopIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

import type { Translate } from '../core/i18n';
import { clean } from '../core/text';
import type { Clients } from './client';
import type { Comparisons } from './compare';
import { cuteIcon } from './icon';
import { say } from './kernelwork';
import { LOAD, withBench } from './magicoptions';
import { create, FIRST } from './newnotebook';
import type { Pins } from './pins';
import { isCute, isRunning, usesCute } from './places';
import { stopped } from './protocol';
import { ofCell, ofNotebook } from './records';
import type { Settings } from './settings';
import { drawSharing, sharingCode } from './sharing';
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

const ALWAYS_PRIVATE = ['hostname', 'user', 'path']; // as `%cute_share` has it by default

export const IN_PALETTE: readonly string[] = [ID.newNotebook, ID.insert, ID.run, ID.stop, ID.panel, ID.compare, ID.sharing, ID.copy];

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

  commands.addCommand(ID.newNotebook, {
    label: args => (args['isPalette'] ? trans.__('New CuTe Lab Notebook') : trans.__('CuTe Lab notebook')),
    caption: trans.__('A notebook that loads cute_lab, with a variant and its slider'),
    icon: args => (args['isPalette'] ? undefined : cuteIcon),
    execute: args => create(app, typeof args['cwd'] === 'string' ? args['cwd'] : (parts.browser?.model.path ?? ''), settings.defaultTarget, trans)
  });
  commands.addCommand(ID.insert, {
    label: trans.__('Insert Variant…'),
    isEnabled: () => current() !== null,
    execute: async args => {
      let variant = GALLERY.find(one => one.name === args['name']);
      if (!variant) {
        const items = GALLERY.map(one => `${one.title}: ${one.words}`);
        const chosen = await InputDialog.getItem({ title: trans.__('Insert a variant'), items, okLabel: trans.__('Insert') });
        variant = chosen.button.accept && chosen.value !== null ? GALLERY[items.indexOf(chosen.value)] : undefined;
      }
      const panel = current();
      if (variant && panel) {
        await insert(panel, variant.cell.trimEnd(), settings.defaultTarget);
      }
    }
  });
  commands.addCommand(ID.insertFirst, {
    label: trans.__('Insert a First Variant'),
    isEnabled: () => current() !== null,
    execute: async () => {
      const panel = current();
      if (panel) {
        await insert(panel, FIRST.trimEnd(), settings.defaultTarget);
      }
    }
  });
  commands.addCommand(ID.run, {
    label: trans.__('Run on GPU'),
    caption: trans.__('Runs the active variant with --bench: checked and timed on the GPU of its kernel'),
    icon: runIcon,
    isEnabled: () => here(),
    isVisible: () => here() && !busy(),
    execute: () => runOnGpu(parts)
  });
  commands.addCommand(ID.stop, {
    label: trans.__('Stop'),
    caption: trans.__('Interrupts the kernel; what was measured so far is kept'),
    icon: stopIcon,
    isEnabled: () => here() && busy(),
    isVisible: () => here() && busy(),
    execute: () => stop(parts)
  });
  commands.addCommand(ID.panel, { label: trans.__('Open the Side Panel'), execute: parts.openPanel });
  commands.addCommand(ID.compare, {
    label: trans.__('Compare Pinned Runs'),
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
    label: trans.__('Check Before Sharing'),
    caption: trans.__('What the saved notebook holds, what is private in it, and what each viewer will show'),
    isEnabled: () => current() !== null,
    execute: () => checkSharing(parts)
  });
  commands.addCommand(ID.copy, {
    label: trans.__('Copy Generated CuTeDSL'),
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
    label: trans.__('Load cute_lab'),
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

async function checkSharing({ trans, tracker, settings }: Parts): Promise<void> {
  const panel = tracker.currentWidget;
  const kernel = panel?.sessionContext.session?.kernel;
  if (!panel || !kernel) {
    Notification.info(trans.__('Checking needs a kernel. In a terminal: python -m cute_lab share NOTEBOOK.ipynb'));
    return;
  }
  await panel.context.save();
  const name = panel.context.path.split('/').at(-1) ?? '';
  const wait = Notification.info(isRunning(panel) ? trans.__('%1 is checked when the running cell is over.', name) : trans.__('Checking %1…', name), { autoClose: false });
  let said;
  try {
    said = await say(kernel, sharingCode(name, [...ALWAYS_PRIVATE, ...settings.privateFields]));
  } finally {
    Notification.dismiss(wait);
  }
  const { title, node } = drawSharing(said, name, trans);
  await showDialog({ title, body: new Widget({ node }), buttons: [Dialog.okButton({ label: trans.__('Close') })] });
}
