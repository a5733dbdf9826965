/** A benchmark as a picture: panels side by side where there is room, and a legend whose buttons show and hide contenders. */

import { Disposables, h } from '../../core/dom';
import type { Disposable } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import { KEYS } from '../actions';
import { sheet } from '../bench/series';
import type { Entry } from '../bench/series';
import { PEAK } from '../bench/styles';
import { shown } from '../blocks';
import { barPanel } from './bars';
import { linePanel } from './panel';
import { swatch } from './said';

const NARROW = 340; // pixels: a panel is not narrower

export function chart(t: Translate, host: HTMLElement, entries: readonly Entry[]): Disposable {
  const ends = new Disposables();
  const page = sheet(entries);
  const hidden = new Set<string>();
  const place = h('div', { class: 'jp-Cute-plots' });
  const draw = (): void => {
    const across = Math.max(1, ...page.rows.map(row => row.length));
    const whole = Math.max(260, place.clientWidth || 900);
    const columns = Math.max(1, Math.min(across, Math.floor(whole / NARROW)));
    const width = Math.floor((whole - 12 * (columns - 1)) / columns);
    const panels = page.rows.flatMap(row =>
      row.map((panel, i) => (page.axis ? linePanel(t, page, panel, hidden, width, i % columns === 0) : barPanel(t, page, panel, hidden, width)))
    );
    place.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    place.replaceChildren(...panels);
  };
  const toggle = (key: string, button: HTMLElement): void => {
    if (!hidden.delete(key)) {
      hidden.add(key);
    }
    button.setAttribute('aria-pressed', String(!hidden.has(key)));
    draw();
  };
  const items = [
    ...page.names.map(name => ({ key: name.key, label: name.label, kept: name.kept, style: name.style })),
    ...(page.rows.flat().some(panel => panel.peaks.some(Boolean)) ? [{ key: 'peak', label: t.__('cuBLAS peak, measured'), kept: '', style: PEAK }] : [])
  ];
  const buttons = items.map(item => {
    const button: HTMLElement = h(
      'button',
      { class: 'jp-Cute-legendItem', type: 'button', ...KEYS, 'aria-pressed': 'true', title: t.__('Show or hide'), onclick: () => toggle(item.key, button) },
      swatch(item.style),
      h('span', {}, shown(item.label, 80), item.kept && h('span', { class: item.kept.includes('✘') ? 'jp-Cute-bad' : 'jp-Cute-dim' }, shown(item.kept, 80)))
    );
    return button;
  });
  host.append(h('div', { class: 'jp-Cute-legend', role: 'group', 'aria-label': t.__('Contenders') }, ...buttons), place);
  if (page.leftOut) {
    host.append(h('p', { class: 'jp-Cute-dim' }, t._n('%2 more row of shapes is not drawn; the table has it.', '%2 more rows of shapes are not drawn; the table has them.', page.leftOut, page.leftOut)));
  }
  draw();
  if (typeof ResizeObserver === 'function') {
    let last = place.clientWidth;
    const observer = new ResizeObserver(() => {
      if (Math.abs(place.clientWidth - last) > 2) {
        last = place.clientWidth;
        draw();
      }
    });
    observer.observe(place);
    ends.add(() => observer.disconnect());
  }
  return ends;
}
