/** The gallery's variants, and what inserting one does to a notebook. */

import type { NotebookPanel } from '@jupyterlab/notebook';

import gallery from './gallery.json';
import { LOAD, LOADS, withTarget } from './magicoptions';
import { reveal, usesCute } from './places';
import { variants } from './protocol';
import type { Variant } from './protocol';

/** Built by tools/build_gallery.py; a test reads it too. */
export const GALLERY: readonly Variant[] = variants(gallery, 'gallery');

/** Below the active cell; the notebook's first cell loads cute_lab if none does. */
export async function insert(panel: NotebookPanel, cell: string, target: string): Promise<void> {
  const { content } = panel;
  const shared = content.model?.sharedModel;
  if (!shared) {
    return;
  }
  const code = (source: string): { cell_type: 'code'; source: string; metadata: { trusted: boolean } } => ({ cell_type: 'code', source, metadata: { trusted: true } });
  const active = content.activeCell?.model.sharedModel;
  const empty = active?.cell_type === 'code' && active.getSource().trim() === '';
  let at = content.activeCellIndex + 1;
  shared.transact(() => {
    if (empty) {
      at -= 1;
      active?.setSource(withTarget(cell, target)); // an empty cell is where a person wants it
    } else {
      shared.insertCell(at, code(withTarget(cell, target)));
    }
    if (!usesLoad(panel)) {
      shared.insertCell(0, code(LOAD));
      at += 1;
    }
  });
  const widget = content.widgets[at];
  if (widget) {
    await reveal(panel, widget);
  }
}

function usesLoad(panel: NotebookPanel): boolean {
  return usesCute(panel) && [...(panel.model?.cells ?? [])].some(cell => LOADS.test(cell.sharedModel.getSource()));
}
