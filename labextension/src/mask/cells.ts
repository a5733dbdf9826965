/** The mask, cell by cell: computed here from the record's typed IR, or asked of a kernel. */

import type { CellCode } from '../core/record';
import { cast, gather, literal, NotExact, storage, tableValues } from './values';
import type { Data, Value } from './values';
import { apply, opNamed, typed } from './ops';

/** Rows x columns of cells q + i * step, kv + j * step; one byte a cell, 1 where the mask keeps it. */
export interface CellRequest {
  readonly b: number;
  readonly h: number;
  readonly q: number;
  readonly kv: number;
  readonly rows: number;
  readonly columns: number;
  readonly step: number;
}

export interface CellSource {
  /** Null where it can't tell. */
  cells(request: CellRequest): Promise<Uint8Array | null>;
}

const MOST_CELLS = 1 << 22; // of one request
const MOST_ENTRIES = 1 << 23; // of all tables
const MOST_WORK = 1 << 29; // node evaluations of one request

type Step = (values: readonly (Value | null)[], request: CellRequest) => Value;

/** A mask as a list of steps over typed arrays. What depends on the row alone is computed once for each row, and so on. */
export class CellPlan {
  private constructor(
    private readonly steps: readonly Step[],
    private readonly last: Int32Array,
    private readonly result: number
  ) {}

  /** Null where the code holds an op that is not exactly the same here, or is no such code. */
  static of(code: CellCode): CellPlan | null {
    try {
      return CellPlan.made(code);
    } catch {
      return null; // malformed tables; a record may be hostile
    }
  }

  private static made(code: CellCode): CellPlan | null {
    if (code.tables.reduce((sum, t) => sum + t.shape.reduce((a, b) => a * b, 1), 0) > MOST_ENTRIES) {
      return null;
    }
    const tables = code.tables.map(tableValues);
    const last = new Int32Array(code.nodes.length).fill(code.nodes.length);
    const steps: Step[] = [];
    for (const [i, node] of code.nodes.entries()) {
      const { op, dtype, args, attr } = node;
      if (args.some(a => a >= i)) {
        return null;
      }
      args.forEach(a => (last[a] = i));
      const dtypes = args.map(a => code.nodes[a]?.dtype ?? '');
      if (op === 'input') {
        const name = code.inputs[i];
        if (name === undefined || name !== attr || dtype !== 'i32') {
          return null;
        }
        steps.push((_, request) => input(name, request));
      } else if (op === 'const' || op === 'scalar') {
        const from = op === 'const' ? attr : code.scalars[typeof attr === 'number' ? attr : -1]?.value;
        const value = from === null || from === undefined ? null : literal(from, dtype);
        if (!value || (op === 'scalar' && code.scalars[attr as number]?.dtype !== dtype)) {
          return null;
        }
        steps.push(() => value);
      } else if (op === 'gather') {
        const table = tables[typeof attr === 'number' ? attr : -1];
        if (!table || table.dtype !== dtype || args.length !== table.shape.length) {
          return null;
        }
        steps.push((values, request) => gather(table, taken(values, args), request.rows, request.columns));
      } else if (op === 'cast') {
        const [source] = args;
        if (source === undefined || args.length !== 1) {
          return null;
        }
        steps.push(values => cast(values[source] as Value, dtype));
      } else {
        const found = opNamed(op);
        if (!found || !typed(found, dtypes, dtype)) {
          return null;
        }
        steps.push((values, request) => apply(found, taken(values, args), dtype, request.rows, request.columns));
      }
    }
    if (code.nodes[code.result]?.dtype !== 'bool') {
      return null;
    }
    last[code.result] = code.nodes.length;
    return new CellPlan(steps, last, code.result);
  }

  /** Null where these cells can't be told exactly: a read out of bounds, a division by zero, a number beyond its type. */
  cells(request: CellRequest): Uint8Array | null {
    const { rows, columns } = request;
    if (rows * columns > MOST_CELLS || this.steps.length * rows * columns > MOST_WORK) {
      return null;
    }
    const values: (Value | null)[] = [];
    const ends: number[][] = [];
    this.last.forEach((at, i) => (ends[at] ??= []).push(i));
    try {
      this.steps.forEach((step, i) => {
        values.push(step(values, request));
        ends[i]?.forEach(done => (values[done] = null)); // nobody reads it any more
      });
    } catch (error) {
      if (error instanceof NotExact) {
        return null;
      }
      throw error;
    }
    const found = values[this.result] as Value;
    return found.rows && found.columns ? (found.data as Uint8Array) : spread(found, rows, columns);
  }
}

/** The cells from the plan, as a source like any other. */
export function localSource(plan: CellPlan): CellSource {
  return { cells: request => Promise.resolve(plan.cells(request)) };
}

function taken(values: readonly (Value | null)[], args: readonly number[]): Value[] {
  return args.map(a => values[a] as Value);
}

function input(name: string, request: CellRequest): Value {
  const rows = name === 'q_idx';
  const columns = name === 'kv_idx';
  const [first, count] = rows ? [request.q, request.rows] : columns ? [request.kv, request.columns] : [name === 'b' ? request.b : request.h, 1];
  const data = storage('i32', count) as Int32Array;
  for (let i = 0; i < count; i++) {
    data[i] = first + i * request.step;
  }
  return { dtype: 'i32', rows, columns, data };
}

function spread(value: Value, rows: number, columns: number): Uint8Array {
  const data: Data = value.data;
  const out = new Uint8Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      out[i * columns + j] = Number(data[value.rows ? i : value.columns ? j : 0]);
    }
  }
  return out;
}
