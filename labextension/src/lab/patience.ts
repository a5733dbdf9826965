/** What a person has not finished writing is no mistake yet. */

import type { Mistake } from './editor_words';

export const PATIENCE = 1500; // ms without a key, from which on a line with the cursor counts as written

/** Findings to show now, and whether some are kept back. `cursor` is its line from 1, or 0 where nobody writes; `rested` ms since the last key. */
export function ripe(findings: readonly Mistake[], cursor: number, rested: number): { now: Mistake[]; later: boolean } {
  const now = cursor > 0 && rested < PATIENCE ? findings.filter(found => !isUnfinished(found, cursor)) : [...findings];
  return { now, later: now.length < findings.length };
}

/** What the text alone shows of the line with the cursor; and what the cell as a whole lacks, which stands at the magic's name. */
function isUnfinished(found: Mistake, cursor: number): boolean {
  if (found.severity !== 'error' || found.acts) {
    return false; // the state of the kernel does not depend on what is typed
  }
  const ofCell = found.line === 1 && found.column === 0 && found.end_line === 1;
  return ofCell || (found.source === 'static' && found.line <= cursor && cursor <= found.end_line);
}
