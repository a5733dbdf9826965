/** Which lines of a mod cost most, as far as the estimate can tell. As cute_lab/heavy.py; tests/heavy.json holds both to it. */

import type { Translate } from '../../core/i18n';
import type { LineCost } from '../../core/record';
import { percent, rounded } from './quantities';

type Cost = Pick<LineCost, 'line' | 'share'>;

export const HEAVY = 0.25; // share of a mod's cycles from which a line is worth a word
export const BAND = 0.1; // the estimate's error, up and down: shares whose bands overlap are no difference

/** The dearest line and its share; lines that cost about as much stand beside it, and the share is theirs together. */
function heaviest(costs: readonly Cost[]): { lines: number[]; share: number } {
  const own = new Map(costs.filter(cost => cost.line).map(cost => [cost.line, cost.share]));
  const most = [...own.values()].reduce((a, b) => (b > a ? b : a), 0);
  if (!(most >= HEAVY)) {
    return { lines: [], share: 0 };
  }
  const lines = [...own].filter(([, share]) => share * (1 + BAND) >= most * (1 - BAND)).map(([line]) => line).sort((a, b) => a - b);
  return { lines, share: lines.reduce((sum, line) => sum + (own.get(line) ?? 0), 0) };
}

function together(t: Translate, lines: readonly number[], share: number): string {
  return t.__('lines %1 and %2 cost about the same, together %3', lines.slice(0, -1).join(', '), lines.at(-1) ?? '', percent(rounded(share, 2)));
}

export function heavySummary(t: Translate, costs: readonly Cost[]): string {
  const { lines, share } = heaviest(costs);
  const [first] = lines;
  return first === undefined ? '' : lines.length === 1 ? t.__('line %1 costs %2 of the mod', first, percent(rounded(share, 2))) : together(t, lines, share);
}

/** The notes at the ends of the dearest lines; none where the mod has only one line that costs. */
export function heavyAsides(t: Translate, costs: readonly Cost[], target: string): { line: number; text: string }[] {
  const own = new Map(costs.map(cost => [cost.line, cost.share]));
  const { lines } = own.size > 1 ? heaviest(costs) : { lines: [] };
  return lines.map(line => ({ line, text: t.__('%1 of the cost on %2', percent(rounded(own.get(line) ?? 0, 2)), target) }));
}
