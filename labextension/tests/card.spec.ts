/** The card in a page: tabs by keyboard, chips for the state, updates in place, empty states that teach. */

import { beforeEach, describe, expect, it, vi } from 'vitest';

import { recordText } from '../src/card/actions';
import { Card } from '../src/card/card';
import { renderCompare } from '../src/card/compare';
import { chips } from '../src/card/head';
import { steps } from '../src/card/maskdiff';
import type { Surroundings } from '../src/card/tab';
import { summary } from '../src/card/words/summary';
import { ENGLISH as t } from '../src/core/i18n';
import { parse } from '../src/core/record';
import type { CuteRecord } from '../src/core/record';
import { blockMap } from '../src/mask/maps';
import { printed } from './card_records';

vi.setConfig({ testTimeout: 60_000 }); // a busy machine is no failure

const ALL = printed();
const named = (name: string): CuteRecord => ALL.find(one => one.record.name === name)?.record as CuteRecord;
const measured = (): CuteRecord => ALL.find(one => one.record.bench)?.record as CuteRecord;

let host: HTMLElement;
beforeEach(() => {
  host = document.createElement('div');
  document.body.replaceChildren(host);
});

function show(record: CuteRecord, around: Partial<Surroundings> = {}): Card {
  const card = new Card(host, { trans: t, ...around });
  card.show({ kind: 'record', record });
  return card;
}

const tabs = (): HTMLButtonElement[] => [...host.querySelectorAll<HTMLButtonElement>('[role="tab"]')];
const selected = (): string => tabs().find(tab => tab.getAttribute('aria-selected') === 'true')?.textContent ?? '';
const press = (key: string): boolean => host.querySelector('[role="tablist"]')?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })) ?? false;

describe('tabs', () => {
  it('are the seven of the card, one in the tab order', () => {
    show(named('multiplied'));
    expect(tabs().map(tab => tab.textContent)).toEqual(['Summary', 'Code', 'Mask', 'Check', 'Machine code', 'Throughput', 'Environment']);
    expect(tabs().filter(tab => tab.tabIndex === 0).length).toBe(1);
    for (const tab of tabs()) {
      expect(host.querySelector(`#${tab.getAttribute('aria-controls')}`)?.getAttribute('aria-labelledby')).toBe(tab.id);
    }
  });

  it('move by arrows, Home and End, around the ends', () => {
    show(named('multiplied'));
    const path = ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'End', 'ArrowRight', 'ArrowLeft', 'Home'].map(key => (press(key), selected()));
    expect(path).toEqual(['Code', 'Mask', 'Code', 'Environment', 'Summary', 'Environment', 'Summary']);
    expect(document.activeElement?.textContent).toBe('Summary');
  });

  it('leave JupyterLab its shortcuts, but for the keys that they take', () => {
    show(named('multiplied'));
    const kept = (at: Element, key: string, more: KeyboardEventInit = {}): boolean => {
      at.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
      return at.closest('[data-lm-suppress-shortcuts]') !== null;
    };
    const tab = tabs()[1] as Element;
    expect(['ArrowLeft', 'ArrowDown', 'Home', 'Enter', ' '].map(key => kept(tab, key))).not.toContain(false);
    expect([kept(tab, 'b', { ctrlKey: true }), kept(tab, 'C', { ctrlKey: true, shiftKey: true }), kept(tab, 'Enter', { shiftKey: true }), kept(tab, 'b')]).not.toContain(true);
    tabs()[1]?.click();
    const [list, box, choice] = ['.jp-Cute-listing', 'input', 'select'].map(name => host.querySelector(name)) as [Element, Element, Element];
    expect([kept(list, 'f', { ctrlKey: true }), kept(list, 'Escape'), kept(box, 'b'), kept(choice, 'b')]).not.toContain(false);
    expect([kept(list, 'b', { ctrlKey: true }), kept(box, 'b', { ctrlKey: true }), kept(choice, 's', { metaKey: true })]).not.toContain(true);
  });

  it('draw a panel when it is first looked at, and once', () => {
    show(named('multiplied'));
    const panel = host.querySelector('.jp-Cute-panel-check') as HTMLElement;
    expect(panel.childElementCount).toBe(0);
    tabs()[3]?.click();
    const first = panel.firstElementChild;
    expect(first).not.toBeNull();
    tabs()[0]?.click();
    tabs()[3]?.click();
    expect(panel.firstElementChild).toBe(first);
  });

  it('keep the chosen one when the output is updated in place', () => {
    const card = show(named('multiplied'));
    tabs()[6]?.click();
    card.show({ kind: 'record', record: named('divided') });
    expect(selected()).toBe('Environment');
    expect(host.querySelector('.jp-Cute-name')?.textContent).toBe('divided');
    card.show({ kind: 'problem', message: 'odd' });
    card.show({ kind: 'record', record: named('divided') });
    expect(selected()).toBe('Environment');
  });

  it('are not drawn again for the same record', () => {
    const card = show(named('multiplied'));
    tabs()[1]?.click();
    const pane = host.querySelector('.jp-Cute-pane');
    card.show({ kind: 'record', record: { ...named('multiplied') } });
    expect(host.querySelector('.jp-Cute-pane')).toBe(pane);
  });

  it('are each drawn for every record of the notebooks', () => {
    for (const one of new Set(ALL.map(found => found.record))) {
      const card = show(one);
      for (const tab of tabs()) {
        tab.click();
        expect(host.querySelector('.jp-Cute-panel:not([hidden])')?.textContent, `${one.name} ${tab.textContent}`).not.toBe('');
      }
      card.dispose();
      expect(host.childElementCount).toBe(0);
    }
  });
});

