/** Throughput: the chart of the raw samples, and the table with what a chart can't hold. */

import { h } from '../../core/dom';
import type { Disposable } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import type { Bench } from '../../core/record';
import { copyButton, download, fileName, KEYS } from '../actions';
import { directions, directionWords, entries, isWrong, shapes, speed } from '../bench/series';
import { OURS, sameShape, tflops } from '../bench/statistics';
import { drawn, empty, prose, shown } from '../blocks';
import { chart } from '../chart/chart';
import type { Tab } from '../tab';
import { shapeWords } from '../words/common';
import { missing } from '../words/page';
import type { Block } from '../words/page';
import { after, nothing, seen, shownSpeed, tables } from '../words/timings';

export const TAB: Tab = {
  id: 'throughput',
  title: t => t.__('Throughput'),
  render: (host, record, around): Disposable => {
    const t = around.trans;
    const { bench } = record;
    if (!bench || !bench.timings.length) {
      const words = bench ? nothing(t, bench) : [missing(t, 'bench', record.name)];
      host.append(...words.map(line => empty(line)));
      return { dispose: () => host.replaceChildren() };
    }
    host.append(h('div', { class: 'jp-Cute-lines' }, ...seen(t, bench).map(line => h('p', {}, ...prose(line)))));
    const made = chart(t, host, entries(bench));
    const csv = (): string => csvOf(bench);
    const save = h('button', { class: 'jp-Cute-button', type: 'button', ...KEYS, onclick: () => download(fileName(record.name, '.csv'), csv(), 'text/csv') }, t.__('Download CSV'));
    host.append(h('div', { class: 'jp-Cute-bar' }, copyButton(t, csv, t.__('Copy the samples as CSV')), save));
    host.append(...folded(t, bench), fold(t, bench));
    return { dispose: () => (made.dispose(), host.replaceChildren()) };
  }
};

/** A table for each direction and shape: the largest shape's is open, the others are one line with our speed. */
function folded(t: Translate, bench: Bench): HTMLElement[] {
  const parts: { title: string; blocks: Block[] }[] = [];
  for (const block of tables(t, bench)) {
    if (block.kind === 'head') {
      parts.push({ title: block.text, blocks: [] });
    } else {
      parts[parts.length - 1]?.blocks.push(block);
    }
  }
  const all = directions(bench).flatMap(direction => shapes(bench).map(shape => ({ direction, shape })));
  const largest = shapes(bench).map(shapeWords).pop() ?? '';
  return parts.map(({ title, blocks }) => {
    const at = all.find(one => title === `${directionWords(one.direction)} · ${shapeWords(one.shape)}`);
    const ours = at && bench.timings.find(one => one.contender === OURS && one.direction === at.direction && sameShape(one.shape, at.shape));
    const words = ours ? ` · cute_lab ${shownSpeed(t, bench, ours)}${speed(bench, ours) ? ' TFLOP/s' : ''}` : '';
    const wrong = at && bench.timings.some(one => one.direction === at.direction && sameShape(one.shape, at.shape) && isWrong(one));
    const details = h(
      'details',
      { class: 'jp-Cute-fold', open: title.endsWith(` · ${largest}`) },
      h('summary', { ...KEYS }, h('strong', {}, shown(title, 160)), h('span', { class: 'jp-Cute-dim' }, words), wrong ? h('span', { class: 'jp-Cute-bad' }, t.__(' · ✘ a contender is wrong')) : null),
      ...drawn(t, blocks)
    );
    return details;
  });
}

function fold(t: Translate, bench: Bench): HTMLElement {
  return h('details', { class: 'jp-Cute-fold' }, h('summary', { ...KEYS }, t.__('How it was measured, the work, and the command that repeats it')), ...drawn(t, after(t, bench)));
}

/** A row for each timing: estimates and all samples. */
export function csvOf(bench: Bench): string {
  const head = 'device,contender,label,direction,B,H,Hkv,Sq,Skv,D,dtype,status,wrong,tflops,tflops_low,tflops_high,compile_seconds,samples_us';
  const rows = bench.timings.map(one => {
    const e = speed(bench, one) && tflops(bench, one);
    const s = one.shape;
    const cells = [bench.device, one.contender, one.label, one.direction, s.B, s.H, s.Hkv, s.Sq, s.Skv, s.D, s.dtype, one.status, isWrong(one)];
    return [...cells, e?.median ?? '', e?.low ?? '', e?.high ?? '', one.compile_seconds, one.samples_us.join(' ')].map(quoted).join(',');
  });
  return `${[head, ...rows].join('\r\n')}\r\n`;
}

/** A leading = + - @ of a text would be a formula to a spreadsheet. */
function quoted(value: string | number | boolean): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
