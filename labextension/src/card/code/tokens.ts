/** Colours of code: a line -> pieces with a kind. A small tokenizer for what a record holds, no parser. */

export type Language = 'python' | 'ir' | 'ptx' | 'sass' | 'text';
export type Kind = 'plain' | 'comment' | 'string' | 'number' | 'keyword' | 'name' | 'register' | 'label' | 'operator';

export interface Piece {
  readonly text: string;
  readonly kind: Kind;
}

const KEYWORDS = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for from global if import in is ' +
    'lambda nonlocal not or pass raise return try while with yield'
  ).split(' ')
);
const NUMBER = String.raw`(?:0[xX][\da-fA-F_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)`;
const STRING = String.raw`[rbfuRBFU]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`;

function rule(...parts: readonly (readonly [Kind, string])[]): { expression: RegExp; kinds: readonly Kind[] } {
  return { expression: new RegExp(parts.map(([, source]) => `(${source})`).join('|'), 'gu'), kinds: parts.map(([kind]) => kind) };
}

const RULES: Readonly<Record<Exclude<Language, 'text'>, ReturnType<typeof rule>>> = {
  python: rule(
    ['comment', '#.*'],
    ['string', STRING],
    ['label', String.raw`@[\w.]+`],
    ['number', String.raw`\b${NUMBER}`],
    ['name', String.raw`(?<=\b(?:def|class)\s+)\w+|\b[\p{L}_]\w*(?=\()`],
    ['plain', String.raw`[\p{L}_]\w*`],
    ['operator', String.raw`[-+*/%=<>!&|^~@]+`]
  ),
  ir: rule(
    ['comment', '#.*'],
    ['register', String.raw`%[\w.]+`],
    ['keyword', String.raw`\b(?:return|table|scalar)\b`],
    ['label', String.raw`(?<=[:>]\s)[a-z]+\d+\b`],
    ['number', String.raw`(?<![\w%])-?${NUMBER}`],
    ['name', String.raw`\b[\p{L}_]\w*(?=[(\[])`],
    ['plain', String.raw`[\p{L}_]\w*`]
  ),
  ptx: rule(
    ['comment', String.raw`//.*|/\*.*?\*/`],
    ['string', STRING],
    ['label', String.raw`^\s*[\w$]+:|\$[\w$]+`],
    ['register', String.raw`%[\w.]+`],
    ['keyword', String.raw`(?<![\w.])\.[a-z][\w]*`],
    ['number', String.raw`(?<![\w.])-?(?:0[fFdD][\da-fA-F]+|${NUMBER})`],
    ['name', String.raw`(?<=^\s*(?:@!?%?\w+\s+)?)[a-z][\w.:]*`],
    ['plain', String.raw`[A-Za-z_]\w*`]
  ),
  sass: rule(
    ['comment', String.raw`//.*|/\*.*?\*/`],
    ['label', '^\\s*\\.[\\w$.]+:?|`\\([^)]*\\)'],
    ['register', String.raw`(?<![\w.])[-~!|]?(?:U?R(?:\d+|Z)|U?P(?:\d|T)|SR_[\w.]+|B\d+)(?:\.\w+)*`],
    ['number', String.raw`(?<![\w.])-?(?:0x[\da-f]+|${NUMBER})\b`],
    ['name', String.raw`(?<=^\s*(?:/\*[\da-f]+\*/\s*)?(?:@!?U?P(?:\d|T)\s+)?)[A-Z][A-Z\d_]*(?:\.[\w.]+)?`],
    ['keyword', String.raw`\bc\[[^\]]*\]\[[^\]]*\]|desc\[[^\]]*\]`],
    ['plain', String.raw`[A-Za-z_]\w*`]
  )
};

export const LONGEST = 2_000; // characters of a line that are coloured and drawn

