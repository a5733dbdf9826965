/** What of a benchmark may be shown, and where: as cute_lab/series.py, but the timings may come of several benchmarks. */

import type { Accuracy, Bench, Shape, Timing } from '../../core/record';
import { errorWords, fixed, oneLine } from '../words/quantities';
import { find, OURS, peak, ratio, shapeKey, tflops } from './statistics';
import type { Direction, Estimate } from './statistics';
import { BLUE, CEILINGS, ORDER, OTHERS, style } from './styles';
import type { Style } from './styles';

export { BLUE, CEILINGS };

/** One timing with the benchmark that it belongs to; `key` tells contenders apart, `source` the benchmarks. */
export interface Entry {
  readonly bench: Bench;
  readonly timing: Timing;
  readonly key: string;
  readonly label: string;
  readonly style: Style;
  readonly source: number;
}

export interface Point {
  readonly shape: Shape;
  readonly entry: Entry | null;
  readonly speed: Estimate | null;
  readonly wrong: boolean;
}

export interface Line {
  readonly key: string;
  readonly contender: string;
  readonly label: string;
  readonly style: Style;
  readonly points: readonly Point[];
}

/** A direction x lines, and the card's own peak at each shape. */
export interface Panel {
  readonly title: string;
  readonly direction: Direction;
  readonly shapes: readonly Shape[];
  readonly lines: readonly Line[];
  readonly peaks: readonly (Estimate | null)[];
}

export interface Sheet {
  /** The field of a shape that runs along x; empty: one shape, so bars. */
  readonly axis: Axis | '';
  readonly rows: readonly (readonly Panel[])[];
  /** Contenders in order: key, label, with what kept it from being drawn. */
  readonly names: readonly { key: string; contender: string; label: string; kept: string; style: Style }[];
  /** TFLOP/s: the highest end of an interval. */
  readonly top: number;
  readonly leftOut: number;
}

const AXES = {
  Sq: 'query tokens (Sq)',
  Skv: 'key tokens (Skv)',
  D: 'head dimension (D)',
  H: 'query heads (H)',
  Hkv: 'key and value heads (Hkv)',
  B: 'batch (B)'
} as const;
export type Axis = keyof typeof AXES;
const SHOWN = 4; // rows of panels
const DIRECTIONS: readonly Direction[] = ['forward', 'backward', 'forward+backward'];

// -- what a reader may be told of one timing ------------------------------------------------------------------------------
export function isWrong(timing: Timing): boolean {
  return timing.status === 'wrong' || timing.accuracy.some(a => !a.ok);
}

/** Timed, right, and every sample is a time. */
export function usable(timing: Timing): boolean {
  const times = timing.samples_us;
  return timing.status === 'timed' && !isWrong(timing) && times.length > 0 && times.every(us => us > 0 && us < Infinity);
}

/** TFLOP/s over the cells that the mask keeps. */
export function speed(bench: Bench, timing: Timing): Estimate | null {
  return usable(timing) ? tflops(bench, timing) : null;
}

/** How many times faster cute_lab is. */
export function against(bench: Bench, timing: Timing): Estimate | null {
  const ours = find(bench, OURS, timing);
  return ours && timing.contender !== OURS && usable(ours) && usable(timing) ? ratio(ours, timing) : null;
}

export function shareOfPeak(bench: Bench, timing: Timing): number | null {
  const reached = speed(bench, timing);
  const possible = peak(bench, timing);
  return reached && possible && possible.median ? reached.median / possible.median : null;
}

/** The one that differs most, measured by the reference's own error; one that failed before one that did not. */
function worstTensor(timing: Timing): Accuracy | null {
  const excess = (a: Accuracy): number => {
    const own = a.relative_error / Math.max(a.reference_relative_error, 1e-30);
    return Number.isNaN(own) ? Infinity : own;
  };
  let found: Accuracy | null = null;
  for (const a of timing.accuracy) {
    if (!found || Number(!a.ok) > Number(!found.ok) || (a.ok === found.ok && excess(a) > excess(found))) {
      found = a;
    }
  }
  return found;
}

