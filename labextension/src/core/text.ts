/** Text of the user's, and numbers, as a person reads them. */

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Control characters and direction marks made visible: they could reorder code. */
export function clean(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(/\t/g, '    ').replace(CONTROL, '\ufffd');
}

/** 65,536. */
export function number(value: number): string {
  return Number.isFinite(value) ? value.toLocaleString('en-US', { maximumFractionDigits: 0 }) : String(value);
}

/** Three digits that count: 4.8e-7, 0.125, 573, 1,310. */
export function short(value: number): string {
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? 'not a number' : value > 0 ? 'infinite' : '-infinite';
  }
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) {
    return value.toExponential(1);
  }
  return size >= 1000 ? number(value) : String(Number(value.toPrecision(3)));
}

export function percent(share: number): string {
  const value = 100 * share;
  if (value > 0 && value < 0.1) {
    return '< 0.1 %';
  }
  return `${value >= 99.95 || value < 0.05 || value >= 10 ? value.toFixed(value === 100 || value === 0 ? 0 : 1) : value.toFixed(1)} %`;
}

export function count(n: number, noun: string): string {
  return `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
}
