/** The card says what Python says: every sentence and table of the notebooks' saved outputs, letter for letter. */

import { describe, expect, it, vi } from 'vitest';

import { accuracies, accuracyAbout, checkBlocks } from '../src/card/words/checks';
import { noteWords, shapeWords } from '../src/card/words/common';
import { environmentBlocks } from '../src/card/words/environment';
import { lineBlocks, targetBlocks } from '../src/card/words/machine';
import { code, head, lines } from '../src/card/words/page';
import type { Block } from '../src/card/words/page';
import { exact, fixed, general, oneLine, percent, rounded, short } from '../src/card/words/quantities';
import { advised, maskWords, paramWords, summary } from '../src/card/words/summary';
import { tables, timingBlocks } from '../src/card/words/timings';
import { ENGLISH as t } from '../src/core/i18n';
import type { CuteRecord } from '../src/core/record';
import { plain, printed } from './card_records';

vi.setConfig({ testTimeout: 60_000 }); // a busy machine is no failure

const ALL = printed();

function summaryBlocks(record: CuteRecord): Block[] {
  const said = summary(t, record);
  return [
    head(`\`${record.name}\` · ${shapeWords(record.shape)}${paramWords(record)}`),
    lines(...said.map(one => `${one.mark} ${one.text}`)),
    ...said.filter(one => one.fix).map(one => code(one.fix as string, 'python'))
  ];
}

/** A notebook's file sorts the names of an object, which Python printed in their first order. */
function sorted(text: string): string {
  return text.replace(/^Versions: (.*)\.$/m, (_, all: string) => `Versions: ${all.split(', ').sort().join(', ')}.`);
}

const VIEWS: Record<string, (record: CuteRecord) => string> = {
  summary: record => plain(summaryBlocks(record)),
  lines: record => plain(lineBlocks(t, record)),
  targets: record => plain(targetBlocks(t, record)),
  check: record => plain(checkBlocks(t, record)),
  environment: record => plain(environmentBlocks(t, record)),
  timings: record => plain(timingBlocks(t, record)),
  throughput: record => plain(tables(t, record.bench as NonNullable<CuteRecord['bench']>))
};

describe('the saved notebooks', () => {
  it('hold outputs of the views that the card words again', () => {
    const seen = new Set(ALL.map(one => one.view));
    for (const view of ['summary', 'check', 'targets', 'lines', 'timings', 'throughput', 'accuracy', 'mask']) {
      expect(seen).toContain(view);
    }
  });

  for (const one of ALL.filter(found => Object.hasOwn(VIEWS, found.view))) {
    it(`${one.where}: ${one.view} is Python's text`, () => {
      const made = VIEWS[one.view] as (record: CuteRecord) => string;
      expect(sorted(made(one.record))).toBe(sorted(one.text));
    });
  }

  for (const one of ALL.filter(found => found.view === 'mask' && found.record.blocks)) {
    it(`${one.where}: the mask's sentence is Python's`, () => {
      const blocks = one.record.blocks as NonNullable<CuteRecord['blocks']>;
      expect(one.text.split('\n')[0]).toBe(`${one.record.name}: ${maskWords(t, blocks, one.record.shape)}`);
    });
  }

  for (const one of ALL.filter(found => found.view === 'accuracy')) {
    it(`${one.where}: the accuracy tables are Python's`, () => {
      const found = accuracies(t, one.record.bench as NonNullable<CuteRecord['bench']>);
      const made = plain([lines(...accuracyAbout(t, true)), ...found.flatMap(a => [head(a.title), a.table])]);
      expect(one.text.startsWith(made)).toBe(true);
    });
  }
});

describe('numbers', () => {
  it('are Python’s, ties to even included', () => {
    expect([fixed(0.5, 0), fixed(1.5, 0), fixed(2.5, 0), fixed(0.125, 2), fixed(2.675, 2), fixed(-0.5, 0)]).toEqual(['0', '2', '2', '0.12', '2.67', '-0']);
    expect([general(0.125, 2), general(2.5, 1), general(1234567, 3), general(1e-5, 3), general(100000, 6), general(0, 3)]).toEqual(['0.12', '2', '1.23e+06', '1e-05', '100000', '0']);
    expect([rounded(0.285, 2), rounded(0.005, 2), rounded(1e300, 3)]).toEqual([0.28, 0.01, 1e300]);
  });

  it('are short, exact and never rounded to none or to all', () => {
    expect([short(4.8e-7), short(573), short(1e10), short(-0.00123)]).toEqual(['4.8e-7', '573', '1e10', '-0.00123']);
    expect(exact(4.00340461730957)).toBe('4.0034046');
    expect([percent(0), percent(1), percent(0.069), percent(0.0000001), percent(0.9999999), percent(0.5)]).toEqual([
      '0 %',
      '100 %',
      '6.9 %',
      '0.00001 %',
      '99.99999 %',
      '50 %'
    ]);
    expect([short(Infinity), short(NaN)]).toEqual(['inf', 'nan']);
  });

  it('and one line holds no control character', () => {
    expect(oneLine('a\u202eb\n\tc'.padEnd(300, 'x'), 6)).toBe('a\ufffdb c…');
  });
});

describe('a fix', () => {
  const note = (fix: string): string => noteWords(t, { level: 'info', text: 'T.', line: null, fix });
  it('that is code stands in backticks, a sentence does not', () => {
    expect(note('torch.where(q_idx >= kv_idx, score, score - 1.0)')).toBe('T. Write `torch.where(q_idx >= kv_idx, score, score - 1.0)`.');
    expect(note('x = y if z else not w')).toBe('T. Write `x = y if z else not w`.');
    expect(note('compile for another target.')).toBe('T. Compile for another target.');
    expect(note("don't do this")).toBe("T. Don't do this.");
    expect(note('a\nb')).toBe('T. Write as below.');
  });
});

it('machine code that is awaited is said once, and nobody is told to compile', () => {
  const [one] = ALL;
  const note = (text: string): CuteRecord['notes'][number] => ({ level: 'info', text, line: null, fix: '' });
  const record = { ...(one as { record: CuteRecord }).record, targets: [], notes: [note('⚙ It is being compiled.'), note('A note.')] };
  const said = summary(t, record);
  expect(said.filter(line => line.mark === '⚙').map(line => line.text)).toEqual(['It is being compiled.']);
  expect(said.map(line => line.text).join()).not.toContain('.compile(');
  expect(said.at(-1)?.text).toBe('A note.');
  expect(advised(record).map(one => one.text)).toEqual(['A note.']); // the rest is nothing to change
});
