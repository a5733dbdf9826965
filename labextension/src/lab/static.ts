/** What can be said about a cell without a kernel. Never more than what is sure: the kernel's own diagnosis replaces it. */

import type { Translate } from '../core/i18n';
import { magicOf, meant, OPTIONS, words } from './options';
import type { Edit, Finding } from './protocol';
import { code, functions, places, unbalanced } from './python';
import type { Function } from './python';
import { branches } from './static_branches';

const SIGNATURES: Readonly<Record<string, string>> = {
  score_mod: '(score, b, h, q_idx, kv_idx)',
  mask_mod: '(b, h, q_idx, kv_idx)'
};
const TEMPLATE = '\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return score\n';

/** Makes findings from offsets into the cell's text. */
export class Finder {
  readonly found: Finding[] = [];
  private readonly place;

  constructor(
    readonly text: string,
    readonly trans: Translate
  ) {
    this.place = places(text);
  }

  edit(from: number, to: number, text: string): Edit {
    const [start, end] = [this.place(from), this.place(to)];
    return { line: start.line, column: start.column, end_line: end.line, end_column: end.column, text };
  }

  add(from: number, to: number, what: string, why = '', fixes: Finding['fixes'] = []): void {
    const { text: _, ...range } = this.edit(from, Math.max(to, from + 1), '');
    this.found.push({ ...range, severity: 'error', message: why ? `${what}\n${why}` : what, hint: '', fixes, source: 'static' });
  }
}

export function check(text: string, trans: Translate): Finding[] {
  const magic = magicOf(text);
  if (magic === null) {
    return [];
  }
  const find = new Finder(text, trans);
  const end = text.includes('\n') ? text.indexOf('\n') : text.length;
  const blanked = ' '.repeat(end) + code(text.slice(end));
  if (magic === 'cute_attention') {
    options(find, text.slice(0, end));
  }
  const bracket = unbalanced(blanked);
  if (bracket) {
    const why = {
      unclosed: trans.__("'%1' is never closed", bracket.letter),
      unopened: trans.__("'%1' closes nothing", bracket.letter),
      mismatch: trans.__("'%1' does not fit the bracket that is open here", bracket.letter)
    };
    find.add(bracket.at, bracket.at + 1, why[bracket.why]);
    return find.found; // functions can't be told apart in such a text
  }
  const defined = functions(blanked);
  if (magic === 'cute_attention') {
    const mods = defined.filter(({ name }) => name in SIGNATURES);
    if (!mods.length && !/--help\b/.test(text.slice(0, end)) && !/\b(score_mod|mask_mod)\b\s*(=|,|$)|\bimport\b.*\*/m.test(blanked)) {
      const fix = { title: trans.__('Add a score_mod'), edits: [find.edit(text.length, text.length, TEMPLATE)] };
      const hint = trans.__('The cell must define at least one of the two functions, at its top level.');
      find.add(0, magic.length + 2, trans.__('no score_mod and no mask_mod is defined'), hint, [fix]);
    }
    mods.forEach(mod => arity(find, mod));
    mods.forEach(mod => branches(find, blanked, mod));
  }
  return find.found;
}

function options(find: Finder, line: string): void {
  const { trans } = find;
  for (const word of words(line)) {
    const [flag = ''] = word.text.split('=', 1);
    if (!flag.startsWith('--') || OPTIONS.some(option => option.flag === flag)) {
      continue;
    }
    const guess = meant(flag);
    const to = word.from + flag.length;
    const fixes = guess ? [{ title: trans.__('Write %1', guess), edits: [find.edit(word.from, to, guess)] }] : [];
    const message = guess ? trans.__('unknown option %1 (did you mean %2?)', flag, guess) : trans.__('unknown option %1', flag);
    find.add(word.from, to, message, trans.__('Options: %1', OPTIONS.map(option => option.flag).join(' ')), fixes);
  }
}

function arity(find: Finder, mod: Function): void {
  const { trans } = find;
  const wanted = SIGNATURES[mod.name] ?? '';
  const names = mod.parameters.filter(name => name !== '/' && name !== '*');
  const required = names.filter(name => !name.includes('=') && !name.startsWith('*'));
  const most = names.some(name => name.startsWith('*')) ? Infinity : names.length;
  const n = wanted.split(',').length;
  if (required.length > n || most < n) {
    const fix = { title: trans.__('Write %1%2', mod.name, wanted), edits: [find.edit(mod.open, mod.close, wanted.slice(1, -1))] };
    const message = trans._n('%3 takes %2, this function takes %1 parameter', '%3 takes %2, this function takes %1 parameters', names.length, wanted, mod.name);
    find.add(mod.open, mod.close, message, trans.__('FlexAttention calls a %1 with %2 values.', mod.name, n), [fix]);
  }
}
