/** What a view says, before it is drawn: the same blocks as cute_lab/views/_text.py, so that a test can compare them. */

import type { Translate } from '../../core/i18n';

/** Text of the user's, shown as code to its last character. */
export interface Verbatim {
  readonly code: string;
}

/** Prose in which `backticks` mark code, or code. */
export type Words = string | Verbatim;

export type Block =
  | { readonly kind: 'head'; readonly text: string }
  | { readonly kind: 'lines'; readonly lines: readonly string[] }
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly Words[])[]; readonly right: number }
  | { readonly kind: 'code'; readonly text: string; readonly language: string };

export const head = (text: string): Block => ({ kind: 'head', text });
export const lines = (...all: string[]): Block => ({ kind: 'lines', lines: all });
export const code = (text: string, language = ''): Block => ({ kind: 'code', text, language });

/** The last `right` columns are numbers. */
export function table(titles: readonly string[], rows: readonly (readonly Words[])[], right = 0): Block {
  return { kind: 'table', head: titles, rows, right };
}

export type Field = 'source' | 'stages' | 'checks' | 'lines' | 'targets' | 'bench';

const SAID: Readonly<Record<Field, string>> = {
  source: 'No generated code yet. Run the cell: `%%cute_attention` prints the CuTeDSL that it generates.',
  stages: 'No stages were recorded. Run the cell again to record its IR and its FX graph.',
  checks: 'Not checked yet. Run `%1.verify()`: it compares the generated code with your function, point by point.',
  lines: "No cost per line yet: no target was compiled. Run `%1.compile('sm_90a')`; it needs no GPU.",
  targets: "No machine code yet. Run `%1.compile('sm_90a')` or `%1.compile('sm_100a')`: neither needs a GPU.",
  bench: 'Not measured yet. Run `%1.bench()` on a machine with a GPU, or `python -m cute_lab bench` there and load its record.'
};

/** The record's name is the variable that holds the Lab, if it can be one. */
export function variable(name: string): string {
  return /^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(name) ? name : 'lab';
}

export function missing(t: Translate, field: Field, name: string): string {
  return t.__(SAID[field], variable(name));
}
