/** Four to eight plain sentences: is it right, how much is computed, what the compilers said, how fast, what to change. */

import type { Translate } from '../../core/i18n';
import type { Bench, BlockSummary, Check, CuteRecord, Note, Shape, TargetReport, Timing } from '../../core/record';
import { against, CEILINGS, isWrong, labelOf, shareOfPeak, speed, usable } from '../bench/series';
import { OURS, shapeKey, verdict } from '../bench/statistics';
import type { Direction, Estimate } from '../bench/statistics';
import { architecture, noBlocks, noteWords, place, points, registerWords, shapeWords } from './common';
import { heavySummary } from './heavy';
import { missing } from './page';
import { exact, general, number, oneLine, percent, rounded, short, whole } from './quantities';

/** A sentence with its mark, and the tab that proves it. */
export interface Said {
  readonly mark: string;
  readonly text: string;
  readonly tab: string;
  /** Code of several lines to write instead. */
  readonly fix?: string;
}

export function summary(t: Translate, record: CuteRecord): Said[] {
  return [
    ...checkLines(t, record.checks, record.name),
    mask(t, record),
    ...targets(t, record),
    ...speeds(t, record.bench),
    ...advised(record).map(note => noted(t, note))
  ];
}

/** What to change: the last lines of the summary. */
export function advised(record: CuteRecord): Note[] {
  const compiled = record.targets.filter(target => target.status === 'compiled');
  return [...record.notes.filter(note => !awaited(note)), ...compiled.flatMap(target => target.advice)];
}

/** The captured numbers by name; another value is another run of the same cell. */
export function paramWords(record: CuteRecord): string {
  const value = (v: boolean | number): string => general(Number(v), 6);
  return record.params
    .slice(0, 6)
    .map(p => ` · ${p.name}=${value(p.value)}`)
    .join('');
}

function evidence(t: Translate, check: Check): string {
  const seen = points(t, check.points);
  return check.max_rel_error === 0
    ? t.__('%1, no difference', seen)
    : t.__('%1, worst %2%3', seen, short(check.max_rel_error), place(check.worst));
}

export function checkLines(t: Translate, checks: readonly Check[], name: string): Said[] {
  if (!checks.length) {
    return [{ mark: '○', text: missing(t, 'checks', name), tab: 'check' }];
  }
  const found = checks.filter(c => !c.ok).map((c): Said => ({ mark: '✘', text: difference(t, c), tab: 'check' }));
  const forward = checks.filter(c => c.ok && c.name !== 'score_mod_bwd');
  const backward = checks.filter(c => c.ok && c.name === 'score_mod_bwd');
  if (forward.length === 1) {
    const line = t.__('The generated CuTeDSL equals your function (%1)', evidence(t, forward[0] as Check));
    found.push({ mark: '✔', text: line + (backward.length ? t.__('; backward too.') : '.'), tab: 'check' });
  } else if (forward.length || backward.length) {
    const parts = [...forward, ...backward].map(c => `\`${c.name}\` (${evidence(t, c)})`);
    found.push({ mark: '✔', text: t.__('The generated CuTeDSL equals your functions: %1.', parts.join(', ')), tab: 'check' });
  }
  return found;
}

function difference(t: Translate, check: Check): string {
  const at = check.worst;
  const seen = at ? t.__(': expected %1, got %2%3', exact(at.expected), exact(at.got), place(at)) : '';
  return (
    t.__('`%1` differs from your function%2. Worst error %3, ', check.name, seen, short(check.max_rel_error)) +
    t.__('tolerance %1, %2. Do not use this kernel.', short(check.tolerance), points(t, check.points))
  );
}

function mask(t: Translate, record: CuteRecord): Said {
  return { mark: '▦', text: record.blocks ? maskWords(t, record.blocks, record.shape) : noBlocks(t, record), tab: 'mask' };
}

export function maskWords(t: Translate, blocks: BlockSummary, shape: Shape): string {
  const square = shape.Sq === shape.Skv ? `${number(shape.Sq)}²` : `${number(shape.Sq)} × ${number(shape.Skv)}`;
  const maps = [
    blocks.Bm > 1 ? t._n('%2 batch', '%2 batches', blocks.Bm, number(blocks.Bm)) : '',
    blocks.Hm > 1 ? t._n('%2 head', '%2 heads', blocks.Hm, number(blocks.Hm)) : ''
  ].filter(Boolean);
  const over = maps.length ? t.__(', mean over %1', maps.join(' × ')) : '';
  const all = blocks.Bm * blocks.Hm * blocks.nq * blocks.nkv;
  const kept = blocks.total_cells ? blocks.kept_cells / blocks.total_cells : 0;
  const issued = 1 - (all ? blocks.empty / all : 0);
  return (
    t.__('%1 of %2 is kept%3; the kernel issues %4 ', percent(kept), square, over, percent(issued)) +
    t.__('(%1×%2 blocks: %3 partial, ', blocks.block_q, blocks.block_kv, number(blocks.partial)) +
    t.__('%1 full, %2 skipped).', number(blocks.full), number(blocks.empty))
  );
}

/** It stands for machine code that is not there yet. */
const awaited = (note: Note): boolean => note.text.startsWith('⚙');

