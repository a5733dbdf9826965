/** What the read-out says of one place of a chart: the contenders there, the fastest first. */

import { h, svg } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import { against, checkWords } from '../bench/series';
import type { Line, Panel, Point } from '../bench/series';
import { OURS, verdict } from '../bench/statistics';
import type { Estimate } from '../bench/statistics';
import { PEAK } from '../bench/styles';
import { shown } from '../blocks';
import { shapeWords } from '../words/common';
import { general, grouped, oneLine } from '../words/quantities';
import { dash, marker } from './markers';

export function figure(value: number): string {
  return grouped(general(value, 4));
}

export function speedWords(e: Estimate): string {
  return `${figure(e.median)} [${figure(e.low)}, ${figure(e.high)}]`;
}

export function swatch(style: Line['style']): SVGElement {
  const pen = { stroke: style.colour, 'stroke-width': Math.min(style.width, 3), 'stroke-dasharray': dash(style) };
  return svg('svg', { class: 'jp-Cute-swatchLine', viewBox: '0 0 30 14', width: 30, height: 14, 'aria-hidden': 'true' }, svg('line', { x1: 1, x2: 29, y1: 7, y2: 7, ...pen }), style.marker ? marker(style, 15, 7) : null);
}

export function statusWords(t: Translate, point: Point): string {
  const timing = point.entry?.timing;
  if (!timing) {
    return t.__('not there');
  }
  const status = point.wrong ? t.__('✘ wrong: no speed') : timing.status;
  return timing.reason ? `${status}. ${oneLine(timing.reason, 90)}` : status;
}

export function pointWords(t: Translate, panel: Panel, lines: readonly Line[], i: number, hidden: ReadonlySet<string>): HTMLElement[] {
  const shape = panel.shapes[i];
  const found = lines
    .flatMap(line => {
      const point = line.points[i];
      return point?.entry ? [{ line, point }] : [];
    })
    .sort((a, b) => (b.point.speed?.median ?? -1) - (a.point.speed?.median ?? -1));
  const rows = found.map(({ line, point }) => {
    const entry = point.entry;
    const ratio = entry && line.contender !== OURS ? verdict(against(entry.bench, entry.timing)) : '';
    return h(
      'tr',
      {},
      h('td', {}, swatch(line.style)),
      h('th', { scope: 'row' }, shown(line.label, 60)),
      h('td', { class: 'jp-Cute-right' }, point.speed ? speedWords(point.speed) : statusWords(t, point)),
      h('td', {}, ratio.startsWith('no') || !ratio ? ratio : t.__('cute_lab %1', ratio)),
      h('td', { class: 'jp-Cute-dim' }, entry ? checkWords(entry.timing).replace(/^([✔✘]).*/, '$1') : '')
    );
  });
  const peak = panel.peaks[i];
  if (peak && !hidden.has('peak')) {
    rows.push(h('tr', {}, h('td', {}, swatch(PEAK)), h('th', { scope: 'row' }, t.__('cuBLAS peak, measured')), h('td', { class: 'jp-Cute-right' }, speedWords(peak)), h('td'), h('td')));
  }
  return [h('p', { class: 'jp-Cute-tipHead' }, shape ? shown(shapeWords(shape), 120) : '', h('span', { class: 'jp-Cute-dim' }, ` · ${panel.title} · TFLOP/s`)), h('table', {}, h('tbody', {}, ...rows))];
}
