/** Colours of the magic line: its name, flags and values. The body stays Python, as the editor has it. */

import type { Extension, Text } from '@codemirror/state';
import { Decoration, ViewPlugin } from '@codemirror/view';
import type { DecorationSet } from '@codemirror/view';

import type { Translate } from '../core/i18n';
import { magicOf, OPTIONS, words } from './options';

export function magicLine(trans: Translate): Extension {
  return ViewPlugin.define(
    view => {
      const plugin = {
        set: decorate(view.state.doc, trans),
        update(update: { docChanged: boolean; state: { doc: Text } }): void {
          if (update.docChanged) {
            plugin.set = decorate(update.state.doc, trans);
          }
        }
      };
      return plugin;
    },
    { decorations: plugin => plugin.set }
  );
}

function decorate(doc: Text, trans: Translate): DecorationSet {
  const line = doc.line(1).text;
  const magic = magicOf(line);
  if (magic === null) {
    return Decoration.none;
  }
  const ranges = [Decoration.mark({ class: 'jp-CuteLab-magic-name' }).range(0, magic.length + 2)];
  for (const word of words(line)) {
    const flag = word.text.startsWith('--') ? word.text.split('=', 1)[0] ?? '' : '';
    const option = OPTIONS.find(one => one.flag === flag);
    if (flag) {
      const title = option ? `${flag} ${option.value}: ${trans.__(option.words)}`.replace(' :', ':') : '';
      ranges.push(Decoration.mark({ class: 'jp-CuteLab-magic-flag', attributes: title ? { title } : {} }).range(word.from, word.from + flag.length));
    }
    if (word.to > word.from + flag.length) {
      ranges.push(Decoration.mark({ class: 'jp-CuteLab-magic-value' }).range(word.from + flag.length, word.to));
    }
  }
  return Decoration.set(ranges, true);
}
