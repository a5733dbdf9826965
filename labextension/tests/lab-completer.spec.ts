/** Completion on the magic line, as JupyterLab's completer takes it. @vitest-environment node */

import { expect, test, vi } from 'vitest';

import { CuteCompleter } from '../src/lab/completer';

// else all of JupyterLab is loaded
vi.mock('@jupyterlab/completer', () => ({
  CompleterModel: class {
    items: unknown[] = [];
    setCompletionItems(items: unknown[]): void {
      this.items = items;
    }
  }
}));
vi.mock('../src/lab/icon', () => ({ cuteIcon: {} }));
vi.mock('../src/lab/places', async () => ({ isCute: (await import('../src/lab/options')).magicOf }));

const editor = (text: string, line: number): never =>
  ({ model: { sharedModel: { getSource: () => text } }, getCursorPosition: () => ({ line, column: 0 }), getOffsetAt: ({ column }: { column: number }) => column }) as never;
const assistants = { of: () => ({ complete: () => Promise.reject(new Error('no kernel')) }) } as never;

test('an option stands with its help, and none that is given', async () => {
  const text = '%%cute_attention --H 8 -- --Sq 4\n';
  const found = await new CuteCompleter(assistants).fetch({ text, offset: 25 }, { editor: editor(text, 0), widget: {} as never });
  const labels = found.items.map(item => item.insertText);
  expect(found.start).toBe(23);
  expect(labels).toContain('--target');
  expect(labels).not.toContain('--H');
  expect(labels).not.toContain('--Sq');
  expect(found.items.find(item => item.insertText === '--target')?.label).toBe('--target (NAME · an architecture to compile for, no GPU needed)');
  expect(found.items.every(item => /^--[\w-]+ \(.{5,}\)$/.test(item.label))).toBe(true);
});

test('a kernel that takes long is not waited for, and one is asked what only it knows', async () => {
  const complete = vi.fn(() => new Promise(() => undefined));
  const slow = new CuteCompleter({ of: () => ({ complete }) } as never);
  const fetch = (text: string): ReturnType<CuteCompleter['fetch']> => slow.fetch({ text, offset: text.length }, { editor: editor(text, 0), widget: {} as never });
  expect((await fetch('%%cute_attention --target sm_9')).items.map(item => [item.insertText, item.label])).toEqual([['sm_90a', 'sm_90a (Hopper)']]);
  expect(complete).not.toHaveBeenCalled();
  void fetch('%%cute_attention --views ');
  expect(complete).toHaveBeenCalledOnce();
});

test('the editor’s own tokens are left out on the magic line, and only there', async () => {
  const mixed = [{ label: '--target', documentation: 'an architecture' }, { label: '--H', type: 'param' }, { label: '%%' }, { label: '-' }];
  const shown = async (text: string, line: number): Promise<unknown[]> => {
    const model = await new CuteCompleter(assistants).modelFactory({ editor: editor(text, line), widget: {} as never });
    model.setCompletionItems?.(mixed);
    return (model as unknown as { items: { label: string }[] }).items.map(item => item.label);
  };
  expect(await shown('%%cute_attention --\n', 0)).toEqual(['--target', '--H']);
  expect(await shown('%%cute_attention --\nx', 1)).toEqual(['--target', '--H', '%%', '-']);
  expect(await shown('x', 0)).toEqual(['--target', '--H', '%%', '-']);
});
