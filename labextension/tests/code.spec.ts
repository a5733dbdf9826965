/** Code: only lines in sight are drawn, lines of one origin belong together, and what changed is found. */

import { zlibSync } from 'fflate';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { counts, diff } from '../src/card/code/diff';
import { hues, listings, unpacked } from '../src/card/code/listing';
import type { Listing } from '../src/card/code/listing';
import { Pane } from '../src/card/code/pane';
import { openings, pieces } from '../src/card/code/tokens';
import { TAB } from '../src/card/tabs/code';
import { TAB as MACHINE } from '../src/card/tabs/machine';
import { ENGLISH as t } from '../src/core/i18n';
import type { CuteRecord, Excerpt } from '../src/core/record';
import { printed } from './card_records';

vi.setConfig({ testTimeout: 60_000 }); // a busy machine is no failure

const ALL = printed();
const named = (name: string): CuteRecord => ALL.find(one => one.record.name === name)?.record as CuteRecord;

let host: HTMLElement;
beforeEach(() => {
  host = document.createElement('div');
  document.body.replaceChildren(host);
});

export function excerpt(lines: readonly string[], numbers: readonly number[], userLines: readonly number[], total: number): Excerpt {
  const kept = lines.map((line, i) => `${(numbers[i] as number) - (numbers[i - 1] ?? 0)} ${userLines[i]} ${line}`);
  const packed = zlibSync(new TextEncoder().encode(kept.join('\n')));
  return { encoding: 'zlib-b64', data: btoa(String.fromCharCode(...packed)), total, loop: [2, 3] };
}

function long(n: number): Listing {
  const lines = Array.from({ length: n }, (_, i) => `line ${i}`);
  return {
    id: 'x',
    title: 'x',
    group: 'other',
    language: 'text',
    file: 'x',
    load: () => ({ lines, numbers: lines.map((_, i) => i + 1), userLines: lines.map((_, i) => (i === 4_000 ? 3 : 0)), total: n, loop: null, problem: '' })
  };
}

const rows = (within: ParentNode = host): HTMLElement[] => [...within.querySelectorAll<HTMLElement>('.jp-Cute-row')];

describe('a pane', () => {
  it('draws the lines in sight of 5,000, and others when scrolled to', () => {
    const pane = new Pane({ trans: t, hues: new Map([[3, 0]]), onLine: () => undefined });
    host.append(pane.element);
    pane.show(long(5_000));
    expect(rows().length).toBeLessThan(80);
    const scroller = host.querySelector('.jp-Cute-listing') as HTMLElement;
    scroller.scrollTop = 4_900 * 20;
    scroller.dispatchEvent(new Event('scroll'));
    expect(rows().length).toBeLessThan(80);
    expect(host.textContent).toContain('line 4900');
    expect(host.textContent).not.toContain('line 12\n');
  });

  it('scrolls to the first result of a line', () => {
    const pane = new Pane({ trans: t, hues: new Map([[3, 0]]), onLine: () => undefined });
    host.append(pane.element);
    pane.show(long(5_000));
    pane.highlight(3, true);
    expect(host.querySelector('.jp-Cute-hot')?.textContent).toContain('line 4000');
  });

  it('finds what is not drawn, and counts it', () => {
    const pane = new Pane({ trans: t, hues: new Map(), onLine: () => undefined });
    host.append(pane.element);
    pane.show(long(5_000));
    const box = host.querySelector('input') as HTMLInputElement;
    box.value = 'LINE 499';
    box.dispatchEvent(new Event('input'));
    expect(host.querySelector('.jp-Cute-found')?.textContent).toBe('1 of 11');
    expect(host.querySelector('mark.jp-Cute-current')?.textContent).toBe('line 499');
    box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
    expect(host.querySelector('mark.jp-Cute-current')?.closest('.jp-Cute-row')?.textContent).toContain('line 4990');
  });

  it('lets the page scroll until it is focused', () => {
    const pane = new Pane({ trans: t, hues: new Map(), onLine: () => undefined });
    host.append(pane.element);
    host.style.overflowY = 'auto';
    pane.show(long(5_000));
    const scroller = host.querySelector('.jp-Cute-listing') as HTMLElement;
    const turn = (more: WheelEventInit = {}): [boolean, number] => {
      const event = new WheelEvent('wheel', { deltaY: 100, bubbles: true, cancelable: true, ...more });
      scroller.dispatchEvent(event);
      return [event.defaultPrevented, host.scrollTop];
    };
    expect([turn(), turn({ deltaY: 3, deltaMode: 1 })]).toEqual([
      [true, 100],
      [true, 160]
    ]);
    expect([turn({ ctrlKey: true }), turn({ deltaX: 200 })].map(([prevented]) => prevented)).toEqual([false, false]); // zoom, along the lines
    scroller.focus();
    expect(turn()).toEqual([false, 160]);
  });

  it('walks by keyboard and tells which line of the cell it stands on', () => {
    const seen: [number, boolean][] = [];
    const pane = new Pane({ trans: t, hues: new Map([[3, 0]]), onLine: (line, picked) => void seen.push([line, picked]) });
    host.append(pane.element);
    pane.show(long(5_000));
    const scroller = host.querySelector('.jp-Cute-listing') as HTMLElement;
    const key = (name: string): boolean => scroller.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
    key('ArrowDown');
    key('End');
    expect(host.querySelector('[aria-selected="true"]')?.textContent).toContain('line 4999');
    expect(scroller.getAttribute('aria-activedescendant')).toBe(host.querySelector('[aria-selected="true"]')?.id);
    key('Escape');
    expect(seen).toEqual([
      [0, true],
      [0, true],
      [0, true]
    ]);
  });
});

