"""The block map as a picture, and as characters where there are no pictures. No Markdown: it outranks the PNG."""

from __future__ import annotations

import base64

import numpy as np

from cute_lab.picture import block_png
from cute_lab.quantities import number
from cute_lab.record import BlockSummary, Record
from cute_lab.views import Bundle, View
from cute_lab.views._text import Lines, clean, page
from cute_lab.views._words import no_blocks
from cute_lab.views.summary import mask_words

HEIGHT, WIDTH = 24, 48  # characters, which are twice as high as wide


def render(record: Record) -> Bundle:
    blocks, shape = record.blocks, record.shape
    if blocks is None:
        return page(Lines((no_blocks(record),)))
    png = block_png(blocks, Sq=shape.Sq, Skv=shape.Skv, title=clean(record.name))
    text = [f"{clean(record.name)}: {mask_words(blocks, shape)}", *_characters(blocks)]
    return {"image/png": base64.b64encode(png).decode(), "text/plain": "\n".join(text)}


def _characters(blocks: BlockSummary) -> list[str]:
    """The first map; a character stands for one block or for several."""
    kinds = blocks.kinds()[0, 0]
    steps = (-(-kinds.shape[0] // HEIGHT), -(-kinds.shape[1] // WIDTH))
    low, high = kinds, kinds
    for axis, step in enumerate(steps):
        edges = np.arange(0, kinds.shape[axis], step)
        low, high = np.minimum.reduceat(low, edges, axis=axis), np.maximum.reduceat(high, edges, axis=axis)
    drawn = np.where(high == 0, "·", np.where(low == 2, "█", "▒"))
    others = blocks.Bm * blocks.Hm - 1
    more = f"; {number(others)} more maps differ by batch or head" if others else ""
    return ["".join(row) for row in drawn] + [f"q runs down, kv across: █ full  ▒ partial or mixed  · empty{more}"]


VIEW = View("mask", "Mask", 40, ("blocks",), render)
