/** Which tokens the map shows, and where. */

/** The part of the score matrix in view: `width` x `height` pixels show `keys` x `queries` tokens from (kv, q) on. */
export class Viewport {
  q = 0;
  kv = 0;
  zoom = 1;

  constructor(
    readonly Sq: number,
    readonly Skv: number,
    readonly width: number,
    readonly height: number,
    readonly largest = 32 // pixels of a cell
  ) {}

  get queries(): number {
    return Math.max(this.Sq / this.zoom, Math.min(this.Sq, this.height / this.largest));
  }

  get keys(): number {
    return Math.max(this.Skv / this.zoom, Math.min(this.Skv, this.width / this.largest));
  }

  get most(): number {
    return Math.max(1, (this.Sq * this.largest) / this.height, (this.Skv * this.largest) / this.width);
  }

  tokenAt(x: number, y: number): [q: number, kv: number] {
    return [this.q + (y / this.height) * this.queries, this.kv + (x / this.width) * this.keys];
  }

  placeOf(q: number, kv: number): [x: number, y: number] {
    return [((kv - this.kv) / this.keys) * this.width, ((q - this.q) / this.queries) * this.height];
  }

  /** Zooms so that what is at (x, y) stays there. True where something changed. */
  zoomAt(factor: number, x: number, y: number): boolean {
    const before = this.zoom;
    const [q, kv] = this.tokenAt(x, y);
    this.zoom = Math.min(this.most, Math.max(1, this.zoom * factor));
    this.q = q - (y / this.height) * this.queries;
    this.kv = kv - (x / this.width) * this.keys;
    this.clamp();
    return this.zoom !== before;
  }

  pan(dx: number, dy: number): void {
    this.q -= (dy / this.height) * this.queries;
    this.kv -= (dx / this.width) * this.keys;
    this.clamp();
  }

  whole(): void {
    [this.q, this.kv, this.zoom] = [0, 0, 1];
  }

  /** Moves as little as needed to bring a cell into view. True where it moved. */
  reveal(q: number, kv: number): boolean {
    const before = [this.q, this.kv];
    this.q = Math.min(q, Math.max(q + 1 - this.queries, this.q));
    this.kv = Math.min(kv, Math.max(kv + 1 - this.keys, this.kv));
    this.clamp();
    return this.q !== before[0] || this.kv !== before[1];
  }

  /** The same place in a view of another size, or of other sequences where it still exists. */
  follow(old: Viewport): void {
    if (old.Sq === this.Sq && old.Skv === this.Skv) {
      this.zoom = Math.min(old.zoom, this.most);
      [this.q, this.kv] = [old.q, old.kv];
      this.clamp();
    }
  }

  private clamp(): void {
    this.q = Math.min(Math.max(0, this.q), this.Sq - this.queries);
    this.kv = Math.min(Math.max(0, this.kv), this.Skv - this.keys);
  }
}

/** Round numbers of tokens (multiples of a power of two, as blocks are) in [from, from + span], at least `apart` pixels from each other. */
export function ticks(from: number, span: number, pixels: number, apart: number): number[] {
  let step = 1;
  while ((step / span) * pixels < apart) {
    step *= 2;
  }
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= from + span + 1e-9; at += step) {
    found.push(at);
  }
  return found;
}

/** The sides of the map: in proportion to the tokens, as far as the shorter one stays visible. */
export function sides(Sq: number, Skv: number, room: number, shortest = 64): [width: number, height: number] {
  const longest = Math.max(Sq, Skv);
  return [Math.max(shortest, Math.round((room * Skv) / longest)), Math.max(shortest, Math.round((room * Sq) / longest))];
}
