/** Mask: the block map as a picture to walk in. */

import type { Disposable } from '../../core/dom';
import { MaskView } from '../../mask/view';
import { empty } from '../blocks';
import type { Tab } from '../tab';
import { noBlocks } from '../words/common';

export const TAB: Tab = {
  id: 'mask',
  title: t => t.__('Mask'),
  render: (host, record, around): Disposable => {
    const { trans, cellSource } = around;
    const { blocks, shape, cells } = record;
    if (!blocks) {
      host.append(empty(noBlocks(trans, record)));
      return { dispose: () => host.replaceChildren() };
    }
    const view = new MaskView(host, { trans, ...(cellSource && { cellSource }) });
    view.show(blocks, { Sq: shape.Sq, Skv: shape.Skv, cells });
    return view;
  }
};
