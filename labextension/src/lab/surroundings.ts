/** What a card may use where it stands: its cell, its notebook and its kernel. All of it is looked up when it is used. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { Widget } from '@lumino/widgets';

import type { Surroundings } from '../card/tab';
import type { Translate } from '../core/i18n';
import { bytes } from '../core/inflate';
import { keyOf } from '../core/record';
import type { CuteRecord } from '../core/record';
import type { CellRequest, CellSource } from '../mask/cells';
import type { Clients, KernelClient } from './client';
import type { Pins } from './pins';
import { around, isCute, reveal } from './places';
import { bits } from './protocol';
import { ofNotebook } from './records';

export interface Means {
  readonly trans: Translate;
  readonly clients: Clients;
  readonly pins: Pins;
}

/** `widget` is somewhere in the output area of a cell; in a file's viewer only the words are there. */
export function surroundingsFor(widget: Widget, means: Means, shown: () => CuteRecord | null): Surroundings {
  const { trans, clients, pins } = means;
  return {
    trans,
    cellSource: cellSource(() => clients.of(around(widget)?.panel.sessionContext.session?.kernel), shown),
    others: () => {
      const place = around(widget);
      const own = shown();
      if (!place) {
        return [];
      }
      const all = ofNotebook(place.panel).map(run => run.record).filter(record => !own || keyOf(record) !== keyOf(own));
      const alike = all.filter(record => record.name === own?.name);
      return [...alike, ...all.filter(record => !alike.includes(record))];
    },
    reveal: () => {
      const place = around(widget);
      if (place) {
        void reveal(place.panel, place.cell);
      }
    },
    isStale: () => {
      const place = around(widget);
      const own = shown();
      return place && own ? isStale(place.cell.model, own) : undefined;
    },
    isPinned: () => {
      const own = shown();
      return own !== null && pins.has(own);
    },
    pin: () => {
      const own = shown();
      if (own) {
        pins.toggle(own, around(widget)?.panel.context.path);
      }
    }
  };
}

/** Undefined where the record is not the cell's own: plain Python shows the records of other cells too. */
export function isStale(cell: ICodeCellModel, record: CuteRecord): boolean | undefined {
  const now = cell.sharedModel.getSource();
  return isCute(record.cell.text) && isCute(now) ? now.trimEnd() !== record.cell.text.trimEnd() : undefined;
}

function cellSource(client: () => KernelClient | null, shown: () => CuteRecord | null): CellSource {
  return {
    async cells(request: CellRequest): Promise<Uint8Array | null> {
      const [kernel, own] = [client(), shown()];
      if (!kernel || !own) {
        return null;
      }
      const size = request.rows * request.columns;
      try {
        const found = await kernel.ask('cells', { of: keyOf(own), ...request }, bits, { lane: `cells ${keyOf(own)}`, timeout: 5000 });
        const packed = bytes(found.bits, Math.ceil(size / 8));
        return Uint8Array.from({ length: size }, (_, i) => ((packed[i >> 3] ?? 0) >> (i & 7)) & 1);
      } catch {
        return null; // the mask says that it can't tell
      }
    }
  };
}
