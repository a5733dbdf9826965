/** What the kernel says over the comm, protocol 1. Lines count from 1 and the %% line is 1; columns are UTF-16 units from 0, ends exclusive. */

import { blockSummary } from '../core/blocks';
import { boolean, float, integer, list, natural, object, oneOf, optional, string } from '../core/decode';
import type { Decoder } from '../core/decode';

export const TARGET = 'cute_lab';
export const PROTOCOL = 1;

const range = { line: natural(), column: natural(), end_line: natural(), end_column: natural() };
const edit = object({ ...range, text: string });
const fix = object({ title: string, edits: list(edit, 100) });
const finding = object({
  ...range,
  severity: oneOf('error', 'warning', 'info'),
  message: string,
  hint: string,
  fixes: list(fix, 20),
  source: oneOf('static', 'trace')
});
export const diagnosis = object({
  diagnostics: list(finding, 500),
  annotations: list(object({ line: natural(), text: string }), 500),
  ran: boolean,
  why: string
});
export const hover = optional(
  object({
    line: natural(),
    generated: list(string, 200),
    costs: list(object({ target: string, share: float, instructions: float }), 20),
    words: string
  })
);
const point = object({ line: natural(), column: natural() });
export const completion = object({
  start: point,
  end: point,
  matches: list(object({ text: string, type: string, detail: string }), 1000)
});
const gpu = object({
  name: string,
  target: string,
  memory_used: optional(natural()), // a virtual GPU does not tell all
  memory_total: optional(natural()),
  sm_mhz: optional(float),
  utilization: optional(float),
  celsius: optional(float),
  watts: optional(float)
});
export const status = object({
  words: string,
  cuda: boolean,
  gpus: list(gpu, 64),
  targets: list(string, 64),
  running: optional(object({ what: string, left_seconds: optional(float) }))
});
export const variants = list(object({ name: string, title: string, words: string, cell: string, blocks: optional(blockSummary) }), 200);
export const stopped = object({ stopped: boolean });
export const bits = object({ bits: string });
export const hello = object({ hello: object({ protocol: integer, cute_lab: string, schema: integer }) });
export const reply: Decoder<{ id: number; result?: unknown; error?: string }> = (value, at) => {
  const found = object({ id: natural(), error: optional(object({ message: string })) })(value, at);
  const result = (value as Record<string, unknown>)['result'];
  return found.error ? { id: found.id, error: found.error.message } : { id: found.id, result };
};

export type Edit = ReturnType<typeof edit>;
export type Fix = ReturnType<typeof fix>;
export type Finding = ReturnType<typeof finding>;
export type Diagnosis = ReturnType<typeof diagnosis>;
export type Hover = NonNullable<ReturnType<typeof hover>>;
export type Completion = ReturnType<typeof completion>;
export type Status = ReturnType<typeof status>;
export type Gpu = ReturnType<typeof gpu>;
export type Variant = ReturnType<typeof variants>[number];
