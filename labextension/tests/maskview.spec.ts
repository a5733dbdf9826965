/** The mask view as a person meets it without seeing the canvas: words, keys, choices; and that it leaves nothing behind. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { BlockSummary, CellCode } from '../src/core/blocks';
import { ENGLISH } from '../src/core/i18n';
import { CellPlan } from '../src/mask/cells';
import type { CellSource } from '../src/mask/cells';
import { blockMap } from '../src/mask/maps';
import { Tiles } from '../src/mask/tiles';
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
    expect(one('legend').textContent).toContain('partial block: masked cell by cell');
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
    await looks(['full', 'cells', 'kept', 'dropped', 'empty']);
    const counted = [...host.querySelectorAll('.jp-CuteMask-count')].map(count => count.previousSibling?.textContent?.split(':')[0]);
    expect(counted).toEqual(['full block', 'partial block', 'empty block']); // cells are not what is counted
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
  });

  it('has its keys kept from JupyterLab, which looks at keys before anybody else, and no others', () => {
    view(summaryOf(causal(8)));
    const kept = (key: string, more: KeyboardEventInit = {}): boolean => (press(key, more), one('map').hasAttribute('data-lm-suppress-shortcuts'));
    expect(['ArrowUp', 'PageDown', 'Home', ' ', '+', '-', '0'].map(key => kept(key))).not.toContain(false);
    expect([kept('ArrowUp', { altKey: true }), kept('ArrowUp', { shiftKey: true }), kept('Home', { ctrlKey: true })]).not.toContain(false);
    expect([kept('b', { ctrlKey: true }), kept('C', { ctrlKey: true, shiftKey: true }), kept('Enter', { shiftKey: true }), kept('b')]).not.toContain(true);
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

describe('the cell under the pointer', () => {
  const MILLION = 1 << 20;
  const million = (): MaskView => view(summaryOf(causal(32), { block_q: MILLION / 32, block_kv: MILLION / 32 }), { Sq: MILLION, Skv: MILLION });
  const mouse = <E extends MouseEvent>(kind: new (type: string, init: MouseEventInit) => E, type: string, x: number, more: object = {}): void => {
    one('map').dispatchEvent(new kind(type, { clientX: x, clientY: x, bubbles: true, cancelable: true, ...more }));
  };
  const q = (): number => Number(/q ([\d,]+)/.exec(reading())?.[1]?.replaceAll(',', ''));
  const apart = (a: number, b: number): number => Math.abs(a - b);

  it('is read anew after each zoom: wheel, double click, keys, the whole', () => {
    million();
    mouse(MouseEvent, 'pointermove', 300.4); // a wheel's place has no fraction: 800 tokens lie between
    const first = q();
    one('map').focus();
    for (let i = 0; i < 30; i++) {
      mouse(WheelEvent, 'wheel', 300, { deltaY: -200 });
    }
    const under = q();
    expect(apart(under, first)).toBeGreaterThan(100);
    mouse(MouseEvent, 'pointermove', 301);
    expect(apart(q(), under)).toBeLessThan(2); // what was read is what is seen
    press('0');
    const whole = q();
    mouse(MouseEvent, 'pointermove', 301);
    expect(q()).toBe(whole);
    expect(apart(whole, under)).toBeGreaterThan(100);
    mouse(MouseEvent, 'dblclick', 200);
    const closer = q();
    mouse(MouseEvent, 'pointermove', 200);
    expect([q(), apart(closer, whole) > 1e5]).toEqual([closer, true]);
  });

  it('does not take the cursor back that keys have moved', () => {
    million();
    mouse(MouseEvent, 'pointermove', 300);
    press('Home', { ctrlKey: true });
    press('+');
    expect(reading()).toContain('q 0 kv 0');
  });
});

describe('the room', () => {
  afterEach(() => Reflect.deleteProperty(HTMLElement.prototype, 'clientWidth'));
  const across = (room: number): { wide: boolean; canvas: number } => {
    Object.defineProperty(HTMLElement.prototype, 'clientWidth', { configurable: true, get: () => room });
    const made = view(summaryOf(causal(8)));
    const found = { wide: host.querySelector('.jp-mod-wide') !== null, canvas: parseFloat(one('map').style.width) };
    views.splice(views.indexOf(made), 1);
    made.dispose();
    return found;
  };

  it('is shared with the words from a card of 640 pixels on, and never too small for what stands around the map', () => {
    expect(across(1200)).toEqual({ wide: true, canvas: 630 });
    expect(across(800)).toEqual({ wide: true, canvas: 532 });
    expect(across(610)).toEqual({ wide: true, canvas: 450 });
    expect(across(580)).toEqual({ wide: false, canvas: 572 });
    expect(across(400)).toEqual({ wide: false, canvas: 392 });
  });

  it('is measured inside the host, which may have a padding', () => {
    Object.defineProperty(HTMLElement.prototype, 'clientWidth', { configurable: true, get(this: HTMLElement) { return this === host ? 428 : 400; } });
    view(summaryOf(causal(8)));
    expect(one('map').style.width).toBe('392px');
  });
});

describe('a few kept columns', () => {
  it('are never less than about a pixel wide: until then their block is hatched', () => {
    const tiles = new Tiles(blockMap(summaryOf(causal(32))), { Sq: 4096, Skv: 4096, blockQ: 128, blockKv: 128 }, { b: 0, h: 0 }, CellPlan.of(cells), undefined, () => undefined);
    const fits = (cellsOfPixel: number, ratio: number): boolean =>
      tiles.fits({ width: 480, height: 480, q: 0, kv: 0, perRow: cellsOfPixel / ratio, perColumn: cellsOfPixel / ratio, ratio, blockQ: 128, blockKv: 128, group: 0 });
    expect([fits(4, 1), fits(2, 1), fits(2, 2), fits(1, 1), fits(1, 2), fits(0.1, 1)]).toEqual([false, false, false, true, true, true]);
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
