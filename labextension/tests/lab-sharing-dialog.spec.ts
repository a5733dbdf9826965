/** The button that makes the changes in a copy: the notebook is saved first, and nothing of the person's is overwritten unasked. */

import { beforeEach, expect, test, vi } from 'vitest';

import { ENGLISH } from '../src/core/i18n';
import { checkSharing } from '../src/lab/sharing_dialog';

const answers: boolean[] = []; // to each dialog
const said: string[] = [];

vi.mock('@jupyterlab/apputils', () => ({
  Dialog: { cancelButton: (one: object) => one, okButton: (one: object) => one },
  Notification: { info: () => 'id', dismiss: () => undefined },
  showDialog: ({ title, buttons }: { title: string; buttons: { label: string }[] }) => {
    said.push(`${title}: ${buttons.map(button => button.label).join(', ')}`);
    return Promise.resolve({ button: { accept: answers.shift() ?? false } });
  }
}));
vi.mock('@lumino/widgets', () => ({ Widget: class {} }));
vi.mock('../src/lab/places', () => ({ isRunning: () => false }));
vi.mock('../src/lab/kernelwork', () => ({
  say: (_: unknown, code: string) => {
    const written = code.endsWith(', True))');
    said.push(written ? 'made' : 'checked');
    return Promise.resolve({ ok: true, text: JSON.stringify({ ok: written, verdict: '', sections: [], seen: '', copy: 'a.shared.ipynb', written }) });
  }
}));

const CHECK = 'a.ipynb is not ready to be shared: Close, Make These Changes in a Copy';
const DONE = 'a.shared.ipynb can be shared: Close, Open';

function parts(there: boolean): never {
  const context = { path: 'in/a.ipynb', save: () => Promise.resolve(said.push('saved')) };
  const copy = { context: { path: 'in/a.shared.ipynb', revert: () => Promise.resolve(said.push('reverted')) } };
  const tracker = { currentWidget: { context, sessionContext: { session: { kernel: {} } } }, find: (is: (one: object) => boolean) => [{ context }, copy].find(is) };
  const contents = { get: (path: string) => (there && path === 'in/a.shared.ipynb' ? Promise.resolve({}) : Promise.reject(new Error('404'))) };
  const commands = { execute: (id: string, { path }: { path: string }) => Promise.resolve(said.push(`${id} ${path}`)) };
  return { app: { serviceManager: { contents }, commands }, trans: ENGLISH, tracker, settings: { privateFields: [] } } as never;
}

beforeEach(() => void said.splice(0));

test('the copy is made, an open one shows it, and it can be opened', async () => {
  answers.push(true, true);
  await checkSharing(parts(false));
  expect(said).toEqual(['saved', 'checked', CHECK, 'saved', 'made', 'reverted', DONE, 'docmanager:open in/a.shared.ipynb']);
});

test('an earlier copy is replaced only when asked', async () => {
  const replace = 'Replace a.shared.ipynb?: Close, Replace';
  answers.push(true, false);
  await checkSharing(parts(true));
  expect(said.splice(0)).toEqual(['saved', 'checked', CHECK, replace]);
  answers.push(true, true, false);
  await checkSharing(parts(true));
  expect(said).toEqual(['saved', 'checked', CHECK, replace, 'saved', 'made', 'reverted', DONE]);
});
