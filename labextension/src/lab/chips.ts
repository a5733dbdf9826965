/** The state of a run in a few small words. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { CuteRecord } from '../core/record';
import { clean } from '../core/text';

export interface Chip {
  readonly words: string;
  readonly kind: 'good' | 'bad' | 'plain' | 'faint';
  readonly title: string;
}

export function chips(record: CuteRecord, trans: Translate): Chip[] {
  const out: Chip[] = [verdict(record, trans)];
  for (const name of [...new Set(record.targets.map(report => report.target))]) {
    const reports = record.targets.filter(report => report.target === name);
    const bad = reports.find(report => report.status !== 'compiled');
    out.push(
      bad
        ? { words: `✘ ${name}`, kind: 'bad', title: bad.reason || trans.__('%1 for %2', bad.status, name) }
        : { words: name, kind: 'plain', title: trans.__('compiled for %1', name) }
    );
  }
  if (record.bench) {
    const device = record.bench.device.replace(/^NVIDIA /, '');
    out.push({ words: `⏱ ${device}`, kind: 'plain', title: trans.__('timed on %1', device) });
  }
  return out;
}

function verdict(record: CuteRecord, trans: Translate): Chip {
  const wrong = record.checks.find(check => !check.ok);
  if (wrong) {
    return { words: trans.__('✘ differs'), kind: 'bad', title: trans.__('%1 differs from your function', wrong.name) };
  }
  return record.checks.length
    ? { words: trans.__('✔ verified'), kind: 'good', title: trans.__('The generated code equals your function where it was compared.') }
    : { words: trans.__('not checked'), kind: 'faint', title: '' };
}

export function drawChips(all: readonly Chip[], stale: string): HTMLElement {
  const made = all.map(chip => h('span', { class: `jp-CuteLab-chip jp-CuteLab-chip-${stale ? 'faint' : chip.kind}`, title: clean(chip.title) || null }, clean(chip.words)));
  const note = stale ? h('span', { class: 'jp-CuteLab-chip jp-CuteLab-chip-stale' }, stale) : null;
  return h('span', { class: 'jp-CuteLab-chips' }, ...made, note);
}

/** Time since then, in the largest unit that fits. */
export function age(then: string, now: number, trans: Translate): string {
  const seconds = Math.max(0, (now - Date.parse(then)) / 1000);
  if (!Number.isFinite(seconds)) {
    return '';
  }
  if (seconds < 60) {
    return trans.__('just now');
  }
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86400)];
  return minutes < 60 ? trans.__('%1 min ago', minutes) : hours < 48 ? trans.__('%1 h ago', hours) : trans._n('%1 day ago', '%1 days ago', days);
}
