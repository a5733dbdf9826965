/** One shape: a bar for each contender, its interval, and the card's own peak as a dashed line. */

import { h, svg } from '../../core/dom';
import type { Child } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import { CEILINGS, ticks } from '../bench/series';
import type { Line, Panel, Sheet } from '../bench/series';
import { PEAK } from '../bench/styles';
import { shown } from '../blocks';
import { general, grouped, whole } from '../words/quantities';
import { cross, dash } from './markers';
import { speedWords, statusWords } from './said';

const BAR = 30;
const TOP = 18;
const BOTTOM = 40;

function barHeight(lines: number): number {
  return TOP + BAR * Math.max(1, lines) + BOTTOM;
}

export function barPanel(t: Translate, page: Sheet, panel: Panel, hidden: ReadonlySet<string>, width: number): HTMLElement {
  const lines = panel.lines.filter(line => !hidden.has(line.key));
  const height = barHeight(page.names.length);
  const floor = TOP + BAR * Math.max(1, lines.length);
  const left = Math.min(200, Math.max(90, width * 0.28));
  const top = page.top * 1.2;
  const x = (value: number): number => left + (Math.min(value, top) / top) * (width - left - 12);
  const body: Child[] = ticks(page.top * 1.06).flatMap(tick => [
    svg('line', { x1: x(tick), x2: x(tick), y1: TOP - 4, y2: floor, class: tick ? 'jp-Cute-grid' : 'jp-Cute-axis' }),
    svg('text', { x: x(tick), y: floor + 17, 'text-anchor': 'middle' }, grouped(general(tick, 6)))
  ]);
  body.push(svg('text', { x: (left + width) / 2, y: floor + 35, 'text-anchor': 'middle', class: 'jp-Cute-axisTitle' }, 'TFLOP/s'));
  lines.forEach((line, row) => body.push(...bar(t, line, TOP + BAR * row, x, left, width)));
  const peak = panel.peaks[0];
  if (peak && !hidden.has('peak')) {
    const px = x(peak.median);
    body.push(
      svg('line', { x1: px, x2: px, y1: TOP - 4, y2: floor, stroke: PEAK.colour, 'stroke-width': PEAK.width, 'stroke-dasharray': dash(PEAK) }),
      svg('text', { x: px - 5, y: TOP - 6, 'text-anchor': 'end' }, t.__('cuBLAS %1', whole(peak.median)))
    );
  }
  const words = lines.map(line => `${line.label}: ${line.points[0]?.speed ? speedWords(line.points[0].speed) : line.points[0] ? statusWords(t, line.points[0]) : ''}`);
  const picture = svg('svg', { class: 'jp-Cute-chart', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': shown(`${panel.title}: ${words.join('; ')}`, 2_000) }, ...body);
  return h('figure', { class: 'jp-Cute-plotPlace' }, h('figcaption', {}, shown(panel.title, 160)), picture);
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function bar(t: Translate, line: Line, y: number, x: (v: number) => number, left: number, width: number): SVGElement[] {
  const point = line.points[0];
  const e = point?.speed;
  const middle = y + BAR / 2;
  const most = Math.max(8, Math.floor(left / 7.2));
  const label = cut(line.label, most);
  const found: SVGElement[] = [svg('text', { x: left - 8, y: middle + 4, 'text-anchor': 'end', class: 'jp-Cute-barLabel' }, svg('title', {}, line.label), label)];
  if (!point) {
    return found;
  }
  if (!e) {
    return [...found, ...(point.wrong ? [cross(line.style, left + 12, middle)] : []), svg('text', { x: left + (point.wrong ? 26 : 8), y: middle + 4, class: 'jp-Cute-barNote' }, cut(statusWords(t, point), Math.max(8, Math.floor((width - left - 30) / 6.4))))];
  }
  const ceiling = CEILINGS.includes(line.contender);
  const ink = { fill: line.style.colour, 'fill-opacity': ceiling ? 0.12 : 0.55, stroke: line.style.colour, 'stroke-width': 1.5, 'stroke-dasharray': ceiling || line.style.marker.endsWith('-open') ? dash(line.style) : null };
  return [
    ...found,
    svg('rect', { x: left, y: y + 6, width: Math.max(1, x(e.median) - left), height: BAR - 12, ...ink }, svg('title', {}, `${line.label}: ${speedWords(e)} TFLOP/s`)),
    svg('path', { d: `M${x(e.low)} ${middle}H${x(e.high)}M${x(e.low)} ${middle - 4}V${middle + 4}M${x(e.high)} ${middle - 4}V${middle + 4}`, class: 'jp-Cute-whisker' }),
    svg('text', { x: x(e.high) + 7, y: middle + 4, class: 'jp-Cute-barNumber' }, whole(e.median))
  ];
}
