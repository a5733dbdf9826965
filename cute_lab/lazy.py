"""Large captured rows inside a mod: `table[h]` holds one load per element, but only those that are looked at become nodes.

A lazy tensor's elements are a function of their coordinates, so `table[h][q_idx, kv_idx]` is one load, whatever the table's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cute_lab.ir import Node, const
from cute_lab.ops import OPS

Array = Any  # a numpy array of nodes


@dataclass(frozen=True)
class Lazy:
    """What a contiguous storage of this shape holds; read by places in it, as an array of nodes is."""

    shape: tuple[int, ...]
    element: Callable[[Sequence[Node]], Node]

    def __getitem__(self, places: Any) -> Any:
        places = np.asarray(places)
        out = np.empty(places.shape, dtype=object)
        for at in np.ndindex(places.shape):
            out[at] = self.element([const(int(c), "i32") for c in np.unravel_index(int(places[at]), self.shape)])
        return out if out.ndim else out[()]

    def copy(self) -> Array:
        return np.asarray(self[np.arange(int(np.prod(self.shape)))], dtype=object)

    def at(self, sizes: Sequence[int], strides: Sequence[int], offset: int, index: Sequence[Node]) -> Node | None:
        """The element of a view at an index; None where a view's dimension runs over several of the storage's."""
        own = [int(np.prod(self.shape[d + 1 :])) for d in range(len(self.shape))]
        start = [int(c) for c in np.unravel_index(offset, self.shape)] if self.shape else []
        coordinates: list[Node] = [const(c, "i32") for c in start]
        reach = list(start)
        for size, stride, i in zip(sizes, strides, index, strict=True):
            if size == 1 or stride == 0:
                continue
            d = next((d for d, s in enumerate(own) if stride % s == 0 and stride // s < self.shape[d]), None)
            if d is None:
                return None
            step = stride // own[d]
            reach[d] += step * (size - 1)
            if reach[d] >= self.shape[d] or not coordinates[d].is_const:
                return None
            coordinates[d] = _affine(i, step, start[d], size)
        return self.element(coordinates)


def _affine(i: Node, step: int, start: int, size: int) -> Node:
    """start + step * i, where a negative i counts from the end of `size` entries."""
    if i.is_const:
        return const(start + step * (i.attr + size if i.attr < 0 else i.attr), "i32")
    if step != 1:
        i = OPS["mul"](i, const(step, i.dtype))
    return OPS["add"](i, const(start, i.dtype)) if start else i
