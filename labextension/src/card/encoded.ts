/** A record as the JSON that cute_lab reads: of the newest schema, and with words for the numbers that JSON has not. */

import { SCHEMA } from '../core/record';
import type { CuteRecord } from '../core/record';

export function encoded(record: CuteRecord): unknown {
  return plain({ ...record, schema: SCHEMA });
}

function plain(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
  }
  return value;
}
