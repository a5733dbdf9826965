/** The checks in words: on the host against the user's function, and on the GPU against float32. As views/check.py and accuracy.py. */

import type { Translate } from '../../core/i18n';
import type { Accuracy, Bench, Check, CuteRecord, Shape, Timing } from '../../core/record';
import { contenders, directions, directionWords, labelOf, shapes } from '../bench/series';
import { shapeKey } from '../bench/statistics';
import type { Direction } from '../bench/statistics';
import { shapeWords } from './common';
import { head, lines, table } from './page';
import type { Block } from './page';
import { errorWords, exact, number, oneLine, short } from './quantities';

const NAMES: Readonly<Record<string, string>> = {
  score_mod: 'forward: `score_mod`',
  mask_mod: 'mask: `mask_mod`',
  score_mod_bwd: 'backward: `score_mod_bwd`',
  mask_mod_packed: 'mask on Blackwell: `mask_mod_packed`'
};

function named(check: Check): string {
  return Object.hasOwn(NAMES, check.name) ? (NAMES[check.name] as string) : check.name;
}

export function checkBlocks(t: Translate, record: CuteRecord): Block[] {
  const titles = [
    t.__('generated code'),
    t.__('verdict'),
    t.__('compared on'),
    t.__('points'),
    t.__('max error'),
    t.__('error over max(1, |x|)'),
    t.__('its tolerance')
  ];
  const rows = record.checks.map(c => [
    named(c),
    c.ok ? t.__('✔ equal') : t.__('✘ differs'),
    c.grid,
    number(c.points),
    short(c.max_abs_error),
    short(c.max_rel_error),
    short(c.tolerance)
  ]);
  const found = [lines(t.__('The generated CuTeDSL, run on the host, against your function, run by torch.')), table(titles, rows, 4)];
  const worst = record.checks.flatMap(c => {
    const w = c.worst;
    return w ? [[named(c), number(w.b), number(w.h), number(w.q), number(w.kv), exact(w.expected), exact(w.got), short(w.got - w.expected)]] : [];
  });
  if (worst.length) {
    const columns = [t.__('generated code'), 'b', 'h', 'q', 'kv', t.__('your function'), t.__('generated'), t.__('difference')];
    found.push(head(t.__('The cell where they differ most')), table(columns, worst, 7));
  }
  return found;
}

/** The contenders' results at one direction and shape, and the tensors whose errors are drawn as strips. */
export interface Accuracies {
  readonly title: string;
  readonly table: Block;
  readonly wrong: boolean;
  readonly strips: readonly { label: string; accuracy: Accuracy }[];
}

export function accuracyAbout(t: Translate, some: boolean): string[] {
  return some
    ? [
        t.__("Errors are against float32. “reference's own” is what torch's eager formula makes of it in the inputs' dtype: the yardstick."),
        t.__('A contender that computes something else (a ceiling), or did not run, is not in the table.')
      ]
    : [t.__("No contender's results were checked.")];
}

export function accuracies(t: Translate, bench: Bench): Accuracies[] {
  const titles = [
    t.__('contender'),
    t.__('tensor'),
    t.__('verdict'),
    t.__('worst place'),
    t.__('max error'),
    t.__("reference's own"),
    t.__('relative error'),
    t.__("reference's own")
  ];
  const at = new Map<string, Timing>();
  for (const one of bench.timings.filter(timing => timing.accuracy.length)) {
    at.set(key(one.direction, one.shape, one.contender), one);
  }
  const found: Accuracies[] = [];
  for (const direction of directions(bench)) {
    for (const shape of shapes(bench)) {
      const here = contenders(bench).flatMap(name => at.get(key(direction, shape, name)) ?? []);
      if (here.length) {
        const rows = here.flatMap(one => one.accuracy.map(a => row(t, one, a)));
        const strips = here.flatMap(one => one.accuracy.filter(a => !a.ok).map(accuracy => ({ label: labelOf(one), accuracy })));
        found.push({
          title: `${directionWords(direction)} · ${shapeWords(shape)}`,
          table: table(titles, rows, 4),
          wrong: here.some(one => one.accuracy.some(a => !a.ok)),
          strips
        });
      }
    }
  }
  return found;
}

function key(direction: Direction, shape: Shape, contender: string): string {
  return `${direction}\0${shapeKey(shape)}\0${contender}`;
}

function row(t: Translate, one: Timing, a: Accuracy): string[] {
  const errors = [a.max_error, a.reference_max_error, a.relative_error, a.reference_relative_error].map(errorWords);
  return [labelOf(one), a.tensor, a.ok ? t.__('✔ right') : t.__('✘ wrong'), oneLine(a.worst, 70), ...errors];
}

/** 0 within the reference's own error, 1 to 3 times, 2 to 10 times, 3 above or no number. */
export function shade(error: number, own: number): number {
  if (Number.isNaN(error)) {
    return 3;
  }
  if (!own) {
    return error ? 3 : 0;
  }
  const times = error / own;
  return times <= 1 ? 0 : times <= 3 ? 1 : times <= 10 ? 2 : 3;
}

/** At most `most` bands, each as bad as its worst row. */
export function bands(rows: readonly number[], own: number, most = 64): number[] {
  const step = Math.max(1, Math.ceil(rows.length / most));
  const found: number[] = [];
  for (let i = 0; i < rows.length; i += step) {
    found.push(Math.max(...rows.slice(i, i + step).map(e => shade(e, own))));
  }
  return found;
}
