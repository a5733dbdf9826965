/** Just enough of Python's surface for help without a kernel: where text is code, and where brackets pair. */

export interface Bracket {
  readonly at: number;
  readonly letter: string;
  readonly why: 'unclosed' | 'unopened' | 'mismatch';
}

const CLOSES: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
const STRING = /^[rbfu]{0,2}("""|'''|"|')/i;

/** The text with every letter of strings and comments blanked, so that columns and lines stay. */
export function code(text: string): string {
  const out = text.split('');
  const blank = (from: number, to: number): void => {
    for (let i = from; i < Math.min(to, out.length); i++) {
      if (out[i] !== '\n') {
        out[i] = ' ';
      }
    }
  };
  for (let i = 0; i < text.length; ) {
    if (text[i] === '#') {
      const end = text.indexOf('\n', i);
      blank(i, end < 0 ? text.length : end);
      i = end < 0 ? text.length : end;
      continue;
    }
    const quote = /\w/.test(text[i - 1] ?? '') ? null : STRING.exec(text.slice(i, i + 6));
    const plain = quote ?? (text[i] === '"' || text[i] === "'" ? STRING.exec(text.slice(i, i + 4)) : null);
    if (plain) {
      const end = closing(text, i + plain[0].length, plain[1] ?? '"');
      blank(i, end);
      i = end;
      continue;
    }
    i++;
  }
  return out.join('');
}

function closing(text: string, from: number, quote: string): number {
  for (let i = from; i < text.length; i++) {
    if (text[i] === '\\') {
      i++;
    } else if (text.startsWith(quote, i)) {
      return i + quote.length;
    } else if (quote.length === 1 && text[i] === '\n') {
      return i; // an open string ends with its line
    }
  }
  return text.length;
}

/** The first bracket that has no partner. `text` is blanked. */
export function unbalanced(text: string): Bracket | null {
  const open: { letter: string; at: number }[] = [];
  for (let i = 0; i < text.length; i++) {
    const letter = text[i] ?? '';
    if ('([{'.includes(letter)) {
      open.push({ letter, at: i });
    } else if (letter in CLOSES) {
      const last = open.pop();
      if (!last) {
        return { at: i, letter, why: 'unopened' };
      }
      if (last.letter !== CLOSES[letter]) {
        return { at: i, letter, why: 'mismatch' };
      }
    }
  }
  const last = open.pop();
  return last ? { at: last.at, letter: last.letter, why: 'unclosed' } : null;
}

/** The end of the bracket that opens at `at`, exclusive, or -1. `text` is blanked. */
export function pair(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const letter = text[i] ?? '';
    depth += '([{'.includes(letter) ? 1 : ')]}'.includes(letter) ? -1 : 0;
    if (depth === 0) {
      return i + 1;
    }
  }
  return -1;
}

/** Parts of blanked text between commas outside of brackets. */
export function commas(text: string): string[] {
  const out = [''];
  let depth = 0;
  for (const letter of text) {
    depth += '([{'.includes(letter) ? 1 : ')]}'.includes(letter) ? -1 : 0;
    if (letter === ',' && depth === 0) {
      out.push('');
    } else {
      out[out.length - 1] += letter;
    }
  }
  return out.map(part => part.trim()).filter(part => part !== '');
}

export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Offsets -> editor lines from 1 and columns from 0. */
export function places(text: string): (offset: number) => Place {
  const starts = [0];
  for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1)) {
    starts.push(i + 1);
  }
  return offset => {
    let low = 0;
    for (let high = starts.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) };
  };
}

export interface Function {
  readonly name: string;
  readonly nameAt: number;
  readonly open: number; // of the parameter list, inside of its brackets
  readonly close: number;
  readonly parameters: readonly string[];
  readonly body: number;
  readonly end: number;
}

/** Functions at the top level. `text` is blanked. */
export function functions(text: string): Function[] {
  const out: Function[] = [];
  for (const found of text.matchAll(/^def[ \t]+(\w+)[ \t]*\(/gm)) {
    const open = found.index + found[0].length;
    const close = pair(text, open - 1) - 1;
    if (close < 0) {
      continue;
    }
    const colon = text.indexOf(':', close);
    const body = colon < 0 ? text.length : colon + 1;
    const next = /^[^\s)\]}]/m.exec(text.slice(text.indexOf('\n', body) < 0 ? text.length : text.indexOf('\n', body) + 1));
    const after = text.indexOf('\n', body) + 1;
    out.push({
      name: found[1] ?? '',
      nameAt: found.index + found[0].indexOf(found[1] ?? ''),
      open,
      close,
      parameters: commas(text.slice(open, close)),
      body,
      end: next && after > 0 ? after + next.index : text.length
    });
  }
  return out;
}
