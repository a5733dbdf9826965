/** What ran this and how to run it again. As views/environment.py. */

import type { Translate } from '../../core/i18n';
import type { CuteRecord } from '../../core/record';
import { shapeWords } from './common';
import { code, head, lines, table } from './page';
import type { Block, Words } from './page';
import { short } from './quantities';

export function environmentBlocks(t: Translate, record: CuteRecord): Block[] {
  const rows: Words[][] = [
    [t.__('run'), `${record.created}, ${short(record.seconds)} s`],
    [t.__('shape'), shapeWords(record.shape)],
    ...Object.entries(record.environment).map(([name, value]): Words[] => [name, { code: value }]),
    [t.__('source and shape, sha256'), { code: record.hash }],
    [t.__('record'), t.__('schema %1, %2', record.schema, record.kind)]
  ];
  const blocks = [table([t.__('name'), t.__('value')], rows)];
  if (record.params.length) {
    const params = record.params.map((p): Words[] => [
      { code: p.name },
      p.runtime ? t.__('run-time (no recompile)') : t.__('shape (recompiles)'),
      typeof p.value === 'boolean' ? (p.value ? 'True' : 'False') : String(p.value)
    ]);
    blocks.push(head(t.__('Parameters')), table([t.__('name'), t.__('kind'), t.__('value')], params, 1));
  }
  if (record.cell.magic) {
    blocks.push(lines(t.__('To repeat it, run the cell again with this first line:')), code(record.cell.magic));
  }
  return blocks;
}
