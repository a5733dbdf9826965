/** A cell with our magic in a kernel that has not loaded cute_lab: running it would give IPython's UsageError and nothing else. */

import type { Cell } from '@jupyterlab/cells';

import type { Translate } from '../core/i18n';
import type { Mistake } from './editor_words';
import { LOAD, LOADS } from './magicoptions';
import { magicOf } from './options';
import type { Place } from './places';

/** The cell that loads cute_lab, of those above. */
export function loaderAbove({ panel, cell }: Place): Cell | undefined {
  const cells = panel.content.widgets;
  return cells.slice(0, cells.indexOf(cell)).find(other => other.model.type === 'code' && LOADS.test(other.model.sharedModel.getSource()));
}

/** `load`: what mends it, if a click can. `above`: a cell above loads it, so a notebook that is only read has no mistake. */
export function unloaded(text: string, trans: Translate, load: (() => void) | null, above: boolean): Mistake | null {
  const magic = magicOf(text);
  if (magic === null) {
    return null;
  }
  const message = trans.__('this kernel has not loaded cute_lab: run %1 first', LOAD);
  const why = trans.__('Until then IPython does not know %1.', `%%${magic}`);
  const place = { line: 1, column: 0, end_line: 1, end_column: magic.length + 2 };
  const acts = load ? [{ title: above ? trans.__('Run the cell above that loads it') : trans.__('Run %1 in a cell above', LOAD), run: load }] : [];
  return { ...place, severity: above ? 'info' : 'error', message: `${message}\n${why}`, hint: '', fixes: [], source: 'static', acts };
}
