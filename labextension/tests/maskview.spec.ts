/** The mask view as a person meets it without seeing the canvas: words, keys, choices; and that it leaves nothing behind. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { BlockSummary, CellCode } from '../src/core/blocks';
import { ENGLISH } from '../src/core/i18n';
import type { CellSource } from '../src/mask/cells';
import { MaskView } from '../src/mask/view';
import type { Shown } from '../src/mask/view';
import widget from '../src/widget';
import { causal, summaryOf } from './summaries';

const inputs = ['b', 'h', 'q_idx', 'kv_idx'];
const cells: CellCode = {
  ...{ inputs, result: 4, tables: [], scalars: [] },
  nodes: [...inputs.map(attr => ({ op: 'input', dtype: 'i32', args: [], attr })), { op: 'ge', dtype: 'bool', args: [2, 3], attr: null }]
};
let host: HTMLElement;
let views: MaskView[] = [];

beforeEach(() => {
  HTMLCanvasElement.prototype.getContext = (() => null) as typeof HTMLCanvasElement.prototype.getContext; // jsdom has none
  host = document.createElement('div');
  document.body.append(host);
});
afterEach(() => {
  views.forEach(view => view.dispose());
  views = [];
  host.remove();
});

function view(blocks: BlockSummary, shown: Partial<Shown> = {}, cellSource?: CellSource): MaskView {
  const made = new MaskView(host, { trans: ENGLISH, ...(cellSource ? { cellSource } : {}) });
  views.push(made);
  made.show(blocks, { Sq: 1024, Skv: 1024, cells, ...shown });
  return made;
}

const one = (name: string): HTMLElement => host.querySelector<HTMLElement>(`.jp-CuteMask-${name}`)!;
const press = (key: string, more: KeyboardEventInit = {}): KeyboardEvent => {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more });
  one('map').dispatchEvent(event);
  return event;
};
const reading = (): string => one('reading').textContent!.replaceAll('\u00a0', ' ');

describe('words', () => {
  it('say what is kept and issued, and how even the rows are', () => {
    view(summaryOf(causal(8)));
    expect(one('words').textContent!.replaceAll('\u00a0', ' ')).toBe('10.0 % of cells kept; the kernel issues 56.3 %.');
    expect(one('even').textContent).toBe('The busiest row (q 896) issues 8 blocks, 1.8× the mean.');
    const label = one('map').getAttribute('aria-label')!.replaceAll('\u00a0', ' ');
    expect(label).toContain('Block map, 1,024 queries by 1,024 keys, blocks of 128 by 128.');
    expect(label).toContain('28 full, 8 partial, 28 empty.');
    expect(one('legend').textContent).toContain('partial: masked cell by cell');
  });

  it('are a sentence where the data is damaged, and the view lives on', () => {
    const made = view({ ...summaryOf(causal(8)), data: 'AAAA' });
    expect(one('words').textContent).toMatch(/^This block map is damaged: .+\.$/);
    expect(host.querySelector('.jp-mod-damaged')).not.toBeNull();
    made.show(summaryOf(causal(8)), { Sq: 1024, Skv: 1024 });
    expect(host.querySelector('.jp-mod-damaged')).toBeNull();
  });

  it('are text, whatever they hold', () => {
    view({ ...summaryOf(causal(2)), block_q: 3, nq: 2 });
    expect(host.querySelector('script, iframe, object')).toBeNull();
  });
});

describe('the legend', () => {
  /** jsdom's canvas draws nothing: as much of one as the view asks for. */
  function withCanvas(): void {
    const image = (width: number, height: number): object => ({ width, height, data: new Uint8ClampedArray(4 * width * height) });
    const made: Record<string | symbol, unknown> = { createImageData: image, measureText: () => ({ width: 9 }) };
    const fake = new Proxy({}, { get: (_, name) => made[name] ?? (() => undefined), set: () => true });
    HTMLCanvasElement.prototype.getContext = (() => fake) as unknown as typeof HTMLCanvasElement.prototype.getContext;
  }
  const marks = (): string[] => [...host.querySelectorAll('.jp-CuteMask-swatch')].map(one => /jp-mod-(\w+)/.exec(one.className)![1]!);
  const looks = async (expected: string[]): Promise<void> => vi.waitFor(() => expect(marks()).toEqual([...expected, 'rows']));

  it('looks as the map does at each zoom: shares, one colour, hatched, cells', async () => {
    withCanvas();
    view(summaryOf(causal(32)), { Sq: 4096, Skv: 4096 });
    await looks(['full', 'partial', 'empty']);
    for (let i = 0; i < 10; i++) {
      press('+');
    }
    await looks(['full', 'kept', 'dropped', 'empty']);
    expect(one('legend').textContent).toContain('a dropped cell');
    press('0');
    await looks(['full', 'partial', 'empty']);
    expect(host.querySelectorAll('.jp-CuteMask-count')).toHaveLength(3);
    views.pop()!.dispose();
    view(summaryOf(causal(128)), { Sq: 128 * 128, Skv: 128 * 128 });
    await looks(['full', 'kept', 'empty']);
    expect(one('legend').textContent).not.toContain('several blocks');
    views.pop()!.dispose();
    view(summaryOf(causal(1000)), { Sq: 128_000, Skv: 128_000 });
    await looks(['full', 'kept', 'empty']);
    expect(one('legend').textContent).toContain('A pixel covers several blocks');
  });

  it('stays hatched where nobody can tell the cells', async () => {
    withCanvas();
    view(summaryOf(causal(32)), { Sq: 4096, Skv: 4096, cells: null });
    for (let i = 0; i < 10; i++) {
      press('+');
    }
    await vi.waitFor(() => expect(one('note').textContent).toContain('Single cells need a kernel'));
    expect(marks()).toEqual(['full', 'partial', 'empty', 'rows']);
  });

  it('says what the bars at the right and their line are', () => {
    view(summaryOf(causal(8)));
    expect(one('legend').textContent).toContain('blocks/row, the bars at the right: blocks that each row issues, at most 8; the line is the mean, 4.5');
  });
});

