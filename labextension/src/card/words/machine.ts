/** What each architecture's compiler made of the kernel, and what each line of the cell costs. As views/targets.py and lines.py. */

import type { Translate } from '../../core/i18n';
import type { CuteRecord, LineCost, TargetReport } from '../../core/record';
import { cellLines, column, noteWords } from './common';
import { BAND } from './heavy';
import { code, head, lines, table } from './page';
import type { Block, Words } from './page';
import { bar, number, percent, rounded, short, whole } from './quantities';

export const CALIBRATED: readonly string[] = ['sm_90a']; // as cute_lab/targets.py has it, which a test compares

export function isCalibrated(report: TargetReport): boolean {
  return CALIBRATED.includes(report.target);
}

/** Do the estimates of two runs differ by more than their error? Null where that error is not known. */
export function areApart(a: TargetReport, b: TargetReport): boolean | null {
  const [low, high] = [Math.min(a.cost ?? 0, b.cost ?? 0), Math.max(a.cost ?? 0, b.cost ?? 0)];
  return isCalibrated(a) && isCalibrated(b) ? low * (1 + BAND) < high * (1 - BAND) : null;
}

export function aboutCost(t: Translate): string[] {
  return [
    t.__('The cost is an estimate in scheduler cycles per tile, good to ±10 % on Hopper and not calibrated on Blackwell.'),
    t.__('It ranks variants on one target; bands that overlap are no difference. It is no speed: measure that on the GPU.')
  ];
}

export function figures(t: Translate): [string, (r: TargetReport) => number][] {
  return [
    [t.__('registers per thread'), r => r.registers],
    [t.__('stack, bytes'), r => r.stack_bytes],
    [t.__('spilled stores'), r => r.spill_stores],
    [t.__('spilled loads'), r => r.spill_loads],
    [t.__('instructions'), r => r.instructions]
  ];
}

export function isCompiled(report: TargetReport): boolean {
  return report.status === 'compiled';
}

export function costWords(t: Translate, report: TargetReport): string {
  if (report.cost === null) {
    return '–';
  }
  const [low, middle, high] = [1 - BAND, 1, 1 + BAND].map(factor => whole((report.cost as number) * factor));
  return isCalibrated(report) ? `${middle} (${low} to ${high})` : `${middle} (${t.__('not calibrated')})`;
}

export function timeWords(t: Translate, report: TargetReport): string {
  return `${short(report.seconds)} s${report.cached ? t.__(', cached') : ''}`;
}

/** The busiest first, of the first target, then what only others use: a notebook's file has lost the order of names. */
export function pipes(reports: readonly TargetReport[]): string[] {
  return [...new Set(reports.flatMap(r => Object.entries(r.mix).sort((a, b) => b[1] - a[1]).map(([pipe]) => pipe)))];
}

export function mixOf(report: TargetReport, pipe: string): number {
  return Object.hasOwn(report.mix, pipe) ? (report.mix[pipe] as number) : 0;
}

/** The whole as one table, as the saved notebook has it. */
export function targetBlocks(t: Translate, record: CuteRecord): Block[] {
  const reports = record.targets;
  const each = (show: (r: TargetReport) => string): string[] => reports.map(r => (isCompiled(r) ? show(r) : '–'));
  const rows = [[t.__('result'), ...reports.map(r => (isCompiled(r) ? t.__('✔ compiled') : `⊘ ${r.status}`))]];
  if (reports.some(isCompiled)) {
    rows.push(...figures(t).map(([name, of]) => [name, ...each(r => number(of(r)))]));
    rows.push(...pipes(reports).map(pipe => [t.__('in the main loop: %1', pipe), ...each(r => number(mixOf(r, pipe)))]));
    if (reports.some(r => r.cost !== null)) {
      rows.push([t.__('estimated cost'), ...reports.map(r => costWords(t, r))]);
    }
    rows.push([t.__('compile time'), ...each(r => timeWords(t, r))]);
  }
  const found = [table(['', ...reports.map(r => column(r, reports))], rows, reports.length)];
  if (reports.some(r => r.cost !== null)) {
    found.push(lines(...aboutCost(t)));
  }
  return [...found, ...reports.flatMap(r => adviceBlocks(t, r, column(r, reports)))];
}

function adviceBlocks(t: Translate, report: TargetReport, title: string): Block[] {
  if (!report.advice.length && isCompiled(report)) {
    return [];
  }
  const said = [...(isCompiled(report) ? [] : [`⊘ ${report.reason}`]), ...report.advice.map(note => noteWords(t, note))];
  const fixes = report.advice.filter(note => note.fix.includes('\n')).map(note => code(note.fix, 'python'));
  return [head(title), lines(...said), ...fixes];
}

/** One entry per line: a compiler reports each generated line that no line of the cell asked for on its own. */
export function byLine(report: TargetReport): Map<number, LineCost> {
  const found = new Map<number, LineCost>();
  for (const cost of report.line_cost) {
    const before = found.get(cost.line);
    const sums = new Map<string, number>(Object.entries(before?.by_pipe ?? {}));
    for (const [pipe, n] of Object.entries(cost.by_pipe)) {
      sums.set(pipe, (sums.get(pipe) ?? 0) + n);
    }
    found.set(cost.line, {
      line: cost.line,
      instructions: (before?.instructions ?? 0) + cost.instructions,
      share: (before?.share ?? 0) + cost.share,
      by_pipe: Object.fromEntries([...sums].filter(([, n]) => n > 0))
    });
  }
  return found;
}

export function mixWords(cost: LineCost): string {
  const sorted = Object.entries(cost.by_pipe).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return `${number(cost.instructions)}${sorted.length ? ` (${sorted.map(([pipe, n]) => `${n} ${pipe}`).join(', ')})` : ''}`;
}

export function shareWords(cost: LineCost): string {
  return percent(rounded(cost.share, 3));
}

export function aboutLines(t: Translate): string {
  return t.__('Shares are of the estimated cycles that the mod takes in the main loop; instructions are per tile.');
}

export interface CostTable {
  readonly reports: readonly TargetReport[];
  readonly rows: readonly { line: number; costs: readonly (LineCost | null)[] }[];
}

export function costTable(record: CuteRecord): CostTable {
  const reports = record.targets.filter(r => r.line_cost.length);
  const tables = reports.map(byLine);
  const used = [...new Set(tables.flatMap(one => [...one.keys()]))].sort((a, b) => Number(a === 0) - Number(b === 0) || a - b);
  return { reports, rows: used.map(line => ({ line, costs: tables.map(one => one.get(line) ?? null) })) };
}

export function lineBlocks(t: Translate, record: CuteRecord): Block[] {
  const { reports, rows } = costTable(record);
  const cell = cellLines(record);
  const shown = rows.map(({ line, costs }): Words[] => [
    line ? String(line) : '',
    line ? { code: (cell.get(line) ?? '').trimEnd() } : t.__('(from no line of yours)'),
    ...costs.flatMap(cost => (cost ? [`${bar(cost.share, 8)} ${shareWords(cost)}`.trim().replace(/ /g, '\u00a0'), mixWords(cost)] : ['', '']))
  ]);
  const titles = [t.__('line'), t.__('your code'), ...reports.flatMap(r => [column(r, reports), t.__('instructions')])];
  return [table(titles, shown), lines(aboutLines(t))];
}
