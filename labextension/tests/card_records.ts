/** Records of the notebooks with what Python printed beside them, and blocks as Python prints them. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { MIME, parse } from '../src/core/record';
import type { CuteRecord } from '../src/core/record';
import type { Block, Words } from '../src/card/words/page';

// jsdom has no canvas; a map that can't be painted is left out, as in a browser that refuses one.
HTMLCanvasElement.prototype.getContext = () => null;

export const ROOT = join(__dirname, '..', '..');

export interface Printed {
  readonly where: string;
  readonly view: string;
  readonly record: CuteRecord;
  readonly text: string;
}

type Bundle = Record<string, unknown>;

/** Every output of the notebooks that draws a record or a part of it, with its text/plain. */
export function printed(): Printed[] {
  const found: Printed[] = [];
  for (const name of readdirSync(join(ROOT, 'notebooks')).filter(file => file.endsWith('.ipynb')).sort()) {
    const notebook = JSON.parse(readFileSync(join(ROOT, 'notebooks', name), 'utf-8')) as { cells: { outputs?: { data?: Bundle }[] }[] };
    const byKey = new Map<string, CuteRecord>();
    notebook.cells.forEach((cell, i) => {
      for (const { data } of cell.outputs ?? []) {
        if (!data || !(MIME in data)) {
          continue;
        }
        const parsed = parse(data[MIME]);
        const text = ([] as string[]).concat(data['text/plain'] as string | string[]).join('');
        if (parsed.kind === 'record') {
          byKey.set(`${parsed.record.hash} ${parsed.record.created}`, parsed.record);
          found.push({ where: `${name} cell ${i}`, view: first(data, text), record: parsed.record, text });
        } else if (parsed.kind === 'part') {
          const record = byKey.get(parsed.of);
          if (record) {
            found.push({ where: `${name} cell ${i}`, view: parsed.view, record, text });
          }
        } else {
          throw new Error(`${name} cell ${i}: ${parsed.message}`);
        }
      }
    });
  }
  return found;
}

/** What only this view says. */
const SIGNS: readonly (readonly [string, RegExp])[] = [
  ['check', /^The generated CuTeDSL, run on the host/],
  ['targets', /\nregisters per thread /],
  ['timings', /\nHow it was measured\n/]
];

/** The first view of a cell carries the record and not its own name. */
function first(data: Bundle, text: string): string {
  const sign = SIGNS.find(([, words]) => words.test(text));
  return 'application/vnd.plotly.v1+json' in data ? 'throughput' : (sign?.[0] ?? 'summary');
}

export function suite(name: string): CuteRecord[] {
  const file = JSON.parse(readFileSync(join(ROOT, 'tests', 'records', `${name}.json`), 'utf-8')) as { records: unknown[] };
  return file.records.map(one => {
    const parsed = parse(one);
    if (parsed.kind !== 'record') {
      throw new Error(name);
    }
    return parsed.record;
  });
}

function cellText(words: Words): string {
  return (typeof words === 'string' ? words : words.code).replace(/\n/g, ' ').replace(/`/g, '');
}

/** As _plain in cute_lab/views/_text.py. */
export function plain(blocks: readonly Block[]): string {
  return blocks.map(block => plainBlock(block)).join('\n\n');
}

function plainBlock(block: Block): string {
  if (block.kind === 'head') {
    const text = block.text.replace(/\n/g, ' ').replace(/`/g, '');
    return `${text}\n${'─'.repeat(text.length)}`;
  }
  if (block.kind === 'lines') {
    return block.lines.map(line => line.replace(/\n/g, ' ')).join('\n');
  }
  if (block.kind === 'code') {
    return block.text.replace(/\n+$/, '').split('\n').map(line => `    ${line}`).join('\n');
  }
  const rows = [block.head, ...block.rows].map(row => row.map(cellText));
  const widths = block.head.map((_, i) => Math.max(...rows.map(row => (row[i] as string).length)));
  rows.splice(1, 0, widths.map(width => '─'.repeat(width)));
  const left = widths.length - block.right;
  return rows
    .map(row => row.map((cell, i) => (i < left ? cell.padEnd(widths[i] as number) : cell.trim().padStart(widths[i] as number))).join('  ').trimEnd())
    .join('\n');
}
