/** The options of the magic line, for help without a kernel. A test compares them with cute_lab/options.py. */

export interface Option {
  readonly flag: string;
  readonly value: string; // what stands behind it, '' for a switch
  readonly words: string;
  readonly values: readonly string[];
}

const option = (flag: string, value: string, words: string, ...values: string[]): Option => ({ flag, value, words, values });

export const TARGETS = ['sm_90a', 'sm_100a', 'sm_103a', 'sm_120a', 'auto', 'none'] as const;

export const OPTIONS: readonly Option[] = [
  option('--B', 'N', 'batch entries'),
  option('--H', 'N', 'query heads'),
  option('--Hkv', 'N', 'heads of k and v'),
  option('--Sq', 'N', 'queries'),
  option('--Skv', 'N', 'keys'),
  option('--D', 'N', 'head dimension'),
  option('--dtype', 'NAME', 'of q, k and v', 'bf16', 'fp16'),
  option('--target', 'NAME', 'an architecture to compile for, no GPU needed', ...TARGETS),
  option('--block', 'QxKV', 'sparse block', '128x128', '64x128', '256x128'),
  option('--param', 'NAME=VALUE', 'another value for a number of the cell, or a slider'),
  option('--against', 'LIST', 'what --bench measures it beside'),
  option('--out', 'NAME', 'the variable that gets the Lab'),
  option('--views', 'LIST', 'what to show'),
  option('--backward', '', 'compile the backward kernels too'),
  option('--bench', '', "check and time it on this machine's GPU"),
  option('--fast-math', '', 'fewer instructions, less exact'),
  option('--help', '', 'what the options mean')
];

/** What stands beside a value; the option's own words where there are none. */
const FAMILIES: Readonly<Record<string, string>> = { sm_90a: 'Hopper', sm_100a: 'Blackwell', sm_103a: 'Blackwell Ultra', sm_120a: 'Blackwell RTX', auto: 'Hopper and Blackwell', none: 'nothing is compiled' };

const SYNONYMS: Readonly<Record<string, string>> = {
  batch: '--B', heads: '--H', head: '--H', num_heads: '--H', nheads: '--H', kv_heads: '--Hkv', kvheads: '--Hkv',
  seq: '--Sq', s: '--Sq', seqlen: '--Sq', length: '--Sq', dim: '--D', head_dim: '--D', arch: '--target', gpu: '--target',
  set: '--param', name: '--out', show: '--views'
};

const MAGIC = /^%%(cute_attention|cute_gemm)(?=\s|$)/;

/** The name of the magic that the text starts with. */
export function magicOf(text: string): string | null {
  return MAGIC.exec(text)?.[1] ?? null;
}

export interface Word {
  readonly text: string;
  readonly from: number; // column
  readonly to: number;
}

/** The words of the magic line behind its name, quotes kept together. */
export function words(line: string): Word[] {
  const out: Word[] = [];
  const start = MAGIC.exec(line)?.[0].length ?? 0;
  for (const found of line.slice(start).matchAll(/(?:"[^"]*"?|'[^']*'?|[^\s"'])+/g)) {
    out.push({ text: found[0], from: start + found.index, to: start + found.index + found[0].length });
  }
  return out;
}

/** The flag that is meant, or null. */
export function meant(flag: string): string | null {
  const known = SYNONYMS[flag.replace(/^-+/, '').toLowerCase()];
  if (known) {
    return known;
  }
  const near = OPTIONS.map(({ flag: name }) => ({ name, far: distance(flag.toLowerCase(), name.toLowerCase()) })).sort((a, b) => a.far - b.far)[0];
  return near && near.far <= Math.max(1, Math.floor(flag.length / 3)) ? near.name : null;
}

/** How many letters differ (Levenshtein). */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** What may follow the line up to the cursor, of what the whole line does not have yet: names, what they replace, and words about them. */
export function completeOptions(before: string, line = before): { from: number; matches: { text: string; type: string; detail: string }[] } | null {
  if (!MAGIC.test(before) || !/\s/.test(before)) {
    return null;
  }
  const all = words(before);
  const last = /\s$/.test(before) ? undefined : all.pop();
  const word = last?.text ?? '';
  const [head = '', tail] = word.split('=', 2);
  const flag = tail === undefined ? all.at(-1)?.text : head;
  const taken = OPTIONS.find(({ flag: name, value }) => name === flag && value);
  if (taken) {
    const part = (tail ?? word).split(',').at(-1) ?? '';
    const matches = taken.values.filter(value => value.startsWith(part)).map(text => ({ text, type: 'value', detail: FAMILIES[text] ?? taken.words }));
    return { from: before.length - part.length, matches };
  }
  if (word && !word.startsWith('-')) {
    return null;
  }
  const there = new Set([...all, ...words(line).filter(({ from }) => from >= before.length)].map(({ text }) => text.split('=', 1)[0]));
  const matches = OPTIONS.filter(({ flag: name }) => name.startsWith(word) && (!there.has(name) || name === '--param' || name === '--target'));
  return { from: before.length - word.length, matches: matches.map(({ flag: text, value, words: detail }) => ({ text, type: 'param', detail: value ? `${value} · ${detail}` : detail })) };
}
