/** Loads cute_lab where a cell needs it. */

import type { Cell } from '@jupyterlab/cells';
import { NotebookActions } from '@jupyterlab/notebook';

import { LOAD, LOADS } from './magicoptions';
import type { Place } from './places';

/** The cell that loads cute_lab, of those above. */
export function loaderAbove({ panel, cell }: Place): Cell | undefined {
  const cells = panel.content.widgets;
  return cells.slice(0, cells.indexOf(cell)).find(other => other.model.type === 'code' && LOADS.test(other.model.sharedModel.getSource()));
}

/** Runs the cell that loads cute_lab; where there is none above, it is made first, so that the notebook runs again from its top. */
export async function loadAbove(place: Place): Promise<void> {
  const { panel, cell } = place;
  const { content, sessionContext } = panel;
  const at = content.widgets.indexOf(cell);
  if (at < 0) {
    return;
  }
  const above = loaderAbove(place);
  if (!above) {
    content.model?.sharedModel.insertCell(at, { cell_type: 'code', source: LOAD, metadata: { trusted: true } });
  }
  const first = above ?? content.widgets[at];
  if (first) {
    await NotebookActions.runCells(content, [first], sessionContext);
    await content.scrollToCell(cell); // back to where the person was
  }
}