/** `✔ dv 3.9e-3 (3.8e-3)`: relative error, and the reference's own in brackets. */
export function checkWords(timing: Timing): string {
  const worst = worstTensor(timing);
  const mark = isWrong(timing) ? '✘' : '✔';
  if (worst) {
    return `${mark} ${worst.tensor} ${errorWords(worst.relative_error)} (${errorWords(worst.reference_relative_error)})`;
  }
  return isWrong(timing) ? mark : timing.status === 'timed' ? 'not checked' : '';
}

export function labelOf(timing: Timing): string {
  return oneLine(timing.label || timing.contender, 40);
}

export function directionWords(direction: Direction): string {
  return direction.replace('+', ' + ');
}

// -- where it stands ------------------------------------------------------------------------------------------------------
function compared(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] as number | string, b[i] as number | string];
    if (x !== y) {
      return x < y ? -1 : 1;
    }
  }
  return 0;
}

/** In the order of the table, unknown ones before the ceilings. */
function rank(name: string): (number | string)[] {
  const at = ORDER.indexOf(name);
  return [at < 0 ? ORDER.length : at + (CEILINGS.includes(name) ? OTHERS.length : 0), name];
}

export function contenders(bench: Bench): string[] {
  return [...new Set(bench.timings.map(t => t.contender))].sort((a, b) => compared(rank(a), rank(b)));
}

export function directions(bench: Pick<Bench, 'timings'>): Direction[] {
  return DIRECTIONS.filter(direction => bench.timings.some(t => t.direction === direction));
}

/** From small to large. */
export function shapes(bench: Pick<Bench, 'timings'>): Shape[] {
  const found = [...new Map(bench.timings.map(t => [shapeKey(t.shape), t.shape])).values()];
  const order = (s: Shape): (number | string)[] => [s.Sq * s.Skv, s.B * s.H * s.D, s.D, s.B, s.Hkv, s.dtype];
  return found.sort((a, b) => compared(order(a), order(b)));
}

/** A benchmark's timings as entries; those of a second benchmark are told apart by `tag`. */
export function entries(bench: Bench, source = 0, tag = ''): Entry[] {
  return bench.timings.map(timing => ({
    bench,
    timing,
    key: `${source}:${timing.contender}`,
    label: labelOf(timing) + (tag && ` · ${tag}`),
    style: source ? { ...style(timing.contender), dash: 'dot', marker: `${style(timing.contender).marker.replace('-open', '')}-open` } : style(timing.contender),
    source
  }));
}

export function sheet(all: readonly Entry[], most = SHOWN): Sheet {
  const bench = { timings: all.map(e => e.timing) };
  const found = shapes(bench);
  const axis = (Object.keys(AXES) as Axis[]).find(name => new Set(found.map(s => s[name])).size > 1) ?? '';
  const groups = grouped(found, axis);
  const keys = [...new Map(all.map(e => [e.key, e])).values()].sort((a, b) =>
    compared([...rank(a.timing.contender), a.source], [...rank(b.timing.contender), b.source])
  );
  const rows = groups.slice(0, most).map(([title, group]) => directions(bench).map(d => panel(all, keys, d, title, group)).filter(one => one.lines.length));
  let top = 0;
  for (const one of rows.flat()) {
    for (const e of [...one.lines.flatMap(line => line.points.map(p => p.speed)), ...one.peaks]) {
      top = Math.max(top, e && Number.isFinite(e.high) ? e.high : 0);
    }
  }
  const names = keys.map(e => ({ key: e.key, contender: e.timing.contender, label: e.label, kept: keptFrom(all, e.key), style: e.style }));
  return { axis, rows, names, top: top || 1, leftOut: Math.max(0, groups.length - most) };
}

