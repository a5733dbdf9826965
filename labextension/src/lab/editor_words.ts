/** Findings in the editor's own terms. */

import type { Diagnostic } from '@codemirror/lint';
import type { Text } from '@codemirror/state';
import type { EditorView } from '@codemirror/view';

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { clean } from '../core/text';
import type { Finding, Fix } from './protocol';

/** A finding, and what a click can do about it beside editing the cell. */
export type Mistake = Finding & { readonly acts?: readonly { readonly title: string; readonly run: () => void }[] };

/** Within the document, whatever the line and column are. */
export function offset(doc: Text, line: number, column: number): number {
  const at = doc.line(Math.min(Math.max(1, line), doc.lines));
  return at.from + Math.min(Math.max(0, column), at.length);
}

export function toDiagnostic(found: Mistake, doc: Text, trans: Translate): Diagnostic {
  const from = offset(doc, found.line, found.column);
  const to = Math.max(from, offset(doc, found.end_line, found.end_column));
  return {
    from,
    to: to === from ? Math.min(from + 1, doc.length) : to,
    severity: found.severity,
    message: [found.message, found.hint].filter(part => part).join('\n'),
    renderMessage: () => words(found, trans),
    actions: [
      ...found.fixes.map(fix => ({ name: clean(fix.title), apply: (view: EditorView) => apply(view, fix) })),
      ...(found.acts ?? []).map(act => ({ name: clean(act.title), apply: () => act.run() }))
    ]
  };
}

function words(found: Finding, trans: Translate): HTMLElement {
  const [what = '', ...why] = clean(found.message).split('\n');
  const reason = why.join('\n').trim();
  const said = found.fixes.some(fix => fix.title.includes(found.hint)); // a button says it already
  return h(
    'div',
    { class: 'jp-CuteLab-finding' },
    h('div', { class: 'jp-CuteLab-finding-what' }, what),
    reason ? h('div', { class: 'jp-CuteLab-finding-why' }, reason) : null,
    found.hint && !said ? h('div', { class: 'jp-CuteLab-finding-write' }, trans.__('Write'), h('pre', {}, clean(found.hint))) : null
  );
}

function apply(view: EditorView, fix: Fix): void {
  const doc = view.state.doc;
  const changes = fix.edits.map(edit => ({ from: offset(doc, edit.line, edit.column), to: offset(doc, edit.end_line, edit.end_column), insert: edit.text }));
  if (changes.every(change => change.from <= change.to)) {
    view.dispatch({ changes, userEvent: 'input.fix', scrollIntoView: true });
    view.focus();
  }
}