function targets(t: Translate, { targets: all, notes, name }: CuteRecord): Said[] {
  if (!all.length) {
    const said = notes.filter(awaited).map(note => note.text.slice(1).trim());
    return (said.length ? said : [missing(t, 'targets', name)]).map(text => ({ mark: '⚙', text, tab: 'machine' }));
  }
  const found: Said[] = [];
  for (const direction of ['forward', 'backward'] as const) {
    const told = all.filter(r => r.status === 'compiled' && r.direction === direction).map(r => machine(t, r));
    if (told.length) {
      found.push({ mark: '⚙', text: `${direction === 'backward' ? t.__('Backward: ') : ''}${told.join(' ')}`, tab: 'machine' });
    }
  }
  const refused = all.filter(r => r.status !== 'compiled');
  return [
    ...found,
    ...refused.map((r): Said => {
      const advice = r.advice.map(note => ` ${noteWords(t, note)}`).join('');
      const fix = r.advice.find(note => note.fix.includes('\n'))?.fix;
      return { mark: '⊘', text: `${architecture(r.target)}, ${r.direction}: ${r.status}. ${r.reason}${advice}`, tab: 'machine', ...(fix && { fix }) };
    })
  ];
}

function machine(t: Translate, report: TargetReport): string {
  const said = registerWords(t, report);
  return `${architecture(report.target)}: ${[...said, heavySummary(t, report.line_cost)].filter(Boolean).join(', ')}.`;
}

/** The largest shape's, forward and with the backward; not one, if the kernel was wrong anywhere in that direction. */
function speeds(t: Translate, bench: Bench | null): Said[] {
  if (!bench) {
    return [];
  }
  const shown: Direction[] = ['forward', 'forward+backward'];
  return shown
    .map(direction => bench.timings.filter(one => one.contender === OURS && one.direction === direction))
    .filter(ours => ours.length)
    .map(ours => ({ ...speedOf(t, bench, ours), tab: 'throughput' }));
}

/** The one that stands for the direction: usable, and of the largest shape. */
export function largest(ours: readonly Timing[]): Timing {
  const size = (one: Timing): number => one.shape.Sq * one.shape.Skv * one.shape.B * one.shape.H * one.shape.D;
  return ours.reduce((best, one) => {
    const [a, b] = [Number(usable(best)), Number(usable(one))];
    return b > a || (b === a && size(one) > size(best)) ? one : best;
  });
}

function speedOf(t: Translate, bench: Bench, ours: readonly Timing[]): { mark: string; text: string } {
  const device = oneLine(bench.device, 60);
  const start = ours[0]?.direction === 'forward' ? '' : t.__('Forward + backward: ');
  const wrong = ours.find(isWrong);
  if (wrong) {
    const said = wrong.reason ? ` ${oneLine(wrong.reason)}` : '';
    const text = t.__('%1, %2: it did not pass the check on the GPU, so no speed is shown.', device, shapeWords(wrong.shape));
    return { mark: '✘', text: `${start}${text}${said}` };
  }
  const best = largest(ours);
  const reached = speed(bench, best);
  if (!reached) {
    if (best.status === 'checked') {
      return { mark: '○', text: start + t.__('It passed the check on %1; it was not timed.', device) };
    }
    const status = best.status === 'timed' ? t.__('no usable sample') : best.status;
    return { mark: '⊘', text: `${start}${t.__('Not measured on %1: %2.', device, status)} ${oneLine(best.reason)}`.trimEnd() };
  }
  const here = bench.timings.filter(one => one.direction === best.direction && shapeKey(one.shape) === shapeKey(best.shape));
  const others = here.filter(one => !one.contender.startsWith(OURS));
  const rivals = others.filter(one => !CEILINGS.includes(one.contender) && usable(one)).slice(0, 3);
  const said = rivals.map(one => rival(t, against(bench, one), labelOf(one)));
  for (const one of others.filter(other => CEILINGS.includes(other.contender))) {
    const found = against(bench, one);
    if (found) {
      said.push(of(t, found.median, labelOf(one)));
    }
  }
  const share = shareOfPeak(bench, best);
  if (share) {
    said.push(of(t, share, t.__('the cuBLAS peak')));
  }
  const several = new Set(bench.timings.map(one => shapeKey(one.shape))).size > 1;
  const at = several ? t.__(' at %1', shapeWords(best.shape)) : '';
  const checked = best.accuracy.length ? '' : t.__(', not checked,');
  const words = t.__('%1 TFLOP/s%2 on %3%4', whole(reached.median), checked, device, at);
  return { mark: '⏱', text: `${start}${words}${said.length ? ': ' : ''}${said.join(', ')}.` };
}

function of(t: Translate, share: number, what: string): string {
  return t.__('%1 of %2', percent(share > 0.01 ? rounded(share, 2) : share), what);
}

function rival(t: Translate, found: Estimate | null, label: string): string {
  const said = verdict(found);
  const same = said.replace(/^no difference /, '');
  return same === said ? `${said} ${label}` : t.__('no difference from %1 (%2)', label, same);
}

function noted(t: Translate, note: Note): Said {
  const fix = note.fix.includes('\n') ? note.fix : '';
  return { mark: note.level === 'warning' ? '⚠' : '💡', text: noteWords(t, note), tab: note.line ? 'code' : '', ...(fix && { fix }) };
}