describe('the tab', () => {
  it('links a line to what it became, in every pane, with its cost in words', () => {
    TAB.render(host, named('multiplied'), { trans: t });
    const [cell, made] = [...host.querySelectorAll('.jp-Cute-pane')] as [Element, Element];
    const line = rows(cell).find(row => row.textContent?.includes('return caps[h]')) as HTMLElement;
    line.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
    const hot = [...made.querySelectorAll('.jp-Cute-hot')].map(row => row.querySelector('.jp-Cute-origin')?.textContent);
    expect(hot.length).toBeGreaterThan(1);
    expect(new Set(hot)).toEqual(new Set(['6']));
    const hue = (row: Element): string => /jp-Cute-hue\d/.exec(row.className)?.[0] ?? '';
    expect(hue(made.querySelector('.jp-Cute-hot') as Element)).toBe(hue(cell.querySelector('.jp-Cute-hot') as Element));
    expect(host.querySelector('.jp-Cute-readout')?.textContent).toContain('Hopper (sm_90a): 96.8\u00a0% of the mod’s cycles, 1,026 (640 fma, 258 alu, 128 mufu) instructions a tile');
  });

  it('turns the generated pane to the function that a picked line became', () => {
    const record = named('alibi_window');
    TAB.render(host, record, { trans: t });
    const [cell, made] = [...host.querySelectorAll('.jp-Cute-pane')] as [Element, Element];
    const pick = (text: string): void => {
      rows(cell).find(row => row.textContent?.includes(text))?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    };
    const shows = (): string | undefined => made.querySelector('select')?.value;
    const hot = (): number => made.querySelectorAll('.jp-Cute-hot').length;
    expect(shows()).toBe('cutedsl:score_mod');
    pick('(distance >= 0)');
    expect(shows()).toMatch(/^cutedsl:mask_mod/);
    expect(hot()).toBeGreaterThan(0);
    pick('def score_mod');
    expect(shows()).toBe('cutedsl:score_mod');
    pick('def mask_mod');
    expect(shows()).toMatch(/^cutedsl:mask_mod/);
    pick('slopes[h]');
    expect([shows(), hot() > 0]).toEqual(['cutedsl:score_mod', true]);
    const choice = made.querySelector('select')!;
    choice.value = 'cutedsl:score_mod_bwd';
    choice.dispatchEvent(new Event('change'));
    pick('def score_mod'); // this one is not of the backward function
    expect(shows()).toBe('cutedsl:score_mod');
    pick('window = slider'); // and this one became no code
    expect(shows()).toBe('cutedsl:score_mod');
  });

  it('leaves what a person has chosen where the result is in it', () => {
    TAB.render(host, named('alibi_window'), { trans: t });
    const [cell, made] = [...host.querySelectorAll('.jp-Cute-pane')] as [Element, Element];
    const choice = made.querySelector('select')!;
    for (const chosen of ['cutedsl', 'ir', 'fx']) {
      choice.value = chosen;
      choice.dispatchEvent(new Event('change'));
      rows(cell).find(row => row.textContent?.includes('(distance >= 0)'))?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
      expect(choice.value).toBe(chosen);
    }
  });

  it('has a strip of the cost of each line, a bar for each target', () => {
    TAB.render(host, named('multiplied'), { trans: t });
    const strips = [...host.querySelectorAll<HTMLElement>('.jp-Cute-heatFill')].map(one => one.style.width);
    expect(strips).toEqual(['3%', '2%', '97%', '98%']);
  });

  it('offers every text that the record holds', () => {
    const ids = listings(t, named('multiplied')).map(one => one.id);
    expect(ids).toEqual(['cell', 'cutedsl:score_mod', 'cutedsl:score_mod_bwd', 'cutedsl', 'ir', 'fx', ...['sm_90a', 'sm_100a'].flatMap(name => [`sass:${name}:forward`, `ptx:${name}:forward`])]);
    const ir = listings(t, named('multiplied')).find(one => one.id === 'ir')?.load();
    expect(ir?.userLines.slice(0, 8)).toEqual([0, 0, 0, 6, 5, 5, 6, 6]);
    const back = listings(t, named('multiplied')).find(one => one.id === 'cutedsl:score_mod_bwd')?.load();
    expect(back?.lines.slice(0, 2)).toEqual(['@cute.jit', expect.stringContaining('def score_mod_bwd(')]);
    expect(named('multiplied').source.text.split('\n')[(back?.numbers[0] ?? 0) - 1]).toBe('@cute.jit');
  });

  it('opens and closes panes, at most four', () => {
    TAB.render(host, named('multiplied'), { trans: t });
    const add = [...host.querySelectorAll('button')].find(one => one.textContent === '+ pane') as HTMLButtonElement;
    add.click();
    add.click();
    expect(host.querySelectorAll('.jp-Cute-pane').length).toBe(4);
    expect(add.disabled).toBe(true);
    host.querySelector<HTMLButtonElement>('[aria-label="Close this pane"]')?.click();
    expect(host.querySelectorAll('.jp-Cute-pane').length).toBe(3);
  });

  it('compares with the previous run of the same name', () => {
    const now = named('multiplied');
    const before = { ...now, created: '2026-11-30T00:00:00Z', cell: { ...now.cell, text: now.cell.text.replace('score * inverse', 'score + inverse') } };
    TAB.render(host, now, { trans: t, others: () => [named('divided'), before] });
    const button = [...host.querySelectorAll('button')].find(one => one.textContent?.startsWith('Changes')) as HTMLButtonElement;
    expect(button.textContent).toBe('Changes (+1 −1)');
    button.click();
    expect(host.querySelector('.jp-Cute-linked')?.hasAttribute('hidden')).toBe(true);
    expect(host.querySelector('.jp-Cute-diffLine.jp-Cute-del')?.textContent).toContain('score + inverse[h]');
  });
});

