"""aten calls whose meaning lies in more than their tensors: casts, bounds that may be None, reductions of short rows, indexing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from cute_lab import formulas as f
from cute_lab import special
from cute_lab.errors import UnsupportedOp
from cute_lab.evaluate import bounds
from cute_lab.ir import Node, const, node
from cute_lab.lower import common_dtype, emit, is_number, pointwise, promoted, rule, unsupported
from cute_lab.ops import OPS
from cute_lab.tables import short
from cute_lab.tracer import WIDE, Tracer


@rule("_to_copy", "convert_element_type", "to")
def to_copy(t: Tracer, x: torch.Tensor, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    if t.is_lazy(x):
        from cute_lab.indexing import lazy_pointwise

        return lazy_pointwise(t, lambda n: n, dtype or x.dtype, dtype or x.dtype, (x,))
    return emit(t, t.nodes(x), dtype or x.dtype)


@rule("view.dtype")
def view_dtype(t: Tracer, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if dtype.itemsize != x.element_size():
        raise UnsupportedOp(
            loc=t.here(),
            op="view(dtype) to another width",
            detail="Only a view as a dtype of equal width is one value per score.",
            example="",
        )
    return emit(t, t.map(lambda n: node("bitcast", short(dtype), (n,)), t.nodes(x)), dtype)


@rule("_local_scalar_dense", "item", "is_nonzero")
def to_number(t: Tracer, x: torch.Tensor) -> None:
    from cute_lab.branches import number_error

    raise number_error(t)


@rule("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(t: Tracer, condition: torch.Tensor, a: Any, b: Any) -> torch.Tensor:
    arrays, result = promoted(t, (a, b), "same")
    return emit(t, t.apply("where", t.operand(condition, "bool"), *arrays), result)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(t: Tracer, x: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    dtype = short(x.dtype)
    return emit(t, t.apply("where", t.operand(mask, "bool"), t.operand(value, dtype), t.nodes(x)), x.dtype)


def _limit(t: Tracer, x: Any, low: Any, high: Any, exact: bool) -> torch.Tensor:
    """torch's order: the lower bound first, so that low > high gives high. A constant bound needs no care for NaN in it."""
    given = [v for v in (low, high) if v is not None]
    arrays, result = promoted(t, (x, *given), "same")
    value, rest = arrays[0], arrays[1:]
    exact = exact or not result.is_floating_point  # integers: the same code, and the bound is seen
    if low is not None:
        bound = rest.pop(0)
        value = t.apply("maximum", value, bound) if exact else t.map(lambda v, m: f.where(f.lt(v, m), m, v), value, bound)
    if high is not None:
        bound = rest.pop(0)
        value = t.apply("minimum", value, bound) if exact else t.map(lambda v, m: f.where(f.gt(v, m), m, v), value, bound)
    return emit(t, value, result)


@rule("clamp.default", "clip.default", "hardtanh.default")
def clamp(t: Tracer, x: torch.Tensor, low: Any = None, high: Any = None, min: Any = None, max: Any = None) -> torch.Tensor:  # noqa: A002
    return _limit(t, x, low if low is not None else min, high if high is not None else max, exact=False)


@rule("clamp.Tensor", "clip.Tensor")
def clamp_tensor(t: Tracer, x: torch.Tensor, low: Any = None, high: Any = None, min: Any = None, max: Any = None) -> torch.Tensor:  # noqa: A002
    return _limit(t, x, low if low is not None else min, high if high is not None else max, exact=True)


@rule("clamp_min.default", "clamp_min.Tensor")
def clamp_min(t: Tracer, x: torch.Tensor, low: Any) -> torch.Tensor:
    return _limit(t, x, low, None, exact=not is_number(low))


@rule("clamp_max.default", "clamp_max.Tensor")
def clamp_max(t: Tracer, x: torch.Tensor, high: Any) -> torch.Tensor:
    return _limit(t, x, None, high, exact=not is_number(high))


@rule("div.Tensor_mode", "div.Scalar_mode")
def div_mode(t: Tracer, a: Any, b: Any, rounding_mode: str | None = None) -> torch.Tensor:
    if rounding_mode is None:
        return pointwise(t, OPS["div"], "float", (a, b))
    return pointwise(t, f.floor_divide if rounding_mode == "floor" else f.trunc_divide, "same", (a, b))


@rule("round.decimals")
def round_decimals(t: Tracer, x: torch.Tensor, *, decimals: int) -> torch.Tensor:
    ten = 10.0 ** abs(decimals)

    def build(a: Node) -> Node:
        up = f.mul(a, f.c(ten, a)) if decimals >= 0 else f.div(a, f.c(ten, a))
        whole = OPS["round"](up)
        return f.div(whole, f.c(ten, a)) if decimals >= 0 else f.mul(whole, f.c(ten, a))

    return pointwise(t, build, "same", (x,))


