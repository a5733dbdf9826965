/** A CuteLabError as the notebook shows it -> a finding. The text form is that of cute_lab/errors.py. */

import type { Finding } from './protocol';

// eslint-disable-next-line no-control-regex
const ANSI = /\u001b\[[\d;]*m/g;
const HEAD = /^CuteLabError: (.*?)(?:\s{2,}(cell line (\d+)(?:, columns (\d+)-(\d+))?))?$/;
const PLACE = /^\s+at cell line (\d+)(?:, columns (\d+)-(\d+))?$/;
const QUOTED = /^\s*(\d+) \| (.*)$/;

export interface CellError {
  readonly line: number;
  readonly column: number; // from 1, code points, as in the text
  readonly endColumn: number; // inclusive; 0: the whole line
  readonly message: string; // what, then why on the lines below
  readonly hint: string; // what to write
  readonly quoted: string | null; // the line as it was
}

/** Null where the text is no such error, or has no place in the cell. */
export function read(traceback: string): CellError | null {
  const lines = traceback.replace(ANSI, '').split('\n');
  const start = lines.findIndex(line => HEAD.test(line));
  const head = HEAD.exec(lines[start] ?? '');
  if (!head) {
    return null;
  }
  let at = start + 1;
  let place = head[2] ? [head[3], head[4], head[5]] : null;
  if (!place) {
    const found = PLACE.exec(lines[at] ?? '');
    if (!found) {
      return null;
    }
    place = found.slice(1);
    at++;
  }
  const quoted = QUOTED.exec(lines[at] ?? '')?.[2] ?? null;
  const marked = /^\s*\| (\s*)(\^+)/.exec(lines[at + 1] ?? '');
  const body = lines.slice(quoted === null ? at : at + 2).map(line => line.replace(/^ {2}/, ''));
  const write = body.indexOf('Write');
  const [why, hint] = write < 0 ? [body, []] : [body.slice(0, write), body.slice(write + 1).map(line => line.replace(/^ {4}/, ''))];
  const column = Number(place[1] ?? (marked ? (marked[1] ?? '').length + 1 : 1));
  const endColumn = Number(place[2] ?? (marked ? (marked[1] ?? '').length + (marked[2] ?? '').length : 0));
  return { line: Number(place[0]), column, endColumn, message: [head[1]?.trim() ?? '', ...why].join('\n').trim(), hint: hint.join('\n').trimEnd(), quoted };
}

/** Null where the cell no longer has the line that failed. */
export function finding(error: CellError, cell: string): Finding | null {
  const line = cell.split('\n')[error.line - 1];
  if (line === undefined || (error.quoted !== null && error.quoted.trimEnd() !== line.trimEnd())) {
    return null;
  }
  const points = Array.from(line);
  const units = (n: number): number => points.slice(0, Math.max(0, n)).join('').length;
  const column = units(error.column - 1);
  const end = error.endColumn >= error.column ? units(error.endColumn) : line.length;
  const range = { line: error.line, column, end_line: error.line, end_column: Math.max(end, Math.min(column + 1, line.length)) };
  return { ...range, severity: 'error', message: error.message, hint: error.hint, fixes: [], source: 'trace' };
}