/** `open`: the line begins inside of a string of three quotes (Python). */
export function pieces(line: string, language: Language, open = ''): Piece[] {
  if (language === 'text' || line.length > LONGEST) {
    return line ? [{ text: line, kind: 'plain' }] : [];
  }
  const found: Piece[] = [];
  const add = (text: string, kind: Kind): void => {
    const last = found[found.length - 1];
    if (last && last.kind === kind) {
      found[found.length - 1] = { text: last.text + text, kind };
    } else if (text) {
      found.push({ text, kind });
    }
  };
  let at = 0;
  let quote = open;
  while (at < line.length || quote) {
    if (quote) {
      const end = line.indexOf(quote, at);
      if (end < 0) {
        add(line.slice(at), 'string');
        return found;
      }
      add(line.slice(at, end + 3), 'string');
      at = end + 3;
      quote = '';
      continue;
    }
    const next = language === 'python' ? opening(line, at) : null;
    const until = next ? next.at : line.length;
    plainPieces(line.slice(0, until), at, language, add);
    at = until;
    if (next) {
      add(line.slice(at, at + 3), 'string');
      at += 3;
      quote = next.quote;
    }
  }
  return found;
}

function plainPieces(line: string, from: number, language: Exclude<Language, 'text'>, add: (text: string, kind: Kind) => void): void {
  const { expression, kinds } = RULES[language];
  let at = from;
  expression.lastIndex = from;
  for (let match = expression.exec(line); match; match = expression.exec(line)) {
    if (!match[0]) {
      expression.lastIndex += 1;
      continue;
    }
    add(line.slice(at, match.index), 'plain');
    const which = match.findIndex((group, i) => i > 0 && group !== undefined) - 1;
    const kind = kinds[which] ?? 'plain';
    add(match[0], language === 'python' && kind !== 'string' && kind !== 'comment' && KEYWORDS.has(match[0]) ? 'keyword' : kind);
    at = match.index + match[0].length;
  }
  add(line.slice(at), 'plain');
}

/** The next string of three quotes that begins in this line, outside of comments and other strings. */
function opening(line: string, from: number): { at: number; quote: string } | null {
  const expression = /#|"""|'''|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g;
  expression.lastIndex = from;
  const match = expression.exec(line);
  if (!match || match[0] === '#') {
    return null;
  }
  return match[0] === '"""' || match[0] === "'''" ? { at: match.index, quote: match[0] } : opening(line, match.index + match[0].length);
}

/** For each line the quotes of the string that it begins in, or ''. */
export function openings(lines: readonly string[]): string[] {
  const found: string[] = [];
  let quote = '';
  for (const line of lines) {
    found.push(quote);
    let at = 0;
    if (line.length > LONGEST) {
      continue;
    }
    for (;;) {
      if (quote) {
        const end = line.indexOf(quote, at);
        if (end < 0) {
          break;
        }
        at = end + 3;
        quote = '';
      }
      const next = opening(line, at);
      if (!next) {
        break;
      }
      at = next.at + 3;
      quote = next.quote;
    }
  }
  return found;
}

/** The kinds of a Python text's tokens, to tell code from a sentence: 'open' at the end where a bracket or string stays open. */
export function words(text: string): ('word' | 'keyword' | 'operator' | 'open')[] {
  const found: ('word' | 'keyword' | 'operator' | 'open')[] = [];
  const closing: string[] = [];
  const pairs: Record<string, string> = { '(': ')', '[': ']', '{': '}' };
  for (const [token] of text.matchAll(new RegExp(String.raw`#.*|${STRING}|[\p{L}_][\w]*|${NUMBER}|\S`, 'gu'))) {
    if (token.startsWith('#')) {
      break;
    }
    if (Object.hasOwn(pairs, token)) {
      closing.push(pairs[token] as string);
    } else if (/^[)\]}]$/.test(token) && closing.pop() !== token) {
      return [...found, 'open'];
    }
    const word = /^[\p{L}_\d.'"]/u.test(token) && token !== '.';
    found.push(word ? (KEYWORDS.has(token) ? 'keyword' : 'word') : 'operator');
    if (/^["'?$!\u2018-\u201d]$/.test(token) && token !== '!') {
      return [...found, 'open'];
    }
  }
  return closing.length ? [...found, 'open'] : found;
}