def _int_identity(name: str) -> Callable[..., torch.Tensor]:
    def build(t: Tracer, x: torch.Tensor) -> torch.Tensor:
        """floor, ceil, trunc and round leave integers alone."""
        if not x.dtype.is_floating_point:
            return emit(t, t.nodes(x), x.dtype)
        return pointwise(t, OPS[name], "same", (x,))

    return build


for _name in ("floor", "ceil", "trunc", "round"):
    rule(f"{_name}.default")(_int_identity(_name))
rule("fix.default")(_int_identity("trunc"))


@rule("frexp.Tensor")
def frexp(t: Tracer, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mantissa in [0.5, 1) and exponent, from the bits; a denormal is scaled up first."""
    wide, bits, fraction, scale = ("f64", "i64", 52, 54) if x.dtype == torch.float64 else ("f32", "i32", 23, 25)
    top = (1 << (12 if wide == "f64" else 9)) // 2 - 1  # an exponent of ones: inf and nan

    def exponent(a: Node) -> tuple[Node, Node]:
        small = f.lt(OPS["abs"](a), f.c(2.0 ** (-1022 if wide == "f64" else -126), a))
        a = f.where(small, f.mul(a, f.c(2.0**scale, a)), a)
        raw = OPS["and"](OPS["shr"](node("bitcast", bits, (a,)), const(fraction, bits)), const(top, bits))
        rest = f.add(raw, f.where(small, const(-scale - top // 2 + 1, bits), const(1 - top // 2, bits)))
        mask = const(~(top << fraction), bits)
        half = OPS["or"](OPS["and"](node("bitcast", bits, (a,)), mask), const((top // 2 - 1) << fraction, bits))
        plain = f.either(f.eq(a, f.c(0, a)), f.eq(raw, const(top, bits)))
        return f.where(plain, a, node("bitcast", wide, (half,))), f.where(plain, const(0, bits), rest)

    value = t.operand(x, wide)
    return emit(t, t.map(lambda a: exponent(a)[0], value), x.dtype), emit(t, t.map(lambda a: exponent(a)[1], value), torch.int32)


@rule("polygamma")
def polygamma(t: Tracer, n: int, x: torch.Tensor) -> torch.Tensor:
    if n > 1:
        raise unsupported(t, torch.ops.aten.polygamma.default)
    return pointwise(t, special.trigamma if n else special.digamma, "float", (x,))


@rule("gcd.default")
def gcd(t: Tracer, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Euclid's steps, unrolled as often as the ranges of the operands can ask for."""
    arrays, result = promoted(t, (a, b), "same")

    def build(x: Node, y: Node) -> Node:
        x, y = OPS["abs"](x), OPS["abs"](y)
        known = bounds([x, y], t.box, t.known)
        small = max(2.0, min(float(known[x].hi), float(known[y].hi)))
        for _ in range(int(math.log(small, 1.618)) + 3):
            done = f.eq(y, f.c(0, y))
            x, y = f.where(done, x, y), f.where(done, y, OPS["rem"](x, f.where(done, f.c(1, y), y)))
        return x

    return emit(t, t.map(build, *arrays), result)


@rule("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    t: Tracer, bounds: torch.Tensor, x: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> torch.Tensor:
    """Binary search, unrolled: one load per halving."""
    from cute_lab.indexing import element_of

    right = right or side == "right"
    if sorter is not None:
        raise unsupported(t, torch.ops.aten.searchsorted.Tensor)
    arrays, _ = promoted(t, (x, bounds if t.derived(bounds) else bounds.reshape(-1)[:1]), "same")
    asked = arrays[0]
    wide, count = WIDE[short(common_dtype((x, bounds), "same")[1])], bounds.shape[-1]
    out = np.empty(asked.shape, dtype=object)
    for at in np.ndindex(asked.shape):
        row = [const(i, "i32") for i in at[: bounds.dim() - 1]]  # bounds [r, n] are searched for x [r, m], row by row
        place = const(0, "i32")
        for step in (1 << k for k in reversed(range(count.bit_length()))):
            probe = f.add(place, const(step, "i32"))
            last = f.where(f.gt(probe, const(count, "i32")), const(count, "i32"), probe)
            value = t.cast(element_of(t, bounds, [*row, f.sub(last, const(1, "i32"))]), wide)
            ahead = (f.le if right else f.lt)(value, asked[at])
            place = f.where(f.both(f.le(probe, const(count, "i32")), ahead), probe, place)
        out[at] = place
    return emit(t, t.map(lambda n: n, out), torch.int32 if out_int32 else torch.int64)


@rule("bucketize.Tensor")
def bucketize(t: Tracer, x: torch.Tensor, bounds: torch.Tensor, *, out_int32: bool = False, right: bool = False) -> torch.Tensor:
    return searchsorted(t, bounds, x, out_int32=out_int32, right=right)
