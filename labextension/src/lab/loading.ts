/** Loads cute_lab where a cell needs it. */

import { NotebookActions } from '@jupyterlab/notebook';

import { LOAD, LOADS } from './magicoptions';
import type { Place } from './places';

/** Runs the cell that loads cute_lab; where there is none above, it is made first, so that the notebook runs again from its top. */
export async function loadAbove({ panel, cell }: Place): Promise<void> {
  const { content, sessionContext } = panel;
  const at = content.widgets.indexOf(cell);
  if (at < 0) {
    return;
  }
  const above = content.widgets.slice(0, at).find(other => other.model.type === 'code' && LOADS.test(other.model.sharedModel.getSource()));
  if (!above) {
    content.model?.sharedModel.insertCell(at, { cell_type: 'code', source: LOAD, metadata: { trusted: true } });
  }
  const first = above ?? content.widgets[at];
  if (first) {
    await NotebookActions.runCells(content, [first], sessionContext);
  }
}
