/** The list of runs in the side panel. */

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test, vi } from 'vitest';

import { ENGLISH } from '../src/core/i18n';
import { MIME } from '../src/core/record';
import { drawRuns } from '../src/lab/panel_runs';
import { Pins } from '../src/lab/pins';
import { ofNotebook } from '../src/lab/records';

vi.mock('../src/lab/places', () => ({ isCute: () => true })); // else all of JupyterLab is loaded

test('a run has the prompt of its cell, and pinning it moves nothing', () => {
  const file = JSON.parse(readFileSync(resolve(__dirname, '../../tests/records/example.cute.json'), 'utf8')) as { name: string };
  const { name } = file;
  const cell = (n: number) => ({ type: 'code', id: `c${n}`, executionCount: n, outputs: { length: 1, get: () => ({ data: { [MIME]: { ...file, created: `2026-01-0${n}T00:00:00Z` } } }) } });
  const runs = ofNotebook({ model: { cells: [cell(2), cell(6)] } } as never);
  const pins = new Pins();
  const draw = (shown = runs) => {
    const host = document.createElement('div');
    const tracker = { currentWidget: { content: { widgets: [] }, context: { path: '' } } } as never;
    host.append(...drawRuns(shown, { trans: ENGLISH, pins, tracker, compare: () => 0, insertFirst: () => 0, newNotebook: () => 0 }));
    return host;
  };
  const names = [...draw().querySelectorAll('.jp-CuteLab-run-name')].map(node => node.textContent);
  expect(names).toEqual([6, 2].map(n => `[${n}] ${name}`));
  expect(draw().querySelector('.jp-CuteLab-pin')?.getAttribute('aria-label')).toBe(`Pin [6] ${name} to compare`);
  const above = () => [draw().firstElementChild?.className, draw().firstElementChild?.textContent];
  expect(above()).toEqual(['jp-CuteLab-pinned', 'Pin two runs to compare them.']);
  pins.toggle(runs[0]!.record);
  expect(above()).toEqual(['jp-CuteLab-pinned', '1 pinned. Pin one more to compare.Unpin all']);
  pins.clear();
  expect(draw([]).querySelector('.jp-CuteLab-pinned')).toBeNull();
});