describe('machine code', () => {
  const record = named('multiplied');
  const lines = ['        FMUL R1, R2, R3 ;', '        MUFU.TANH R4, R1 ;', '        BRA `(.L_x_1) ;'];
  const listing = { sass: excerpt(lines, [1, 2, 1207], [5, 6, 0], 1300), ptx: excerpt(['mov.b32 %r1, 0x0;'], [1], [0], 1) };
  const listed = { ...record, targets: record.targets.map(r => ({ ...r, listing })) };

  it('shows the cell’s line beside each instruction, gaps and the loop', () => {
    MACHINE.render(host, listed, { trans: t });
    const shown = rows(host.querySelector('.jp-Cute-pane') as Element).map(row => row.textContent);
    expect(shown[0]).toContain('15        FMUL');
    expect(shown[0]).toContain('scaled = score * inverse[h]');
    expect(shown[2]).toBe('… 1,204 lines');
    expect(shown[4]).toBe('… 93 lines');
    expect(host.querySelectorAll('.jp-Cute-pane').length).toBe(2);
    expect(host.querySelectorAll('.jp-Cute-pane:first-child .jp-Cute-inLoop').length).toBe(1);
  });

  it('says before and after, and whether the bands are apart', () => {
    MACHINE.render(host, record, { trans: t, others: () => [named('divided')] });
    expect(host.textContent).not.toContain('→'); // a run of another name is compared with when it is asked for
    const select = host.querySelector('select') as HTMLSelectElement;
    select.value = '0';
    select.dispatchEvent(new Event('change'));
    expect(host.textContent).toContain('5,888 → 3,856');
    expect(host.textContent).toContain('cheaper than divided: 6,544 (5,890 to 7,198)');
  });

  it('says what the bar of an estimate is, and why there is none; and what a time was, where nothing was compiled now', () => {
    const cached = { ...record, targets: record.targets.map(r => ({ ...r, seconds: 22.5, cached: true })) };
    MACHINE.render(host, cached, { trans: t });
    const [hopper, blackwell] = [...host.querySelectorAll('.jp-Cute-column')].map(one => one.textContent);
    expect(hopper).toContain('0bar: the range6,052');
    expect(blackwell).toContain('No bar: its error is not known here.');
    expect(hopper).toContain('22.5 s at first; now from the cache');
  });

  it('is refused where its numbers do not fit its lines', () => {
    expect(unpacked(t, { ...listing.sass, data: btoa(String.fromCharCode(...zlibSync(new TextEncoder().encode('no number')))) }).problem).toContain('damaged');
    expect(unpacked(t, { ...listing.sass, data: '!!' }).problem).toContain("can't be read");
    expect(unpacked(t, listing.sass).lines).toEqual(lines);
  });
});

