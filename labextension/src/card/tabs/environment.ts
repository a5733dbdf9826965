/** Environment: what ran this, and how to run it again. */

import type { Translate } from '../../core/i18n';
import type { CuteRecord } from '../../core/record';
import { drawn } from '../blocks';
import type { Tab } from '../tab';
import { environmentBlocks } from '../words/environment';
import { code, head, table } from '../words/page';
import type { Block } from '../words/page';

export const TAB: Tab = {
  id: 'environment',
  title: t => t.__('Environment'),
  render: (host, record, around) => {
    const t = around.trans;
    host.append(...drawn(t, [...environmentBlocks(t, record), ...measured(t, record)]));
    return { dispose: () => host.replaceChildren() };
  }
};

/** The machine that measured need not be the one that ran the cell. */
function measured(t: Translate, record: CuteRecord): Block[] {
  const { bench } = record;
  if (!bench) {
    return [];
  }
  const rows = [['device', bench.device], ...Object.entries(bench.versions), [t.__('seed'), String(bench.seed)]];
  const repeat = bench.command ? [head(t.__('The command that repeats the measurement')), code(bench.command, 'shell')] : [];
  return [head(t.__('Where it was measured')), table([t.__('name'), t.__('value')], rows.map(([name = '', value = '']) => [name, { code: value }])), ...repeat];
}
