/** Values of unknown origin -> typed ones. A decoder throws a Problem that names the place; nothing is guessed. */

export class Problem extends Error {}

export type Decoder<T> = (value: unknown, at: string) => T;

function is(what: string, test: (value: unknown) => boolean): Decoder<never> {
  return (value, at) => {
    if (!test(value)) {
      throw new Problem(`${at} is not ${what}`);
    }
    return value as never;
  };
}

export const string: Decoder<string> = is('a string', v => typeof v === 'string');
export const boolean: Decoder<boolean> = is('true or false', v => typeof v === 'boolean');
export const integer: Decoder<number> = is('an integer', v => Number.isSafeInteger(v));

/** A size or a count; `most` keeps what is allocated from it within bounds. */
export function natural(most = Number.MAX_SAFE_INTEGER): Decoder<number> {
  return is(`an integer from 0 to ${most}`, v => Number.isSafeInteger(v) && (v as number) >= 0 && (v as number) <= most);
}

/** JSON has no inf and nan: they are the strings "inf", "-inf", "nan". */
export const float: Decoder<number> = (value, at) => {
  if (typeof value === 'number') {
    return value;
  }
  const words: Record<string, number> = { inf: Infinity, '-inf': -Infinity, nan: NaN };
  if (typeof value === 'string' && Object.hasOwn(words, value)) {
    return words[value] as number;
  }
  throw new Problem(`${at} is not a number`);
};

export function oneOf<T extends string>(...names: readonly T[]): Decoder<T> {
  return is(`one of ${names.join(', ')}`, v => names.includes(v as T));
}

export function optional<T>(decoder: Decoder<T>): Decoder<T | null> {
  return (value, at) => (value === null || value === undefined ? null : decoder(value, at));
}

export function list<T>(decoder: Decoder<T>, most = 1_000_000): Decoder<T[]> {
  return (value, at) => {
    if (!Array.isArray(value) || value.length > most) {
      throw new Problem(`${at} is not a list of at most ${most}`);
    }
    return value.map((item, i) => decoder(item, `${at}[${i}]`));
  };
}

export function table<T>(decoder: Decoder<T>): Decoder<Record<string, T>> {
  return (value, at) => Object.fromEntries(Object.entries(plain(value, at)).map(([k, v]) => [k, decoder(v, `${at}.${k}`)]));
}

type Decoded<S> = { [K in keyof S]: S[K] extends Decoder<infer T> ? T : never };

/** An object with these fields; fields that a newer writer added are ignored. */
export function object<S extends Record<string, Decoder<unknown>>>(fields: S): Decoder<Decoded<S>> {
  return (value, at) => {
    const from = plain(value, at);
    const found = Object.entries(fields).map(([name, decoder]) => [name, decoder(own(from, name), `${at}.${name}`)]);
    return Object.fromEntries(found) as Decoded<S>;
  };
}

export function own(from: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(from, name) ? from[name] : undefined;
}

export function plain(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Problem(`${at} is not an object`);
  }
  return value as Record<string, unknown>;
}

/** Are two values of JSON equal? NaN equals NaN. */
export function same(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return Object.is(a, b);
  }
  const [left, right] = [Object.entries(a), Object.entries(b)];
  return Array.isArray(a) === Array.isArray(b) && left.length === right.length && left.every(([name, value]) => Object.hasOwn(b, name) && same(value, (b as Record<string, unknown>)[name]));
}
