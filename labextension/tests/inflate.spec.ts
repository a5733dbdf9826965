/** The packed data of records: what zlib writes is read, what is damaged or too large is refused. */

import { constants, deflateSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';

import { Problem } from '../src/core/decode';
import { bytes, text } from '../src/core/inflate';

let seed = 12345;
const random = (): number => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
const noise = (n: number, letters: number): Uint8Array => Uint8Array.from({ length: n }, () => Math.floor(random() * letters));
const packed = (data: Uint8Array, options = {}): string => deflateSync(data, options).toString('base64');

describe('inflate', () => {
  const samples: [string, Uint8Array][] = [
    ['nothing', new Uint8Array(0)],
    ['one byte', Uint8Array.of(7)],
    ['zeros', new Uint8Array(100_000)],
    ['noise', noise(70_000, 256)],
    ['few letters', noise(200_000, 3)],
    ['a repeated phrase', Uint8Array.from({ length: 90_000 }, (_, i) => (i * i) % 251)],
    ['mixed', Uint8Array.from([...noise(9000, 256), ...new Uint8Array(9000), ...noise(9000, 5)])]
  ];
  const ways = [0, 1, 6, 9].flatMap(level => [constants.Z_DEFAULT_STRATEGY, constants.Z_FIXED, constants.Z_HUFFMAN_ONLY, constants.Z_RLE].map(strategy => ({ level, strategy })));

  it.each(samples)('reads what zlib writes: %s', (_, data) => {
    for (const way of ways) {
      expect(Buffer.from(bytes(packed(data, way), data.length)).equals(Buffer.from(data)), JSON.stringify(way)).toBe(true);
    }
  });

  it('holds no more than asked for', () => {
    const bomb = packed(new Uint8Array(50_000_000));
    expect(() => bytes(bomb, 1000)).toThrow('more than 1000 bytes');
    expect(bytes(packed(new Uint8Array(1000)), 1000).length).toBe(1000);
    expect(() => bytes(packed(noise(1001, 256), { level: 0 }), 1000)).toThrow('more than 1000 bytes');
  });

  it('refuses what is damaged, with a Problem and in time', () => {
    const good = deflateSync(noise(3000, 40));
    expect(() => bytes('%%%', 10)).toThrow('no base64');
    expect(() => bytes('', 10)).toThrow(Problem);
    let refused = 0;
    for (let i = 0; i < 2000; i++) {
      const bad = Buffer.from(good);
      for (let k = 0; k < 1 + (i % 3); k++) {
        const at = Math.floor(random() * bad.length);
        bad[at] = (bad[at] as number) ^ (1 << Math.floor(random() * 8));
      }
      const cut = i % 5 === 0 ? bad.subarray(0, Math.floor(random() * bad.length)) : bad;
      if (Buffer.compare(cut, good) !== 0) {
        expect(() => bytes(cut.toString('base64'), 100_000)).toThrow(Problem);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(1900);
  });

  it('reads text', () => {
    expect(text(deflateSync(Buffer.from('q ↓ kv →')).toString('base64'))).toBe('q ↓ kv →');
  });
});
