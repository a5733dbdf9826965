"""A block map as a PNG: paper for empty blocks, orange hatching for partial ones, solid blue for full ones.

A card of its own (white, with a margin), so that it reads on a dark theme too. At most 16 colours, no noise and one
pixel per block at least, unless the map has more blocks than pixels or the file would pass `limit`: then a tile stands
for several blocks, and a mixed tile is the darker the more of it the kernel issues.
"""

from __future__ import annotations

import importlib.util
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from cute_lab.quantities import percent
from cute_lab.record import BlockSummary
from cute_lab.runs import Runs

Pixels = NDArray[np.uint8]
SIDE, SMALL, SHORTEST = 480, 190, 48  # pixels: a map alone, one of several, the short side of a long map
SHOWN, COLUMNS = 8, 4  # maps
MARGIN, LEFT, GAP, LEGEND = 18, 70, 22, 236
LIMIT = 20_000  # bytes
INK = 5  # colours 0 (paper) to 5 (ink) are greys, for text
EMPTY, GRID, FULL, PARTIAL, HATCH, MIXED = 0, 6, 7, 8, 9, 10  # MIXED..MIXED+4: mixed tiles, from pale to dark
PALETTE = (
    *("ffffff", "d2d6da", "a6adb5", "7a8590", "4e5c6a", "1f2d3a"),
    *("d9dde2", "0072b2", "f9dfa6", "d98200"),  # Okabe-Ito blue; orange, as tint and as line
    *("fbe8c0", "f3c878", "e6a230", "b87814", "7d4f08"),
    "c4c9cf",
)
FRAME = 15


@dataclass(frozen=True)
class Axis:
    """One side of a map: `tiles` of `blocks` blocks, each `pixels` wide."""

    blocks: int
    tiles: int
    pixels: int

    @property
    def length(self) -> int:
        return self.tiles * self.pixels


def block_png(blocks: BlockSummary, *, Sq: int, Skv: int, title: str = "", limit: int = LIMIT) -> bytes:
    """Never more than `limit` bytes: a map too busy for that is drawn with coarser tiles, and says so."""
    merge, runs = 1, blocks.runs
    while True:
        png = _encode(_card(blocks, runs, Sq, Skv, title, merge))
        if len(png) <= limit or merge >= max(blocks.nq, blocks.nkv):
            return png
        merge *= 2


