/** Python `if`, `and`, `or`, `not` on an index: they can't be lowered, and often the tensor form can be written for the user. */

import type { Fix } from './protocol';
import type { Function } from './python';
import type { Finder } from './static';

const WORD = /\b(if|elif|while|and|or|not)\b/g;

export function branches(find: Finder, blanked: string, mod: Function): void {
  const names = mod.parameters.map(name => /^\w+/.exec(name)?.[0] ?? '').filter(name => name !== '');
  if (!names.length) {
    return;
  }
  const index = new RegExp(`\\b(?:${names.join('|')})\\b`);
  const { trans } = find;
  for (const line of lines(blanked, mod)) {
    for (const found of line.text.matchAll(WORD)) {
      const word = found[1] ?? '';
      const from = line.from + found.index;
      const around = operands(line.text, found.index, word);
      const name = index.exec(around)?.[0];
      if (name === undefined || (word === 'not' && /\bnot\s+in\b|\bis\s+not\b/.test(line.text)) || /\bis\s+(not\s+)?None\b/.test(around)) {
        continue;
      }
      const branching = word === 'if' || word === 'elif' || word === 'while';
      const message = trans.__("a Python `%1` on `%2` can't be lowered", word, name);
      const hint = branching
        ? trans.__('The condition has a different value in every cell of the score matrix. Use torch.where(condition, a, b).')
        : trans.__('Use & for and, | for or, ~ for not, with brackets around each side.');
      const fix = branching ? whereFix(find, line, blanked, word) : operatorFix(find, line, found.index, word);
      find.add(from, from + word.length + (branching ? around.trimEnd().length : 0), message, hint, fix ? [fix] : []);
      if (branching) {
        break; // its condition is said to be wrong already
      }
    }
  }
}

interface Line {
  readonly text: string; // blanked
  readonly from: number;
}

function lines(blanked: string, mod: Function): Line[] {
  const out: Line[] = [];
  let from = mod.body;
  for (const text of blanked.slice(mod.body, mod.end).split('\n')) {
    out.push({ text, from });
    from += text.length + 1;
  }
  return out;
}

/** The text that the word works on. */
function operands(text: string, at: number, word: string): string {
  const after = text.slice(at + word.length);
  if (word === 'and' || word === 'or') {
    return text.slice(0, at).replace(/^\s*(return|if|elif)\b/, '') + after;
  }
  return after.split(word === 'if' && !/^\s*if\b/.test(text) ? /\belse\b/ : /:(?![^([{]*[\])}])/)[0] ?? '';
}

/** `if c:\n return a\nreturn b` and `a if c else b` -> torch.where(c, a, b). */
function whereFix(find: Finder, line: Line, blanked: string, word: string): Fix | null {
  const { text, trans } = { text: find.text, trans: find.trans };
  const title = trans.__('Write torch.where(…)');
  const rest = text.slice(line.from);
  const block = /^([ \t]*)if[ \t]+(.+?):[ \t]*\n([ \t]+)return[ \t]+(.+)\n(?:\1else:[ \t]*\n[ \t]+|\1)return[ \t]+(.+)/.exec(rest);
  if (word === 'if' && block && !blanked.slice(line.from, line.from + block[0].length).includes('#')) {
    const [all, indent = '', condition = '', , yes = '', no = ''] = block;
    if (![condition, yes, no].some(part => /#|\b(and|or|not)\b/.test(part))) {
      return { title, edits: [find.edit(line.from, line.from + all.length, `${indent}return torch.where(${condition}, ${yes.trim()}, ${no.trim()})`)] };
    }
  }
  const inline = /^([ \t]*(?:return[ \t]+|\w+[ \t]*=[ \t]*))([^()\n]+?)[ \t]+if[ \t]+(.+?)[ \t]+else[ \t]+([^()\n]+?)[ \t]*(?=\n|$)/.exec(rest);
  if (word === 'if' && inline && !/\b(and|or|not)\b|#/.test(inline[0])) {
    const [all, head = '', yes = '', condition = '', no = ''] = inline;
    return { title, edits: [find.edit(line.from, line.from + all.length, `${head}torch.where(${condition}, ${yes}, ${no})`)] };
  }
  return null;
}

/** `return a and b` -> `return (a) & (b)`, where the two sides are plain. */
function operatorFix(find: Finder, line: Line, at: number, word: string): Fix | null {
  const source = find.text.slice(line.from, line.from + line.text.length);
  const head = /^[ \t]*(?:return[ \t]+|\w+[ \t]*=(?!=)[ \t]*)/.exec(source)?.[0];
  if (head === undefined || source.includes('#') || [...line.text.matchAll(WORD)].length !== 1) {
    return null;
  }
  const sign = { and: '&', or: '|', not: '~' }[word];
  const [left, right] = [source.slice(head.length, at).trim(), source.slice(at + word.length).trim()];
  if (!sign || !balanced(left) || !balanced(right) || (word === 'not' && left)) {
    return null;
  }
  const written = word === 'not' ? `~${bracketed(right)}` : `${bracketed(left)} ${sign} ${bracketed(right)}`;
  return { title: find.trans.__('Write %1', written), edits: [find.edit(line.from + head.length, line.from + source.length, written)] };
}

function balanced(text: string): boolean {
  let depth = 0;
  for (const letter of text) {
    depth += '([{'.includes(letter) ? 1 : ')]}'.includes(letter) ? -1 : 0;
    if (depth < 0) {
      return false;
    }
  }
  return depth === 0;
}

function bracketed(text: string): string {
  return /^\w+$/.test(text) || (/^\(.*\)$/.test(text) && balanced(text.slice(1, -1))) ? text : `(${text})`;
}
