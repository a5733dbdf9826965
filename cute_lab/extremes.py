"""The least and greatest value of a captured tensor over boxes of its indices, for many boxes at once.

One index that runs: sorted lines answer by their ends, others by a sparse table over tiles of TILE entries (Bender and
Farach-Colton, 2000), so that a range is widened by less than a tile at either end. Several that run: a pyramid that halves every
dimension, of which a box touches at most 2 entries per dimension. Never narrower than the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

TILE = 16
Index = NDArray[np.int64]
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


class Line:
    """All ranges along the last axis of values [..., n]."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        n = values.shape[-1]
        later, earlier = values[..., 1:], values[..., :-1]
        self.rising: NDArray[np.bool_] = np.asarray((later >= earlier).all(-1))  # a NaN is in no order
        self.falling: NDArray[np.bool_] = np.asarray((later <= earlier).all(-1))
        self.sorted = bool((self.rising | self.falling).all())
        self.tiles = -(-n // TILE)

    @cached_property
    def levels(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """[k][..., t]: of the tiles t to t + 2**k - 1."""
        starts = np.arange(0, self.values.shape[-1], TILE)
        found = []
        for reduce in (np.minimum, np.maximum):
            level = [reduce.reduceat(self.values, starts, axis=-1)]
            while (span := 1 << len(level)) <= self.tiles:
                level.append(reduce(level[-1][..., : self.tiles - span + 1], level[-1][..., span // 2 : self.tiles - span // 2 + 1]))
            found.append(level)
        return found[0], found[1]

    def over(self, fixed: tuple[Index, ...], first: Index, last: Index) -> Pair:
        ends = self.values[(*fixed, first)], self.values[(*fixed, last)]
        if self.sorted:
            up = self.rising[fixed]
            return np.where(up, *ends).astype(np.float64), np.where(up, *reversed(ends)).astype(np.float64)
        low, high = (np.empty(first.shape, self.values.dtype) for _ in range(2))
        one = first == last
        low[one] = high[one] = ends[0][one]
        t0, t1 = first // TILE, last // TILE
        k = np.frexp((t1 - t0 + 1).astype(np.float64))[1] - 1  # floor(log2), exact
        for level in np.unique(k[~one]):
            chosen = ~one & (k == level)
            at = tuple(f[chosen] for f in fixed)
            a, z = t0[chosen], t1[chosen] - (1 << int(level)) + 1
            for out, reduce, table in ((low, np.minimum, self.levels[0]), (high, np.maximum, self.levels[1])):
                out[chosen] = reduce(table[level][(*at, a)], table[level][(*at, z)])
        return low.astype(np.float64), high.astype(np.float64)


class Pyramid:
    """Boxes of values [n, m, ...]."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.levels = [(values, values)]
        while max(self.levels[-1][0].shape) > 1:
            self.levels.append((_halved(self.levels[-1][0], np.minimum), _halved(self.levels[-1][1], np.maximum)))

    def over(self, first: Sequence[Index], last: Sequence[Index]) -> Pair:
        longest = np.maximum.reduce([z - a for a, z in zip(first, last, strict=True)])
        k = np.frexp(longest.astype(np.float64))[1]  # 2**k > longest: at most two entries in every dimension
        low, high = (np.empty(longest.shape, np.float64) for _ in range(2))
        for level in np.unique(k):
            chosen = k == level
            least, greatest = self.levels[min(int(level), len(self.levels) - 1)]
            sides = [(a[chosen] >> int(level), z[chosen] >> int(level)) for a, z in zip(first, last, strict=True)]
            corners = list(product(*sides))
            low[chosen] = np.minimum.reduce([least[at] for at in corners])
            high[chosen] = np.maximum.reduce([greatest[at] for at in corners])
        return low, high


def _halved(x: NDArray[Any], reduce: Any) -> NDArray[Any]:
    for axis, n in enumerate(x.shape):
        if n > 1:
            x = reduce.reduceat(x, np.arange(0, n, 2), axis=axis)
    return x


class Extremes:
    """`over(first, last)`: indices per dimension, both ends included, as arrays of one length."""

    def __init__(self, tensor: torch.Tensor) -> None:
        x = tensor.detach().cpu()
        self.values: NDArray[Any] = (x.float() if x.dtype == torch.bfloat16 else x).numpy()
        if self.values.dtype == np.bool_:
            self.values = self.values.view(np.uint8)
        self.lines: dict[int, Line] = {}

    def line(self, axis: int) -> Line:
        if axis not in self.lines:
            self.lines[axis] = Line(np.moveaxis(self.values, axis, -1))
        return self.lines[axis]

    @cached_property
    def pyramid(self) -> Pyramid:
        return Pyramid(self.values)

    def over(self, first: Sequence[Index], last: Sequence[Index]) -> Pair:
        running = [axis for axis, (a, z) in enumerate(zip(first, last, strict=True)) if (a != z).any()]
        if not running:
            found = self.values[tuple(first)].astype(np.float64)
            return found, found
        if len(running) > 1:
            return self.pyramid.over(first, last)
        axis = running[0]
        fixed = tuple(a for i, a in enumerate(first) if i != axis)
        return self.line(axis).over(fixed, first[axis], last[axis])
