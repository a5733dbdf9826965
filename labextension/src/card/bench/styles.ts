/** The contenders' colours and markers: the table of cute_lab/series.py, which a test compares with this one. */

export interface Style {
  readonly colour: string;
  readonly marker: string;
  readonly dash: string;
  readonly width: number;
  readonly size: number;
}

function look(colour: string, marker = 'circle', dash = 'solid', width = 2, size = 10): Style {
  return { colour, marker, dash, width, size };
}

// Okabe-Ito; orange and sky darker, so that each colour has a contrast of 3 on white and on black. A family has one hue.
export const BLUE = '#0072b2';
const SKY = '#3d8fc4';
const VERMILLION = '#d55e00';
const GREEN = '#009e73';
const PURPLE = '#c76f9f';
const ORANGE = '#b87f00';
const BROWN = '#8d6e63';
export const GREY = '#797979';

export const STYLES: Readonly<Record<string, Style>> = {
  cute_lab: look(BLUE, 'circle', 'solid', 3.5, 8),
  cute_lab_fast: look(SKY, 'circle-open', 'dot'),
  flex_triton: look(VERMILLION, 'square'),
  flex_triton_tuned: look(VERMILLION, 'square-open', 'dot'),
  flex_flash: look(GREEN, 'diamond'),
  sdpa_cudnn: look(PURPLE, 'triangle-up'),
  sdpa_flash: look(PURPLE, 'triangle-down', 'dot'),
  eager: look(BROWN, 'pentagon'),
  fa4_native: look(ORANGE, 'hexagon', 'dash'),
  fa4_dense: look(ORANGE, 'star', 'dash')
};
export const ORDER: readonly string[] = Object.keys(STYLES);
/** Without the user's score_mod: rates to reach, no rivals. */
export const CEILINGS: readonly string[] = ['fa4_native', 'fa4_dense'];
export const PEAK = look(GREY, '', 'longdash', 1.5);
export const OTHERS: readonly Style[] = ['cross', 'triangle-left', 'bowtie'].flatMap(marker =>
  [GREEN, SKY, BROWN, VERMILLION].map(colour => look(colour, marker, 'dashdot'))
);

/** A contender that the table does not know has the same style in every chart too. */
export function style(contender: string): Style {
  const known = Object.hasOwn(STYLES, contender) ? STYLES[contender] : undefined;
  return known ?? (OTHERS[crc32(contender) % OTHERS.length] as Style);
}

function crc32(text: string): number {
  let sum = ~0;
  for (const byte of new TextEncoder().encode(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
    }
  }
  return ~sum >>> 0;
}
