/** Typed values over a tile of cells, and how they are made: constants, captured tensors, casts. As torch means them, or not at all. */

import { bytes } from '../core/inflate';
import type { CellCode } from '../core/record';

/** The result can't be told exactly here. */
export class NotExact extends Error {}

/** i64 lies in doubles while all of its numbers are safe integers, else in 64-bit ones. f16 and bf16 lie in f32, narrow integers in i32. */
export type Data = Float64Array | Float32Array | Int32Array | Uint8Array | BigInt64Array;

export interface Value {
  readonly dtype: string;
  /** Does it differ from row to row, from column to column? It has an entry for each, row by row. */
  readonly rows: boolean;
  readonly columns: boolean;
  readonly data: Data;
}

const MOST_BYTES = 8 << 20;
const SIZES: Record<string, number> = { bool: 1, u8: 1, i8: 1, i16: 2, i32: 4, i64: 8, f16: 2, bf16: 2, f32: 4, f64: 8 };

export function kindOf(dtype: string): 'bool' | 'int' | 'float' | null {
  return !Object.hasOwn(SIZES, dtype) ? null : dtype === 'bool' ? 'bool' : /^[ui]/.test(dtype) ? 'int' : 'float';
}

export function storage(dtype: string, size: number): Exclude<Data, BigInt64Array> {
  switch (dtype) {
    case 'bool':
    case 'u8':
      return new Uint8Array(size);
    case 'i8':
    case 'i16':
    case 'i32':
      return new Int32Array(size);
    case 'i64':
    case 'f64':
      return new Float64Array(size);
    default:
      return new Float32Array(size);
  }
}

/** How far apart its entries for neighbouring rows and columns lie. */
export function strides(value: Value, columns: number): [number, number] {
  return [value.rows ? (value.columns ? columns : 1) : 0, value.columns ? 1 : 0];
}

/** A constant, or null where it is none of this type. Strings are what JSON can't hold. */
export function literal(from: boolean | number | string, dtype: string): Value | null {
  const kind = kindOf(dtype);
  const one = (data: Data): Value => ({ dtype, rows: false, columns: false, data });
  if (kind === 'bool') {
    return typeof from === 'boolean' ? one(Uint8Array.of(Number(from))) : null;
  }
  if (kind === 'int') {
    if (typeof from === 'string') {
      return dtype === 'i64' && /^-?\d{1,19}$/.test(from) ? one(BigInt64Array.of(BigInt(from))) : null;
    }
    return Number.isSafeInteger(from) ? narrowed(one(Float64Array.of(from as number)), dtype) : null;
  }
  const words: Record<string, number> = { inf: Infinity, '-inf': -Infinity, nan: NaN };
  const number = typeof from === 'string' ? words[from] : from;
  return kind === 'float' && typeof number === 'number' ? cast(one(Float64Array.of(number)), dtype, 'f64') : null;
}

function narrowed(value: Value, dtype: string): Value {
  return cast(value, dtype, 'i64');
}

export interface TableValues {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Data;
}

/** A captured tensor; throws where the data is none. */
export function tableValues(table: CellCode['tables'][number]): TableValues {
  const width = SIZES[table.dtype];
  const count = table.shape.reduce((a, b) => a * b, 1);
  if (width === undefined || !Object.hasOwn(SIZES, table.dtype) || count * width > MOST_BYTES) {
    throw new NotExact('no such table');
  }
  const raw = bytes(table.data, count * width);
  if (raw.length !== count * width) {
    throw new NotExact('the table does not fit its shape');
  }
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const read: Record<string, (at: number) => number> = {
    bool: at => view.getUint8(at),
    u8: at => view.getUint8(at),
    i8: at => view.getInt8(at),
    i16: at => view.getInt16(at, true),
    i32: at => view.getInt32(at, true),
    f16: at => half(view.getUint16(at, true)),
    bf16: at => brain(view.getUint16(at, true)),
    f32: at => view.getFloat32(at, true),
    f64: at => view.getFloat64(at, true)
  };
  if (table.dtype === 'i64') {
    return { dtype: 'i64', shape: table.shape, data: lightest(BigInt64Array.from({ length: count }, (_, i) => view.getBigInt64(8 * i, true))) };
  }
  const data = storage(table.dtype, count);
  const get = read[table.dtype] as (at: number) => number;
  for (let i = 0; i < count; i++) {
    data[i] = get(i * width);
  }
  return { dtype: table.dtype, shape: table.shape, data };
}

/** In doubles where they hold all of it. */
export function lightest(data: BigInt64Array): Float64Array | BigInt64Array {
  const out = Float64Array.from(data, Number);
  return out.every(Number.isSafeInteger) ? out : data;
}

