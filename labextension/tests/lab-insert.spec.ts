/** Inserting a variant: one cell, which has the focus then; and commands that the palette finds. @vitest-environment node */

import type { NotebookPanel } from '@jupyterlab/notebook';
import { describe, expect, test, vi } from 'vitest';

import { ENGLISH } from '../src/core/i18n';
import { ID, IN_PALETTE, register } from '../src/lab/commands';
import { insert } from '../src/lab/variants';

// else all of JupyterLab is loaded
vi.mock('@jupyterlab/apputils', () => ({}));
vi.mock('@jupyterlab/notebook', () => ({ NotebookActions: {}, NotebookPanel: class {} }));
vi.mock('@jupyterlab/ui-components', () => ({ runIcon: {}, stopIcon: {} }));
vi.mock('@lumino/widgets', () => ({ Widget: class {} }));
vi.mock('../src/lab/icon', () => ({ cuteIcon: {} }));
vi.mock('../src/lab/loading', () => ({ loadAbove: (place: { panel: { loaded: number } }) => Promise.resolve((place.panel.loaded += 1)) }));
vi.mock('../src/lab/places', () => ({
  reveal: (panel: NotebookPanel, cell: never) => Promise.resolve((panel.content.activeCellIndex = panel.content.widgets.indexOf(cell)))
}));

interface Cell {
  cell_type: string;
  source: string;
  getSource: () => string;
  setSource: (text: string) => void;
}

function cell(source: string): Cell {
  return { cell_type: 'code', source, getSource() { return this.source; }, setSource(text) { this.source = text; } };
}

/** As much of a notebook as `insert` uses. */
function notebook(active: number, ...sources: string[]) {
  const cells = sources.map(cell);
  const known = new Map<Cell, { model: { sharedModel: Cell } }>();
  const widgetOf = (one: Cell) => known.get(one) ?? known.set(one, { model: { sharedModel: one } }).get(one);
  const content = {
    log: [] as string[],
    mode: 'command',
    activeCellIndex: active,
    get widgets() { return cells.map(widgetOf); },
    get activeCell() { return this.widgets[this.activeCellIndex]; },
    model: { sharedModel: { cells, insertCell: (at: number, made: { source: string }) => void cells.splice(at, 0, cell(made.source)) } },
    scrollToItem: () => Promise.resolve(),
    activate() { this.log.push(`${this.mode} ${this.activeCellIndex}`); }
  };
  const panel = { content, loaded: 0 };
  return { panel: panel as unknown as NotebookPanel & { loaded: number }, content, sources: () => cells.map(one => one.source) };
}

describe('a variant that is inserted', () => {
  test('is one cell below the active one, edited and with the focus', async () => {
    const { panel, content, sources } = notebook(1, '%load_ext cute_lab', 'x', 'y');
    await insert(panel, '%%cute_attention\nz', 'auto');
    expect(sources()).toEqual(['%load_ext cute_lab', 'x', '%%cute_attention\nz', 'y']);
    expect(content.log).toEqual(['edit 2']);
    expect(panel.loaded).toBe(0);
  });

  test('takes an empty cell, and sees to it that cute_lab is loaded', async () => {
    const { panel, content, sources } = notebook(0, '');
    await insert(panel, '%%cute_attention\nz', 'sm_90a');
    expect(sources()).toEqual(['%%cute_attention --target sm_90a\nz']);
    expect(content.log).toEqual(['edit 0']);
    expect(panel.loaded).toBe(1);
  });
});

test('each command is in the palette under our name, and has its short name elsewhere', () => {
  const labels = new Map<string, (args: object) => string>();
  const signal = { connect: () => true };
  const commands = { addCommand: (id: string, { label }: { label: (args: object) => string }) => labels.set(id, label) };
  const tracker = { currentChanged: signal, activeCellChanged: signal, widgetAdded: signal };
  register({ app: { commands }, trans: ENGLISH, tracker, status: { changed: signal } } as never);
  expect([...IN_PALETTE].sort()).toEqual([...labels.keys()].sort());
  for (const label of labels.values()) {
    expect(label({ isPalette: true })).toMatch(/^CuTe Lab: [A-Z]/);
  }
  expect(labels.get(ID.run)?.({})).toBe('Run on GPU');
});
