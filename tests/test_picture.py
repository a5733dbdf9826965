"""The picture of a block map: the right colour in the right place, legible at every size, and never heavy."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from cute_lab.picture import FRAME, LIMIT, MIXED, PALETTE, axes, block_png, ticks
from cute_lab.record import BlockSummary

COLOUR = {number: tuple(bytes.fromhex(code)) for number, code in enumerate(PALETTE)}
PAPER, FULL, TINT, LINE = COLOUR[0], COLOUR[7], COLOUR[8], COLOUR[9]
Kinds = NDArray[np.uint8]


def causal(n: int) -> Kinds:
    i = np.arange(n)
    kinds: Kinds = (1 + np.sign(i[:, None] - i)).astype(np.uint8)
    return kinds


def window(n: int) -> Kinds:
    i = np.arange(n)
    away, reach = i[:, None] - i, max(1, n // 10)
    kinds: Kinds = np.where((away < 0) | (away > reach), 0, np.where((away == 0) | (away == reach), 1, 2)).astype(np.uint8)
    return kinds


def random(n: int) -> Kinds:
    return np.random.default_rng(n).integers(0, 3, (n, n)).astype(np.uint8)


def random_blocks(n: int) -> Kinds:
    """As in BigBird: some blocks anywhere, a window, the first blocks for all."""
    kinds = np.where(np.random.default_rng(n).random((n, n)) < 0.05, 2, window(n)).astype(np.uint8)
    kinds[:, :2] = 2
    return kinds


def documents(n: int) -> Kinds:
    """Causal within documents of random length, about four blocks each."""
    cuts = np.sort(np.random.default_rng(n).choice(n * 128, n // 4, replace=False))
    ids = np.searchsorted(cuts, np.arange(n * 128), side="right").reshape(n, 128)
    low, high, i = ids.min(axis=1), ids.max(axis=1), np.arange(n)
    meet = (low[:, None] <= high) & (low <= high[:, None]) & (i[:, None] >= i)
    same = (low == high)[:, None] & (low == high) & (low[:, None] == low) & (i[:, None] > i)
    return np.where(same, 2, meet).astype(np.uint8)


MASKS = (causal, window, random, random_blocks, documents)


def summary(kinds: Kinds, block: tuple[int, int] = (128, 128)) -> BlockSummary:
    maps = kinds if kinds.ndim == 4 else kinds[None, None]
    cells = block[0] * block[1]
    kept = int(cells * ((maps == 2).sum() + (maps == 1).sum() / 2))
    sizes = {"block_q": block[0], "block_kv": block[1], "kept_cells": kept, "total_cells": maps.size * cells}
    return BlockSummary.from_kinds(maps, **sizes, seconds=0.0)


def draw(kinds: Kinds, block: tuple[int, int] = (128, 128), limit: int = LIMIT) -> tuple[NDArray[np.uint8], bytes]:
    nq, nkv = kinds.shape[-2:]
    png = block_png(summary(kinds, block), Sq=nq * block[0], Skv=nkv * block[1], title="a mask", limit=limit)
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")), png


def map_of(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The map inside its frame: the frame is the leftmost thing in its colour."""
    y, x = np.argwhere((pixels == COLOUR[FRAME]).all(axis=2)).min(axis=0) + 1
    return pixels[y : y + height, x : x + width]


def colours(part: NDArray[np.uint8]) -> set[tuple[int, ...]]:
    return {tuple(int(c) for c in pixel) for pixel in part.reshape(-1, 3)}


@pytest.mark.parametrize("n", [8, 30, 64, 280, 512, 700])
@pytest.mark.parametrize("mask", [causal, window], ids=lambda mask: mask.__name__)
def test_each_block_has_its_colour(mask: object, n: int) -> None:
    kinds = causal(n) if mask is causal else window(n)
    q, kv = axes(summary(kinds), n * 128, n * 128, 480)
    assert (q.blocks, kv.blocks) == (1, 1)
    inside = map_of(draw(kinds)[0], q.length, kv.length)
    step, edge = q.pixels, int(q.pixels >= 12)
    for i, j in np.random.default_rng(0).integers(0, n, (60, 2)).tolist():
        part = inside[i * step + edge : (i + 1) * step, j * step + edge : (j + 1) * step]
        wanted = ({PAPER}, {TINT, LINE} if step >= 5 else {LINE}, {FULL})[int(kinds[i, j])]
        assert colours(part) == wanted, (i, j)


def test_a_map_of_1024_blocks_is_drawn_in_tiles_and_says_where_they_are_mixed() -> None:
    kinds = causal(1024)
    q, kv = axes(summary(kinds), 131072, 131072, 480)
    assert (q.blocks, q.length) == (2, 512)
    inside = map_of(draw(kinds)[0], q.length, kv.length)
    assert colours(inside[100:200, 300:400]) == {PAPER}
    assert colours(inside[300:400, 100:200]) == {FULL}
    assert colours(inside[np.arange(512), np.arange(512)]) == {COLOUR[MIXED + 3]}  # three of four blocks are issued


