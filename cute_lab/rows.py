"""Short rows inside a mod (a captured row, a stack of values): sums, extremes, scans, products, order, each unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from cute_lab import formulas as f
from cute_lab.ir import Node, const
from cute_lab.lower import emit, rule
from cute_lab.ops import OPS
from cute_lab.tables import short
from cute_lab.tracer import WIDE, Array, Tracer


def reduce(t: Tracer, value: Array, dim: Any, keepdim: bool, combine: Callable[[Node, Node], Node], empty: Node | None) -> Array:
    """Folds the given dimensions pairwise, as torch's vectorised sums do, so that rounding errors stay small."""
    axes = range(value.ndim) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    axes = sorted({a % max(value.ndim, 1) for a in axes}) if value.ndim else []
    kept = [a for a in range(value.ndim) if a not in axes]
    rows = value.transpose(*kept, *axes).reshape(*(value.shape[a] for a in kept), -1) if value.ndim else value.reshape(1)
    out = np.empty(rows.shape[:-1], dtype=object)
    for at in np.ndindex(out.shape):
        items = list(rows[at])
        while len(items) > 1:
            items = [combine(*items[i : i + 2]) if i + 1 < len(items) else items[i] for i in range(0, len(items), 2)]
        out[at] = items[0] if items else empty
    if keepdim and value.ndim:
        out = out.reshape([1 if a in axes else n for a, n in enumerate(value.shape)])
    return t.map(lambda n: n, out)


def _dtype(t: Tracer, x: torch.Tensor, wanted: torch.dtype | None, integers: torch.dtype) -> torch.dtype:
    return wanted or (x.dtype if x.dtype.is_floating_point else integers)


