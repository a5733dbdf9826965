/** The gallery's variants, and what inserting one does to a notebook. */

import type { NotebookPanel } from '@jupyterlab/notebook';

import gallery from './gallery.json';
import { loadAbove } from './loading';
import { LOADS, withTarget } from './magicoptions';
import { reveal } from './places';
import { variants } from './protocol';
import type { Variant } from './protocol';

/** Built by tools/build_gallery.py; a test reads it too. */
export const GALLERY: readonly Variant[] = variants(gallery, 'gallery');

/** Below the active cell, and edited from then on; where no cell of the notebook loads cute_lab, one above it does so at once. */
export async function insert(panel: NotebookPanel, cell: string, target: string): Promise<void> {
  const { content } = panel;
  const shared = content.model?.sharedModel;
  if (!shared) {
    return;
  }
  const source = withTarget(cell, target);
  const active = content.activeCell?.model.sharedModel;
  let at = content.activeCellIndex;
  if (active?.cell_type === 'code' && active.getSource().trim() === '') {
    active.setSource(source); // an empty cell is where a person wants it
  } else {
    at += 1;
    shared.insertCell(at, { cell_type: 'code', source, metadata: { trusted: true } });
  }
  const widget = content.widgets[at];
  if (widget) {
    if (!shared.cells.some(one => LOADS.test(one.getSource()))) {
      void loadAbove({ panel, cell: widget });
    }
    await reveal(panel, widget);
    content.mode = 'edit';
    content.activate(); // takes the focus from the gallery's button: Shift+Enter runs the cell
  }
}
