/** One panel of lines over the swept axis: bands, dashed ceilings and peak, a hatched strip for what is wrong, a read-out that follows. */

import { h, svg } from '../../core/dom';
import type { Child } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import { KEYS } from '../actions';
import { axisTitle, places, ticks } from '../bench/series';
import type { Axis, Line, Panel, Sheet } from '../bench/series';
import type { Estimate } from '../bench/statistics';
import { PEAK } from '../bench/styles';
import { shown } from '../blocks';
import { general, grouped, number } from '../words/quantities';
import { cross, dash, marker } from './markers';
import { pointWords } from './said';

const HEIGHT = 320;
const LEFT = 58;
const RIGHT = 14;
const TOP = 8;
const BOTTOM = 46;
const STRIP = 22; // pixels for each contender that is wrong at one place

let made = 0;

export function linePanel(t: Translate, page: Sheet, panel: Panel, hidden: ReadonlySet<string>, width: number, first: boolean): HTMLElement {
  const axis = page.axis as Axis;
  const lines = panel.lines.filter(line => !hidden.has(line.key));
  const values = panel.shapes.map(shape => Math.max(1, shape[axis]));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max((high / low) ** 0.06, 1.07);
  const [start, end] = [Math.log(low / room), Math.log(high * room)];
  const x = (value: number): number => LEFT + ((Math.log(value) - start) / (end - start || 1)) * (width - LEFT - RIGHT);
  const wrongs = Math.max(0, ...panel.shapes.map((_, i) => panel.lines.filter(line => line.points[i]?.wrong).length));
  const strip = wrongs ? STRIP * wrongs : 0;
  const floor = HEIGHT - BOTTOM - strip;
  const top = page.top * 1.06;
  const y = (value: number): number => floor - (Math.min(value, top) / top) * (floor - TOP);
  const at = values.map(x);
  const body: Child[] = [];
  const hatch = `jp-Cute-hatch-${(made += 1)}`;

  for (const tick of ticks(top)) {
    body.push(svg('line', { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: tick ? 'jp-Cute-grid' : 'jp-Cute-axis' }));
    body.push(svg('text', { x: LEFT - 8, y: y(tick) + 4, 'text-anchor': 'end' }, grouped(general(tick, 6))));
  }
  const marks = new Set(places(panel.shapes, axis, Math.floor((width - LEFT - RIGHT) / 62)));
  values.forEach((value, i) => {
    body.push(svg('line', { x1: at[i], x2: at[i], y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5, class: 'jp-Cute-axis' }));
    if (marks.has(panel.shapes[i]?.[axis] ?? -1)) {
      body.push(svg('text', { x: at[i], y: HEIGHT - BOTTOM + 19, 'text-anchor': 'middle' }, number(value)));
    }
  });
  body.push(svg('text', { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, 'text-anchor': 'middle', class: 'jp-Cute-axisTitle' }, t.__(axisTitle(page, panel))));
  if (first) {
    body.push(svg('text', { x: 14, y: (TOP + floor) / 2, 'text-anchor': 'middle', transform: `rotate(-90 14 ${(TOP + floor) / 2})`, class: 'jp-Cute-axisTitle' }, 'TFLOP/s'));
  }
  if (strip) {
    body.push(
      svg('pattern', { id: hatch, width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('line', { x1: 0, x2: 0, y1: 0, y2: 7, class: 'jp-Cute-hatch' })),
      svg('rect', { x: LEFT, y: floor, width: width - LEFT - RIGHT, height: strip, fill: `url(#${hatch})` }),
      svg('text', { x: LEFT - 8, y: floor + strip / 2 + 4, 'text-anchor': 'end', class: 'jp-Cute-wrongWord' }, t.__('✘ wrong'))
    );
  }
  if (panel.peaks.some(Boolean) && !hidden.has('peak')) {
    body.push(...path(at, panel.peaks, y, { stroke: PEAK.colour, 'stroke-width': PEAK.width, 'stroke-dasharray': dash(PEAK) }));
  }
  for (const line of [...lines].reverse()) {
    body.push(...lineOf(line, at, y)); // ours is drawn last, on top
  }
  lines.forEach(line => line.points.forEach((point, i) => point.wrong && body.push(cross(line.style, at[i] as number, floor + depth(panel, line, i)))));
  const guide = svg('line', { class: 'jp-Cute-guide', y1: TOP, y2: HEIGHT - BOTTOM, x1: 0, x2: 0, visibility: 'hidden' });
  const picture = svg('svg', { class: 'jp-Cute-chart', viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, 'aria-hidden': 'true' }, ...body, guide);
  return withReadout(t, panel, lines, picture, guide, at, width, hidden);
}

/** Where in the strip a wrong contender stands, so that two at the same x don't cover each other. */
function depth(panel: Panel, line: Line, i: number): number {
  const above = panel.lines.slice(0, panel.lines.indexOf(line)).filter(other => other.points[i]?.wrong).length;
  return STRIP * (above + 0.5);
}

function runs(estimates: readonly (Estimate | null)[]): number[][] {
  const found: number[][] = [[]];
  estimates.forEach((e, i) => (e ? found[found.length - 1]?.push(i) : found.push([])));
  return found.filter(run => run.length);
}

function path(at: readonly number[], estimates: readonly (Estimate | null)[], y: (v: number) => number, pen: Record<string, string | number | null>): SVGElement[] {
  return runs(estimates).map(run =>
    svg('path', { ...pen, fill: 'none', 'stroke-linejoin': 'round', d: `M${run.map(i => `${at[i]?.toFixed(1)} ${y(estimates[i]?.median ?? 0).toFixed(1)}`).join('L')}` })
  );
}

function lineOf(line: Line, at: readonly number[], y: (v: number) => number): SVGElement[] {
  const { style } = line;
  const speeds = line.points.map(p => p.speed);
  const band = runs(speeds)
    .filter(run => run.length > 1)
    .map(run => {
      const side = (which: 'high' | 'low', order: readonly number[]): string[] => order.map(i => `${at[i]?.toFixed(1)} ${y(speeds[i]?.[which] ?? 0).toFixed(1)}`);
      return svg('path', { d: `M${[...side('high', run), ...side('low', [...run].reverse())].join('L')}Z`, fill: style.colour, 'fill-opacity': 0.16, stroke: 'none' });
    });
  const pen = { stroke: style.colour, 'stroke-width': style.width, 'stroke-dasharray': dash(style) };
  const dots = speeds.flatMap((e, i) => {
    const px = at[i] as number;
    return e ? [svg('line', { x1: px, x2: px, y1: y(e.low), y2: y(e.high), stroke: style.colour, 'stroke-width': 1.3 }), marker(style, px, y(e.median))] : [];
  });
  return [...band, ...path(at, speeds, y, pen), ...dots];
}

function withReadout(
  t: Translate,
  panel: Panel,
  lines: readonly Line[],
  picture: SVGElement,
  guide: SVGElement,
  at: readonly number[],
  width: number,
  hidden: ReadonlySet<string>
): HTMLElement {
  const box = h('div', { class: 'jp-Cute-tip', role: 'status', hidden: true });
  const element = h('div', { class: 'jp-Cute-plot', tabindex: 0, role: 'group', 'aria-label': t.__('Throughput, %1: arrow keys read the numbers', panel.title), ...KEYS }, picture, box);
  let current = -1;
  const show = (i: number): void => {
    if (i === current) {
      return;
    }
    current = i;
    box.hidden = i < 0;
    guide.setAttribute('visibility', i < 0 ? 'hidden' : 'visible');
    if (i >= 0) {
      const px = at[i] as number;
      guide.setAttribute('x1', String(px));
      guide.setAttribute('x2', String(px));
      box.replaceChildren(...pointWords(t, panel, lines, i, hidden));
      const left = px > width / 2;
      box.style.left = left ? '' : `${px + 12}px`;
      box.style.right = left ? `${width - px + 12}px` : '';
    }
  };
  element.addEventListener('pointermove', event => {
    const place = event.clientX - picture.getBoundingClientRect().left;
    const near = at.reduce((best, px, i) => (Math.abs(px - place) < Math.abs((at[best] as number) - place) ? i : best), 0);
    show(near);
  });
  element.addEventListener('pointerleave', () => show(-1));
  element.addEventListener('blur', () => show(-1));
  element.addEventListener('keydown', event => {
    const to: Record<string, number> = { ArrowRight: Math.min(at.length - 1, current + 1), ArrowLeft: Math.max(0, current - 1), Home: 0, End: at.length - 1, Escape: -1 };
    if (Object.hasOwn(to, event.key)) {
      event.preventDefault();
      event.stopPropagation();
      show(to[event.key] as number);
    }
  });
  return h('figure', { class: 'jp-Cute-plotPlace' }, h('figcaption', {}, shown(panel.title, 160)), element);
}