describe('the head', () => {
  it('groups long numbers, as its sentences do', () => {
    const record = named('multiplied');
    show({ ...record, shape: { ...record.shape, Sq: 1_000_000, Skv: 1_000_000 } });
    expect(host.querySelector('.jp-Cute-shape')?.textContent).toContain('H8 S1,000,000 D128');
    host.replaceChildren();
    show({ ...record, shape: { ...record.shape, Sq: 4096, Skv: 16_384 } });
    expect(host.querySelector('.jp-Cute-shape')?.textContent).toContain('Sq4096 Skv16,384');
  });

  it('has a chip for each state', () => {
    expect(chips(t, named('multiplied')).map(chip => [chip.text, chip.state])).toEqual([
      ['✔ verified 3.87e-7', 'good'],
      ['sm_90a', 'good'],
      ['sm_100a spills', 'warn']
    ]);
    expect(chips(t, measured()).at(-1)?.text).toMatch(/^H200 [\d,]+ TFLOP\/s ±[\d.]+ %$/);
    expect(chips(t, { ...named('multiplied'), checks: [], targets: [] }).map(chip => chip.text)).toEqual(['○ not checked']);
  });

  it('says where it differs and why a target refused', () => {
    const record = named('multiplied');
    const [check, ...checks] = record.checks;
    const [target, ...targets] = record.targets;
    const bad = {
      ...record,
      checks: [{ ...check, ok: false } as CuteRecord['checks'][number], ...checks],
      targets: [{ ...target, status: 'refused', reason: 'head dimension 512 is too large' } as CuteRecord['targets'][number], ...targets]
    };
    const found = chips(t, bad);
    expect(found[0]).toMatchObject({ text: '✘ differs at b0 h2 q2594 kv2582', state: 'bad' });
    expect(found[1]?.text).toBe('⊘ sm_90a refused');
    expect(found[1]?.title).toContain('head dimension 512 is too large');
    expect(summary(t, bad)[0]?.text).toContain('Do not use this kernel.');
  });

  it('shows no speed of a kernel that was wrong', () => {
    const record = measured();
    const bench = record.bench as NonNullable<CuteRecord['bench']>;
    const wrong = { ...record, bench: { ...bench, timings: bench.timings.map(one => (one.contender === 'cute_lab' ? { ...one, status: 'wrong' as const } : one)) } };
    expect(chips(t, wrong).at(-1)).toMatchObject({ text: '✘ H200: wrong on the GPU', state: 'bad' });
    show(wrong);
    expect(host.querySelector('.jp-Cute-top')?.textContent).not.toContain('TFLOP/s');
  });

  it('turns grey and says so when it is stale', () => {
    show(named('multiplied'), { isStale: () => true });
    expect(host.textContent).toContain('from an earlier version');
    expect(host.querySelectorAll('.jp-Cute-chip:not(.jp-Cute-is-none)').length).toBe(0);
  });

  it('looks again when the cell is edited, and keeps the tab', () => {
    let stale = false;
    const card = show(named('multiplied'), { isStale: () => stale });
    tabs()[4]?.click();
    expect(host.textContent).not.toContain('from an earlier version');
    stale = true;
    card.refresh();
    expect(host.textContent).toContain('from an earlier version');
    expect(host.querySelectorAll('.jp-Cute-top').length).toBe(1);
    expect(selected()).toBe('Machine code');
  });

  it('draws a band where the estimate is calibrated, and only there', () => {
    const record = named('multiplied');
    show(record);
    tabs()[4]?.click();
    const columns = [...host.querySelectorAll('.jp-Cute-rank')].map(one => [/not calibrated/.test(one.textContent ?? ''), one.querySelectorAll('.jp-Cute-band').length]);
    expect(record.targets.map(report => report.target)).toEqual(['sm_90a', 'sm_100a']);
    expect(columns.map(([none]) => none)).toEqual([false, true]);
    expect([Number(columns[0]?.[1]) > 0, columns[1]?.[1]]).toEqual([true, 0]);
  });

  it('opens the proving tab by chip and by link, and calls pin', () => {
    const pin = vi.fn();
    show(named('multiplied'), { pin });
    host.querySelector<HTMLButtonElement>('.jp-Cute-chip')?.click();
    expect(selected()).toBe('Check');
    tabs()[0]?.click();
    [...host.querySelectorAll<HTMLButtonElement>('.jp-Cute-link')].find(one => one.textContent?.startsWith('Machine code'))?.click();
    expect(selected()).toBe('Machine code');
    host.querySelector<HTMLButtonElement>('[aria-label="Pin to compare"]')?.click();
    expect(pin).toHaveBeenCalledOnce();
  });

  it('shows whether it is pinned, and keeps the focus on Pin', () => {
    let pinned = false;
    const card = show(named('multiplied'), { pin: () => (pinned = !pinned, card.refresh()), isPinned: () => pinned });
    const button = (): HTMLButtonElement => host.querySelector<HTMLButtonElement>('.jp-Cute-actions [aria-pressed]')!;
    expect([button().title, button().getAttribute('aria-pressed')]).toEqual(['Pin to compare', 'false']);
    button().focus();
    button().click();
    expect([button().title, button().getAttribute('aria-pressed')]).toEqual(['Unpin', 'true']);
    expect(document.activeElement).toBe(button());
  });

  it('gives JSON that is read back as the same record, infinite numbers included', () => {
    const record = measured();
    const [first, ...rest] = record.checks;
    const odd = { ...record, checks: [{ ...first, max_abs_error: Infinity, max_rel_error: NaN } as CuteRecord['checks'][number], ...rest] };
    const back = parse(JSON.parse(recordText(odd)));
    expect(back.kind === 'record' && back.record).toEqual({ ...odd, schema: 3 });
  });
});

