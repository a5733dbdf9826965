/** The runs of a notebook: the records that its outputs hold, newest first. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { own } from '../core/decode';
import { keyOf, MIME, parse } from '../core/record';
import type { CuteRecord } from '../core/record';

export interface Run {
  readonly record: CuteRecord;
  readonly key: string;
  readonly cellId: string;
  readonly prompt?: number | null; // [2]: what a person knows the cell by
}

const known = new Map<string, CuteRecord | null>(); // reading a record takes milliseconds, a notebook changes with every key
const MOST = 200;

function readOnce(value: unknown): CuteRecord | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return null;
  }
  const from = value as Record<string, unknown>;
  if (own(from, 'view') !== undefined) {
    return null;
  }
  const size = (name: string): number => (Array.isArray(own(from, name)) ? (own(from, name) as unknown[]).length : -1);
  const name = [own(from, 'hash'), own(from, 'created'), own(from, 'name'), own(from, 'seconds'), size('targets'), size('checks'), size('notes'), own(from, 'bench') ? 1 : 0].join(' ');
  let found = known.get(name);
  if (found === undefined) {
    const parsed = parse(value);
    found = parsed.kind === 'record' ? parsed.record : null;
    if (known.size >= MOST) {
      known.delete(known.keys().next().value ?? '');
    }
    known.set(name, found);
  }
  return found;
}

export function ofCell(cell: ICodeCellModel): CuteRecord[] {
  const out: CuteRecord[] = [];
  for (let i = 0; i < cell.outputs.length; i++) {
    const data = cell.outputs.get(i).data;
    const found = Object.hasOwn(data, MIME) ? readOnce(data[MIME]) : null;
    if (found) {
      out.push(found);
    }
  }
  return out;
}

/** Newest first; of outputs that show the same run, the fullest one. */
export function ofNotebook(panel: NotebookPanel): Run[] {
  const runs = new Map<string, Run>();
  for (const cell of panel.model?.cells ?? []) {
    if (cell.type === 'code') {
      for (const record of ofCell(cell as ICodeCellModel)) {
        const key = keyOf(record);
        if (!runs.get(key)?.record.bench) {
          runs.set(key, { record, key, cellId: cell.id, prompt: (cell as ICodeCellModel).executionCount });
        }
      }
    }
  }
  return [...runs.values()].sort((a, b) => Date.parse(b.record.created) - Date.parse(a.record.created));
}

/** Records in a notebook's JSON, for a notebook that is not open. */
export function ofJson(notebook: unknown): CuteRecord[] {
  const cells = (notebook as { cells?: { outputs?: { data?: Record<string, unknown> }[] }[] } | null)?.cells ?? [];
  return cells.flatMap(cell => (cell.outputs ?? []).map(output => readOnce(output.data?.[MIME])).filter(found => found !== null));
}

/** Tells, at most every 300 ms, when the runs of the shown notebook may have changed. */
export class Runs implements IDisposable {
  readonly changed = new Signal<Runs, void>(this);
  isDisposed = false;
  private panel: NotebookPanel | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  follow(panel: NotebookPanel | null): void {
    if (panel === this.panel) {
      return;
    }
    this.panel?.context.model.contentChanged.disconnect(this.soon, this);
    this.panel = panel;
    panel?.context.model.contentChanged.connect(this.soon, this);
    panel?.disposed.connect(() => panel === this.panel && this.follow(null));
    void panel?.context.ready.then(() => this.soon());
    this.soon();
  }

  get runs(): Run[] {
    return this.panel && !this.panel.isDisposed ? ofNotebook(this.panel) : [];
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.isDisposed = true;
      this.follow(null);
      clearTimeout(this.timer);
      Signal.clearData(this);
    }
  }

  private soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (!this.isDisposed) {
        this.changed.emit();
      }
    }, 300);
  }
}