def _card(blocks: BlockSummary, runs: Runs, Sq: int, Skv: int, title: str, merge: int) -> Pixels:
    maps = runs.groups
    many = maps > 1
    q, kv = axes(blocks, Sq, Skv, SMALL if many else SIDE, merge)
    shown = runs.chosen(range(min(maps, SHOWN))).tiles(q.blocks, kv.blocks).swapaxes(0, 1)
    across, down = min(len(shown), COLUMNS), -(-len(shown) // COLUMNS)
    step_x, step_y = kv.length + 18, q.length + 32
    top = MARGIN + (34 if title else 6) + 20
    legend_x = MARGIN + LEFT + (across - 1) * step_x + kv.length + GAP
    width = legend_x + LEGEND + MARGIN
    height = top + max((down - 1) * step_y + q.length + 42, 236) + MARGIN
    card = np.full((height, width), EMPTY, np.uint8)
    card[[0, -1], :] = card[:, [0, -1]] = GRID
    if title:
        _write(card, MARGIN, MARGIN - 2, " ".join(title.split())[:64], 17, bold=True)
    for i, one in enumerate(shown):
        x, y = MARGIN + LEFT + i % COLUMNS * step_x, top + i // COLUMNS * step_y
        card[y - 1 : y + q.length + 1, x - 1 : x + kv.length + 1] = FRAME
        card[y : y + q.length, x : x + kv.length] = paint(one, q, kv)
        if many:
            _write(card, x, y - 19, _map_name(blocks, i), 12)
        if i % COLUMNS == 0:
            _q_ticks(card, x, y, Sq, blocks.block_q * q.blocks / q.pixels)
        if i + COLUMNS >= len(shown):
            _kv_ticks(card, x, y + q.length, Skv, blocks.block_kv * kv.blocks / kv.pixels)
    _write(card, MARGIN + LEFT - 9, top - 20, "q token ↓", 12, grey=True, anchor="right")
    bottom = top + (down - 1) * step_y + q.length + 24
    _write(card, MARGIN + LEFT + kv.length // 2, bottom, "kv token →", 12, grey=True, anchor="middle")
    _legend(card, legend_x, top, blocks, max(q.blocks, kv.blocks), maps)
    return card


def axes(blocks: BlockSummary, Sq: int, Skv: int, side: int, merge: int = 1) -> tuple[Axis, Axis]:
    """The two sides of a map, in proportion to their tokens as far as the shorter one stays visible."""
    longest = max(Sq, Skv)
    wanted = (max(SHORTEST, round(side * length / longest)) for length in (Sq, Skv))
    q, kv = (_axis(n, want, merge) for n, want in zip((blocks.nq, blocks.nkv), wanted, strict=True))
    return q, kv


def _axis(n: int, wanted: int, merge: int) -> Axis:
    blocks = merge * -(-n // (wanted * 8 // 5))
    tiles = -(-n // blocks)
    return Axis(blocks, tiles, max(1, round(wanted / tiles)))


def paint(counts: NDArray[np.int64], q: Axis, kv: Axis) -> Pixels:
    """One map as colour numbers; `counts` [3, tiles down, tiles across] are its blocks of each kind in every tile."""
    tiles = _tiles(counts)
    out = tiles.repeat(q.pixels, axis=0).repeat(kv.pixels, axis=1)
    cell = min(q.pixels, kv.pixels)
    if cell >= 5:
        y, x = np.ogrid[: out.shape[0], : out.shape[1]]
        period, line = (8, 3) if cell >= 24 else (5, 2)
        out[(out == PARTIAL) & ((x + y) % period < line)] = HATCH
    else:
        out[out == PARTIAL] = HATCH
    if cell >= 12:
        out[:: q.pixels] = GRID
        out[:, :: kv.pixels] = GRID
    return out


def _tiles(counts: NDArray[np.int64]) -> Pixels:
    """Colour per tile: the kind's own where the tile is pure, else by the share that the kernel issues."""
    pure = np.array([EMPTY, PARTIAL, FULL], np.uint8)
    size = counts.sum(axis=0)
    mixed = counts.max(axis=0) < size
    issued = (counts[1] + counts[2]) / size
    shade = (MIXED + np.minimum(issued * 5, 4)).astype(np.uint8)
    tiles: Pixels = np.where(mixed, shade, pure[counts.argmax(axis=0)])
    return tiles


def _map_name(blocks: BlockSummary, i: int) -> str:
    b, h = divmod(i, blocks.Hm)
    return " ".join([f"b{b}"] * (blocks.Bm > 1) + [f"h{h}"] * (blocks.Hm > 1))


def ticks(tokens: int, pixels: float) -> list[int]:
    """Round token numbers from 0 to the end, far enough apart to be read."""
    step = 1
    while tokens / step > min(5, max(1, pixels / 70)):
        step *= 2
    return [*(at for at in range(0, tokens, step) if at == 0 or tokens - at > step / 2), tokens]


def _q_ticks(card: Pixels, x: int, y: int, tokens: int, per_pixel: float) -> None:
    for token in ticks(tokens, tokens / per_pixel * 2):
        at = y + min(round(token / per_pixel), round(tokens / per_pixel) - 1)
        card[at, x - 6 : x - 1] = 3
        _write(card, x - 9, at - 8, f"{token:,}", 12, anchor="right")


def _kv_ticks(card: Pixels, x: int, y: int, tokens: int, per_pixel: float) -> None:
    for token in ticks(tokens, tokens / per_pixel):
        at = x + min(round(token / per_pixel), round(tokens / per_pixel) - 1)
        card[y + 1 : y + 6, at] = 3
        anchor = "left" if token == 0 else "right" if token == tokens else "middle"
        _write(card, at, y + 7, f"{token:,}", 12, anchor=anchor)


def _legend(card: Pixels, x: int, y: int, blocks: BlockSummary, tile: int, maps: int) -> None:
    rows = ((2, "full", blocks.full), (1, "partial", blocks.partial), (0, "empty", blocks.empty))
    for kind, name, n in rows:
        swatch = paint(np.eye(3, dtype=np.int64)[kind].reshape(3, 1, 1), Axis(1, 1, 24), Axis(1, 1, 24))
        card[y : y + 26, x : x + 26] = FRAME
        card[y + 1 : y + 25, x + 1 : x + 25] = swatch
        _write(card, x + 36, y - 2, f"{name}: {n:,}", 14)
        _write(card, x + 36, y + 16, f"{percent(n / blocks.blocks)} of the blocks", 11, grey=True)
        y += 42
    if tile > 1:
        for level in range(5):
            card[y + 4 : y + 16, x + 11 * level : x + 11 * level + 10] = MIXED + level
        _write(card, x + 62, y + 1, "mixed: darker = more issued", 11, grey=True)
        y += 26
    lines = [
        f"{percent(blocks.kept)} of the cells are kept",
        f"{percent(1 - blocks.sparsity)} of the blocks are issued",
        f"block: {blocks.block_q:,} × {blocks.block_kv:,} tokens",
        *([f"a tile is {tile} × {tile} blocks"] if tile > 1 else []),
        *([f"{SHOWN} of {maps:,} maps are shown,", f"{maps - SHOWN:,} more are not"] if maps > SHOWN else []),
    ]
    for i, line in enumerate(lines):
        _write(card, x, y + 4 + 19 * i, line, 12)


@cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    """matplotlib's own DejaVu Sans (found, not imported): the same letters on every machine."""
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("matplotlib, whose font the picture uses")
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(
        str(Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / name), size, layout_engine=ImageFont.Layout.BASIC
    )


def _write(card: Pixels, x: int, y: int, text: str, size: int, *, bold: bool = False, grey: bool = False, anchor: str = "left") -> None:
    font = _font(size, bold)
    width, height = int(font.getlength(text)) + 2, size * 3 // 2
    image = Image.new("L", (width, height), 0)
    ImageDraw.Draw(image).text((0, 0), text, fill=160 if grey else 255, font=font)
    x -= {"left": 0, "middle": width // 2, "right": width}[anchor]
    x, y = max(0, min(x, card.shape[1] - width)), max(0, min(y, card.shape[0] - height))
    ink = np.asarray(image)[:, : card.shape[1]]
    part = card[y : y + height, x : x + width]
    np.copyto(part, np.round(ink / 255 * INK).astype(np.uint8), where=ink > 25)


def _encode(card: Pixels) -> bytes:
    image = Image.fromarray(card).convert("L")
    image = Image.frombytes("P", image.size, card.tobytes())
    image.putpalette(bytes.fromhex("".join(PALETTE)))
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True, bits=4)
    return out.getvalue()