/** Shapes with different places on the axis: all of them, or by one other field, or by all other fields. */
function grouped(found: readonly Shape[], axis: Axis | ''): [string, Shape[]][] {
  const square = found.every(s => s.Sq === s.Skv); // then Skv tells nothing that Sq does not
  const others = (['D', 'H', 'Hkv', 'B', 'dtype', 'Skv'] as const).filter(name => name !== axis && !(square && name === 'Skv'));
  const place = (s: Shape): number => (axis ? s[axis] : 0);
  let by = new Map<string, { key: string[]; group: Shape[] }>();
  let width = 0;
  for (const names of [[], ...others.map(name => [name]), others]) {
    by = new Map();
    for (const shape of found) {
      const key = names.map(name => `${name} ${shape[name]}`);
      const at = by.get(JSON.stringify(key)) ?? { key, group: [] };
      at.group.push(shape);
      by.set(JSON.stringify(key), at);
    }
    width = names.length;
    if ([...by.values()].every(({ group }) => new Set(group.map(place)).size === group.length)) {
      break;
    }
  }
  const all = [...by.values()];
  const varied = Array.from({ length: width }, (_, i) => i).filter(i => new Set(all.map(({ key }) => key[i])).size > 1);
  return all.map(({ key, group }) => [varied.map(i => key[i]).join(', '), [...group].sort((a, b) => place(a) - place(b))]);
}

function panel(all: readonly Entry[], keys: readonly Entry[], direction: Direction, title: string, group: readonly Shape[]): Panel {
  const at = new Map<string, Entry>();
  for (const entry of all) {
    const place = `${entry.key}\0${entry.timing.direction}\0${shapeKey(entry.timing.shape)}`;
    if (!at.has(place)) {
      at.set(place, entry);
    }
  }
  const of = (key: string, shape: Shape): Entry | null => at.get(`${key}\0${direction}\0${shapeKey(shape)}`) ?? null;
  const found = keys.map((e): Line => {
    const points = group.map((shape): Point => {
      const entry = of(e.key, shape);
      return { shape, entry, speed: entry ? speed(entry.bench, entry.timing) : null, wrong: entry !== null && isWrong(entry.timing) };
    });
    return { key: e.key, contender: e.timing.contender, label: e.label, style: e.style, points };
  });
  const peaks = group.map(shape => {
    const there = keys.map(e => of(e.key, shape)).find(e => e && peak(e.bench, e.timing));
    return there ? peak(there.bench, there.timing) : null;
  });
  const words = directionWords(direction);
  const drawn = found.filter(line => line.points.some(p => p.entry));
  return { title: title ? `${words}, ${title}` : words, direction, shapes: group, lines: drawn, peaks };
}

/** ` (✘ wrong at 2 of 6)`: what a look at the lines does not tell. */
function keptFrom(all: readonly Entry[], key: string): string {
  const timings = all.filter(e => e.key === key).map(e => e.timing);
  const ends = new Map<string, number>();
  for (const t of timings.filter(one => !usable(one))) {
    const end = isWrong(t) ? '✘ wrong' : t.status;
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }
  const parts = [...ends].map(([end, n]) => (timings.length === n ? end : `${end} at ${n} of ${timings.length}`));
  return parts.length ? ` (${parts.join(', ')})` : '';
}

// -- the axes -------------------------------------------------------------------------------------------------------------
/** Four to seven round numbers from zero. */
export function ticks(top: number): number[] {
  const start = 10 ** Math.floor(Math.log10(top / 2));
  const step = start * ([0.5, 1, 2, 2.5, 5].find(m => top / (start * m) <= 6) ?? 10);
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => Number(fixed(i * step, 9)));
}

/** Where x has a number: at every shape, or at the last and as many before it as don't touch. */
export function places(all: readonly Shape[], axis: Axis, most = 7): number[] {
  const values = all.map(s => s[axis]);
  const step = Math.max(1, Math.ceil(values.length / Math.max(1, most)));
  return values.filter((_, i) => (values.length - 1 - i) % step === 0);
}

export function axisTitle(page: Sheet, one: Panel): string {
  if (!page.axis) {
    return 'TFLOP/s';
  }
  return page.axis === 'Sq' && one.shapes.every(s => s.Sq === s.Skv) ? 'tokens (Sq = Skv)' : AXES[page.axis];
}
