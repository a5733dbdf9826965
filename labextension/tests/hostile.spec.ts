/** Records of an enemy: they show as text, or as a sentence that says what is wrong; nothing of them becomes markup, handler, style or address. */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { beforeEach, describe, expect, it, vi } from 'vitest';

import { Card } from '../src/card/card';
import { renderCompare } from '../src/card/compare';
import { ENGLISH as t } from '../src/core/i18n';
import { parse, parseText } from '../src/core/record';
import type { CuteRecord } from '../src/core/record';
import { printed } from './card_records';

vi.setConfig({ testTimeout: 60_000 }); // a busy machine is no failure

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const EVIL = '<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>javascript:alert(1)`</style>';
const BEST = printed().find(one => one.record.bench && one.record.blocks)?.record as CuteRecord;
const MACHINE = printed().find(one => one.record.name === 'multiplied')?.record as CuteRecord;

let host: HTMLElement;
beforeEach(() => {
  host = document.createElement('div');
  document.body.replaceChildren(host);
});

/** All strings replaced, except those that a reader checks the words of. */
function poisoned(value: Json, name: string, text: string): Json {
  const kept = ['encoding', 'data', 'status', 'direction', 'kind', 'level', 'tensor'];
  if (typeof value === 'string') {
    return kept.includes(name) || (name === 'name' && /mod/.test(value)) ? value : text;
  }
  if (Array.isArray(value)) {
    return value.map(item => poisoned(item, name, text));
  }
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [['mix', 'by_pipe', 'environment', 'versions'].includes(name) ? text.slice(0, 90) + key : key, poisoned(item, key, text)]));
  }
  return value;
}

function json(record: CuteRecord): { [name: string]: Json } {
  return JSON.parse(JSON.stringify(record)) as { [name: string]: Json };
}

function everyTab(value: unknown): string {
  const parsed = parse(value);
  const card = new Card(host, { trans: t, others: () => [MACHINE] });
  card.show(parsed);
  let text = host.textContent ?? '';
  for (const tab of host.querySelectorAll<HTMLButtonElement>('[role="tab"]')) {
    tab.click();
    text += host.textContent;
  }
  return text;
}

function clean(): void {
  const names = new Set([...host.querySelectorAll('*')].map(one => one.localName));
  for (const name of ['script', 'img', 'iframe', 'object', 'embed', 'link', 'style', 'form', 'base']) {
    expect(names).not.toContain(name);
  }
  for (const element of host.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      expect(name).not.toMatch(/^on/);
      expect(['src', 'href', 'xlink:href', 'srcdoc', 'action', 'formaction', 'ping', 'data']).not.toContain(name);
      if (name === 'style') {
        expect(value).toMatch(/^(?:--jp-Cute-listingHeight|[a-z-]+)?[\s\w:;%.,()-]*$/);
        expect(value).not.toContain('url');
      }
    }
  }
  expect((globalThis as { hit?: number }).hit).toBeUndefined();
}

describe('strings', () => {
  it('of markup stay text in every tab', () => {
    for (const record of [BEST, MACHINE]) {
      host.replaceChildren();
      const value = poisoned(json(record), '', EVIL) as { [name: string]: Json };
      const source = value['source'] as { [name: string]: Json };
      value['source'] = { ...source, text: EVIL, user_lines: [1] };
      const text = everyTab(value);
      expect(text).toContain('<img src=x onerror=');
      clean();
    }
  });

  it('of 10 MB are cut, and the card stays small and quick', () => {
    const long = 'x'.repeat(10_000_000);
    const value = { ...json(MACHINE), name: long, stages: { fx: long, ir: `${long}\n`.repeat(1), inductor: '\n'.repeat(1_000_000) }, notes: [{ level: 'info', text: long, line: null, fix: long }] };
    const start = performance.now();
    everyTab(value);
    expect(performance.now() - start).toBeLessThan(30_000);
    expect(host.innerHTML.length).toBeLessThan(600_000);
    expect(host.textContent).toContain('(10,000,000 characters)');
  });

  it('with control and direction marks show them', () => {
    const value = { ...json(MACHINE), name: 'a\u202egpj.exe\u0000' };
    everyTab(value);
    expect(host.querySelector('.jp-Cute-name')?.textContent).toBe('a\ufffdgpj.exe\ufffd');
  });
});

