/** The magic line of a cell with another option. */

export const LOAD = '%load_ext cute_lab';
export const LOADS = /^\s*%(load|reload)_ext\s+cute_lab\b/m;

/** The cell, compiled for the target of the settings where it names none. */
export function withTarget(cell: string, target: string): string {
  const end = cell.includes('\n') ? cell.indexOf('\n') : cell.length;
  const line = cell.slice(0, end);
  const given = target === 'auto' || !line.startsWith('%%cute_') || /\s--target\b/.test(line);
  return given ? cell : `${line.trimEnd()} --target ${target}${cell.slice(end)}`;
}

/** With `--bench`, once. */
export function withBench(cell: string): string {
  const end = cell.includes('\n') ? cell.indexOf('\n') : cell.length;
  const line = cell.slice(0, end);
  return /\s--bench\b/.test(line) ? cell : `${line.trimEnd()} --bench${cell.slice(end)}`;
}
