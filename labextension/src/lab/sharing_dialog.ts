/** "Check Before Sharing": the report in a dialog, and the copy that its button makes. */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { h } from '../core/dom';
import type { Parts } from './commands';
import { say } from './kernelwork';
import { isRunning } from './places';
import { drawSharing, sharingCode } from './sharing';
import type { Sharing } from './sharing';

const ALWAYS_PRIVATE = ['hostname', 'user', 'path']; // as `%cute_share` has it by default

export async function checkSharing({ app, trans, tracker, settings }: Parts): Promise<void> {
  const panel = tracker.currentWidget;
  const kernel = panel?.sessionContext.session?.kernel;
  if (!panel || !kernel) {
    Notification.info(trans.__('Checking needs a kernel. In a terminal: python -m cute_lab share NOTEBOOK.ipynb'));
    return;
  }
  const { path } = panel.context;
  const name = path.split('/').at(-1) ?? '';
  const ask = async (write: boolean): Promise<Sharing> => {
    await panel.context.save();
    const wait = Notification.info(isRunning(panel) ? trans.__('%1 is checked when the running cell is over.', name) : trans.__('Checking %1…', name), { autoClose: false });
    try {
      return drawSharing(await say(kernel, sharingCode(name, [...ALWAYS_PRIVATE, ...settings.privateFields], write)), name, trans);
    } finally {
      Notification.dismiss(wait);
    }
  };
  const show = async ({ title, node }: { title: string; node: HTMLElement }, label: string): Promise<boolean> => {
    const close = Dialog.cancelButton({ label: trans.__('Close') });
    return (await showDialog({ title, body: new Widget({ node }), buttons: label ? [close, Dialog.okButton({ label })] : [close] })).button.accept;
  };

  const checked = await ask(false);
  if (!(await show(checked, checked.copy && trans.__('Make These Changes in a Copy')))) {
    return;
  }
  const copy = path.slice(0, path.length - name.length) + checked.copy;
  const there = await app.serviceManager.contents.get(copy, { content: false }).then(() => true, () => false);
  const words = h('p', {}, trans.__('It is there already. What you have changed in it since is lost then.'));
  if (there && !(await show({ title: trans.__('Replace %1?', checked.copy), node: words }, trans.__('Replace')))) {
    return;
  }
  const made = await ask(true);
  await tracker.find(one => one.context.path === copy)?.context.revert(); // it shows what was replaced
  if (await show(made, made.copy && trans.__('Open'))) {
    await app.commands.execute('docmanager:open', { path: copy });
  }
}
