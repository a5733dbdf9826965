"""The block map as a picture, and as characters where there are no pictures. No Markdown: it outranks the PNG."""

from __future__ import annotations

import base64

import numpy as np

from cute_lab.picture import block_png
from cute_lab.quantities import number
from cute_lab.record import BlockSummary, Record
from cute_lab.runs import EMPTY, FULL
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
    steps = (-(-blocks.nq // HEIGHT), -(-blocks.nkv // WIDTH))
    counts = blocks.runs.chosen([0]).tiles(*steps)[:, 0]
    total = counts.sum(0)
    drawn = np.where(counts[EMPTY] == total, "·", np.where(counts[FULL] == total, "█", "▒"))
    others = blocks.Bm * blocks.Hm - 1
    more = f"; {number(others)} more maps differ by batch or head" if others else ""
    return ["".join(row) for row in drawn] + [f"q runs down, kv across: █ full  ▒ partial or mixed  · empty{more}"]


VIEW = View("mask", "Mask", 40, ("blocks",), render)
