/** From raw samples to numbers that can be compared, exactly as cute_lab/throughput.py: sign-test intervals, ratios round by round. */

import type { Bench, Shape, Timing } from '../../core/record';
import { fixed } from '../words/quantities';

export type Direction = Timing['direction'];
export type Work = Bench['work'][number];

/** Matrix products relative to the forward's two (Q K^T, P V); the backward has five. */
export const PASSES: Readonly<Record<Direction, number>> = { forward: 1.0, backward: 2.5, 'forward+backward': 3.5 };
const CONFIDENCE = 0.95;
export const OURS = 'cute_lab';

/** A median and the interval that holds it with 95 % confidence. */
export interface Estimate {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Half the interval over the median. */
export function spread(e: Estimate): number {
  return e.median ? (e.high - e.low) / 2 / e.median : 0;
}

/** P(Binomial(n, 1/2) <= k), by logarithms: n may be large. */
function tail(n: number, k: number): number {
  let log = -n * Math.LN2;
  let sum = 0;
  for (let i = 0; i <= k; i++) {
    sum += Math.exp(log);
    log += Math.log((n - i) / (i + 1));
  }
  return sum;
}

/** For n samples the k-th smallest and k-th largest enclose the median with probability 1 - 2 P(Binomial(n, 1/2) < k). */
function rank(n: number): number {
  let k = 1;
  while (k < Math.floor(n / 2) && 1 - 2 * tail(n, k) >= CONFIDENCE) {
    k += 1;
  }
  return k;
}

const RANKS = new Map<number, number>();

export function estimate(samples: readonly number[]): Estimate {
  const ordered = [...samples].sort((a, b) => a - b);
  const n = ordered.length;
  const k = RANKS.get(n) ?? rank(n);
  RANKS.set(n, k);
  return { median: median(ordered), low: ordered[k - 1] ?? NaN, high: ordered[n - k] ?? NaN };
}

/** Of ordered values. */
export function median(ordered: readonly number[]): number {
  const n = ordered.length;
  const upper = ordered[Math.floor(n / 2)] ?? NaN;
  return n % 2 ? upper : ((ordered[n / 2 - 1] ?? NaN) + upper) / 2;
}

export function sameShape(a: Shape, b: Shape): boolean {
  return shapeKey(a) === shapeKey(b);
}

export function shapeKey(s: Shape): string {
  return JSON.stringify([s.B, s.H, s.Hkv, s.Sq, s.Skv, s.D, s.dtype]);
}

/** 4 D FLOP per kept cell forward (two products of D multiply-adds), 2.5 times that backward. */
function flops(work: Work, direction: Direction, cells = work.kept_cells): number {
  return 4 * work.shape.D * cells * PASSES[direction];
}

/** TFLOP/s over the cells that the mask keeps; null without samples. */
export function tflops(bench: Bench, timing: Timing): Estimate | null {
  const work = bench.work.find(w => sameShape(w.shape, timing.shape));
  if (!timing.samples_us.length || !work) {
    return null;
  }
  const count = flops(work, timing.direction);
  return estimate(timing.samples_us.map(us => count / us / 1e6));
}

/** How many times faster `fast` is, from the quotients of the same rounds (the card's clock drifts, the round shares it). */
export function ratio(fast: Timing, base: Timing): Estimate | null {
  const n = Math.min(fast.samples_us.length, base.samples_us.length);
  return n ? estimate(base.samples_us.slice(0, n).map((us, i) => us / (fast.samples_us[i] as number))) : null;
}

/** `1.31× [1.29, 1.33]`, or that there is no difference. */
export function verdict(found: Estimate | null): string {
  if (!found) {
    return '';
  }
  const shown = `${fixed(found.median, 2)}× [${fixed(found.low, 2)}, ${fixed(found.high, 2)}]`;
  return found.low <= 1 && found.high >= 1 ? `no difference ${shown}` : shown;
}

/** The card's own measured rate of a dense product in the same rounds. */
export function peak(bench: Bench, timing: Pick<Timing, 'shape' | 'direction'>): Estimate | null {
  const found = bench.peaks.find(p => p.direction === timing.direction && p.samples_tflops.length && sameShape(p.shape, timing.shape));
  return found ? estimate(found.samples_tflops) : null;
}

/** The same measurement of another contender. */
export function find(bench: Bench, contender: string, like: Timing): Timing | null {
  return bench.timings.find(t => t.contender === contender && t.direction === like.direction && sameShape(t.shape, like.shape)) ?? null;
}
