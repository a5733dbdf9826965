/** The texts of a record that a pane can show: cell, IR, FX, CuTeDSL by function, PTX and SASS of each target, Inductor's code. */

import { Problem } from '../../core/decode';
import { text as inflated } from '../../core/inflate';
import type { Translate } from '../../core/i18n';
import type { CuteRecord, Excerpt, TargetReport } from '../../core/record';
import { clean } from '../../core/text';
import { architecture } from '../words/common';
import type { Language } from './tokens';

export interface Loaded {
  readonly lines: readonly string[];
  /** The number that stands beside each line; a jump is a gap. */
  readonly numbers: readonly number[];
  /** The cell's line that each line comes from, 0 none. */
  readonly userLines: readonly number[];
  /** Lines of the whole text, of which these are a part. */
  readonly total: number;
  readonly loop: readonly [number, number] | null;
  /** Instead of the text: why there is none. */
  readonly problem: string;
}

export interface Listing {
  readonly id: string;
  readonly title: string;
  readonly group: 'source' | 'generated' | 'machine' | 'other';
  readonly language: Language;
  readonly file: string;
  load(): Loaded;
}

const MOST_LINES = 200_000; // browsers can't lay out a taller page

function loaded(all: readonly string[], userLines: readonly number[], first = 1, numbers?: readonly number[]): Loaded {
  const lines = all.slice(0, MOST_LINES);
  const shown = numbers ?? lines.map((_, i) => first + i);
  return { lines, numbers: shown, userLines, total: Math.max(all.length, 0), loop: null, problem: '' };
}

function split(text: string): string[] {
  return clean(text.replace(/\n+$/, '')).split('\n');
}

/** Reads a text once, and only when it is looked at. */
function lazily(read: () => Loaded): () => Loaded {
  let kept: Loaded | null = null;
  return () => (kept ??= read());
}

export function listings(t: Translate, record: CuteRecord): Listing[] {
  const { cell, stages } = record;
  const made: Listing[] = [
    {
      id: 'cell',
      title: t.__('Your cell'),
      group: 'source',
      language: 'python',
      file: 'cell.py',
      load: lazily(() => {
        const lines = split(cell.text);
        return loaded(lines, lines.map((_, i) => cell.first_line + i), cell.first_line);
      })
    }
  ];
  if (record.source.text.trim()) {
    made.push(...generated(t, record));
  }
  if (stages.ir.trim()) {
    made.push({
      id: 'ir',
      title: t.__('IR, typed'),
      group: 'generated',
      language: 'ir',
      file: 'ir.txt',
      load: lazily(() => {
        const lines = split(stages.ir);
        return loaded(lines, lines.map(irLine));
      })
    });
  }
  const others = [
    ['fx', t.__('FX graph, as torch traced it'), stages.fx, 'fx.py'],
    ['inductor', t.__('What Inductor would emit'), stages.inductor ?? '', 'inductor.py']
  ] as const;
  for (const [id, title, text, file] of others) {
    if (text.trim()) {
      const load = lazily(() => {
        const lines = split(text);
        return loaded(lines, lines.map(() => 0));
      });
      made.push({ id, title, group: 'other', language: 'python', file, load });
    }
  }
  return [...made, ...record.targets.flatMap(report => machine(t, report, record.targets))];
}

/** `  %1 = gather[1](h) : f32      # 6: caps[h]` -> 6 */
function irLine(line: string): number {
  const found = /\s#\s(\d{1,6}):[^#]*$/.exec(line.slice(-400)) ?? /\s#\s(\d{1,6}):/.exec(line.slice(0, 2_000));
  return found ? Number(found[1]) : 0;
}

const WHAT: Readonly<Record<string, string>> = {
  score_mod: 'forward',
  score_mod_bwd: 'backward',
  mask_mod: 'mask',
  mask_mod_packed: 'mask, packed'
};

/** The whole text, and each function of it with the decorators above. */
function generated(t: Translate, record: CuteRecord): Listing[] {
  const { source } = record;
  const lines = split(source.text);
  const user = source.user_lines;
  const whole: Listing = {
    id: 'cutedsl',
    title: t.__('CuTeDSL, all'),
    group: 'generated',
    language: 'python',
    file: `${record.name}.py`,
    load: lazily(() => loaded(lines, user))
  };
  const parts = source.functions.slice(0, 16).flatMap((name): Listing[] => {
    const start = lines.findIndex(line => line.startsWith(`def ${name}(`));
    if (start < 0) {
      return [];
    }
    let from = start;
    while (from > 0 && /^@/.test(lines[from - 1] as string)) {
      from -= 1;
    }
    let to = start + 1;
    while (to < lines.length && (lines[to] === '' || /^[\s#)]/.test(lines[to] as string))) {
      to += 1;
    }
    while (lines[to - 1] === '') {
      to -= 1;
    }
    const what = Object.hasOwn(WHAT, name) ? WHAT[name] : '';
    const title = t.__('CuTeDSL %1', what ? `${what}: ${name}` : clean(name));
    const load = lazily(() => loaded(lines.slice(from, to), user.slice(from, to), from + 1));
    return [{ id: `cutedsl:${name}`, title, group: 'generated', language: 'python', file: `${name}.py`, load }];
  });
  return parts.length > 1 || (parts.length && lines.length > 40) ? [...parts, whole] : [whole];
}

function machine(t: Translate, report: TargetReport, all: readonly TargetReport[]): Listing[] {
  const found = report.listing;
  if (!found) {
    return [];
  }
  const both = new Set(all.map(r => r.direction)).size > 1;
  const where = architecture(clean(report.target)) + (both ? `, ${report.direction}` : '');
  const kinds = [
    ['sass', 'SASS', found.sass],
    ['ptx', 'PTX', found.ptx]
  ] as const;
  return kinds.map(([language, name, excerpt]) => ({
    id: `${language}:${report.target}:${report.direction}`,
    title: t.__('%1 of %2', name, where),
    group: 'machine',
    language,
    file: `${report.target}_${report.direction}.${language}`,
    load: lazily(() => unpacked(t, excerpt))
  }));
}

export function unpacked(t: Translate, excerpt: Excerpt): Loaded {
  const none = (problem: string): Loaded => ({ lines: [], numbers: [], userLines: [], total: 0, loop: null, problem });
  try {
    const [lines, numbers, userLines]: [string[], number[], number[]] = [[], [], []];
    let number = 0;
    for (const packed of split(inflated(excerpt.data))) {
      const [, step, user, text] = /^(\d{1,9}) (\d{1,9}) (.*)$/.exec(packed) ?? [];
      if (text === undefined) {
        return none(t.__('This listing is damaged: line %1 has no number.', lines.length + 1));
      }
      number += Number(step);
      lines.push(text);
      numbers.push(number);
      userLines.push(Number(user));
    }
    const [first, last] = excerpt.loop ?? [];
    const loop = first !== undefined && last !== undefined ? ([first, last] as const) : null;
    return { ...loaded(lines, userLines, 1, numbers), total: excerpt.total, loop };
  } catch (error) {
    if (error instanceof Problem) {
      return none(t.__("This listing can't be read: %1.", error.message));
    }
    throw error;
  }
}

/** The cell's lines that something was made of, each with one of eight hues. */
export function hues(record: CuteRecord): Map<number, number> {
  const used = new Set(record.source.user_lines.filter(line => line > 0));
  for (const report of record.targets) {
    for (const cost of report.line_cost) {
      if (cost.line > 0) {
        used.add(cost.line);
      }
    }
  }
  return new Map([...used].sort((a, b) => a - b).map((line, i) => [line, i % 8]));
}
