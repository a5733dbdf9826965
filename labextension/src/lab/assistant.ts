/** What is known about one cell while it is edited: from its kernel, else from its text, and from its last run. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';

import { heavyAsides } from '../card/words/heavy';
import type { Translate } from '../core/i18n';
import type { CuteRecord } from '../core/record';
import type { Clients, KernelClient } from './client';
import { NoAnswer } from './client';
import type { Mistake } from './editor_words';
import * as errors from './errors';
import type { Place, Places } from './places';
import { completion, diagnosis, hover } from './protocol';
import type { Completion, Finding, Hover } from './protocol';
import { ofCell } from './records';
import type { Settings } from './settings';
import { check } from './static';
import { loaderAbove, unloaded } from './unloaded';

export interface Known {
  readonly findings: readonly Mistake[];
  readonly annotations: readonly { line: number; text: string }[];
  /** Has the kernel looked at it? */
  readonly live: boolean;
}

export class Assistants {
  constructor(
    readonly places: Places,
    readonly clients: Clients,
    readonly settings: Settings,
    readonly trans: Translate,
    /** Loads cute_lab into the kernel of a cell's notebook. */
    readonly load: ((place: Place) => void) | null = null
  ) {}

  of(model: CodeEditor.IModel): Assistant {
    return new Assistant(this, model);
  }
}

export class Assistant {
  constructor(
    private readonly all: Assistants,
    private readonly model: CodeEditor.IModel
  ) {}

  get place(): Place | null {
    return this.all.places.of(this.model);
  }

  get client(): KernelClient | null {
    return this.all.clients.of(this.place?.panel.sessionContext.session?.kernel);
  }

  get settings(): Settings {
    return this.all.settings;
  }

  get trans(): Translate {
    return this.all.trans;
  }

  /** At once, from the text and the last run alone. */
  atOnce(text: string): Known {
    const findings = [...check(text, this.trans)];
    for (const error of this.failed(text)) {
      if (!findings.some(other => other.line === error.line)) {
        findings.push(error);
      }
    }
    return { findings, annotations: this.fromRecord(text), live: false };
  }

  /** The kernel's diagnosis, else what `atOnce` knows. Throws NoAnswer `superseded` where a newer text is asked about. */
  async diagnose(text: string): Promise<Known> {
    const client = this.client;
    if (!client) {
      return this.atOnce(text);
    }
    let found;
    try {
      found = await client.ask('diagnose', { text }, diagnosis, { lane: `diagnose ${this.place?.cell.model.id ?? ''}`, timeout: 20_000 });
    } catch (error) {
      if (error instanceof NoAnswer && error.why === 'absent' && client.isWithoutLab) {
        return this.withoutLab(text);
      }
      throw error;
    }
    const before = this.atOnce(text);
    if (!found.ran) {
      // the kernel has not traced it: what the last run said still holds
      const failed = this.failed(text).filter(error => !found.diagnostics.some(other => other.line === error.line));
      return { findings: [...found.diagnostics, ...failed], annotations: found.annotations.length ? found.annotations : before.annotations, live: true };
    }
    return { findings: found.diagnostics, annotations: found.annotations, live: true };
  }

  private withoutLab(text: string): Known {
    const { place, trans } = this;
    const known = this.atOnce(text);
    const load = this.all.load;
    const found = unloaded(text, trans, place && load ? () => load(place) : null, place !== null && loaderAbove(place) !== undefined);
    return found ? { ...known, findings: [found, ...known.findings] } : known;
  }

  async hover(text: string, line: number, column: number): Promise<Hover | null> {
    try {
      const found = await this.client?.ask('hover', { text, line, column }, hover, { timeout: 2500 });
      if (found) {
        return found;
      }
    } catch {
      // the last run may know it
    }
    return hoverOf(this.record(text), line, this.trans);
  }

  complete(text: string, line: number, column: number): Promise<Completion> {
    const client = this.client;
    return client ? client.ask('complete', { text, line, column }, completion, { timeout: 1500 }) : Promise.reject(new Error('no kernel'));
  }

  /** The cell's last run, if the cell still reads as it did. */
  private record(text: string): CuteRecord | null {
    const cell = this.place?.cell.model;
    const found = cell?.type === 'code' ? ofCell(cell as ICodeCellModel).at(-1) : undefined;
    return found && found.cell.text.trimEnd() === text.trimEnd() ? found : null;
  }

  private failed(text: string): Finding[] {
    const cell = this.place?.cell.model;
    if (cell?.type !== 'code') {
      return [];
    }
    const out: Finding[] = [];
    const { outputs } = cell as ICodeCellModel;
    for (let i = 0; i < outputs.length; i++) {
      const output = outputs.get(i).toJSON();
      if (output.output_type === 'error' && Array.isArray(output['traceback'])) {
        const error = errors.read(output['traceback'].join('\n'));
        const found = error && errors.finding(error, text);
        if (found) {
          out.push(found);
        }
      }
    }
    return out;
  }

  private fromRecord(text: string): Known['annotations'] {
    return costNotes(this.record(text), this.trans);
  }
}

/** What its dearest lines cost, at their ends, a note for all targets together. */
export function costNotes(record: CuteRecord | null, trans: Translate): { line: number; text: string }[] {
  const notes = new Map<number, string[]>();
  for (const report of record?.targets ?? []) {
    for (const note of report.direction === 'forward' ? heavyAsides(trans, report.line_cost, report.target) : []) {
      notes.set(note.line, [...(notes.get(note.line) ?? []), note.text]);
    }
  }
  return [...notes].map(([line, words]) => ({ line, text: words.join(', ') }));
}

/** What the record knows of a line of the cell. */
export function hoverOf(record: CuteRecord | null, line: number, trans: Translate): Hover | null {
  if (!record) {
    return null;
  }
  const lines = record.source.text.split('\n');
  const generated = record.source.user_lines.flatMap((of, i) => (of === line && lines[i]?.trim() ? [lines[i].trim()] : []));
  const costs = record.targets.flatMap(({ target, direction, line_cost }) =>
    direction === 'forward' ? line_cost.filter(cost => cost.line === line).map(({ share, instructions }) => ({ target, share, instructions })) : []
  );
  return generated.length || costs.length ? { line, generated, costs, words: trans.__('From the last run of this cell.') } : null;
}
