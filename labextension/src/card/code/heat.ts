/** What each line of the cell costs, as bars beside the line and in words: its share of the mod's cycles on each target. */

import { h } from '../../core/dom';
import type { Translate } from '../../core/i18n';
import type { CuteRecord } from '../../core/record';
import { column } from '../words/common';
import { byLine, mixWords, shareWords } from '../words/machine';

export function heatOf(t: Translate, record: CuteRecord): (line: number) => HTMLElement | null {
  const reports = record.targets.filter(r => r.line_cost.length).slice(0, 4);
  const tables = reports.map(byLine);
  return line => {
    if (!reports.length) {
      return null;
    }
    const cells = tables.map((table, i) => {
      const cost = table.get(line);
      const fill = h('span', { class: 'jp-Cute-heatFill' });
      fill.style.width = `${Math.round(100 * Math.min(1, Math.max(0, cost?.share || 0)))}%`;
      const words = cost ? `${column(reports[i] as (typeof reports)[number], reports)}: ${t.__('%1 of the mod', shareWords(cost))}, ${mixWords(cost)}` : null;
      return h('span', { class: `jp-Cute-heatCell${cost ? '' : ' jp-Cute-heatNone'}`, title: words }, cost ? fill : null);
    });
    return h('span', { class: 'jp-Cute-heat' }, ...cells);
  };
}

/** What the bars beside the cell's lines mean. */
export function heatKey(t: Translate, record: CuteRecord): string {
  const names = record.targets.filter(r => r.line_cost.length).slice(0, 4).map(r => column(r, record.targets));
  return names.length ? t.__('bars: share of the mod’s cycles on %1', names.join(' | ')) : '';
}

/** `Line 6 · return … · Hopper (sm_90a): 96.8 % of the mod, 1,026 instructions a tile (640 fma, …). 8 lines of CuTeDSL come from it.` */
export function lineWords(t: Translate, record: CuteRecord, line: number, code: string): string {
  const made = record.source.user_lines.filter(one => one === line).length;
  const costs = record.targets.flatMap(report => {
    const cost = byLine(report).get(line);
    const where = column(report, record.targets);
    return cost ? [t.__('%1: %2 of the mod’s cycles, %3 instructions a tile', where, shareWords(cost), mixWords(cost))] : [];
  });
  const text = code.trim().replace(/`/g, '');
  const said = [
    ...(made ? [t._n('%2 line of CuTeDSL comes from it', '%2 lines of CuTeDSL come from it', made, made)] : []),
    ...(costs.length ? costs : record.targets.some(r => r.line_cost.length) ? [t.__('no instruction in the main loop')] : [])
  ];
  return `${t.__('Line %1', line)}${text ? ` \`${text}\`` : ''}: ${said.join(' · ') || t.__('nothing was made of it')}.`;
}
