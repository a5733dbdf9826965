/** Wires the parts together. What a Notebook 7 lacks is optional: launcher, status bar, restorer, side areas. */

import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Assistants } from './assistant';
import { Clients } from './client';
import * as commands from './commands';
import { Comparisons } from './compare';
import { CuteCompleter } from './completer';
import * as editor from './editor';
import * as gone from './gone';
import { LAUNCHER_ICON } from './icon';
import { loadAbove } from './loading';
import { CutePanel } from './panel';
import { keep, Pins } from './pins';
import { Places } from './places';
import * as renderer from './renderer';
import { PLUGIN, Settings } from './settings';
import { StatusModel } from './status';
import * as statusbar from './statusbar';

export const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Help while typing, a side panel, commands and settings for cute_lab.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [
    IRenderMimeRegistry,
    IEditorExtensionRegistry,
    ICompletionProviderManager,
    ISettingRegistry,
    ITranslator,
    ICommandPalette,
    ILauncher,
    IStatusBar,
    ILayoutRestorer,
    ILabShell,
    IDefaultFileBrowser,
    IStateDB
  ],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    rendermime: IRenderMimeRegistry | null,
    editors: IEditorExtensionRegistry | null,
    completers: ICompletionProviderManager | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    bar: IStatusBar | null,
    restorer: ILayoutRestorer | null,
    lab: ILabShell | null,
    browser: IDefaultFileBrowser | null,
    state: IStateDB | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('cute_lab');
    const [clients, pins, settings, places] = [new Clients(), new Pins(), new Settings(), new Places(tracker)];
    const status = new StatusModel(tracker, clients);
    const comparisons = new Comparisons(app, trans);
    const assistants = new Assistants(places, clients, settings, trans, place => void loadAbove(place));
    if (state) {
      void app.restored.then(() => keep(pins, state, path => comparisons.load(path)));
      app.serviceManager.contents.fileChanged.connect((_, { type, oldValue, newValue }) => {
        if (type === 'rename' && oldValue?.path && newValue?.path) {
          pins.moved(oldValue.path, newValue.path);
        }
      });
    }
    gone.watch(tracker);
    const { ID } = commands;
    const run = (id: string, args = {}): void => void app.commands.execute(id, args);

    if (rendermime) {
      renderer.register(rendermime, { trans, clients, pins });
      void app.started.then(() => renderer.register(rendermime, { trans, clients, pins })); // after the MIME extension, whichever came first
    }
    if (editors) {
      editor.register(editors, assistants);
    }
    completers?.registerProvider(new CuteCompleter(assistants));

    const panel = new CutePanel({
      trans,
      tracker,
      pins,
      status,
      insert: variant => run(ID.insert, { name: variant.name }),
      insertFirst: () => run(ID.insertFirst),
      compare: () => run(ID.compare),
      newNotebook: () => run(ID.newNotebook),
      load: () => run(ID.load),
      stop: () => run(ID.stop)
    });
    app.shell.add(panel, 'right', { rank: 700, type: 'CuTe Lab' });
    restorer?.add(panel, 'cute-lab-panel');
    const openPanel = (): void => app.shell.activateById(panel.id);

    commands.register({ app, trans, tracker, pins, clients, status, settings, comparisons, browser, openPanel });
    restorer && comparisons.restore(restorer, ID.compare);
    for (const command of commands.IN_PALETTE) {
      palette?.addItem({ command, category: 'CuTe Lab', args: { isPalette: true } });
    }
    launcher?.add({ command: ID.newNotebook, category: 'Notebook', rank: 1, kernelIconUrl: LAUNCHER_ICON });
    if (bar) {
      statusbar.register(bar, status, trans, openPanel);
    }

    const charts = (): void => {
      for (const theme of ['light', 'dark'] as const) {
        document.body.classList.toggle(`jp-CuteLab-charts-${theme}`, settings.chartTheme === theme); // the canvases watch the class
      }
    };
    settings.changed.connect(charts);
    charts();
    if (registry) {
      void settings.follow(registry).then(async () => {
        if (settings.panelOnStart) {
          await app.restored;
          lab ? lab.expandRight() : undefined;
          openPanel();
        }
      });
    }
  }
};