describe('the keyboard', () => {
  it('moves a cursor by blocks, ten blocks and cells; the read-out follows', async () => {
    view(summaryOf(causal(32)), { Sq: 4096, Skv: 4096 });
    press('ArrowDown');
    expect(reading()).toBe('q 2,176 kv 2,048 · full, 100 % kept');
    press('ArrowUp');
    await vi.waitFor(() => expect(reading()).toBe('q 2,048 kv 2,048 · partial, 50.4 % kept'));
    press('ArrowRight', { altKey: true });
    expect(reading()).toBe('q 2,048 kv 2,049 · partial, 50.4 % kept');
    press('ArrowRight', { shiftKey: true });
    expect(reading()).toBe('q 2,048 kv 3,329 · empty, 0 % kept');
    for (let i = 0; i < 5; i++) {
      press('ArrowRight', { shiftKey: true });
    }
    expect(reading()).toBe('q 2,048 kv 4,095 · empty, 0 % kept');
  });

  it('goes to the ends of a row, and by pages', () => {
    view(summaryOf(causal(32)), { Sq: 4096, Skv: 4096 });
    press('End');
    expect(reading()).toBe('q 2,048 kv 4,095 · empty, 0 % kept');
    press('PageUp');
    expect(reading()).toContain('q 768 kv 4,095');
    press('Home');
    expect(reading()).toBe('q 768 kv 0 · full, 100 % kept');
    press('PageDown');
    expect(reading()).toContain('q 2,048 kv 0');
    press('End', { ctrlKey: true });
    expect(reading()).toContain('q 4,095 kv 4,095');
    press('Home', { metaKey: true });
    expect(reading()).toContain('q 0 kv 0');
  });

  it('keeps its keys from the notebook, and leaves the others to it', () => {
    view(summaryOf(causal(8)));
    const heard = vi.fn();
    document.body.addEventListener('keydown', heard);
    expect(['ArrowUp', '+', '-', '0'].map(key => press(key).defaultPrevented)).toEqual([true, true, true, true]);
    const scrolling = ['Home', 'End', 'PageUp', 'PageDown', ' ', 'ArrowDown', 'ArrowLeft', 'ArrowRight'];
    expect(scrolling.filter(key => !press(key).defaultPrevented || !press(key, { shiftKey: true }).defaultPrevented)).toEqual([]);
    expect(['Home', 'End'].filter(key => !press(key, { ctrlKey: true }).defaultPrevented)).toEqual([]);
    expect(heard).not.toHaveBeenCalled();
    expect(['a', 'Tab', 'Escape'].map(key => press(key).defaultPrevented)).toEqual([false, false, false]);
    expect(press('0', { ctrlKey: true }).defaultPrevented).toBe(false);
    expect(heard).toHaveBeenCalledTimes(4);
    document.body.removeEventListener('keydown', heard);
    expect(one('map').getAttribute('tabindex')).toBe('0');
    expect(one('map').hasAttribute('data-lm-suppress-shortcuts')).toBe(true); // JupyterLab looks at keys before anybody else
  });

  it('speaks after a moment, not at every step', () => {
    vi.useFakeTimers();
    view(summaryOf(causal(8)));
    press('ArrowUp');
    press('ArrowUp');
    expect(one('spoken').textContent).toBe('');
    vi.advanceTimersByTime(500);
    expect(one('spoken').textContent).toBe(one('reading').textContent);
    expect(one('spoken').getAttribute('aria-live')).toBe('polite');
    vi.useRealTimers();
  });
});

describe('the wheel', () => {
  it('scrolls the notebook until the map is focused, or with ctrl', () => {
    view(summaryOf(causal(8)));
    const turn = (more: WheelEventInit = {}): boolean => {
      const event = new WheelEvent('wheel', { deltaY: -100, bubbles: true, cancelable: true, ...more });
      one('map').dispatchEvent(event);
      return event.defaultPrevented;
    };
    expect(turn()).toBe(false);
    expect(turn({ ctrlKey: true })).toBe(true);
    one('map').focus();
    expect(turn()).toBe(true);
  });
});