describe('quiet outputs', () => {
  it('are one line', () => {
    const card = new Card(host, { trans: t });
    card.show({ kind: 'part', view: 'mask', of: 'x', leftOut: '' });
    expect(host.textContent).toBe('mask: shown in the card above');
    card.show({ kind: 'part', view: 'summary', of: 'x', leftOut: 'This output leaves out the record to stay under 256 kB; `record.save(path)` keeps all.' });
    expect(host.textContent).toContain('leaves out the record');
    card.show({ kind: 'problem', message: 'This record is damaged: record.shape is not an object.' });
    expect(host.querySelector('[role="alert"]')?.textContent).toContain('record.shape is not an object');
  });
});

describe('empty states', () => {
  it('say what to run', () => {
    const bare = { ...named('multiplied'), checks: [], targets: [], bench: null, blocks: null, source: { text: '', user_lines: [0], functions: [] } };
    show(bare);
    const words: Record<string, string> = { Check: 'multiplied.verify()', 'Machine code': "multiplied.compile('sm_90a')", Throughput: 'multiplied.bench()', Mask: 'no mask_mod' };
    for (const tab of tabs()) {
      tab.click();
      const wanted = words[tab.textContent ?? ''];
      if (wanted) {
        expect(host.querySelector('.jp-Cute-panel:not([hidden])')?.textContent).toContain(wanted);
      }
    }
  });
});

describe('an exported page', () => {
  it('draws a card over the static form of each record, and leaves the form where there is none', async () => {
    const place = (text: string): HTMLElement => {
      const script = document.createElement('script');
      script.type = 'application/json';
      script.textContent = text;
      const made = document.createElement('div');
      made.className = 'jp-Cute-record';
      made.append(Object.assign(document.createElement('p'), { textContent: 'static form' }), script);
      return made;
    };
    const [good, part] = [place(recordText(named('multiplied'))), place('{"schema": 2, "view": "mask", "of": "x"}')];
    document.body.replaceChildren(good, part);
    await import('../src/page');
    expect(good.querySelector('.jp-Cute-name')?.textContent).toBe('multiplied');
    expect(good.querySelector('p')?.hidden).toBe(true);
    expect(part.querySelector('.jp-Cute-card')).toBeNull();
    expect(part.querySelector('p')?.hidden).toBe(false);
  });
});

