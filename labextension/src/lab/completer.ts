/** Options on the magic line and names in the body, for JupyterLab's completer. What the kernel's own matcher finds too, it shows once. */

import { CompleterModel } from '@jupyterlab/completer';
import type { Completer, CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';

import type { Assistants } from './assistant';
import { cuteIcon } from './icon';
import { completeOptions } from './options';
import { isCute } from './places';

/** On the magic line JupyterLab adds the editor's own tokens (`%%`, `-`), which mean nothing there: what has no words is left out. */
class MagicModel extends CompleterModel {
  constructor(private readonly editor: ICompletionContext['editor']) {
    super();
  }

  override setCompletionItems(items: CompletionHandler.ICompletionItems): void {
    const { editor } = this;
    const ours = editor && editor.getCursorPosition().line === 0 && isCute(editor.model.sharedModel.getSource());
    super.setCompletionItems(ours ? items.filter(one => one.type || one.documentation) : items);
  }
}

export class CuteCompleter implements ICompletionProvider {
  readonly identifier = 'cute-lab:completer';
  readonly rank = 1100; // before the kernel's: of two equal items the first stays, and ours has words

  constructor(private readonly assistants: Assistants) {}

  async modelFactory(context: ICompletionContext): Promise<Completer.IModel> {
    return new MagicModel(context.editor);
  }

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
    const item = line === 1 ? optionItem : nameItem;
    const at = ({ line, column }: { line: number; column: number }): number => editor.getOffsetAt({ line: line - 1, column });
    // What is known here is said at once: JupyterLab drops an answer after a second, and a kernel may take longer the first time.
    const known = line === 1 ? completeOptions(before, text.split('\n', 1)[0]) : null;
    if (known?.matches.length) {
      return { start: known.from, end: request.offset, items: known.matches.map(item) };
    }
    try {
      const found = await this.assistants.of(editor.model).complete(text, line, column);
      return { start: at(found.start), end: at(found.end), items: found.matches.map(item) };
    } catch {
      return none; // no kernel that knows it
    }
  }
}

interface Match {
  readonly text: string;
  readonly type: string;
  readonly detail: string;
}

function nameItem({ text, type, detail }: Match): CompletionHandler.ICompletionItem {
  return { label: text, insertText: text, type, documentation: detail };
}

/** Its help stands beside it: the panel with documentation is off unless a person turns it on. What is in brackets is not searched. */
function optionItem({ text, detail }: Match): CompletionHandler.ICompletionItem {
  return { label: detail ? `${text} (${detail})` : text, insertText: text, documentation: detail, icon: cuteIcon };
}
