/** "CuTe Lab notebook": a notebook whose first cells load cute_lab and hold a variant with a slider; or an empty one. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Contents } from '@jupyterlab/services';
import type { Widget } from '@lumino/widgets';

import type { Translate } from '../core/i18n';
import { LOAD, withTarget } from './magicoptions';

export const FIRST = `%%cute_attention --H 8 --Sq 4096 --out local
window = slider(64, 2048, 512, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    near = q_idx - kv_idx < window
    return (q_idx >= kv_idx) & near
`;

export const EMPTY = { cell_type: 'code', metadata: {}, source: '', outputs: [], execution_count: null };

export function firstCells(target: string, trans: Translate): object[] {
  const title = trans.__('# A sliding window');
  const words = trans.__('Each query sees the `window` keys before it. Run the two cells, then drag the slider: the block map follows at once.');
  return [
    { cell_type: 'markdown', metadata: {}, source: `${title}\n\n${words}` },
    { ...EMPTY, source: LOAD },
    { ...EMPTY, source: withTarget(FIRST, target).trimEnd() }
  ];
}

/** `cells`: as nbformat has them. */
export async function create(app: JupyterFrontEnd, cwd: string, cells: readonly object[]): Promise<Widget | undefined> {
  const { contents, kernelspecs } = app.serviceManager;
  await kernelspecs.ready;
  const specs = kernelspecs.specs;
  const all = Object.values(specs?.kernelspecs ?? {}).filter(spec => spec?.language === 'python');
  const python = all.find(spec => spec?.name === specs?.default) ?? all[0];
  const made = await contents.newUntitled({ path: cwd, type: 'notebook' });
  const kernelspec = python ? { name: python.name, display_name: python.display_name, language: 'python' } : undefined;
  const content = { nbformat: 4, nbformat_minor: 4, metadata: kernelspec ? { kernelspec } : {}, cells };
  await contents.save(made.path, { type: 'notebook', format: 'json', content } as Partial<Contents.IModel>);
  const kernel = python ? { name: python.name } : undefined;
  return (await app.commands.execute('docmanager:open', { path: made.path, factory: 'Notebook', ...(kernel ? { kernel } : {}) })) as Widget | undefined;
}
