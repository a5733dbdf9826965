/** The ops of cute_lab/ops that are the same here as in torch, bit for bit. The others (exp, tanh, pow…) are a kernel's. */

import { bitsOf, even, kindOf, lightest, NotExact, ofBits, storage, strides } from './values';
import type { Data, Value } from './values';

type F = (a: number, b: number, c: number) => number;
type Big = (a: bigint, b: bigint) => bigint | boolean;

interface Op {
  readonly arity: number;
  /** b, i, l, f: bool, up to 32 bits, 64 bits, floats; what it means on each of them. */
  readonly b?: F;
  readonly i?: F;
  readonly l?: F;
  readonly f?: F;
  readonly big?: Big;
  /** Its result is a bool. */
  readonly truth?: true;
  /** The first operand is a bool that chooses. */
  readonly pick?: true;
  /** The second operand must not be 0. */
  readonly divides?: true;
}

class Wide extends Error {} // beyond doubles: again with 64 bits

const small = (a: number, b: number): boolean => (a | 0) === a && (b | 0) === b;
const bits = (f: F): F => (a, b, c) => {
  if (!small(a, b)) {
    throw new Wide();
  }
  return f(a, b, c);
};
const floorMod: F = (a, b) => {
  const r = a % b;
  return r !== 0 && r < 0 !== b < 0 ? r + b : r;
};
const floorDiv: F = (a, b) => {
  const r = a % b;
  return (a - r) / b - Number(r !== 0 && r < 0 !== b < 0);
};
const bigMod = (a: bigint, b: bigint): bigint => {
  const r = a % b;
  return r !== 0n && r < 0n !== b < 0n ? r + b : r;
};
const compare = (f: (a: number, b: number) => boolean, big: Big): Op => ({
  arity: 2,
  truth: true,
  i: (a, b) => Number(f(a, b)),
  l: (a, b) => Number(f(a, b)),
  f: (a, b) => Number(f(a, b)),
  big
});
const same = (f: F, big: Big, arity = 2): Op => ({ arity, i: f, l: f, f, big });
const float = (f: F, arity = 1): Op => ({ arity, f });
const test = (f: (a: number) => boolean): Op => ({ arity: 1, truth: true, f: a => Number(f(a)) });
const bitwise = (f: F, big: Big): Op => ({ arity: 2, b: f, i: f, l: bits(f), big });
const count = (s: bigint): bigint => (s < 0n || s > 63n ? 64n : s);

const OPS: Record<string, Op> = {
  add: same((a, b) => a + b, (a, b) => a + b),
  sub: same((a, b) => a - b, (a, b) => a - b),
  mul: { arity: 2, i: (a, b) => Math.imul(a, b), l: (a, b) => a * b, f: (a, b) => a * b, big: (a, b) => a * b },
  div: float((a, b) => a / b, 2),
  floordiv: { arity: 2, divides: true, i: floorDiv, l: floorDiv, big: (a, b) => (a - bigMod(a, b)) / b },
  mod: { arity: 2, divides: true, i: floorMod, l: floorMod, big: bigMod },
  rem: { arity: 2, divides: true, i: (a, b) => a % b, l: (a, b) => a % b, big: (a, b) => a % b },
  fmod: float((a, b) => a % b, 2),
  neg: { arity: 1, i: a => -a, l: a => -a, f: a => -a, big: a => -a },
  abs: same(a => Math.abs(a), a => (a < 0n ? -a : a), 1),
  minimum: same((a, b) => (a !== a ? a : b !== b ? b : a < b ? a : b), (a, b) => (a < b ? a : b)),
  maximum: same((a, b) => (a !== a ? a : b !== b ? b : a > b ? a : b), (a, b) => (a > b ? a : b)),
  where: { arity: 3, pick: true, b: (p, a, b) => (p ? a : b), i: (p, a, b) => (p ? a : b), l: (p, a, b) => (p ? a : b), f: (p, a, b) => (p ? a : b) },
  eq: { ...compare((a, b) => a === b, (a, b) => a === b), b: (a, b) => Number(a === b) },
  ne: { ...compare((a, b) => a !== b, (a, b) => a !== b), b: (a, b) => Number(a !== b) },
  lt: compare((a, b) => a < b, (a, b) => a < b),
  le: compare((a, b) => a <= b, (a, b) => a <= b),
  gt: compare((a, b) => a > b, (a, b) => a > b),
  ge: compare((a, b) => a >= b, (a, b) => a >= b),
  and: bitwise((a, b) => a & b, (a, b) => a & b),
  or: bitwise((a, b) => a | b, (a, b) => a | b),
  xor: bitwise((a, b) => a ^ b, (a, b) => a ^ b),
  not: { arity: 1, b: a => Number(!a), i: a => ~a, l: a => -1 - a, big: a => ~a },
  shl: {
    arity: 2,
    i: (a, s) => (s < 0 || s > 31 ? 0 : a << s),
    l: (a, s) => (s < 0 || s > 63 ? 0 : a * 2 ** s),
    big: (a, s) => a << count(s)
  },
  shr: {
    arity: 2,
    i: (a, s) => a >> (s < 0 || s > 31 ? 31 : s),
    l: (a, s) => Math.floor(a / 2 ** (s < 0 || s > 63 ? 63 : s)),
    big: (a, s) => a >> count(s)
  },
  reciprocal: float(a => 1 / a),
  floor: float(a => Math.floor(a)),
  ceil: float(a => Math.ceil(a)),
  trunc: float(a => Math.trunc(a)),
  round: float(even),
  copysign: float((a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a)), 2),
  isnan: test(a => a !== a),
  isinf: test(a => a === Infinity || a === -Infinity),
  isfinite: test(a => Number.isFinite(a)),
  bitcast: { arity: 1, i: a => ofBits(a), f: a => bitsOf(a) }
};

