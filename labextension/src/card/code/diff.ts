/** What lines changed: Myers' algorithm on lines, after what both texts begin and end with is put aside. */

export interface Change {
  readonly kind: 'same' | 'del' | 'add';
  /** Index of the line before and after; -1 where there is none. */
  readonly a: number;
  readonly b: number;
}

const MOST_EDITS = 3_000; // beyond, the texts have little in common: one is shown after the other

export function diff(before: readonly string[], after: readonly string[]): Change[] {
  let top = 0;
  const shortest = Math.min(before.length, after.length);
  while (top < shortest && before[top] === after[top]) {
    top += 1;
  }
  let end = 0;
  while (end < shortest - top && before[before.length - 1 - end] === after[after.length - 1 - end]) {
    end += 1;
  }
  const same = (from: number, n: number, shift: number): Change[] => Array.from({ length: n }, (_, i) => ({ kind: 'same', a: from + i, b: from + i + shift }));
  const middle = myers(before.slice(top, before.length - end), after.slice(top, after.length - end)).map(c => ({
    kind: c.kind,
    a: c.a < 0 ? -1 : c.a + top,
    b: c.b < 0 ? -1 : c.b + top
  }));
  return [...same(0, top, 0), ...middle, ...same(before.length - end, end, after.length - before.length)];
}

function myers(a: readonly string[], b: readonly string[]): Change[] {
  const [n, m] = [a.length, b.length];
  const most = Math.min(n + m, MOST_EDITS);
  const size = 2 * most + 2;
  const reached = new Int32Array(size).fill(0);
  const at = (k: number): number => (k + size) % size;
  const trace: Int32Array[] = [];
  for (let d = 0; d <= most; d++) {
    trace.push(reached.slice());
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reached[at(k - 1)] as number) < (reached[at(k + 1)] as number));
      let x = down ? (reached[at(k + 1)] as number) : (reached[at(k - 1)] as number) + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) {
        x += 1;
      }
      reached[at(k)] = x;
      if (x >= n && x - k >= m) {
        return back(trace, d, n, m, at);
      }
    }
    if (trace.length * size > 2e7) {
      break; // memory: the trace is quadratic
    }
  }
  return [...a.map((_, i): Change => ({ kind: 'del', a: i, b: -1 })), ...b.map((_, i): Change => ({ kind: 'add', a: -1, b: i }))];
}

function back(trace: readonly Int32Array[], edits: number, n: number, m: number, at: (k: number) => number): Change[] {
  const found: Change[] = [];
  let [x, y] = [n, m];
  for (let d = edits; d > 0; d--) {
    const reached = trace[d] as Int32Array;
    const k = x - y;
    const down = k === -d || (k !== d && (reached[at(k - 1)] as number) < (reached[at(k + 1)] as number));
    const from = down ? k + 1 : k - 1;
    const before = reached[at(from)] as number;
    while (x > before && y > before - from && x > 0 && y > 0 && !(down ? x === before && y === before - from + 1 : x === before + 1 && y === before - from)) {
      x -= 1;
      y -= 1;
      found.push({ kind: 'same', a: x, b: y });
    }
    if (down) {
      y -= 1;
      found.push({ kind: 'add', a: -1, b: y });
    } else {
      x -= 1;
      found.push({ kind: 'del', a: x, b: -1 });
    }
  }
  while (x > 0 && y > 0) {
    x -= 1;
    y -= 1;
    found.push({ kind: 'same', a: x, b: y });
  }
  return found.reverse();
}

export function counts(changes: readonly Change[]): { added: number; removed: number } {
  return { added: changes.filter(c => c.kind === 'add').length, removed: changes.filter(c => c.kind === 'del').length };
}
