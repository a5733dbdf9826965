/** Faint notes at the ends of lines. */

import { StateEffect, StateField } from '@codemirror/state';
import { Decoration, EditorView, WidgetType } from '@codemirror/view';
import type { DecorationSet } from '@codemirror/view';

import { h } from '../core/dom';
import { clean } from '../core/text';

export const setNotes = StateEffect.define<readonly { at: number; text: string }[]>();

class Note extends WidgetType {
  constructor(private readonly text: string) {
    super();
  }

  override eq(other: Note): boolean {
    return other.text === this.text;
  }

  override toDOM(): HTMLElement {
    return h('span', { class: 'jp-CuteLab-note' }, clean(this.text));
  }

  override get estimatedHeight(): number {
    return -1;
  }
}

export const notes = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(set, transaction) {
    let now = set.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(setNotes)) {
        const placed = new Map(effect.value.map(note => [note.at, note.text])); // one a line
        now = Decoration.set([...placed].map(([at, text]) => Decoration.widget({ widget: new Note(text), side: 1 }).range(at)), true);
      }
    }
    return now;
  },
  provide: field => EditorView.decorations.from(field)
});