describe('batch and head', () => {
  it('are chosen only where the mask depends on them', () => {
    view(summaryOf(causal(4)));
    expect(one('choice').children).toHaveLength(0);
    const empty = causal(4).map(row => row.map(() => 0));
    view(summaryOf([...causal(4), ...empty], { Hm: 2 }), { Sq: 512, Skv: 512 });
    const box = host.querySelectorAll<HTMLInputElement>('input');
    expect(box).toHaveLength(1);
    const even = host.querySelectorAll('.jp-CuteMask-even')[1]!;
    expect(even.textContent).toContain('busiest');
    box[0]!.value = '1';
    box[0]!.dispatchEvent(new Event('input'));
    expect(even.textContent).toBe('No row issues a block.');
    box[0]!.value = '2';
    box[0]!.dispatchEvent(new Event('input'));
    expect(even.textContent).toBe('No row issues a block.'); // there is no such head
  });
});

describe('the end', () => {
  it('leaves nothing in the page, and no listener', () => {
    const made = view(summaryOf(causal(8)));
    const canvas = one('map');
    made.dispose();
    expect(host.childNodes).toHaveLength(0);
    const event = new KeyboardEvent('keydown', { key: 'ArrowUp', cancelable: true });
    canvas.dispatchEvent(event);
    expect(event.defaultPrevented).toBe(false);
  });
});

// -- the widget -------------------------------------------------------------------------------------------------------------
class Model {
  state: unknown = {};
  sent: Record<string, unknown>[] = [];
  private readonly acts = new Map<string, Set<(...given: unknown[]) => void>>();
  get = (): unknown => this.state;
  send(content: unknown): void {
    this.sent.push(content as Record<string, unknown>);
  }
  on(event: string, act: (...given: never[]) => void): void {
    this.acts.set(event, (this.acts.get(event) ?? new Set()).add(act as () => void));
  }
  off(event: string, act: (...given: never[]) => void): void {
    this.acts.get(event)?.delete(act as () => void);
  }
  tell(event: string, ...given: unknown[]): void {
    this.acts.get(event)?.forEach(act => act(...given));
  }
  set(state: unknown): void {
    this.state = state;
    this.tell('change:mask');
  }
  get listeners(): number {
    return [...this.acts.values()].reduce((sum, acts) => sum + acts.size, 0);
  }
}

describe('the widget', () => {
  const mask = (n: number): unknown => ({ blocks: summaryOf(causal(n)), Sq: 128 * n, Skv: 128 * n, cells: null });

  it('shows what its state holds, and the next map when it comes', () => {
    const model = new Model();
    const end = widget.render({ model, el: host });
    expect(one('widget').hidden).toBe(true);
    model.set(mask(8));
    expect(one('widget').hidden).toBe(false);
    expect(one('map').getAttribute('aria-label')).toContain('1,024 queries');
    model.set(mask(4));
    expect(one('map').getAttribute('aria-label')).toContain('512 queries');
    end();
    expect(model.listeners).toBe(0);
  });

  it('asks for a map that its state is too small for; an older answer counts no more', async () => {
    const model = new Model();
    const end = widget.render({ model, el: host });
    model.set({ large: 1 });
    model.set({ large: 2 });
    expect(model.sent).toEqual([{ id: 1, whole: true }, { id: 2, whole: true }]);
    model.tell('msg:custom', { id: 2, mask: mask(8) }, []);
    model.tell('msg:custom', { id: 1, mask: mask(4) }, []);
    await vi.waitFor(() => expect(one('map').getAttribute('aria-label')).toContain('1,024 queries'));
    end();
  });

  it('asks for cells that it can not compute', async () => {
    const model = new Model();
    const end = widget.render({ model, el: host });
    model.set(mask(8));
    press('ArrowRight');
    press('ArrowLeft');
    expect(model.sent).toEqual([{ id: 1, b: 0, h: 0, q: 512, kv: 512, rows: 128, columns: 128, step: 1 }]);
    model.tell('msg:custom', { id: 1 }, [new DataView(new Uint8Array(128 * 128).fill(1, 0, 128 * 32).buffer)]);
    await vi.waitFor(() => expect(reading()).toBe('q 512 kv 512 · partial, 25.0 % kept'));
    end();
  });

  it('says what is wrong with a state that is none', () => {
    const model = new Model();
    const end = widget.render({ model, el: host });
    for (const bad of [null, 'x', [], { blocks: 1 }, { ...(mask(4) as object), Sq: -1 }, { ...(mask(4) as object), cells: { nodes: 5 } }]) {
      model.set(bad);
      expect(one('problem').textContent).toMatch(/^This block map can't be shown: .+\.$/);
      expect(one('widget').hidden).toBe(true);
    }
    end();
  });
});
