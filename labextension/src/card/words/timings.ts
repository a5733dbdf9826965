/** The timing table: each contender with its check, interval and ratio, and why a row has no speed. As views/timings.py. */

import type { Translate } from '../../core/i18n';
import type { Bench, CuteRecord, Shape, Timing } from '../../core/record';
import * as series from '../bench/series';
import { median, OURS, PASSES, shapeKey, verdict } from '../bench/statistics';
import type { Direction, Estimate } from '../bench/statistics';
import { shapeWords } from './common';
import { code, head, lines, missing, table } from './page';
import type { Block } from './page';
import { fixed, general, grouped, number, oneLine, percent, whole } from './quantities';

type Condition = Bench['conditions'][number];
type Work = Bench['work'][number];

export function timingBlocks(t: Translate, record: CuteRecord): Block[] {
  const bench = record.bench;
  if (!bench) {
    return [lines(missing(t, 'bench', record.name))];
  }
  return bench.timings.length ? [lines(...seen(t, bench)), ...tables(t, bench), ...after(t, bench)] : [lines(...nothing(t, bench))];
}

export function nothing(t: Translate, bench: Bench): string[] {
  return [t.__('Nothing was measured on %1.', oneLine(bench.device)), ...stopped(t, bench)];
}

export function seen(t: Translate, bench: Bench): string[] {
  const rounds = t._n('%2 round', '%2 rounds', bench.rounds, number(bench.rounds));
  return [t.__('%1: %2 in %3 s, seed %4.', oneLine(bench.device), rounds, whole(bench.seconds), bench.seed), ...stopped(t, bench)];
}

function stopped(t: Translate, bench: Bench): string[] {
  return bench.stopped ? [t.__('⚠ Interrupted: the rows that were complete are kept.')] : [];
}

export function about(t: Translate): string[] {
  return [
    t.__('TFLOP/s: median and 95 % interval; 4 D FLOP per kept cell forward, %1 times that backward, ', PASSES.backward) +
      t.__('%1 times that for both. A cell that is computed and masked away earns nothing.', PASSES['forward+backward']),
    t.__('cute_lab against it: how many times faster cute_lab is, from the quotients of the same rounds; “no difference” where the interval holds 1.'),
    t.__("of cuBLAS: the share of what the card's own library reached on a dense product in the same rounds."),
    t.__('A row whose check failed has no speed. A ceiling computes something else, so it is not checked.')
  ];
}

/** What stands below the tables: what the numbers mean, how they were made, and how to make them again. */
export function after(t: Translate, bench: Bench): Block[] {
  const titles = [t.__('shape'), t.__('cells'), t.__('kept: useful work'), t.__('of all'), t.__('issued'), t.__('of all'), t.__('useful of issued')];
  const versions = Object.entries(bench.versions).map(([name, version]) => `${name} ${version}`);
  return [
    lines(...about(t)),
    head(t.__('How it was measured')),
    lines(...bench.protocol.map(line => oneLine(line, 400))),
    ...(bench.work.length ? [head(t.__('Work')), table(titles, bench.work.map(w => workRow(t, w)), 6)] : []),
    head(t.__('The command that repeats it')),
    code(bench.command, 'shell'),
    lines(t.__('Versions: %1.', versions.join(', ') || t.__('not recorded')))
  ];
}

