/** Runs that a person has put aside to compare. The panel and every card show the same pins, and they outlast a reload. */

import { Signal } from '@lumino/signaling';

import { list, object, Problem, string } from '../core/decode';
import { keyOf } from '../core/record';
import type { CuteRecord } from '../core/record';

/** A pin as it is stored: the record itself stays in its notebook. */
const stored = object({ pins: list(object({ key: string, path: string }), 200) });
type Stored = ReturnType<typeof stored>;

export class Pins {
  readonly changed = new Signal<Pins, void>(this);
  private readonly held = new Map<string, { record: CuteRecord; path: string }>(); // newest pin last

  has(record: CuteRecord): boolean {
    return this.held.has(keyOf(record));
  }

  /** `path`: of the notebook that holds the run. */
  toggle(record: CuteRecord, path = ''): void {
    const key = keyOf(record);
    if (!this.held.delete(key)) {
      this.held.set(key, { record, path });
    }
    this.changed.emit();
  }

  add(record: CuteRecord, path: string): void {
    if (!this.has(record)) {
      this.toggle(record, path);
    }
  }

  /** A notebook was renamed, or a folder around it. */
  moved(from: string, to: string): void {
    for (const pin of this.held.values()) {
      if (pin.path === from || pin.path.startsWith(`${from}/`)) {
        pin.path = to + pin.path.slice(from.length);
      }
    }
    this.changed.emit();
  }

  clear(): void {
    this.held.clear();
    this.changed.emit();
  }

  get records(): CuteRecord[] {
    return [...this.held.values()].map(({ record }) => record);
  }

  get stored(): Stored {
    return { pins: [...this.held].filter(([, { path }]) => path).map(([key, { path }]) => ({ key, path })) };
  }
}

/** What JupyterLab's IStateDB offers, as far as it is used. */
export interface Store {
  fetch(id: string): Promise<unknown>;
  save(id: string, value: never): Promise<unknown>;
}

export const KEPT = 'cute-lab:pins';

/** Takes up the pins of the last time, and stores them from then on. `load` has the records of a saved notebook. */
export async function keep(pins: Pins, store: Store, load: (path: string) => Promise<readonly CuteRecord[]>): Promise<void> {
  const before = await earlier(store);
  const paths = [...new Set(before.pins.map(pin => pin.path))];
  const found = await Promise.all(paths.map(path => load(path).catch(() => []))); // a notebook that is gone holds no run
  for (const { key, path } of before.pins) {
    const record = found[paths.indexOf(path)]?.find(one => keyOf(one) === key);
    if (record) {
      pins.add(record, path);
    }
  }
  const save = (): void => void store.save(KEPT, pins.stored as never).catch(() => undefined); // the pins stay, for this page
  pins.changed.connect(save);
  if (JSON.stringify(pins.stored) !== JSON.stringify(before)) {
    save(); // something was pinned meanwhile, or is gone
  }
}

async function earlier(store: Store): Promise<Stored> {
  try {
    return stored((await store.fetch(KEPT)) ?? { pins: [] }, KEPT);
  } catch (error) {
    if (error instanceof Problem) {
      return { pins: [] };
    }
    throw error;
  }
}