export function opNamed(name: string): Op | null {
  return Object.hasOwn(OPS, name) ? (OPS[name] as Op) : null;
}

function meaning(op: Op, dtype: string): F | undefined {
  const kind = kindOf(dtype);
  return kind === 'bool' ? op.b : kind === 'float' ? op.f : kind === 'int' ? (dtype === 'i64' ? op.l : op.i) : undefined;
}

/** Does it take these operands, and give that? */
export function typed(op: Op, dtypes: readonly string[], result: string): boolean {
  const rest = op.pick ? dtypes.slice(1) : dtypes;
  const [first] = rest;
  if (dtypes.length !== op.arity || first === undefined || rest.some(d => d !== first) || (op.pick && dtypes[0] !== 'bool')) {
    return false;
  }
  if (op === OPS['bitcast']) {
    return (first === 'f32' && result === 'i32') || (first === 'i32' && result === 'f32');
  }
  const computed = ['bool', 'i32', 'i64', 'f32', 'f64'].includes(first); // narrower ones are only stored
  return computed && meaning(op, first) !== undefined && result === (op.truth ? 'bool' : first);
}

export function apply(op: Op, args: readonly Value[], dtype: string, rows: number, columns: number): Value {
  const operands = args[args.length - 1] as Value;
  if (op.divides && (args[1] as Value).data.some((x: number | bigint) => Number(x) === 0)) {
    throw new NotExact('a division by zero');
  }
  const down = args.some(v => v.rows);
  const across = args.some(v => v.columns);
  const data = loop(op, args, operands.dtype, dtype, down ? rows : 1, across ? columns : 1, columns);
  return { dtype, rows: down, columns: across, data };
}

function loop(op: Op, args: readonly Value[], from: string, dtype: string, lines: number, width: number, columns: number): Data {
  if (!args.some(v => v.data instanceof BigInt64Array)) {
    try {
      return numbers(meaning(op, from) as F, args, dtype, lines, width, columns);
    } catch (error) {
      if (!(error instanceof Wide)) {
        throw error;
      }
    }
  }
  return wide(op, args, dtype, lines, width, columns);
}

function numbers(f: F, args: readonly Value[], dtype: string, lines: number, width: number, columns: number): Data {
  const out = storage(dtype, lines * width);
  const [x, y, z] = args as [Value, Value?, Value?];
  const [a, b, c] = [x.data, (y ?? x).data, (z ?? x).data] as [Float64Array, Float64Array, Float64Array];
  const [[ai, aj], [bi, bj], [ci, cj]] = [strides(x, columns), strides(y ?? x, columns), strides(z ?? x, columns)];
  const exact = dtype === 'i64';
  for (let i = 0, n = 0; i < lines; i++) {
    for (let j = 0; j < width; j++, n++) {
      const r = f(a[i * ai + j * aj] as number, b[i * bi + j * bj] as number, c[i * ci + j * cj] as number);
      if (exact) {
        if (r > Number.MAX_SAFE_INTEGER || r < Number.MIN_SAFE_INTEGER) {
          throw new Wide();
        }
        out[n] = r + 0; // no -0 among integers
      } else {
        out[n] = r; // the array rounds to float32, or wraps to 32 bits
      }
    }
  }
  return out;
}

function wide(op: Op, args: readonly Value[], dtype: string, lines: number, width: number, columns: number): Data {
  const { big } = op;
  if (!big && !op.pick) {
    throw new NotExact('not with 64 bits');
  }
  const out = new BigInt64Array(lines * width); // it wraps
  const steps = args.map(v => strides(v, columns));
  const get = (k: number, i: number, j: number): bigint => {
    const [line, step] = steps[k] as [number, number];
    return BigInt((args[k] as Value).data[i * line + j * step] as number);
  };
  for (let i = 0, n = 0; i < lines; i++) {
    for (let j = 0; j < width; j++, n++) {
      const r = big ? big(get(0, i, j), op.arity > 1 ? get(1, i, j) : 0n) : get(get(0, i, j) ? 1 : 2, i, j);
      out[n] = BigInt(r);
    }
  }
  return dtype === 'i64' ? lightest(out) : Uint8Array.from(out, Number);
}
