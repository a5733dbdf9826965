/** What is to be known before a notebook is shared, as a report with its sections. */

import { boolean, list, object, optional, string } from '../core/decode';
import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { clean } from '../core/text';
import type { Said } from './kernelwork';

const report = object({
  ok: boolean,
  verdict: string,
  sections: list(object({ title: string, lines: list(string, 2000) }), 10),
  seen: string,
  copy: optional(string),
  written: optional(boolean)
});

export interface Sharing {
  readonly title: string;
  readonly node: HTMLElement;
  /** The name of the copy that was made, or that would have what has to be changed; '' where nothing has to be. */
  readonly copy: string;
}

/** The notebook lies where its kernel works. It needs no %load_ext, and leaves no name behind. `write`: makes the copy too. */
export function sharingCode(name: string, fields: readonly string[], write = false): string {
  return `print(__import__("cute_lab.share_magic", fromlist=["checked"]).checked(${JSON.stringify(name)}, ${JSON.stringify(fields.join(','))}, ${write ? 'True' : 'False'}))`;
}

export function drawSharing(said: Said, name: string, trans: Translate): Sharing {
  const found = said.ok ? read(said.text) : null;
  if (!found) {
    const last = said.text.trim() || trans.__('The kernel gave no answer.');
    return { title: trans.__('%1 could not be checked', name), node: h('pre', { class: 'jp-CuteLab-report jp-CuteLab-report-plain', tabindex: 0 }, clean(last)), copy: '' };
  }
  const sections = found.sections.map(({ title, lines }) =>
    h('section', {}, h('h3', {}, clean(title)), h('ul', {}, ...lines.map(line => h('li', {}, clean(line)))))
  );
  const node = h(
    'div',
    { class: 'jp-CuteLab-report', tabindex: 0 },
    ...sections,
    found.seen ? h('section', {}, h('h3', {}, trans.__('What each viewer shows')), h('pre', {}, clean(found.seen))) : null,
    h('p', {}, clean(found.verdict))
  );
  const copy = clean(found.copy ?? '');
  const about = found.written ? copy : name;
  return { title: found.ok ? trans.__('%1 can be shared', about) : trans.__('%1 is not ready to be shared', about), node, copy };
}

function read(text: string): ReturnType<typeof report> | null {
  try {
    return report(JSON.parse(text.split('\n').at(-1) ?? ''), 'report'); // a warning of a package may stand before it
  } catch {
    return null;
  }
}
