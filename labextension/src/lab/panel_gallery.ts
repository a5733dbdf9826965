/** Variants as thumbnails; choosing one inserts a cell that works. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { clean } from '../core/text';
import { draw, thumbnail } from './blocks';
import type { Variant } from './protocol';

export interface Drawn {
  readonly node: HTMLElement;
  /** In the colours of the theme as it is now. */
  readonly paint: () => void;
}

export function drawGallery(variants: readonly Variant[], trans: Translate, insert: (variant: Variant) => void): Drawn {
  const thumbs: { canvas: HTMLCanvasElement; variant: Variant }[] = [];
  const items = variants.map(variant => {
    const canvas = thumbnail(variant.blocks, trans);
    thumbs.push({ canvas, variant });
    const title = clean(variant.title);
    return h(
      'li',
      {},
      h(
        'button',
        { type: 'button', class: 'jp-CuteLab-variant', title: clean(variant.words), 'aria-label': trans.__('Insert %1: %2', title, clean(variant.words)), onclick: () => insert(variant) },
        canvas,
        h(
          'span',
          { class: 'jp-CuteLab-variant-text' },
          h('span', { class: 'jp-CuteLab-variant-title' }, title),
          h('span', { class: 'jp-CuteLab-variant-words' }, clean(variant.words))
        )
      )
    );
  });
  const node = h('ul', { class: 'jp-CuteLab-gallery', 'aria-label': trans.__('Variants') }, ...items);
  return { node, paint: () => thumbs.forEach(({ canvas, variant }) => draw(canvas, variant.blocks)) };
}
