"""Sorting short rows, and writing to places in them that depend on the position: by comparing every pair, unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from cute_lab import formulas as f
from cute_lab.ir import Node, const
from cute_lab.lower import emit, rule, unsupported
from cute_lab.ops import OPS
from cute_lab.tables import short
from cute_lab.tracer import WIDE, Tracer, storage_of

MAX_SORTED = 64  # an unrolled sort compares every pair


def _sorted(t: Tracer, func: str, x: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Each element's rank is how many come before it (equal ones keep their order, NaN is the largest)."""
    value = t.operand(x, "i32" if x.dtype == torch.bool else WIDE[short(x.dtype)])
    rows = np.moveaxis(value, dim, -1).copy() if value.ndim else value.reshape(1)
    count = rows.shape[-1]
    if count > MAX_SORTED:
        raise unsupported(t, getattr(torch.ops.aten, func).default)
    places = np.empty(rows.shape, dtype=object)

    def before(a: Node, b: Node) -> Node:
        less = f.gt(a, b) if descending else f.lt(a, b)
        if not f.is_float(a):
            return less
        first, second = (a, b) if descending else (b, a)
        return f.either(less, f.both(OPS["isnan"](first), f.negate(OPS["isnan"](second))))

    for at in np.ndindex(rows.shape[:-1]):
        row = list(rows[at])
        ahead = {(i, j): before(row[i], row[j]) for i in range(count) for j in range(count) if i != j}
        ranks = []
        for j in range(count):
            rank = const(0, "i32")
            for i in range(count):
                if i != j:
                    comes = ahead[i, j] if i > j else f.negate(ahead[j, i])
                    rank = f.add(rank, t.cast(comes, "i32"))
            ranks.append(rank)
        for k in range(count):
            top, place = row[0], const(0, "i64")
            for j in range(1, count):
                hit = f.eq(ranks[j], const(k, "i32"))
                top, place = f.where(hit, row[j], top), f.where(hit, const(j, "i64"), place)
            rows[at][k], places[at][k] = top, place
    shape = [np.moveaxis(r, -1, dim) if value.ndim else r.reshape(()) for r in (rows, places)]
    return emit(t, t.map(lambda n: n, shape[0]), x.dtype), emit(t, t.map(lambda n: n, shape[1]), torch.int64)


@rule("sort.default")
def sort(t: Tracer, x: torch.Tensor, dim: int = -1, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _sorted(t, "sort", x, dim, descending)


@rule("sort.stable")
def sort_stable(
    t: Tracer, x: torch.Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    return _sorted(t, "sort", x, dim, descending)


@rule("topk")
def topk(t: Tracer, x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: A002
    value, place = _sorted(t, "topk", x, dim, largest)
    return value.narrow(dim, 0, k), place.narrow(dim, 0, k)


@rule("kthvalue.default")
def kthvalue(t: Tracer, x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    value, place = (v.narrow(dim, k - 1, 1) for v in _sorted(t, "kthvalue", x, dim, False))
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


@rule("median.dim")
def median_dim(t: Tracer, x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The lower one of two; a NaN, which is sorted last, wins."""
    value, place = kthvalue(t, x, (x.shape[dim] + 1) // 2 if x.dim() else 1, dim, keepdim)
    if not x.dtype.is_floating_point:
        return value, place
    worst = kthvalue(t, x, x.shape[dim] if x.dim() else 1, dim, keepdim)[0]
    bad = t.operand(worst, WIDE[short(x.dtype)])
    return emit(t, t.map(lambda v, w: f.where(OPS["isnan"](w), w, v), t.operand(value, WIDE[short(x.dtype)]), bad), x.dtype), place


@rule("median.default")
def median(t: Tracer, x: torch.Tensor) -> torch.Tensor:
    return median_dim(t, x.reshape(-1), 0)[0]


# -- writing to places that depend on the position --------------------------------------------------------------------


def _scatter(t: Tracer, x: torch.Tensor, dim: int, index: torch.Tensor, source: Any, combine: Callable[[Node, Node], Node]) -> torch.Tensor:
    """Every element takes each source whose index says so, in order."""
    dtype = short(x.dtype)
    out = t.operand(x, WIDE[dtype]).copy()
    places: Any = np.atleast_1d(t.nodes(index))
    values: Any = np.atleast_1d(t.operand(source, WIDE[dtype]))
    flat: Any = np.atleast_1d(out)
    for at in np.ndindex(places.shape):
        new = values[at] if values.shape != (1,) or len(at) == 1 else values[0]
        for k in range(flat.shape[dim]):
            target = (*at[: dim % flat.ndim], k, *at[dim % flat.ndim + 1 :])
            hit = f.eq(places[at], const(k, places[at].dtype))
            flat[target] = f.where(hit, combine(flat[target], new), flat[target])
    return emit(t, t.map(lambda n: n, flat.reshape(out.shape)), x.dtype)


@rule("scatter.src", "scatter.value")
def scatter(t: Tracer, x: torch.Tensor, dim: int, index: torch.Tensor, source: Any) -> torch.Tensor:
    values = source if isinstance(source, torch.Tensor) else torch.full(index.shape, source, dtype=x.dtype)
    return _scatter(t, x, dim, index, _made(t, values), lambda old, new: new)


@rule("scatter_add.default")
def scatter_add(t: Tracer, x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return _scatter(t, x, dim, index, source, f.add)


@rule("index_add.default")
def index_add(t: Tracer, x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: float = 1) -> torch.Tensor:
    if x.dim() != 1 or alpha != 1:
        raise unsupported(t, torch.ops.aten.index_add.default)
    return _scatter(t, x, dim, index.reshape(-1), source.reshape(-1), f.add)


def _made(t: Tracer, x: torch.Tensor) -> torch.Tensor:
    if not t.derived(x) and storage_of(x) not in t.fresh:
        t.keep.append(x)
        t.fresh[storage_of(x)] = False
    return x
