/** The ground's colour, however a page writes it. */

import { describe, expect, it } from 'vitest';
import { channels } from '../src/core/theme';

describe('channels', () => {
  const pixel = (text: string): number[] => (text === 'oklch(1 0 0)' ? [255, 255, 255, 255] : [9, 9, 9, 255]);

  it.each([
    ['rgb(17, 24, 39)', [17, 24, 39, 255]],
    ['rgba(0, 0, 0, 0)', [0, 0, 0, 0]],
    ['rgb(255 255 255 / 0.5)', [255, 255, 255, 127.5]],
    ['oklch(1 0 0)', [255, 255, 255, 255]],
    ['color(srgb 0.1 0.1 0.1)', [9, 9, 9, 255]]
  ])('%s', (text, expected) => {
    expect(channels(text, pixel)).toEqual(expected);
  });

  it('is nothing where there is no ground', () => {
    expect(channels('', pixel)).toBeNull();
    expect(channels('transparent', pixel)).toBeNull();
  });
});