@rule("sum", "nansum")
def total(t: Tracer, x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    result = _dtype(t, x, dtype, torch.int64)
    wide = WIDE[short(result)]
    return emit(t, reduce(t, t.operand(x, wide), dim, keepdim, f.add, const(0, wide)), result)


@rule("prod")
def product(t: Tracer, x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    result = _dtype(t, x, dtype, torch.int64)
    wide = WIDE[short(result)]
    return emit(t, reduce(t, t.operand(x, wide), dim, keepdim, f.mul, const(1, wide)), result)


@rule("mean")
def mean(t: Tracer, x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    result = dtype or x.dtype
    wide = WIDE[short(result)]
    value = reduce(t, t.operand(x, wide), dim, keepdim, f.add, const(0, wide))
    count = x.numel() // max(value.size, 1)
    return emit(t, t.map(lambda n: f.div(n, f.c(count, n)), value), result)


@rule("any")
def any_(t: Tracer, x: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
    return emit(t, reduce(t, t.operand(x, "bool"), dim, keepdim, f.either, const(False, "bool")), torch.bool)


@rule("all")
def all_(t: Tracer, x: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
    return emit(t, reduce(t, t.operand(x, "bool"), dim, keepdim, f.both, const(True, "bool")), torch.bool)


def _amax(name: str) -> None:
    @rule(f"a{name}", f"{name}.default")
    def values(t: Tracer, x: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
        wide = "i32" if x.dtype == torch.bool else WIDE[short(x.dtype)]
        return emit(t, reduce(t, t.operand(x, wide), dim, keepdim, OPS[f"{name}imum"], None), x.dtype)


_amax("max")
_amax("min")


def _first_extreme(
    t: Tracer, x: torch.Tensor, dim: int | None, keepdim: bool, beats: Callable[[Node, Node], Node]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The first extreme element of each row and its place, by a chain of comparisons; a NaN beats every number."""
    value = t.operand(x, "i32" if x.dtype == torch.bool else WIDE[short(x.dtype)])
    rows = np.moveaxis(value, dim, -1) if dim is not None and value.ndim else value.reshape(-1)
    best, place = np.empty(rows.shape[:-1], dtype=object), np.empty(rows.shape[:-1], dtype=object)
    for at in np.ndindex(best.shape):
        top, index = rows[at][0], const(0, "i64")
        for i, item in enumerate(rows[at][1:], 1):
            better = beats(item, top)
            if f.is_float(item):
                better = f.both(f.either(better, OPS["isnan"](item)), f.negate(OPS["isnan"](top)))
            top, index = f.where(better, item, top), f.where(better, const(i, "i64"), index)
        best[at], place[at] = top, index
    if keepdim and dim is not None and value.ndim:
        best, place = np.expand_dims(best, dim), np.expand_dims(place, dim)
    return emit(t, t.map(lambda n: n, best), x.dtype), emit(t, t.map(lambda n: n, place), torch.int64)


@rule("max.dim")
def max_dim(t: Tracer, x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _first_extreme(t, x, dim, keepdim, f.gt)


@rule("min.dim")
def min_dim(t: Tracer, x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _first_extreme(t, x, dim, keepdim, f.lt)


@rule("argmax")
def argmax(t: Tracer, x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    return _first_extreme(t, x, dim, keepdim, f.gt)[1]


@rule("argmin")
def argmin(t: Tracer, x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    return _first_extreme(t, x, dim, keepdim, f.lt)[1]


def _scan(name: str, combine: Callable[[Node, Node], Node]) -> None:
    @rule(name)
    def cumulative(t: Tracer, x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
        result = _dtype(t, x, dtype, torch.int64)
        value = t.operand(x, WIDE[short(result)])
        rows = np.moveaxis(value, dim, -1).copy() if value.ndim else value.reshape(1)
        for at in np.ndindex(rows.shape[:-1]):
            for i in range(1, rows.shape[-1]):
                rows[at][i] = combine(rows[at][i - 1], rows[at][i])
        return emit(t, t.map(lambda n: n, np.moveaxis(rows, -1, dim) if value.ndim else rows.reshape(())), result)


_scan("cumsum", f.add)
_scan("cumprod", f.mul)


@rule("dot", "vdot")
def dot(t: Tracer, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return mm(t, a, b)


@rule("mm", "mv", "bmm", "matmul")
def mm(t: Tracer, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Products of captured rows and small matrices, summed in float32 as torch does for halves."""
    wide = WIDE[short(a.dtype)]
    left, right = t.operand(a, wide), t.operand(b, wide)
    columns = right[..., None] if right.ndim == 1 else right
    rows = left[None] if left.ndim == 1 else left
    pairs = t.map(f.mul, rows[..., :, :, None], columns[..., None, :, :])
    value = reduce(t, pairs, -2, False, f.add, const(0, wide))
    value = value[..., 0] if right.ndim == 1 else value
    return emit(t, value[0, ...] if left.ndim == 1 else value, a.dtype)


def _variance(t: Tracer, x: torch.Tensor, dim: Any, correction: float | None, keepdim: bool) -> tuple[Array, Array]:
    """Variance and mean, the mean first and then the squared differences, as torch does."""
    wide = WIDE[short(x.dtype)]
    value = t.operand(x, wide)
    centre = reduce(t, value, dim, True, f.add, const(0, wide))
    count = value.size // max(centre.size, 1)
    centre = t.map(lambda n: f.div(n, f.c(count, n)), centre)
    squares = t.map(lambda a, m: f.mul(f.sub(a, m), f.sub(a, m)), value, centre)
    spread = reduce(t, squares, dim, keepdim, f.add, const(0, wide))
    rest = max(count - (1 if correction is None else correction), 0)
    return t.map(lambda n: f.div(n, f.c(rest, n)), spread), reduce(t, centre, dim, keepdim, lambda a, b: a, None)


@rule("var.correction")
def var(t: Tracer, x: torch.Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> torch.Tensor:
    return emit(t, _variance(t, x, dim, correction, keepdim)[0], x.dtype)


@rule("prims::var")
def prims_var(t: Tracer, x: torch.Tensor, dims: Any, correction: float = 1, *, output_dtype: torch.dtype | None = None) -> torch.Tensor:
    return emit(t, _variance(t, x, dims, correction, False)[0], output_dtype or x.dtype)


@rule("std.correction")
def std(t: Tracer, x: torch.Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> torch.Tensor:
    return emit(t, t.apply("sqrt", _variance(t, x, dim, correction, keepdim)[0]), x.dtype)


@rule("var_mean.correction")
def var_mean(
    t: Tracer, x: torch.Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    spread, centre = _variance(t, x, dim, correction, keepdim)
    return emit(t, spread, x.dtype), emit(t, centre, x.dtype)


@rule("_cdist_forward")
def cdist(t: Tracer, a: torch.Tensor, b: torch.Tensor, p: float, mode: int | None = None) -> torch.Tensor:
    """Distances of all pairs of rows, from the differences themselves."""
    wide = WIDE[short(a.dtype)]
    gap = t.map(lambda x, y: OPS["abs"](f.sub(x, y)), t.operand(a, wide)[..., :, None, :], t.operand(b, wide)[..., None, :, :])
    if p == float("inf"):
        return emit(t, reduce(t, gap, -1, False, OPS["maximum"], const(0, wide)), a.dtype)
    powers = t.map(lambda g: f.power(g, f.c(p, g)), gap)
    return emit(t, t.map(lambda n: f.power(n, f.c(1 / p, n)), reduce(t, powers, -1, False, f.add, const(0, wide))), a.dtype)


@rule("_trilinear")
def trilinear(
    t: Tracer, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, new_a: Any, new_b: Any, new_c: Any, summed: Any, *_: Any
) -> torch.Tensor:
    """F.bilinear's kernel: the product of three tensors, each with new dimensions, summed over some."""
    product = None
    for x, new in ((a, new_a), (b, new_b), (c, new_c)):
        value = t.operand(x, WIDE[short(a.dtype)])
        for d in sorted(new):
            value = np.expand_dims(value, d)
        product = value if product is None else t.map(f.mul, product, value)
    return emit(t, reduce(t, product, list(summed), False, f.add, None), a.dtype)
