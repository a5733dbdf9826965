/** Numbers in words, digit for digit as cute_lab/quantities.py writes them: a card and a saved notebook say the same. */

/** Python rounds exact ties to even, JavaScript away from zero; `digits` is the value's own decimal expansion. */
function tie(digits: string, kept: number): boolean {
  return /^50*$/.test(digits.slice(kept));
}

/** f"{value:.{places}f}". */
export function fixed(value: number, places: number): string {
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  }
  const size = Math.abs(value);
  if (size >= 1e21) {
    return BigInt(value).toString() + (places ? `.${'0'.repeat(places)}` : '');
  }
  let text = size.toFixed(places);
  const [whole = '', rest = ''] = size.toFixed(Math.min(100, places + 60)).split('.');
  const digits = whole + rest;
  const kept = whole.length + places;
  if (tie(digits, kept) && Number(digits[kept - 1] ?? '0') % 2 === 0) {
    const down = digits.slice(0, kept);
    text = places ? `${down.slice(0, whole.length)}.${down.slice(whole.length)}` : down;
  }
  return (value < 0 || Object.is(value, -0) ? '-' : '') + text;
}

/** Python's round(value, places). */
export function rounded(value: number, places: number): number {
  return Number.isFinite(value) ? Number(fixed(value, places)) : value;
}

/** f"{value:.{digits}g}". */
export function general(value: number, digits: number): string {
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  }
  if (value === 0) {
    return Object.is(value, -0) ? '-0' : '0';
  }
  const size = Math.abs(value);
  let [mantissa = '', exponent = '0'] = size.toExponential(digits - 1).split('e');
  const [longest = '', own = '0'] = size.toExponential(60).split('e');
  const all = longest.replace('.', '');
  if (tie(all, digits) && Number(all[digits - 1]) % 2 === 0) {
    mantissa = `${all[0]}.${all.slice(1, digits)}`;
    exponent = own;
  }
  const power = Number(exponent);
  const sign = value < 0 ? '-' : '';
  if (power < -4 || power >= digits) {
    const lead = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
    return `${sign}${lead}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  }
  const plain = Number(`${mantissa}e${power}`).toFixed(Math.max(0, digits - 1 - power));
  return sign + (plain.includes('.') ? plain.replace(/\.?0+$/, '') : plain);
}

/** 1234567.5 -> 1,234,567.5 */
export function grouped(text: string): string {
  const [whole = '', ...rest] = text.split('.');
  return [whole.replace(/\B(?=(\d{3})+$)/g, ','), ...rest].join('.');
}

export function number(value: number): string {
  return grouped(Number.isSafeInteger(value) ? String(value) : fixed(value, 0));
}

/** f"{value:,.0f}" */
export function whole(value: number): string {
  return grouped(fixed(value, 0));
}

/** 4.8e-7 and not 4.8000000000e-07. */
export function short(value: number): string {
  return general(value, 3).replace(/e([+-])0*(\d)/, (_, sign: string, digit: string) => `e${sign === '+' ? '' : sign}${digit}`);
}

/** Digits enough to see two nearly equal values differ. */
export function exact(value: number): string {
  return general(value, 8);
}

export function percent(share: number): string {
  const value = 100 * share;
  if ((value > 0 && value < 0.1) || (value > 99.9 && value < 100)) {
    const rest = Math.min(value, 100 - value);
    let places = 2;
    while (places < 13 && rounded(rest, places) <= 0) {
      places += 1;
    }
    return `${fixed(value, places)} %`;
  }
  return `${fixed(value, 1)} %`.replace('.0 %', ' %');
}

const EIGHTHS = ' ▏▎▍▌▋▊▉█';

export function bar(share: number, width = 12): string {
  const eighths = rounded(Math.min(Math.max(0, share), 1) * width * 8, 0);
  return ('█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]).trimEnd();
}

/** "not a number", "infinite", or three digits. */
export function errorWords(value: number): string {
  return Number.isNaN(value) ? 'not a number' : Number.isFinite(value) ? short(value) : 'infinite';
}

/** Printable, in one line, and not the whole of a compiler's message: the record holds all. */
export function oneLine(text: string, limit = 160): string {
  const line = text
    .slice(0, 50_000)
    .split(/\s+/)
    .filter(Boolean)
    .join(' ')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, '\ufffd');
  const letters = Array.from(line);
  return letters.length <= limit ? line : `${letters.slice(0, limit - 1).join('').trimEnd()}…`;
}