describe('the comparison', () => {
  it('puts registers, costs, code and words beside each other', () => {
    const made = renderCompare(host, [named('multiplied'), named('divided')], { trans: t });
    expect(host.textContent).toContain('6,544 (5,890 to 7,198)');
    expect(host.textContent).toContain('5,290 (4,761 to 5,819)');
    expect(host.querySelectorAll('.jp-Cute-diffLine.jp-Cute-add').length).toBeGreaterThan(3);
    const selects = [...host.querySelectorAll('select')].slice(0, 2).map(select => select.selectedOptions[0]?.textContent);
    expect(selects[0]).toContain('divided'); // the older one is first
    made.dispose();
    expect(host.childElementCount).toBe(0);
  });

  const heads = (): string[] => [...host.querySelectorAll('h4')].map(one => one.textContent ?? '');
  const words = (of: string): string[] => [...host.querySelectorAll(of)].map(one => one.textContent ?? '');

  it('calls runs by their names, and runs of one name before and after', () => {
    const made = renderCompare(host, [named('multiplied'), named('divided')], { trans: t });
    expect(words('label > span')).toEqual(['A', 'B']);
    expect(words('thead th')).toEqual(expect.arrayContaining(['A · divided', 'B · multiplied']));
    expect(host.textContent).toContain('A · divided: ');
    expect(host.textContent).not.toMatch(/\b(before|after)\b/);
    made.dispose();
    renderCompare(host, [named('divided'), { ...named('divided'), created: '2027' }], { trans: t });
    expect(words('label > span')).toEqual(['before', 'after']);
    expect(words('thead th')).toEqual(expect.arrayContaining(['before', 'after']));
  });

  it('begins with speeds where there are any, and else ends with the word that there are none', () => {
    const made = renderCompare(host, [named('multiplied'), named('divided')], { trans: t });
    expect([heads()[0], heads().at(-1)]).toEqual(['In words', 'Throughput']);
    made.dispose();
    renderCompare(host, [measured(), named('divided')], { trans: t });
    expect(heads()[0]).toBe('Throughput');
  });

  it('has one chart with both records’ contenders', () => {
    const all = [...new Set(ALL.filter(one => one.record.bench).map(one => one.record))];
    renderCompare(host, all.slice(0, 2), { trans: t });
    const n = all.slice(0, 2).reduce((sum, one) => sum + new Set(one.bench?.timings.map(x => x.contender)).size, 0);
    const labels = [...host.querySelectorAll('.jp-Cute-legendItem')].map(one => one.textContent).filter(label => label !== 'cuBLAS peak, measured');
    expect(labels.length).toBe(n);
    expect(new Set(labels).size).toBe(n);
  });

  it('has no verdict on estimates whose error is not known', () => {
    const other = (cost: number, target: string): CuteRecord => {
      const record = named('multiplied');
      return { ...record, created: `2026-01-0${cost}`, targets: record.targets.slice(0, 1).map(r => ({ ...r, target, cost: 1000 * cost })) };
    };
    const costs = (target: string): string[] => {
      const made = renderCompare(host, [other(1, target), other(2, target)], { trans: t });
      const row = [...host.querySelectorAll('tr')].find(one => one.textContent?.includes('estimated cost'));
      const cells = [...(row?.querySelectorAll('td') ?? [])].slice(-2).map(cell => `${cell.textContent} ${/good|bad/.exec(cell.className) ?? ''}`.trim());
      made.dispose();
      return cells;
    };
    expect(costs('sm_90a')).toEqual(['1,000 (900 to 1,100)', '2,000 (1,800 to 2,200) bad']);
    expect(costs('sm_100a')).toEqual(['1,000 (not calibrated)', '2,000 (not calibrated)']);
  });

  it('counts the blocks that changed', () => {
    const blocks = named('alibi_window').blocks as NonNullable<CuteRecord['blocks']>;
    const map = blockMap(blocks);
    expect(steps(map, map)).toEqual([blocks.empty, blocks.full + blocks.partial, 0, 0, 0]);
    const causal = blockMap({ ...blocks, ...tiny([2, 0, 1, 2]) });
    const other = blockMap({ ...blocks, ...tiny([1, 1, 0, 2]) });
    expect(steps(causal, other)).toEqual([0, 1, 1, 1, 1]);
  });

  it('asks for two', () => {
    renderCompare(host, [named('multiplied')], { trans: t });
    expect(host.textContent).toContain('Pin two runs');
  });
});

/** A map of 2 x 2 blocks: one byte, in a stored (not packed) zlib stream. */
function tiny(kinds: readonly [number, number, number, number]) {
  const byte = kinds.reduce<number>((sum, kind, i) => sum | (kind << (2 * i)), 0);
  const stream = [0x78, 0x01, 0x01, 0x01, 0x00, 0xfe, 0xff, byte, (byte + 1) >> 8, (byte + 1) & 255];
  const sum = byte + 1; // adler32 of one byte: both halves
  const packed = [...stream.slice(0, 8), (sum >> 8) & 255, sum & 255, (sum >> 8) & 255, sum & 255];
  const count = (kind: number): number => kinds.filter(one => one === kind).length;
  return { Bm: 1, Hm: 1, nq: 2, nkv: 2, empty: count(0), partial: count(1), full: count(2), encoding: 'zlib-2bit-b64' as const, data: btoa(String.fromCharCode(...packed)) };
}
