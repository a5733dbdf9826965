/** From an editor or an output to its cell and notebook. */

import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { CodeCell } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { NotebookPanel } from '@jupyterlab/notebook';
import type { Widget } from '@lumino/widgets';

import { magicOf } from './options';

export interface Place {
  readonly panel: NotebookPanel;
  readonly cell: Cell;
}

export function panels(tracker: INotebookTracker): NotebookPanel[] {
  const out: NotebookPanel[] = [];
  tracker.forEach(panel => out.push(panel));
  return out;
}

export class Places {
  private readonly known = new WeakMap<CodeEditor.IModel, Place>();

  constructor(readonly tracker: INotebookTracker) {}

  /** The cell that an editor belongs to; null in a console or a file. */
  of(model: CodeEditor.IModel): Place | null {
    const known = this.known.get(model);
    if (known && !known.cell.isDisposed && !known.panel.isDisposed) {
      return known;
    }
    for (const panel of panels(this.tracker)) {
      const cell = panel.content.widgets.find(widget => widget.model === model);
      if (cell) {
        const place = { panel, cell };
        this.known.set(model, place);
        return place;
      }
    }
    return null;
  }
}

/** The cell and notebook around a widget. */
export function around(widget: Widget): { panel: NotebookPanel; cell: CodeCell } | null {
  let cell: CodeCell | null = null;
  for (let at: Widget | null = widget; at; at = at.parent) {
    if (at instanceof CodeCell) {
      cell = at;
    } else if (at instanceof NotebookPanel && cell) {
      return { panel: at, cell };
    }
  }
  return null;
}

export function isCute(text: string): boolean {
  return magicOf(text) !== null;
}

/** Does this notebook use cute_lab? */
export function usesCute(panel: NotebookPanel | null): boolean {
  const cells = panel?.model?.cells;
  if (!cells) {
    return false;
  }
  for (const cell of cells) {
    if (cell.type === 'code' && /^%%cute_|^\s*(%load_ext\s+cute_lab|import\s+cute_lab|from\s+cute_lab)\b/m.test(cell.sharedModel.getSource())) {
      return true;
    }
  }
  return false;
}

/** Does a cell run? The kernel's own word for it is of no use: an answer over a subshell makes it say that it is idle. */
export function isRunning(panel: NotebookPanel | null): boolean {
  return panel?.content.widgets.some(cell => cell.model.type === 'code' && (cell.model as ICodeCellModel).executionState === 'running') ?? false;
}

/** Scrolls to the cell and makes it the active one. */
export async function reveal(panel: NotebookPanel, cell: Cell): Promise<void> {
  const index = panel.content.widgets.indexOf(cell);
  if (index >= 0) {
    panel.content.activeCellIndex = index;
    await panel.content.scrollToItem(index, 'smart');
  }
}
