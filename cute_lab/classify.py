"""Every block of a mask, exactly, by work in proportion to the boundary between kept and dropped.

Squares of many blocks are bounded by intervals, all squares of a level at once; what is full or empty is never opened, the rest is
split. A block that stays undecided is run: the generated mask_mod on its cells, until one is kept and one is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cutlass
import numpy as np
import torch
from numpy.typing import NDArray

from cute_lab import host, host_kernels
from cute_lab.evaluate import Ranges, bounds, held
from cute_lab.extremes import Extremes
from cute_lab.ir import Node, Program, inputs_of
from cute_lab.ops.interval import Interval
from cute_lab.record import Shape
from cute_lab.runs import EMPTY, FULL, PARTIAL, Boxes

FAST = 1 << 12  # squares of a level up to which splitting into 4 x 4 is cheaper than one more level
CHUNK = 1 << 16  # squares that are bounded at once: some 30 arrays of them are in memory
HOPELESS, ENOUGH = 0.02, 1 << 11  # below this share of decided squares, seen on so many, intervals are given up
SMALLER = 64  # a captured tensor of at most 1/64 of the mask's cells is worth a pyramid
Squares = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]  # map, first row and column in blocks


@dataclass(frozen=True)
class Bounded(Ranges):
    """Ranges over many boxes; captured tensors are bounded where they are read."""

    cells: int = 0
    extremes: dict[int, Extremes] = field(default_factory=dict)  # shared by all levels

    def looked_up(self, table: int, index: Sequence[Interval]) -> Interval:
        x = self.tables[table].original
        if not index or x.numel() == 0 or x.is_meta or (x.numel() * SMALLER > self.cells and x.numel() > 1 << 20):
            return self.contents(table)
        sizes = x.shape
        spans = [
            tuple(np.clip(np.nan_to_num(end, nan=0.0, posinf=n, neginf=0.0), 0, n - 1).astype(np.int64) for end in (i.lo, i.hi))
            for i, n in zip(index, sizes, strict=True)
        ]
        ends = np.broadcast_arrays(*(end for span in spans for end in span))
        flat = [end.reshape(-1) for end in ends]
        if table not in self.extremes:
            self.extremes[table] = Extremes(x)
        low, high = self.extremes[table].over(flat[::2], flat[1::2])
        return held(self.tables[table].dtype, low.reshape(ends[0].shape), high.reshape(ends[0].shape))


@dataclass
class Classifier:
    """The maps of one mask: one per batch entry and head that it reads."""

    program: Program
    text: str
    shape: Shape
    block: tuple[int, int]
    most: int | None = None  # blocks to run; what is beyond is taken for empty
    bounded: int = 0  # squares that were bounded by intervals
    asked: int = 0  # blocks whose cells were run
    _extremes: dict[int, Extremes] = field(default_factory=dict)
    _contents: dict[int, Interval] = field(default_factory=dict)

    @property
    def mask(self) -> Node:
        assert self.program.mask is not None
        return self.program.mask.output

    @cached_property
    def batches(self) -> int:
        return self.shape.B if "b" in inputs_of(self.mask) else 1

    @cached_property
    def heads(self) -> int:
        return self.shape.H if "h" in inputs_of(self.mask) else 1

    @property
    def maps(self) -> int:
        return self.batches * self.heads

    @property
    def extent(self) -> tuple[int, int]:
        return -(-self.shape.Sq // self.block[0]), -(-self.shape.Skv // self.block[1])

    def boxes(self) -> Boxes:
        nq, nkv = self.extent
        side = 1 << max(0, max(nq, nkv) - 1).bit_length()
        maps = np.arange(self.maps, dtype=np.int32)
        parts: list[Boxes] = []
        self.level((maps, np.zeros_like(maps), np.zeros_like(maps)), side, parts)
        return Boxes.joined(parts)

    def level(self, squares: Squares, side: int, parts: list[Boxes], hopeless: bool = False) -> None:
        """Decides the squares, and what they are split into, down to single blocks; `hopeless` asks no intervals any more."""
        if len(squares[0]) > CHUNK:
            for at in range(0, len(squares[0]), CHUNK):
                self.level(_taken(squares, slice(at, at + CHUNK)), side, parts, hopeless)
            return
        if self.most is not None and self.asked >= self.most:
            parts.append(_boxes(squares, side, np.full(len(squares[0]), EMPTY, np.uint8)))
            return
        if not hopeless:
            kinds = self.decide(squares, side)
            self.bounded += len(kinds)
            known = kinds != PARTIAL
            parts.append(_boxes(_taken(squares, known), side, kinds[known]))
            squares = _taken(squares, ~known)
            hopeless = len(kinds) >= ENOUGH and known.mean() < HOPELESS and self.is_hopeless(squares, side)
        if side == 1:
            parts.append(_boxes(squares, 1, self.run_blocks(squares)))
            return
        by = side if hopeless else 4 if side >= 4 and 16 * len(squares[0]) <= FAST else 2
        per = max(1, CHUNK // (by * by))
        for at in range(0, len(squares[0]), per):
            self.level(self.split(_taken(squares, slice(at, at + per)), side, by), side // by, parts, hopeless)

    def is_hopeless(self, squares: Squares, side: int) -> bool:
        """Would intervals decide next to no single block of these squares? A periodic mask is decided at last, below its period."""
        dice = np.random.default_rng(0)
        some = _taken(squares, dice.choice(len(squares[0]), min(ENOUGH, len(squares[0])), replace=False))
        i, j = (first + dice.integers(0, side, len(first), dtype=np.int32) for first in some[1:])
        nq, nkv = self.extent
        sample = _taken((some[0], i, j), (i < nq) & (j < nkv))
        self.bounded += len(sample[0])
        return bool((self.decide(sample, 1) != PARTIAL).mean() < HOPELESS) if len(sample[0]) else True

    def split(self, squares: Squares, side: int, by: int) -> Squares:
        nq, nkv = self.extent
        inner = (np.indices((by, by), dtype=np.int32).reshape(2, 1, -1)) * np.int32(side // by)
        group = np.repeat(squares[0], by * by)
        i, j = ((x[:, None] + offset).reshape(-1) for x, offset in zip(squares[1:], inner, strict=True))
        return _taken((group, i, j), (i < nq) & (j < nkv))

    def decide(self, squares: Squares, side: int) -> NDArray[np.uint8]:
        """EMPTY and FULL where intervals decide, PARTIAL where they do not."""
        s = self.shape
        spans = {}
        for name, group in (("b", squares[0] // self.heads), ("h", squares[0] % self.heads)):
            spans[name] = Interval(group.astype(np.float64), group.astype(np.float64))
        for name, first, step, tokens in (("q_idx", squares[1], self.block[0], s.Sq), ("kv_idx", squares[2], self.block[1], s.Skv)):
            low = first.astype(np.float64) * step
            spans[name] = Interval(low, np.minimum(low + side * step, tokens) - 1)
        box = Bounded(spans, self.program.tables, self.program.scalars, self._contents, s.Sq * s.Skv, self._extremes)
        found = bounds(self.mask, box)[self.mask]
        low, high = (np.broadcast_to(x, squares[0].shape) for x in (found.lo, found.hi))
        return np.where(low >= 1, FULL, np.where(high <= 0, EMPTY, PARTIAL)).astype(np.uint8)

    def run_blocks(self, squares: Squares) -> NDArray[np.uint8]:
        """The kinds of single blocks, by running them."""
        if self.most is not None:
            asked = len(squares[0])
            squares = _taken(squares, slice(max(0, self.most - self.asked)))
            rest = np.full(asked - len(squares[0]), EMPTY, np.uint8)
        self.asked += len(squares[0])
        kept = self.counted(squares, exact=False)
        tall, wide = self.cells(Boxes(*squares, np.ones(len(squares[0]), np.int32), np.zeros(0, np.uint8)))
        kinds = np.where(kept == 0, EMPTY, np.where(kept == tall * wide, FULL, PARTIAL)).astype(np.uint8)
        return kinds if self.most is None else np.concatenate([kinds, rest])

    def cells(self, boxes: Boxes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and keys of every box, as far as there are tokens."""
        sides = []
        for first, n, tokens in ((boxes.i, self.block[0], self.shape.Sq), (boxes.j, self.block[1], self.shape.Skv)):
            start = first.astype(np.int64) * n
            sides.append(np.minimum(start + boxes.side.astype(np.int64) * n, tokens) - start)
        return sides[0], sides[1]

    def kept(self, boxes: Boxes) -> int:
        """Cells that the mask keeps, over the boxes of all maps: full ones by their size, partial ones by running them."""
        tall, wide = self.cells(boxes.where(boxes.kind == FULL))
        mixed = boxes.where(boxes.kind == PARTIAL)
        return int((tall * wide).sum()) + int(self.counted((mixed.group, mixed.i, mixed.j), exact=True).sum(dtype=np.int64))

    def counted(self, squares: Squares, exact: bool) -> NDArray[np.int32]:
        """Kept cells of single blocks; unless `exact`, -1 for those that are partial."""
        found = torch.zeros(len(squares[0]), dtype=torch.int32)
        if not len(found):
            return found.numpy()
        group, i, j = squares
        at = torch.from_numpy(np.stack([group // self.heads, group % self.heads, i, j], 1).astype(np.int32).reshape(-1))
        i32 = cutlass.Int32
        tables, values = self.program.tables, self.program.scalars
        rows, keys = (min(n, tokens) for n, tokens in zip(self.block, (self.shape.Sq, self.shape.Skv), strict=True))
        fixed = (i32(self.shape.Sq), i32(self.shape.Skv), i32(rows), i32(keys), i32(exact))
        data = [host.dynamic(found), host.dynamic(at), host.captures(tables, values), *fixed]
        key = host.layout_key(tables, values)
        run = host.compiled(host_kernels.count_blocks, self.text, "mask_mod", [*data, i32(0), i32(0)], key, host.MASK_LANES)
        host.spread_even(lambda a, z: run(*data, i32(a), i32(z)), len(found))
        return found.numpy()


def _taken(squares: Squares, chosen: Any) -> Squares:
    return squares[0][chosen], squares[1][chosen], squares[2][chosen]


def _boxes(squares: Squares, side: int, kinds: NDArray[np.uint8]) -> Boxes:
    return Boxes(*squares, np.full(len(squares[0]), side, np.int32), kinds)