describe('numbers', () => {
  it('that are huge or none are shown', () => {
    const value = json(BEST);
    const text = everyTab({
      ...value,
      checks: (value['checks'] as { [name: string]: Json }[]).map(check => ({ ...check, max_rel_error: 1e308, max_abs_error: 'inf', tolerance: 'nan', points: Number.MAX_SAFE_INTEGER })),
      seconds: 1e300,
      bench: { ...(value['bench'] as { [name: string]: Json }), seconds: 'inf', timings: ((value['bench'] as { [name: string]: Json })['timings'] as { [name: string]: Json }[]).map(one => ({ ...one, samples_us: [0, 'inf', 'nan', -1, 1e-300] })) }
    });
    expect(text).toContain('9,007,199,254,740,991');
    expect(text).not.toContain('undefined');
    clean();
  });

  it('of shapes whose chart would never end', () => {
    const value = json(BEST);
    const bench = value['bench'] as { [name: string]: Json };
    const timings = (bench['timings'] as { [name: string]: Json }[]).map((one, i) => ({ ...one, shape: { ...(one['shape'] as { [name: string]: Json }), Sq: i % 2 ? 0 : 2 ** 40, B: i } }));
    everyTab({ ...value, bench: { ...bench, timings } });
    expect(host.innerHTML).not.toContain('NaN');
    clean();
  });
});

describe('shapes of JSON', () => {
  it('that are wrong become one sentence', () => {
    const cases: [unknown, RegExp][] = [
      [null, /damaged: this output is not an object/],
      ['text', /not an object/],
      [[], /not an object/],
      [{}, /no schema number/],
      [{ schema: 99, environment: { cute_lab: EVIL } }, /schema 99; this extension reads schema \d/],
      [{ schema: 2 }, /damaged: record\./],
      [{ ...json(MACHINE), targets: {} }, /record\.targets is not a list/],
      [{ ...json(MACHINE), shape: { B: 'one' } }, /record\.shape\.B is not/],
      [{ ...json(MACHINE), checks: [[[[[]]]]] }, /record\.checks\[0\] is not an object/],
      [{ ...json(MACHINE), source: { text: 'a\nb', user_lines: [1], functions: [] } }, /user_lines does not fit/]
    ];
    for (const [value, words] of cases) {
      host.replaceChildren();
      everyTab(value);
      expect(host.querySelector('[role="alert"]')?.textContent).toMatch(words);
      clean();
    }
  });

  it('with names of prototypes change nothing and are shown', () => {
    const text = JSON.stringify(json(MACHINE)).replace('"environment":{', '"environment":{"__proto__":"polluted","constructor":"c","toString":"t",');
    const parsed = parseText(text);
    expect(parsed.kind).toBe('record');
    const card = new Card(host, { trans: t });
    if (parsed.kind !== 'suite') {
      card.show(parsed);
    }
    card.choose('environment');
    expect(host.textContent).toContain('__proto__polluted');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    const odd = json(MACHINE);
    const targets = (odd['targets'] as { [name: string]: Json }[]).map(one => ({ ...one, target: 'constructor', mix: { toString: 3, hasOwnProperty: 1 } }));
    const bench = { ...(json(BEST)['bench'] as { [name: string]: Json }) };
    bench['timings'] = (bench['timings'] as { [name: string]: Json }[]).map(one => ({ ...one, contender: '__proto__', label: 'valueOf' }));
    host.replaceChildren();
    everyTab({ ...odd, targets, bench });
    expect(host.textContent).not.toContain('[native code]');
  });

  it('of which thousands were written stay small', () => {
    const odd = json(MACHINE);
    const many = <T>(item: T): T[] => new Array<T>(20_000).fill(item);
    const [target] = odd['targets'] as Json[];
    const [check] = odd['checks'] as Json[];
    everyTab({ ...odd, targets: many(target), checks: many(check), notes: many({ level: 'info', text: 'n', line: 1, fix: '' }), params: many({ name: 'p', value: 1, runtime: true }) });
    expect(host.querySelectorAll('*').length).toBeLessThan(60_000);
    expect(host.textContent).toContain('32 of 20,000 targets');
  });

  it('damaged in the block map or a listing spoil only their place', () => {
    const blocks = { ...(BEST.blocks as NonNullable<CuteRecord['blocks']>), data: 'AAAA' };
    const text = everyTab({ ...json(BEST), blocks });
    expect(text).toMatch(/block map is damaged/);
    expect(text).toContain('TFLOP/s');
    host.replaceChildren();
    renderCompare(host, [{ ...BEST, blocks }, { ...BEST, created: '2026-12-01T00:00:00Z' }], { trans: t });
    expect(host.textContent).toMatch(/block map is damaged/);
  });
});

describe('the source of the card', () => {
  it('has no way from text to markup, code or address', () => {
    const files = (folder: string): string[] =>
      readdirSync(folder).flatMap(name => (statSync(join(folder, name)).isDirectory() ? files(join(folder, name)) : [join(folder, name)]));
    for (const file of [...files(join(__dirname, '..', 'src', 'card')), join(__dirname, '..', 'src', 'page.ts')]) {
      const text = readFileSync(file, 'utf-8');
      expect(text, file).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setAttribute\('(?:style|on)|: any\b|as any\b|fetch\(|XMLHttp|https?:\/\//);
      expect(text.split('\n').length, file).toBeLessThanOrEqual(301);
    }
  });
});
