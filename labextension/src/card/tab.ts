/** A tab of the card: one file in tabs/ exports TAB; card.ts lists them in order. */

import type { Disposable } from '../core/dom';
import type { Translate } from '../core/i18n';
import type { CuteRecord } from '../core/record';
import type { CellSource } from '../mask/cells';

/** What a card may use of its surroundings; all of it is optional, a saved notebook has none. */
export interface Surroundings {
  readonly trans: Translate;
  /** Cells of the mask from a kernel, where the browser can't compute them. */
  readonly cellSource?: CellSource;
  /** Other records to compare with, newest first: earlier runs of the same name, then those of the same notebook. */
  readonly others?: () => readonly CuteRecord[];
  /** Brings the cell of this record into view. */
  readonly reveal?: () => void;
  /** Does the cell still read as it did when it ran? Undefined where nobody knows. */
  readonly isStale?: () => boolean | undefined;
  readonly pin?: () => void;
  /** Whether it is pinned; the card is refreshed when that changes. */
  readonly isPinned?: () => boolean;
}

export interface Tab {
  readonly id: string;
  readonly title: (trans: Translate) => string;
  /** Draws into an empty element. The card calls it when the tab is first looked at. */
  readonly render: (host: HTMLElement, record: CuteRecord, around: Surroundings) => Disposable;
}