/** table[i, j…]: a negative index counts from the end, as torch's does. */
export function gather(table: TableValues, index: readonly Value[], rows: number, columns: number): Value {
  const down = index.some(v => v.rows);
  const across = index.some(v => v.columns);
  const lines = down ? rows : 1;
  const width = across ? columns : 1;
  const at = new Float64Array(lines * width);
  index.forEach((value, k) => {
    const size = table.shape[k] as number;
    const [line, step] = strides(value, columns);
    for (let i = 0, n = 0; i < lines; i++) {
      for (let j = 0; j < width; j++, n++) {
        const asked = Number(value.data[i * line + j * step]);
        const found = asked < 0 ? asked + size : asked;
        if (!(found >= 0 && found < size)) {
          throw new NotExact('out of bounds');
        }
        at[n] = (at[n] as number) * size + found;
      }
    }
  });
  const big = table.data instanceof BigInt64Array;
  const data: Data = big ? new BigInt64Array(at.length) : storage(table.dtype, at.length);
  for (let n = 0; n < at.length; n++) {
    (data as Float64Array)[n] = table.data[at[n] as number] as number;
  }
  return { dtype: table.dtype, rows: down, columns: across, data };
}

/** torch's `.to(dtype)`; a float that is no number of the integer type has no meaning that one could rely on. */
export function cast(value: Value, dtype: string, from = value.dtype): Value {
  const { rows, columns, data: given } = value;
  const source = kindOf(from);
  const kind = kindOf(dtype);
  if (!kind || !source) {
    throw new NotExact('no such type');
  }
  const whole = given instanceof BigInt64Array;
  if (whole && dtype === 'i64') {
    return value;
  }
  if (whole && kind === 'float' && dtype !== 'f64') {
    throw new NotExact('it would be rounded twice');
  }
  const data = storage(dtype, given.length);
  for (let i = 0; i < given.length; i++) {
    const x = whole ? Number(kind === 'int' ? BigInt.asIntN(32, given[i] as bigint) : given[i]) : (given[i] as number);
    if (kind === 'bool') {
      data[i] = Number(x !== 0);
    } else if (kind === 'int') {
      const t = Math.trunc(x) + 0;
      if (source === 'float' && !inside(t, dtype)) {
        throw new NotExact('beyond the integer type');
      }
      data[i] = dtype === 'i8' ? (t << 24) >> 24 : dtype === 'i16' ? (t << 16) >> 16 : t; // the arrays wrap the rest
    } else {
      data[i] = dtype === 'f16' ? half(halfBits(Math.fround(x))) : dtype === 'bf16' ? brain(brainBits(Math.fround(x))) : x;
    }
  }
  return { dtype, rows, columns, data };
}

function inside(x: number, dtype: string): boolean {
  const bits = dtype === 'i64' ? 54 : 8 * (SIZES[dtype] as number);
  const [low, high] = dtype === 'u8' ? [0, 255] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
  return x >= low && x <= high; // NaN is not
}

const scratch = new DataView(new ArrayBuffer(8));

export function bitsOf(x: number): number {
  scratch.setFloat32(0, x);
  return scratch.getInt32(0);
}

export function ofBits(x: number): number {
  scratch.setInt32(0, x);
  return scratch.getFloat32(0);
}

function brain(bits: number): number {
  return ofBits(bits << 16);
}

/** To nearest, ties to even. */
function brainBits(x: number): number {
  const bits = bitsOf(x) >>> 0;
  return Number.isNaN(x) ? 0x7fc0 : ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const rest = bits & 1023;
  if (exponent === 31) {
    return rest ? NaN : sign * Infinity;
  }
  return sign * (exponent ? (1 + rest / 1024) * 2 ** (exponent - 15) : rest * 2 ** -24);
}

function halfBits(x: number): number {
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const size = Math.abs(x);
  if (Number.isNaN(x)) {
    return 0x7e00;
  }
  if (size >= 65520) {
    return sign | 0x7c00;
  }
  const exponent = Math.max(-14, Math.floor(Math.log2(size)));
  const step = 2 ** ((size >= 2 ** (exponent + 1) ? exponent + 1 : size < 2 ** exponent && exponent > -14 ? exponent - 1 : exponent) - 10);
  const rounded = even(size / step) * step; // log2 may be off by one next to a power of two
  if (rounded < 2 ** -14) {
    return sign | (rounded / 2 ** -24);
  }
  const e = rounded >= 2 ** (exponent + 1) ? exponent + 1 : rounded < 2 ** exponent ? exponent - 1 : exponent;
  return sign | ((e + 15) << 10) | ((rounded / 2 ** e - 1) * 1024);
}

/** To the nearest integer, ties to the even one. */
export function even(x: number): number {
  const low = Math.floor(x);
  const rest = x - low;
  const found = rest < 0.5 ? low : rest > 0.5 ? low + 1 : low % 2 === 0 ? low : low + 1;
  return found === 0 && (x < 0 || Object.is(x, -0)) ? -0 : found;
}
