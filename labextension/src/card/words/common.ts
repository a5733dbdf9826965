/** Phrases that several tabs share: a place in the score matrix, an architecture, a fix. As cute_lab/views/_words.py. */

import type { Translate } from '../../core/i18n';
import type { CuteRecord, Note, Shape, TargetReport } from '../../core/record';
import { words } from '../code/tokens';
import { variable } from './page';
import { grouped, number } from './quantities';

const FAMILY: Readonly<Record<string, string>> = {
  sm_80: 'Ampere',
  sm_90: 'Hopper',
  sm_100: 'Blackwell',
  sm_103: 'Blackwell Ultra',
  sm_120: 'Blackwell RTX'
};

export function family(target: string): string {
  const name = target.replace(/[af]+$/, '');
  return Object.hasOwn(FAMILY, name) ? (FAMILY[name] as string) : '';
}

export function architecture(target: string): string {
  const name = family(target);
  return name ? `${name} (${target})` : target;
}

/** A table's column head: the direction is named only where the record has both. */
export function column(report: TargetReport, reports: readonly TargetReport[]): string {
  const both = new Set(reports.map(r => r.direction)).size > 1;
  return architecture(report.target) + (both ? `, ${report.direction}` : '');
}

export function registerWords(t: Translate, report: TargetReport): string[] {
  const spills = [
    report.spill_stores ? t._n('%2 spilled store', '%2 spilled stores', report.spill_stores, number(report.spill_stores)) : '',
    report.spill_loads ? t._n('%2 spilled load', '%2 spilled loads', report.spill_loads, number(report.spill_loads)) : ''
  ].filter(Boolean);
  const registers = t._n('%2 register', '%2 registers', report.registers, number(report.registers));
  return [registers, ...(spills.length ? spills : [t.__('no spills')])];
}

export function place(worst: { b: number; h: number; q: number; kv: number } | null): string {
  return worst ? ` at b${worst.b} h${worst.h} q${worst.q} kv${worst.kv}` : '';
}

export function points(t: Translate, n: number): string {
  return t._n('%2 point', '%2 points', n, number(n));
}

/** Line, what, fix. A fix of several lines is a block of its own, which the caller shows below. */
export function noteWords(t: Translate, note: Note): string {
  const text = note.line ? t.__('Line %1: %2', note.line, note.text) : note.text;
  if (!note.fix) {
    return text;
  }
  if (note.fix.includes('\n')) {
    return `${text} ${t.__('Write as below.')}`;
  }
  if (note.fix.includes('`') || !isCode(note.fix)) {
    return `${text} ${note.fix.charAt(0).toUpperCase()}${note.fix.slice(1).replace(/\.+$/, '')}.`;
  }
  return `${text} ${t.__('Write `%1`.', note.fix)}`;
}

/** Python, not a sentence: no two words stand side by side. */
function isCode(text: string): boolean {
  const found = words(text);
  return found.every((word, i) => word !== 'word' || found[i + 1] !== 'word') && found.length > 0 && found[found.length - 1] !== 'open';
}

export function noBlocks(t: Translate, record: CuteRecord): string {
  return record.source.functions.includes('mask_mod')
    ? t.__('No block map yet. Run `%1.blocks()`: it needs no GPU.', variable(record.name))
    : t.__('No block map: this cell has no `mask_mod`, so the kernel computes every block.');
}

/** The editor's line number -> the cell's text. */
export function cellLines(record: CuteRecord): Map<number, string> {
  const text = record.cell.text.replace(/\n+$/, '').split('\n');
  return new Map(text.map((line, i) => [record.cell.first_line + i, line]));
}

/** As the card's head has it: long numbers are grouped, as in its sentences. */
export function groupedShape(shape: Shape): string {
  return shapeWords(shape).replace(/\d{5,}/g, grouped);
}

/** Letter for letter what Python prints. */
export function shapeWords(shape: Shape): string {
  const heads = shape.Hkv === shape.H ? `H${shape.H}` : `H${shape.H} Hkv${shape.Hkv}`;
  const length = shape.Sq === shape.Skv ? `S${shape.Sq}` : `Sq${shape.Sq} Skv${shape.Skv}`;
  return `B${shape.B} ${heads} ${length} D${shape.D} ${shape.dtype}`;
}