describe('hues', () => {
  it('are eight, in the order of the cell', () => {
    const found = hues(named('multiplied'));
    expect([...found]).toEqual([
      [5, 0],
      [6, 1]
    ]);
  });
});

describe('the tokenizer', () => {
  it('loses no character', () => {
    for (const language of ['python', 'ir', 'ptx', 'sass'] as const) {
      for (const listing of listings(t, named('multiplied'))) {
        const { lines } = listing.load();
        const quotes = openings(lines);
        lines.forEach((line, i) => expect(pieces(line, language, language === 'python' ? quotes[i] : '').map(p => p.text).join('')).toBe(line));
      }
    }
  });

  it('knows keywords, strings over several lines, registers and comments', () => {
    const kinds = (line: string, language: Parameters<typeof pieces>[1]): string[] => pieces(line, language).filter(p => p.text.trim()).map(p => `${p.kind}:${p.text.trim()}`);
    expect(kinds('return f(x) # "no"', 'python')).toEqual(['keyword:return', 'name:f', 'plain:(x)', 'comment:# "no"']);
    expect(openings(['a = """b', 'c', '"""', "d = '#'"])).toEqual(['', '"""', '"""', '']);
    expect(kinds('        FFMA.FTZ R7, R15, -0.5, RZ ;', 'sass').slice(0, 2)).toEqual(['name:FFMA.FTZ', 'register:R7']);
    expect(kinds('  /*3450*/  @!P2 IADD3 R5, R9, -R11, RZ ;', 'sass').slice(0, 3)).toEqual(['comment:/*3450*/', 'plain:@', 'register:!P2']);
    expect(kinds('\tmov.b32 \t%r1, 0x3f;'.replace(/\t/g, ' '), 'ptx')).toContain('register:%r1');
  });

  it('is linear in hostile lines', () => {
    const start = performance.now();
    for (const line of ['"'.repeat(1_999), '\\'.repeat(1_999), '('.repeat(1_999), 'a.'.repeat(999), '0'.repeat(1_999), '@!P'.repeat(600), ' '.repeat(1_999)]) {
      for (const language of ['python', 'ir', 'ptx', 'sass'] as const) {
        expect(pieces(line, language).map(p => p.text).join('')).toBe(line);
      }
    }
    expect(performance.now() - start).toBeLessThan(10_000);
  });
});

describe('the difference', () => {
  it('of two texts turns one into the other with the fewest edits', () => {
    const random = (seed: number): (() => number) => () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
    const next = random(7);
    for (let n = 0; n < 300; n++) {
      const text = (): string[] => Array.from({ length: Math.floor(next() * 12) }, () => 'abc'[Math.floor(next() * 3)] as string);
      const [a, b] = [text(), text()];
      const changes = diff(a, b);
      expect(changes.filter(c => c.kind !== 'add').map(c => a[c.a])).toEqual(a);
      expect(changes.filter(c => c.kind !== 'del').map(c => b[c.b])).toEqual(b);
      expect(changes.every(c => c.kind !== 'same' || a[c.a] === b[c.b])).toBe(true);
      const { added, removed } = counts(changes);
      expect(added + removed).toBe(a.length + b.length - 2 * common(a, b));
    }
  });

  it('of texts with nothing in common ends soon', () => {
    const start = performance.now();
    const [a, b] = [0, 1].map(side => Array.from({ length: 8_000 }, (_, i) => `${side} ${i}`)) as [string[], string[]];
    expect(counts(diff(a, b))).toEqual({ added: 8_000, removed: 8_000 });
    expect(performance.now() - start).toBeLessThan(20_000);
  });
});

/** Length of the longest common subsequence, the slow and sure way. */
function common(a: readonly string[], b: readonly string[]): number {
  const best = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      (best[i] as number[])[j] = a[i - 1] === b[j - 1] ? ((best[i - 1] as number[])[j - 1] as number) + 1 : Math.max((best[i - 1] as number[])[j] as number, (best[i] as number[])[j - 1] as number);
    }
  }
  return (best[a.length] as number[])[b.length] as number;
}
