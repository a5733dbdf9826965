/** Options on the magic line and names in the body, for JupyterLab's completer. What the kernel's own matcher finds too, it shows once. */

import type { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';

import type { Assistants } from './assistant';
import { completeOptions } from './options';
import { isCute } from './places';

export class CuteCompleter implements ICompletionProvider {
  readonly identifier = 'cute-lab:completer';
  readonly rank = 1100; // before the kernel's: of two equal items the first stays, and ours has words

  constructor(private readonly assistants: Assistants) {}

  async isApplicable(context: ICompletionContext): Promise<boolean> {
    const source = context.editor?.model.sharedModel.getSource() ?? '';
    return isCute(source);
  }

  async fetch(request: CompletionHandler.IRequest, context: ICompletionContext): Promise<CompletionHandler.ICompletionItemsReply> {
    const none = { start: request.offset, end: request.offset, items: [] };
    const editor = context.editor;
    if (!editor) {
      return none;
    }
    const text = editor.model.sharedModel.getSource();
    const before = text.slice(0, request.offset);
    const line = before.split('\n').length;
    const column = before.length - (before.lastIndexOf('\n') + 1);
    const at = ({ line, column }: { line: number; column: number }): number => editor.getOffsetAt({ line: line - 1, column });
    try {
      const found = await this.assistants.of(editor.model).complete(text, line, column);
      return { start: at(found.start), end: at(found.end), items: found.matches.map(item) };
    } catch {
      const found = line === 1 ? completeOptions(before) : null; // no kernel that knows it
      return found ? { start: found.from, end: request.offset, items: found.matches.map(item) } : none;
    }
  }
}

function item(match: { text: string; type: string; detail: string }): CompletionHandler.ICompletionItem {
  return { label: match.text, insertText: match.text, type: match.type, documentation: match.detail };
}
