/** Wheel, drag, pinch, double click and keys, as what they ask for. */

import type { Disposables } from '../core/dom';

export interface Asked {
  /** A place in the map, in CSS pixels. */
  point(x: number, y: number): void;
  leave(): void;
  pan(dx: number, dy: number): void;
  /** Around a place; without one around the cursor. */
  zoom(factor: number, x?: number, y?: number): void;
  /** Moves the cursor; in blocks, or in cells. */
  step(down: number, right: number, unit: 'block' | 'cell'): void;
  /** Moves the cursor to the first or the last column of its row, or of all rows. */
  edge(last: boolean, all: boolean): void;
  whole(): void;
}

const KEYS: Record<string, readonly [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const STEP = 1.5;

/** `offset` is where the map begins in the element. */
export function gestures(target: HTMLElement, offset: { x: number; y: number }, ask: Asked, kept: Disposables): void {
  const down = new Map<number, { x: number; y: number }>();
  let over: { x: number; y: number } | null = null; // the pointer, unless keys have moved the cursor since
  const again = (): void => {
    if (over) {
      ask.point(over.x, over.y); // another cell is under it now
    }
  };
  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = target.getBoundingClientRect();
    return { x: event.clientX - box.left - offset.x, y: event.clientY - box.top - offset.y };
  };
  kept.on<WheelEvent>(
    target,
    'wheel',
    event => {
      if (!event.ctrlKey && !target.matches(':focus')) {
        return; // the notebook scrolls
      }
      event.preventDefault();
      const lines = event.deltaMode === 0 ? event.deltaY / 100 : event.deltaY / 3;
      over = place(event);
      ask.zoom(Math.exp(-Math.max(-2, Math.min(2, event.ctrlKey && Math.abs(lines) < 0.2 ? lines * 5 : lines * 0.4))), over.x, over.y);
      again();
    },
    { passive: false }
  );
  kept.on<PointerEvent>(target, 'pointerdown', event => {
    if (event.button === 0) {
      down.set(event.pointerId, place(event));
      target.setPointerCapture?.(event.pointerId);
    }
  });
  kept.on<PointerEvent>(target, 'pointermove', event => {
    const now = place(event);
    const before = down.get(event.pointerId);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (before && other) {
      const apart = (p: { x: number; y: number }): number => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      ask.zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
      ask.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    } else if (before) {
      ask.pan(now.x - before.x, now.y - before.y);
    }
    if (before) {
      down.set(event.pointerId, now);
    }
    over = now;
    again();
  });
  for (const name of ['pointerup', 'pointercancel', 'lostpointercapture']) {
    kept.on<PointerEvent>(target, name, event => down.delete(event.pointerId));
  }
  kept.on(target, 'pointerleave', () => ((over = null), ask.leave()));
  kept.on<MouseEvent>(target, 'dblclick', event => {
    over = place(event);
    ask.zoom(event.shiftKey ? 0.25 : 4, over.x, over.y);
    again();
  });
  kept.on<KeyboardEvent>(target, 'keydown', event => {
    const step = KEYS[event.key];
    const far = event.ctrlKey || event.metaKey;
    const end = event.key === 'Home' || event.key === 'End';
    if (far && !end) {
      return;
    }
    // every key that scrolls a page has a meaning here: a notebook that jumps takes the map out of sight
    over = end || step || event.key.startsWith('Page') ? null : over;
    if (event.key === 'PageUp' || event.key === 'PageDown') {
      ask.step(event.key === 'PageUp' ? -10 : 10, 0, event.altKey ? 'cell' : 'block');
    } else if (end) {
      ask.edge(event.key === 'End', far);
    } else if (event.key === ' ') {
      ask.zoom(event.shiftKey ? 1 / STEP : STEP);
    } else if (step) {
      const many = event.shiftKey ? 10 : 1;
      ask.step(step[0] * many, step[1] * many, event.altKey ? 'cell' : 'block');
    } else if (event.key === '+' || event.key === '=') {
      ask.zoom(STEP);
    } else if (event.key === '-') {
      ask.zoom(1 / STEP);
    } else if (event.key === '0') {
      ask.whole();
    } else {
      return;
    }
    again();
    event.preventDefault();
    event.stopPropagation();
  });
}
