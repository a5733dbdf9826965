/** A run as data: the types of cute_lab/record.py, and the guard that makes them of what a notebook holds. */

import { blockSummary, cellCode, scalar } from './blocks';
import { boolean, float, integer, list, natural, object, oneOf, optional, own, plain, Problem, string, table } from './decode';

export type { BlockSummary, CellCode } from './blocks';

export const MIME = 'application/vnd.cute-lab.v1+json';
/** What stands where sliders were: the outputs of a panel have it beside the widget, or beside its last picture. */
export const SLIDERS = 'application/vnd.cute-lab.sliders.v1+json';
export const SCHEMA = 3;

const shape = object({ B: natural(), H: natural(), Hkv: natural(), Sq: natural(2 ** 40), Skv: natural(2 ** 40), D: natural(), dtype: string });
const note = object({ level: oneOf('info', 'warning'), text: string, line: optional(integer), fix: string });
const worst = object({ b: integer, h: integer, q: integer, kv: integer, expected: float, got: float });
const check = object({
  name: string,
  ok: boolean,
  points: natural(),
  max_abs_error: float,
  max_rel_error: float,
  tolerance: float,
  worst: optional(worst),
  grid: string
});
const lineCost = object({ line: integer, instructions: natural(), share: float, by_pipe: table(natural()) });
const excerpt = object({
  encoding: oneOf('zlib-b64'),
  data: string,
  total: natural(),
  loop: optional(list(natural(), 2))
});
const target = object({
  target: string,
  direction: oneOf('forward', 'backward'),
  status: oneOf('compiled', 'refused', 'failed'),
  reason: string,
  registers: natural(),
  stack_bytes: natural(),
  spill_loads: natural(),
  spill_stores: natural(),
  instructions: natural(),
  seconds: float,
  cached: boolean,
  mix: table(natural()),
  cost: optional(float),
  line_cost: list(lineCost),
  advice: list(note),
  listing: optional(object({ sass: excerpt, ptx: excerpt }))
});
const direction = oneOf('forward', 'backward', 'forward+backward');
const accuracy = object({
  tensor: string,
  ok: boolean,
  max_error: float,
  relative_error: float,
  reference_max_error: float,
  reference_relative_error: float,
  where: list(list(float)),
  worst: string
});
const timing = object({
  contender: string,
  label: string,
  direction,
  shape,
  status: oneOf('timed', 'checked', 'wrong', 'absent', 'failed', 'stopped'),
  reason: string,
  note: string,
  samples_us: list(float),
  compile_seconds: float,
  accuracy: list(accuracy)
});
const bench = object({
  device: string,
  versions: table(string),
  protocol: list(string),
  rounds: natural(),
  seed: integer,
  work: list(object({ shape, kept_cells: natural(), issued_cells: natural(), total_cells: natural(), block: string })),
  timings: list(timing),
  conditions: list(object({ shape, direction, round: natural(), sm_mhz: float, memory_mhz: float, watts: float, celsius: float })),
  peaks: list(object({ what: string, shape, direction, samples_tflops: list(float) })),
  seconds: float,
  stopped: boolean,
  command: string
});
const record = object({
  schema: natural(),
  kind: oneOf('attention'),
  name: string,
  created: string,
  seconds: float,
  cell: object({ text: string, magic: string, name: string, first_line: natural() }),
  shape,
  params: list(object({ name: string, value: scalar, runtime: boolean })),
  source: object({ text: string, user_lines: list(integer), functions: list(string) }),
  stages: object({ fx: string, ir: string, inductor: optional(string) }),
  checks: list(check),
  blocks: optional(blockSummary),
  cells: optional(cellCode),
  targets: list(target),
  notes: list(note),
  bench: optional(bench),
  environment: table(string),
  hash: string
});

export type Shape = ReturnType<typeof shape>;
export type Note = ReturnType<typeof note>;
export type Check = ReturnType<typeof check>;
export type LineCost = ReturnType<typeof lineCost>;
export type Excerpt = ReturnType<typeof excerpt>;
export type TargetReport = ReturnType<typeof target>;
export type Accuracy = ReturnType<typeof accuracy>;
export type Timing = ReturnType<typeof timing>;
export type Bench = ReturnType<typeof bench>;
export type CuteRecord = ReturnType<typeof record>;

/** What one output of a notebook holds. */
export type Parsed =
  | { kind: 'record'; record: CuteRecord }
  | { kind: 'part'; view: string; of: string; leftOut: string }
  | { kind: 'problem'; message: string };

/** A file of records; each is read when it is looked at. */
export interface Suite {
  kind: 'suite';
  name: string;
  about: string;
  records: unknown[];
}

/** The name of a run, which the other outputs of its cell refer to. */
export function keyOf(found: CuteRecord): string {
  return `${found.hash} ${found.created}`;
}

/** Older schemas as the newest one. Schema 1 and 2 lack what has been added since; nothing was renamed. */
function migrated(from: Record<string, unknown>, schema: number): Record<string, unknown> {
  return schema < 2 ? { ...from, bench: null } : from;
}

export function parse(value: unknown): Parsed;
export function parse(value: unknown, suites: true): Parsed | Suite;
export function parse(value: unknown, suites = false): Parsed | Suite {
  try {
    const from = plain(value, 'this output');
    const schema = own(from, 'schema');
    if (typeof schema !== 'number' || !Number.isSafeInteger(schema) || schema < 1) {
      return { kind: 'problem', message: 'This output is no cute_lab record: it has no schema number.' };
    }
    if (schema > SCHEMA) {
      return { kind: 'problem', message: `This record has schema ${schema}; this extension reads schema ${SCHEMA} and older.${writer(from)}` };
    }
    if (own(from, 'view') !== undefined) {
      const leftOut = own(from, 'left_out');
      return {
        kind: 'part',
        view: string(own(from, 'view'), 'view'),
        of: string(own(from, 'of'), 'of'),
        leftOut: typeof leftOut === 'string' ? leftOut : ''
      };
    }
    if (suites && own(from, 'kind') === 'suite') {
      const records = list<unknown>(item => item, 10_000)(own(from, 'records'), 'suite.records');
      return { kind: 'suite', name: string(own(from, 'name'), 'suite.name'), about: string(own(from, 'about'), 'suite.about'), records };
    }
    const found = record(migrated(from, schema), 'record');
    if (found.source.user_lines.length !== found.source.text.replace(/\n$/, '').split('\n').length) {
      return { kind: 'problem', message: 'This record is damaged: record.source.user_lines does not fit record.source.text.' };
    }
    return { kind: 'record', record: found };
  } catch (error) {
    if (error instanceof Problem) {
      return { kind: 'problem', message: `This record is damaged: ${error.message}.` };
    }
    throw error;
  }
}

/** A MIME bundle's text as a JSON value, for files. */
export function parseText(text: string): Parsed | Suite {
  try {
    return parse(JSON.parse(text), true);
  } catch (error) {
    return { kind: 'problem', message: `This file is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

function writer(from: Record<string, unknown>): string {
  const stamp = own(from, 'environment');
  const version = typeof stamp === 'object' && stamp !== null ? own(stamp as Record<string, unknown>, 'cute_lab') : undefined;
  return ` It was written by cute_lab ${typeof version === 'string' ? version : 'of a newer version'}: install that one (pip install -U cute-lab).`;
}
