/** Check: generated code against the user's function on the host, and every contender against float32 on the GPU. */

import { h, svg } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import type { Accuracy, CuteRecord } from '../../core/record';
import { KEYS } from '../actions';
import { drawn, empty, prose, shown, tableOf } from '../blocks';
import type { Tab } from '../tab';
import { accuracies, accuracyAbout, bands, checkBlocks } from '../words/checks';
import type { Accuracies } from '../words/checks';
import { head, missing } from '../words/page';
import { number } from '../words/quantities';

const HEADS = 16; // strips of one tensor

export const TAB: Tab = {
  id: 'check',
  title: t => t.__('Check'),
  render: (host, record, around) => {
    const t = around.trans;
    host.append(...(record.checks.length ? drawn(t, checkBlocks(t, record)) : [empty(missing(t, 'checks', record.name))]), ...onGpu(t, record));
    return { dispose: () => host.replaceChildren() };
  }
};

function onGpu(t: Translate, record: CuteRecord): HTMLElement[] {
  const { bench } = record;
  const title = drawn(t, [head(t.__('On the GPU'))]);
  if (!bench) {
    return [...title, empty(missing(t, 'bench', record.name))];
  }
  const found = accuracies(t, bench);
  const wrong = found.filter(one => one.wrong);
  const said = found.length
    ? wrong.length
      ? t.__('Wrong at %1 of %2: see below.', wrong.length, found.length)
      : t.__('Every contender that was checked is right at each of the %1 shapes and directions.', found.length)
    : '';
  const about = accuracyAbout(t, found.length > 0).map(line => h('p', {}, ...prose(line)));
  const open = wrong.length ? wrong : found.slice(0, 1);
  return [
    ...title,
    said ? h('p', { class: wrong.length ? 'jp-Cute-bad' : 'jp-Cute-good' }, said) : h('p'),
    h('div', { class: 'jp-Cute-lines jp-Cute-dim' }, ...about),
    ...found.map(one => group(t, one, open.includes(one)))
  ];
}

function group(t: Translate, one: Accuracies, open: boolean): HTMLElement {
  const title = `${one.wrong ? '✘' : '✔'} ${one.title}`;
  const body = h('div');
  const details = h(
    'details',
    { class: 'jp-Cute-fold', open },
    h('summary', { ...KEYS, class: one.wrong ? 'jp-Cute-bad' : null }, shown(title, 200)),
    body
  );
  const fill = (): void => {
    if (details.open && !body.childElementCount) {
      if (one.table.kind === 'table') {
        body.append(tableOf(t, one.table));
      }
      if (one.strips.length) {
        body.append(legend(t), ...one.strips.map(strip => errorMap(t, strip.label, strip.accuracy)));
      }
    }
  };
  details.addEventListener('toggle', fill);
  fill();
  return details;
}

function legend(t: Translate): HTMLElement {
  const words = [t.__('within it'), t.__('to 3 times'), t.__('to 10 times'), t.__('above, or no number')];
  return h(
    'p',
    { class: 'jp-Cute-errorKey' },
    t.__("A strip runs over a head's rows. Error there, by the reference's own largest:"),
    ...words.map((word, i) => h('span', { class: 'jp-Cute-errorWord' }, h('span', { class: `jp-Cute-swatch jp-Cute-error${i}` }), word))
  );
}

/** One strip a head; where the contender and float32 differ. */
function errorMap(t: Translate, label: string, a: Accuracy): HTMLElement {
  const heads = a.where.slice(0, HEADS);
  const more = a.where.length - heads.length;
  const wide = 640;
  const high = 12;
  const picture = svg(
    'svg',
    {
      class: 'jp-Cute-errorMap',
      viewBox: `0 0 ${wide + 70} ${heads.length * (high + 3) + 2}`,
      role: 'img',
      'aria-label': t.__('%1, %2: where the error is, for %3 heads', label, shown(a.tensor, 20), heads.length)
    },
    ...heads.flatMap((rows, i) => {
      const found = bands(rows, a.reference_max_error, 128);
      const step = wide / Math.max(1, found.length);
      const y = i * (high + 3);
      return [
        svg('text', { x: 0, y: y + 10, class: 'jp-Cute-errorHead' }, t.__('head %1', i + 1)),
        ...found.map((shade, n) => svg('rect', { x: 66 + n * step, y, width: Math.max(0.5, step - 0.4), height: high, class: `jp-Cute-error${shade}` }))
      ];
    })
  );
  return h(
    'figure',
    { class: 'jp-Cute-figure' },
    h('figcaption', {}, shown(`${label}, ${a.tensor}`, 120), h('span', { class: 'jp-Cute-dim' }, ` · ${shown(a.worst, 120)}`)),
    heads.length ? picture : h('p', { class: 'jp-Cute-dim' }, t.__('No map of this error was recorded.')),
    more > 0 && h('p', { class: 'jp-Cute-dim' }, t._n('%2 more head', '%2 more heads', more, number(more)))
  );
}
