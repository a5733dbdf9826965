/** Help in a cell's editor: squiggles, gutter marks, fixes, hover and notes at line ends. Idle in every other editor. */

import { linter, lintGutter, setDiagnosticsEffect } from '@codemirror/lint';
import { Compartment, EditorState } from '@codemirror/state';
import type { Extension, Text } from '@codemirror/state';
import { EditorView, hoverTooltip, ViewPlugin } from '@codemirror/view';
import type { ViewUpdate } from '@codemirror/view';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { EditorExtensionRegistry } from '@jupyterlab/codemirror';
import type { IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { NotebookActions } from '@jupyterlab/notebook';

import type { Assistant, Assistants, Known } from './assistant';
import { NoAnswer } from './client';
import type { KernelClient } from './client';
import { notes, setNotes } from './editor_notes';
import { offset, toDiagnostic } from './editor_words';
import { hoverCard } from './hover';
import { magicLine } from './magicline';
import { PATIENCE, ripe } from './patience';
import { isCute } from './places';

const EARLY = 150; // ms until what the text alone says is shown meanwhile

export function register(registry: IEditorExtensionRegistry, assistants: Assistants): void {
  registry.addExtension({
    name: 'cute-lab:assist',
    factory: ({ inline, model }) => (inline ? EditorExtensionRegistry.createImmutableExtension(help(model, assistants)) : null)
  });
}

/** On while the first line names one of our magics, and off, with everything it drew, when it no longer does. */
function help(model: CodeEditor.IModel, assistants: Assistants): Extension {
  const compartment = new Compartment();
  const on = (): Extension => active(assistants.of(model));
  return [
    compartment.of(isCute(firstLine(model.sharedModel.getSource())) ? on() : []),
    EditorState.transactionExtender.of(transaction => {
      if (!transaction.docChanged) {
        return null;
      }
      const [was, is] = [transaction.startState.doc, transaction.newDoc].map(doc => isCute(doc.line(1).text));
      if (was === is) {
        return null;
      }
      return { effects: is ? [compartment.reconfigure(on())] : [setDiagnosticsEffect.of([]), compartment.reconfigure([])] };
    })
  ];
}

function firstLine(text: string): string {
  const end = text.indexOf('\n');
  return end < 0 ? text : text.slice(0, end);
}

function active(assistant: Assistant): Extension {
  return [
    linter(null), // the diagnostics' own field, so that it goes when this goes
    lintGutter(),
    notes,
    magicLine(assistant.trans),
    ViewPlugin.define(view => new Watcher(view, assistant)),
    hoverTooltip(async (view, at) => {
      const line = view.state.doc.lineAt(at);
      const found = line.number === 1 ? null : await assistant.hover(view.state.doc.toString(), line.number, at - line.from);
      const indent = line.text.length - line.text.trimStart().length;
      return found && at >= line.from + indent
        ? { pos: line.from + indent, end: line.to, above: true, create: () => ({ dom: hoverCard(found, assistant.trans) }) }
        : null;
    }, { hoverTime: 350 }),
    EditorView.editorAttributes.of({ class: 'jp-CuteLab-editor' })
  ];
}

/** The line with the cursor, from 1. */
function lineOf(state: EditorState): number {
  return state.doc.lineAt(state.selection.main.head).number;
}

/** Waits until the hands rest, asks, and shows the answer if the text is still the same. */
class Watcher {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private client: KernelClient | null = null;
  private gone = false;
  private late = 0;
  private known: { doc: Text; known: Known } | null = null; // as last shown
  private shown: { doc: Text; looks: string } | null = null;
  private typed = 0; // when
  private patience: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly view: EditorView,
    private readonly assistant: Assistant
  ) {
    NotebookActions.executed.connect(this.onExecuted, this);
    assistant.settings.changed.connect(this.onChanged, this);
    this.soon(0);
  }

  update(update: ViewUpdate): void {
    if (update.docChanged) {
      this.typed = Date.now();
      this.soon(this.assistant.settings.debounce);
    } else if (this.known && this.patience !== undefined && lineOf(update.startState) !== lineOf(update.state)) {
      const { doc, known } = this.known;
      clearTimeout(this.patience);
      this.patience = setTimeout(() => this.show(doc, known)); // the line is left: an update may not dispatch
    }
  }

  destroy(): void {
    this.gone = true;
    clearTimeout(this.timer);
    clearTimeout(this.patience);
    NotebookActions.executed.disconnect(this.onExecuted, this);
    this.assistant.settings.changed.disconnect(this.onChanged, this);
    this.client?.changed.disconnect(this.onChanged, this);
  }

  private soon(wait: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.look(), wait);
  }

  private async look(): Promise<void> {
    this.watch();
    const doc = this.view.state.doc;
    const text = doc.toString();
    const early = setTimeout(() => this.show(doc, this.assistant.atOnce(text)), EARLY); // a kernel may take long
    let known: Known;
    try {
      known = await this.assistant.diagnose(text);
    } catch (error) {
      if (error instanceof NoAnswer && error.why === 'superseded') {
        return;
      }
      if (error instanceof NoAnswer && error.why === 'timeout' && this.late++ < 3) {
        this.soon(1000); // a kernel that imports torch for the first time takes its time
      }
      known = this.assistant.atOnce(text);
    } finally {
      clearTimeout(early);
    }
    this.show(doc, known);
  }

  private show(doc: Text, known: Known): void {
    if (this.gone || this.view.state.doc !== doc) {
      return;
    }
    const { trans, settings } = this.assistant;
    const rested = Date.now() - this.typed;
    const { now, later } = ripe(known.findings, this.view.hasFocus ? lineOf(this.view.state) : 0, rested);
    clearTimeout(this.patience);
    this.known = { doc, known };
    this.patience = later ? setTimeout(() => this.show(doc, known), PATIENCE - rested + 1) : undefined;
    const looks = JSON.stringify([now, known.annotations, settings.annotations]);
    if (this.shown?.doc === doc && this.shown.looks === looks) {
      return; // to say it again would close what a person has opened
    }
    this.shown = { doc, looks };
    const diagnostics = now.map(found => toDiagnostic(found, doc, trans));
    const lines = settings.annotations ? known.annotations.filter(note => note.line >= 1 && note.line <= doc.lines) : [];
    const at = lines.map(note => ({ at: offset(doc, note.line, Infinity), text: note.text }));
    this.view.dispatch({ effects: [setDiagnosticsEffect.of(diagnostics), setNotes.of(at)] });
  }

  /** The client changes with the kernel. */
  private watch(): void {
    const client = this.assistant.client;
    if (client !== this.client) {
      this.client?.changed.disconnect(this.onChanged, this);
      client?.changed.connect(this.onChanged, this);
      this.client = client;
    }
  }

  private onChanged(sender: unknown): void {
    if (sender === this.client && (this.client?.state === 'opening' || this.client?.state === 'absent')) {
      return; // it is the answer to a question of ours
    }
    this.soon(0);
  }

  private onExecuted(_: unknown, ran: { cell: { model: unknown }; notebook: unknown }): void {
    const place = this.assistant.place;
    if (place?.panel.content === ran.notebook) {
      this.assistant.client?.retry();
      this.soon(50);
    }
  }
}
