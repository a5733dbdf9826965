/** What an editor underlines while one writes, with a kernel that is faked. */

import { forEachDiagnostic } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ENGLISH as t } from '../src/core/i18n';
import { Assistants } from '../src/lab/assistant';
import { NoAnswer } from '../src/lab/client';
import { register } from '../src/lab/editor';
import { loadAbove } from '../src/lab/loading';
import { ripe } from '../src/lab/patience';
import { Settings } from '../src/lab/settings';
import { check } from '../src/lab/static';
import { unloaded } from '../src/lab/unloaded';

// else all of JupyterLab is loaded
vi.mock('@jupyterlab/notebook', () => ({ NotebookActions: { executed: { connect: () => undefined, disconnect: () => undefined }, runCells: vi.fn() } }));
vi.mock('@jupyterlab/codemirror', () => ({ EditorExtensionRegistry: { createImmutableExtension: (extension: Extension) => ({ extension }) } }));
vi.mock('../src/lab/places', async () => ({ isCute: (await import('../src/lab/options')).magicOf }));

const MASK = '%%cute_attention\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n';
const settings = new Settings();
let view: EditorView | null = null;
beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  view?.destroy();
  document.body.replaceChildren();
  vi.useRealTimers();
});

function edit(text: string, client: object | null, load: (() => void) | null = null): EditorView {
  const model = { sharedModel: { getSource: () => text } };
  const place = { panel: { sessionContext: { session: { kernel: {} } }, content: { widgets: [] } }, cell: { model: { id: 'x', type: 'raw' } } };
  const assistants = new Assistants({ of: () => place } as never, { of: () => client } as never, settings, t, load);
  let made: Extension = [];
  register({ addExtension: (one: { factory: (options: object) => { extension: Extension } }) => (made = one.factory({ inline: true, model }).extension) } as never, assistants);
  view = new EditorView({ state: EditorState.create({ doc: text, extensions: made }), parent: document.body });
  view.focus();
  return view;
}

function underlined(): string[] {
  const found: string[] = [];
  forEachDiagnostic(view!.state, (one, from) => found.push(`${view!.state.doc.lineAt(from).number} ${one.message.split('\n')[0]}`));
  return found;
}

const type = (text: string): void => view!.dispatch({ changes: { from: view!.state.doc.length, insert: text }, selection: { anchor: view!.state.doc.length + text.length } });
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe('a line that is being written', () => {
  it('is not underlined until a moment has passed', async () => {
    edit('%%cute_attention\n', null);
    type('def mask_mod(b, h');
    await pass(1000);
    expect(underlined()).toEqual([]);
    type(', q_idx');
    await pass(1000);
    expect(underlined()).toEqual([]);
    await pass(600);
    expect(underlined()).toEqual(["2 '(' is never closed"]);
  });

  it('is underlined once it is left', async () => {
    edit('%%cute_attention\n', null);
    type('def mask_mod(b, h');
    await pass(500);
    expect(underlined()).toEqual([]);
    view!.dispatch({ selection: { anchor: 3 } });
    await pass(10);
    expect(underlined()).toEqual(["2 '(' is never closed"]);
  });

  it('does not make the whole cell a mistake meanwhile, nor hide what is wrong elsewhere', () => {
    const text = '%%cute_attention --Hk 3\ndef ma';
    const [flag, missing] = check(text, t);
    expect([flag?.column, missing?.message.split('\n')[0]]).toEqual([17, 'no score_mod and no mask_mod is defined']);
    expect(ripe([flag!, missing!], 2, 300)).toEqual({ now: [flag], later: true });
    expect(ripe([flag!, missing!], 1, 300).now).toEqual([]);
    expect(ripe([flag!, missing!], 2, 1500)).toEqual({ now: [flag, missing], later: false });
    expect(ripe([flag!, missing!], 0, 0).later).toBe(false);
    const traced = { ...flag!, source: 'trace' as const };
    expect(ripe([traced], 1, 0).now).toEqual([traced]);
  });
});

describe('a kernel that has not loaded cute_lab', () => {
  const without = (isWithoutLab: boolean, why: NoAnswer['why'] = 'absent'): object => ({
    ...{ isWithoutLab, state: 'absent', changed: { connect: () => true, disconnect: () => true } },
    ask: () => Promise.reject(new NoAnswer(why))
  });

  it('is said at the magic’s name, with a click that loads it', async () => {
    const load = vi.fn();
    edit(MASK, without(true), load);
    await pass(300);
    expect(underlined()).toEqual(['1 this kernel has not loaded cute_lab: run %load_ext cute_lab first']);
    forEachDiagnostic(view!.state, one => one.actions?.[0]?.apply(view!, 0, 0));
    expect(load).toHaveBeenCalledOnce();
    type('# '); // it stays while one types on
    await pass(300);
    expect(underlined()).toHaveLength(1);
  });

  it('is not said of one that is busy, slow or gone', async () => {
    edit(MASK, without(false));
    await pass(3000);
    expect(underlined()).toEqual([]);
    view!.destroy();
    edit(MASK, without(true, 'busy'));
    await pass(3000);
    expect(underlined()).toEqual([]);
  });

  it('is not said anew where nothing changed: that would close the tooltip', async () => {
    edit(MASK, without(true));
    await pass(300);
    const dispatch = vi.spyOn(view!, 'dispatch');
    settings.changed.emit();
    await pass(300);
    expect(dispatch).not.toHaveBeenCalled();
    expect(underlined()).toHaveLength(1);
  });

  it('is said of both magics', () => {
    expect(unloaded('%%cute_gemm\n', t, null, false)).toMatchObject({ line: 1, column: 0, end_column: 11, acts: [] });
    expect(unloaded('x = 1', t, null, false)).toBeNull();
  });

  it('is mended by the cell above that loads it, which is made where there is none', async () => {
    const { NotebookActions } = await import('@jupyterlab/notebook');
    const cell = (text: string): object => ({ model: { type: 'code', sharedModel: { getSource: () => text } } });
    const [first, ours] = [cell('import torch\n%load_ext cute_lab'), cell(MASK)];
    const widgets = [first, ours];
    const insertCell = vi.fn((at: number, made: { source: string }) => widgets.splice(at, 0, cell(made.source)));
    const panel = { content: { widgets, model: { sharedModel: { insertCell } }, scrollToCell: () => Promise.resolve() }, sessionContext: {} };
    await loadAbove({ panel, cell: ours } as never);
    expect(insertCell).not.toHaveBeenCalled();
    expect(vi.mocked(NotebookActions.runCells).mock.lastCall?.[1]).toEqual([first]);
    widgets.shift();
    await loadAbove({ panel, cell: ours } as never);
    expect(insertCell.mock.lastCall).toMatchObject([0, { source: '%load_ext cute_lab' }]);
    expect(vi.mocked(NotebookActions.runCells).mock.lastCall?.[1]).toEqual([widgets[0]]);
  });
});