@pytest.mark.parametrize(("issued", "level"), [(1, 0), (3, 1), (4, 2), (6, 3), (8, 4)])
def test_a_mixed_tile_is_darker_the_more_of_it_is_issued(issued: int, level: int) -> None:
    tile = np.zeros(9, np.uint8)
    tile[:issued] = 2
    kinds = np.tile(tile.reshape(3, 3), (513, 513))
    q, kv = axes(summary(kinds), 1539 * 128, 1539 * 128, 480)
    assert (q.blocks, kv.blocks) == (3, 3)
    inside = map_of(draw(kinds)[0], q.length, kv.length)
    assert colours(inside) == {COLOUR[MIXED + level]}
    brightness = [sum(COLOUR[MIXED + i]) for i in range(5)]
    assert brightness == sorted(brightness, reverse=True)


@pytest.mark.parametrize("n", [8, 64, 280, 512, 1024])
@pytest.mark.parametrize("mask", MASKS, ids=lambda mask: mask.__name__)
def test_no_picture_is_heavy(mask: object, n: int) -> None:
    (kinds,) = (one(n) for one in MASKS if one is mask)
    pixels, png = draw(kinds)
    assert len(png) <= 20_000
    assert Image.open(io.BytesIO(png)).mode == "P"
    assert 300 <= pixels.shape[0] <= 1000
    assert pixels.shape[1] <= 1200


def test_heads_of_1024_random_blocks_are_not_heavy_either() -> None:
    assert len(draw(np.stack([random(1024)] * 8)[None])[1]) <= 20_000


def test_a_lower_limit_is_kept_by_coarser_tiles() -> None:
    busy = random(64)
    free, tight = draw(busy)[1], draw(busy, limit=9_000)[1]
    assert len(tight) <= 9_000 < len(free)


@pytest.mark.parametrize(("heads", "batches"), [(2, 1), (8, 1), (12, 1), (2, 2), (40, 3)])
def test_maps_per_head_stand_side_by_side(heads: int, batches: int) -> None:
    """Map i is full in its first i + 1 columns of blocks."""
    kinds = np.zeros((batches, heads, 16, 16), np.uint8)
    for i in range(batches * heads):
        kinds[i // heads, i % heads, :, : i % 16 + 1] = 2
    pixels, _ = draw(kinds)
    q, kv = axes(summary(kinds), 2048, 2048, 190)
    y, x = np.argwhere((pixels == COLOUR[FRAME]).all(axis=2)).min(axis=0) + 1
    for i in range(min(8, heads * batches)):
        left, top = x + i % 4 * (kv.length + 18), y + i // 4 * (q.length + 32)
        row = pixels[top + q.length // 2 + 1, left : left + kv.length]
        assert (row == FULL).all(axis=1).sum() == (i + 1) * (kv.pixels - 1), i


def test_it_says_how_many_maps_are_not_shown() -> None:
    """The words are drawn; the picture with them differs from the one without, in the legend's last lines only."""
    eight, nine = (draw(np.zeros((1, heads, 16, 16), np.uint8))[0] for heads in (8, 9))
    assert eight.shape == nine.shape
    y, x = np.argwhere((eight != nine).any(axis=2)).T
    lines = np.unique(y[y > y.min() + 80])
    assert len(lines) < 40
    assert x.min() > eight.shape[1] - 260


@pytest.mark.parametrize(("nq", "nkv"), [(1, 64), (64, 1), (60, 100), (1, 1024), (3, 2)])
def test_long_maps_keep_a_visible_short_side(nq: int, nkv: int) -> None:
    kinds = np.full((nq, nkv), 2, np.uint8)
    q, kv = axes(summary(kinds), nq * 128, nkv * 128, 480)
    assert min(q.length, kv.length) >= 32
    inside = map_of(draw(kinds)[0], q.length, kv.length)
    assert FULL in colours(inside)
    assert PAPER not in colours(inside)


@pytest.mark.parametrize("shape", [(1, 1, 64, 64), (1, 12, 16, 16), (64, 64, 8, 8), (1, 1, 1, 1024), (1, 1, 1024, 1024)])
def test_it_is_a_white_card_with_a_margin(shape: tuple[int, int, int, int]) -> None:
    pixels, _ = draw(np.random.default_rng(0).integers(0, 2, shape).astype(np.uint8))
    assert colours(pixels[1:-1, -9:-1]) == {PAPER}
    assert colours(pixels[1:-1, 1:9]) == {PAPER}
    assert colours(pixels[1:9, 1:-1]) == {PAPER}
    assert colours(pixels[-9:-1, 1:-1]) == {PAPER}


def test_full_and_partial_differ_in_brightness_too() -> None:
    """Whoever sees no colours still sees three kinds."""

    def grey(colour: tuple[int, ...]) -> float:
        return float(np.dot(colour, (0.299, 0.587, 0.114)))

    full, tint, line, paper = map(grey, (FULL, TINT, LINE, PAPER))
    assert full + 40 < line
    assert line + 40 < tint < paper


@pytest.mark.parametrize(
    ("tokens", "pixels", "found"),
    [
        (8192, 512, [0, 2048, 4096, 6144, 8192]),
        (7650, 480, [0, 2048, 4096, 6144, 7650]),
        (35840, 560, [0, 8192, 16384, 24576, 35840]),
        (128, 48, [0, 128]),
        (1, 48, [0, 1]),
    ],
)
def test_ticks_are_round_and_apart(tokens: int, pixels: int, found: list[int]) -> None:
    assert ticks(tokens, pixels) == found


def test_names_of_any_letters_can_be_drawn() -> None:
    for title in ("", "a\nb", "注意力", "x" * 500, "\u202e\x1b", "\U0001f600"):
        assert block_png(summary(causal(8)), Sq=1024, Skv=1024, title=title)
