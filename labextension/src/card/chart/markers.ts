/** Markers and dashes by plotly's names, which the table of styles uses: one look in every front end. */

import { svg } from '../../core/dom';
import type { Style } from '../bench/styles';

const TURN = 2 * Math.PI;

function polygon(n: number, r: number, start: number, inner = 0): string {
  const steps = inner ? 2 * n : n;
  const points = Array.from({ length: steps }, (_, i) => {
    const radius = inner && i % 2 ? inner : r;
    const angle = start + (TURN * i) / steps;
    return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
  });
  return `M${points.join('L')}Z`;
}

const UP = -TURN / 4;

const SHAPES: Readonly<Record<string, (r: number) => string>> = {
  circle: r => `M${-r} 0A${r} ${r} 0 1 0 ${r} 0A${r} ${r} 0 1 0 ${-r} 0Z`,
  square: r => `M${-0.85 * r} ${-0.85 * r}H${0.85 * r}V${0.85 * r}H${-0.85 * r}Z`,
  diamond: r => polygon(4, 1.2 * r, UP),
  'triangle-up': r => polygon(3, 1.2 * r, UP),
  'triangle-down': r => polygon(3, 1.2 * r, -UP),
  'triangle-left': r => polygon(3, 1.2 * r, TURN / 2),
  pentagon: r => polygon(5, 1.1 * r, UP),
  hexagon: r => polygon(6, 1.1 * r, UP),
  star: r => polygon(5, 1.35 * r, UP, 0.6 * r),
  cross: r => `M${-r} ${-r / 3}H${-r / 3}V${-r}H${r / 3}V${-r / 3}H${r}V${r / 3}H${r / 3}V${r}H${-r / 3}V${r / 3}H${-r}Z`,
  bowtie: r => `M${-r} ${-r}L${r} ${r}V${-r}L${-r} ${r}Z`
};

export function marker(style: Style, x: number, y: number, size = style.size): SVGElement {
  const open = style.marker.endsWith('-open');
  const name = style.marker.replace(/-open$/, '');
  const shape = SHAPES[Object.hasOwn(SHAPES, name) ? name : 'circle'] as (r: number) => string;
  return svg('path', {
    d: shape(size / 2),
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    fill: open ? 'var(--jp-Cute-ground)' : style.colour,
    stroke: style.colour,
    'stroke-width': open ? 2 : 1
  });
}

const DASHES: Readonly<Record<string, string>> = { dot: '2 4', dash: '8 5', longdash: '14 6', dashdot: '8 4 2 4' };

export function dash(style: Style): string | null {
  return Object.hasOwn(DASHES, style.dash) ? (DASHES[style.dash] as string) : null;
}

/** The x of what is wrong. */
export function cross(style: Style, x: number, y: number, r = 5): SVGElement {
  return svg('path', {
    d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`,
    stroke: style.colour,
    'stroke-width': 3,
    'stroke-linecap': 'round',
    fill: 'none'
  });
}
