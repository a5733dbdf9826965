/** "Check Before Sharing": a report is a report, and only what went wrong is told as such. */

import { expect, test } from 'vitest';

import { ENGLISH as t } from '../src/core/i18n';
import { drawSharing, sharingCode } from '../src/lab/sharing';

const REPORT = {
  ok: false,
  verdict: '1 problem left: see above.',
  sections: [{ title: 'To be changed', lines: ['cell 3 output 1: <b>a path</b> is left out'] }, { title: 'Problems', lines: ['cell 4 itself names /home/alice'] }],
  seen: 'cell 3 output 1:\n    live card         JupyterLab with cute_lab',
  copy: 'a.shared.ipynb',
  written: false
};

test('a report that finds something has sections, and is no error', () => {
  const { title, node } = drawSharing({ ok: true, text: `a warning\n${JSON.stringify(REPORT)}` }, 'a.ipynb', t);
  expect(title).toBe('a.ipynb is not ready to be shared');
  expect([...node.querySelectorAll('h3')].map(head => head.textContent)).toEqual(['To be changed', 'Problems', 'What each viewer shows']);
  expect([...node.querySelectorAll('li')].map(item => item.textContent)).toEqual(REPORT.sections.flatMap(section => section.lines));
  expect(node.querySelector('b')).toBeNull();
  expect(drawSharing({ ok: true, text: JSON.stringify({ ...REPORT, ok: true }) }, 'a.ipynb', t).title).toBe('a.ipynb can be shared');
});

test('a failure is told as one', () => {
  for (const said of [{ ok: false, text: 'OptionError: there is no file' }, { ok: true, text: 'nonsense' }, { ok: true, text: '' }]) {
    const { title, node } = drawSharing(said, 'a.ipynb', t);
    expect(title).toBe('a.ipynb could not be checked');
    expect(node.textContent).toBe(said.text || 'The kernel gave no answer.');
  }
});

test('the copy that has the changes, or would have them', () => {
  const draw = (more: object) => drawSharing({ ok: true, text: JSON.stringify({ ...REPORT, ...more }) }, 'a.ipynb', t);
  expect(draw({})).toMatchObject({ copy: 'a.shared.ipynb', title: 'a.ipynb is not ready to be shared' });
  expect(draw({ copy: '', ok: true })).toMatchObject({ copy: '', title: 'a.ipynb can be shared' }); // no button
  expect(draw({ written: true, ok: true })).toMatchObject({ copy: 'a.shared.ipynb', title: 'a.shared.ipynb can be shared' });
  expect(drawSharing({ ok: false, text: 'x' }, 'a.ipynb', t).copy).toBe('');
});

test('a file’s name is only a name', () => {
  expect(sharingCode('a.ipynb', ['path'], true)).toBe('print(__import__("cute_lab.share_magic", fromlist=["checked"]).checked("a.ipynb", "path", True))');
  expect(sharingCode('a"b\\$x.ipynb', ['path', 'gpu'])).toContain('.checked("a\\"b\\\\$x.ipynb", "path,gpu", False)');
});
