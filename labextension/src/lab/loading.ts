/** Loads cute_lab where a cell needs it. */

import { NotebookActions } from '@jupyterlab/notebook';

import { LOAD } from './magicoptions';
import type { Place } from './places';
import { loaderAbove } from './unloaded';

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