/** One for each direction and shape, below it what was wrong there; below all, what holds for more than one of them. */
export function tables(t: Translate, bench: Bench): Block[] {
  const titles = [
    t.__('contender'),
    t.__("check: relative error (reference's own)"),
    t.__('TFLOP/s'),
    t.__('cute_lab against it'),
    t.__('of cuBLAS'),
    t.__('compile')
  ];
  const blocks: Block[] = [];
  const remarks = new Set<string>(); // in order, each once
  const names = series.contenders(bench);
  for (const direction of series.directions(bench)) {
    for (const shape of series.shapes(bench)) {
      const here = bench.timings.filter(one => one.direction === direction && shapeKey(one.shape) === shapeKey(shape));
      const found = new Map(here.map(one => [one.contender, one]));
      const rows = names.flatMap(name => found.get(name) ?? []);
      if (!rows.length) {
        continue;
      }
      blocks.push(head(`${series.directionWords(direction)} · ${shapeWords(shape)}`), table(titles, rows.map(one => row(t, bench, one)), 4));
      const said = [...clocks(t, bench, shape, direction), ...rows.filter(series.isWrong).map(one => remark(one))];
      if (said.length) {
        blocks.push(lines(...said));
      }
      for (const one of rows.filter(r => (r.reason || r.note) && !series.isWrong(r))) {
        remarks.add(remark(one));
      }
    }
  }
  return remarks.size ? [...blocks, head(t.__('Remarks')), lines(...remarks)] : blocks;
}

export function speedWords(e: Estimate): string {
  return `${figure(e.median)} [${figure(e.low)}, ${figure(e.high)}]`;
}

/** Why there is no speed, or the speed. */
export function shownSpeed(t: Translate, bench: Bench, one: Timing): string {
  const found = series.speed(bench, one);
  return found ? speedWords(found) : series.isWrong(one) ? t.__('✘ wrong') : one.status === 'timed' ? t.__('no usable sample') : one.status;
}

function row(t: Translate, bench: Bench, one: Timing): string[] {
  const share = series.shareOfPeak(bench, one);
  const ours = one.contender === OURS ? '–' : verdict(series.against(bench, one));
  const compiled = one.compile_seconds ? `${grouped(fixed(one.compile_seconds, 1))} s` : '';
  return [series.labelOf(one), series.checkWords(one), shownSpeed(t, bench, one), ours, share ? percent(share) : '', compiled];
}

function remark(one: Timing): string {
  const status = series.isWrong(one) ? '✘ wrong' : one.status === 'timed' ? '' : one.status;
  const parts = [status, one.reason || one.note].filter(Boolean).map(part => oneLine(part).replace(/\.+$/, ''));
  return `${series.labelOf(one)}: ${parts.join('. ')}.`;
}

/** Medians over the rounds; what the driver does not say is left out. */
function clocks(t: Translate, bench: Bench, shape: Shape, direction: Direction): string[] {
  const here = bench.conditions.filter(c => c.direction === direction && shapeKey(c.shape) === shapeKey(shape));
  const known = (of: (c: Condition) => number): number[] => here.map(of).filter(v => v > 0).sort((a, b) => a - b);
  const parts: [string, string, number[]][] = [
    [t.__('SM clock'), 'MHz', known(c => c.sm_mhz)],
    [t.__('memory clock'), 'MHz', known(c => c.memory_mhz)],
    [t.__('power'), 'W', known(c => c.watts)],
    [t.__('temperature'), '°C', known(c => c.celsius)]
  ];
  const said = parts
    .filter(([, , v]) => v.length)
    .map(([name, unit, v]) => {
      const [low, high] = [v[0] as number, v[v.length - 1] as number];
      const range = low < high ? t.__(' (%1 to %2)', whole(low), whole(high)) : '';
      return `${name} ${whole(median(v))} ${unit}${range}`;
    });
  return said.length ? [t.__('The card in these rounds: %1.', said.join(', '))] : [];
}

function workRow(t: Translate, w: Work): string[] {
  const share = (a: number, b: number): string => (b ? percent(a / b) : '');
  const name = t.__('%1, %2 blocks', shapeWords(w.shape), oneLine(w.block, 20).replace(/x/g, '×'));
  return [
    name,
    number(w.total_cells),
    number(w.kept_cells),
    share(w.kept_cells, w.total_cells),
    number(w.issued_cells),
    share(w.issued_cells, w.total_cells),
    share(w.kept_cells, w.issued_cells)
  ];
}

function figure(value: number): string {
  return value >= 100 ? whole(value) : general(value, 3);
}
