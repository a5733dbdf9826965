"""Intervals: what a value can be over a box of positions. Never too narrow; the rules of the op table are built from these.

An `Interval` holds numpy float64 arrays (or numbers), so that one call bounds all tiles of a mask at once. A float32 result
is the float64 result rounded outwards, so a bound holds for the kernel's own rounding. Integers beyond 2**53 are not exact
in float64: such a bound is widened to the dtype's whole range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cute_lab.ir import DTYPES

# Unit roundoff times a margin, for functions that are not correctly rounded: CuTeDSL's host and libdevice stay within 8 ulp.
SLACK = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-6, "f64": 4e-15}
EXACT_INT = 2.0**53 - 1  # 2**53 itself may be 2**53 + 1, rounded
WHOLE_QUOTIENT = 2.0**52  # integers up to that have a float64 quotient with the right floor
LEAST = {"f16": 6e-8}  # the step between subnormal numbers, where it is not far below 1e-37
Array = Any  # float64 number or numpy array


class Interval(NamedTuple):
    lo: Array
    hi: Array
    nan: Array = False  # may the value be NaN?

    @property
    def known(self) -> bool:
        """One value only."""
        return bool(np.all(self.lo == self.hi)) and not np.any(self.nan)


Bound = Callable[..., Interval]  # (result dtype, *operand intervals) -> Interval


def whole(dtype: str, nan: bool | None = None) -> Interval:
    d = DTYPES[dtype]
    return Interval(d.lo, d.hi, d.kind == "float" if nan is None else nan)


def fit(dtype: str, lo: Array, hi: Array, nan: Array = False, *, exact: bool = True) -> Interval:
    """Rounds outwards to what the dtype can hold; an integer that may wrap around can be anything."""
    d = DTYPES[dtype]
    with np.errstate(all="ignore"):
        if d.kind != "float":
            wraps = (lo < d.lo) | (hi > d.hi) | np.isnan(lo) | np.isnan(hi)
            if d.bits == 64:
                wraps |= (np.abs(lo) > EXACT_INT) | (np.abs(hi) > EXACT_INT)
            return Interval(np.where(wraps, d.lo, lo), np.where(wraps, d.hi, hi), False)
        nan = nan | np.isnan(lo) | np.isnan(hi)
        lo, hi = np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi)
        if not (exact and dtype == "f32"):
            least = LEAST.get(dtype, 1e-37)
            lo, hi = lo - SLACK[dtype] * np.abs(lo) - least, hi + SLACK[dtype] * np.abs(hi) + least
            lo, hi = np.where(np.isnan(lo), np.inf, lo), np.where(np.isnan(hi), -np.inf, hi)  # inf - inf: the end is infinite
        if dtype != "f64":  # rounding is monotone, so the rounded bound bounds the rounded value; overflow goes to infinity
            lo, hi = np.asarray(lo).astype(np.float32), np.asarray(hi).astype(np.float32)
            top = 65504.0 if dtype == "f16" else 3.38e38 if dtype == "bf16" else np.inf
            lo = np.where(lo < -top, -np.inf, lo).astype(np.float64)
            hi = np.where(hi > top, np.inf, hi).astype(np.float64)
        return Interval(lo, hi, nan)


def _any_nan(args: tuple[Interval, ...]) -> Array:
    out: Array = False
    for a in args:
        out = out | a.nan
    return out


def corners(f: Callable[..., Array], *, exact: bool = True) -> Bound:
    """Monotone in each operand for every fixed value of the others: the extremes lie at the corners (add, sub, mul)."""

    def bound(dtype: str, *args: Interval) -> Interval:
        with np.errstate(all="ignore"):
            points = [f(*(a[(i >> k) & 1] for k, a in enumerate(args))) for i in range(1 << len(args))]
            nan = _any_nan(args)
            for p in points:
                nan = nan | np.isnan(p)  # inf - inf, 0 * inf
            lo, hi = points[0], points[0]
            for p in points[1:]:
                lo, hi = np.minimum(lo, p), np.maximum(hi, p)
            inf = np.zeros_like(lo, dtype=bool)
            for a in args:
                inf = inf | np.isinf(a.lo) | np.isinf(a.hi)
            unsure = inf & (len(args) > 1)  # with an infinite end, a corner can hide inf - inf or 0 * inf inside
            lo, hi = np.where(unsure & nan, -np.inf, lo), np.where(unsure & nan, np.inf, hi)
            straddles = np.zeros_like(lo, dtype=bool)
            for a in args:
                straddles = straddles | ((a.lo <= 0) & (a.hi >= 0))
        return fit(dtype, lo, hi, nan | (unsure & straddles) if len(args) > 1 else nan, exact=exact)

    return bound


def increasing(f: Callable[[Array], Array], lo: float = -np.inf, hi: float = np.inf, *, exact: bool = False) -> Bound:
    """Non-decreasing on [lo, hi] (the domain; outside of it the value may be NaN)."""
    return _monotone(f, lo, hi, exact, flip=False)


def decreasing(f: Callable[[Array], Array], lo: float = -np.inf, hi: float = np.inf, *, exact: bool = False) -> Bound:
    return _monotone(f, lo, hi, exact, flip=True)


def _monotone(f: Callable[[Array], Array], lo: float, hi: float, exact: bool, flip: bool) -> Bound:
    def bound(dtype: str, a: Interval) -> Interval:
        with np.errstate(all="ignore"):
            outside = (a.lo < lo) | (a.hi > hi)
            ends = f(np.clip(a.lo, lo, hi)), f(np.clip(a.hi, lo, hi))
        first, last = (ends[1], ends[0]) if flip else ends
        return fit(dtype, first, last, a.nan | outside, exact=exact)

    return bound


def within(lo: float, hi: float) -> Bound:
    """Any value in [lo, hi], or NaN for an infinite or NaN operand (sin, cos)."""

    def bound(dtype: str, *args: Interval) -> Interval:
        bad = _any_nan(args)
        for a in args:
            bad = bad | np.isinf(a.lo) | np.isinf(a.hi)
        shape = np.broadcast_shapes(*(np.shape(a.lo) for a in args))
        return fit(dtype, np.full(shape, lo), np.full(shape, hi), bad, exact=False)

    return bound


def unknown(dtype: str, *args: Interval) -> Interval:
    shape = np.broadcast_shapes(*(np.shape(a.lo) for a in args)) if args else ()
    d = whole(dtype)
    return Interval(np.full(shape, d.lo), np.full(shape, d.hi), d.nan)


def truth(always: Array, never: Array) -> Interval:
    """A Boolean: 1 where `always`, 0 where `never`, else either."""
    return Interval(np.where(always, 1.0, 0.0), np.where(never, 0.0, 1.0), False)


def compare(always: Callable[[Interval, Interval], Array], never: Callable[[Interval, Interval], Array], nan_is: bool = False) -> Bound:
    """A comparison; NaN makes it `nan_is`."""

    def bound(dtype: str, a: Interval, b: Interval) -> Interval:
        nan = a.nan | b.nan
        yes, no = always(a, b), never(a, b)
        return truth(yes & (nan_is | ~np.asarray(nan)), no & (~np.asarray(nan) | (not nan_is)))

    return bound


def divide(a: Interval, b: Interval) -> tuple[Array, Array, Array]:
    """Extremes of a / b in float64; where b may be 0, anything."""
    with np.errstate(all="ignore"):
        points = [np.divide(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]  # np: a Python float raises on 0
        crosses = (b.lo <= 0) & (b.hi >= 0)
        inf = np.isinf(a.lo) | np.isinf(a.hi) | np.isinf(b.lo) | np.isinf(b.hi)
        lo = np.where(crosses | inf, -np.inf, np.minimum.reduce(np.broadcast_arrays(*points)))
        hi = np.where(crosses | inf, np.inf, np.maximum.reduce(np.broadcast_arrays(*points)))
    return lo, hi, a.nan | b.nan | crosses | inf


def true_div(dtype: str, a: Interval, b: Interval) -> Interval:
    lo, hi, nan = divide(a, b)
    return fit(dtype, lo, hi, nan)


def floor_div(dtype: str, a: Interval, b: Interval) -> Interval:
    lo, hi, nan = divide(a, b)
    lo, hi = np.floor(lo), np.floor(hi)
    if DTYPES[dtype].kind == "float":  # torch corrects the quotient by the remainder: one step of doubt
        lo, hi = lo - 1, hi + 1
    return fit(dtype, *_doubted(a, b, lo, hi), nan)


def _doubted(a: Interval, b: Interval, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Quotients of integers so large that float64 rounds them: two of its steps and one whole number of doubt."""
    large = np.maximum.reduce(np.broadcast_arrays(*(np.abs(x) for x in (a.lo, a.hi, b.lo, b.hi)))) > WHOLE_QUOTIENT
    below, above = (np.where(large, x + sign * (1 + np.abs(x) * 2.0**-51), x) for x, sign in ((lo, -1), (hi, 1)))
    return below, above


def trunc_div(dtype: str, a: Interval, b: Interval) -> Interval:
    lo, hi, nan = divide(a, b)
    return fit(dtype, *_doubted(a, b, np.trunc(lo), np.trunc(hi)), nan)


def floor_mod(dtype: str, a: Interval, b: Interval) -> Interval:
    """Sign of the divisor. Exact where the quotient is one number for the whole box."""
    lo, hi, nan = divide(a, b)
    step = 0.0 if DTYPES[dtype].kind == "float" else 1.0
    low = np.where(b.lo >= 0, 0.0, np.where(b.lo == -np.inf, -np.inf, b.lo + step))
    high = np.where(b.hi <= 0, 0.0, np.where(b.hi == np.inf, np.inf, b.hi - step))
    with np.errstate(all="ignore"):
        small = np.maximum(np.maximum(np.abs(a.lo), np.abs(a.hi)), np.abs(b.lo)) <= WHOLE_QUOTIENT
        one = (np.floor(lo) == np.floor(hi)) & (b.lo == b.hi) & (step == 1.0) & np.isfinite(lo) & small
        shift = np.where(one, np.floor(lo) * b.lo, 0.0)
        low, high = np.where(one, a.lo - shift, low), np.where(one, a.hi - shift, high)
    return fit(dtype, low, high, nan)


def c_mod(dtype: str, a: Interval, b: Interval) -> Interval:
    """Sign of the dividend (fmod): no larger than the dividend and than the divisor."""
    size = np.maximum(np.abs(b.lo), np.abs(b.hi))
    low = np.where(a.lo < 0, -np.minimum(np.abs(a.lo), size), 0.0)
    high = np.where(a.hi > 0, np.minimum(np.abs(a.hi), size), 0.0)
    bad = np.isinf(a.lo) | np.isinf(a.hi) | ((b.lo <= 0) & (b.hi >= 0))
    return fit(dtype, low, high, a.nan | b.nan | bad)


def absolute(dtype: str, a: Interval) -> Interval:
    crosses = (a.lo <= 0) & (a.hi >= 0)
    lo = np.where(crosses, 0.0, np.minimum(np.abs(a.lo), np.abs(a.hi)))
    return fit(dtype, lo, np.maximum(np.abs(a.lo), np.abs(a.hi)), a.nan)


def minimum(dtype: str, a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi), a.nan | b.nan)


def maximum(dtype: str, a: Interval, b: Interval) -> Interval:
    return Interval(np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi), a.nan | b.nan)


def select(dtype: str, p: Interval, a: Interval, b: Interval) -> Interval:
    yes, no = p.lo >= 1, p.hi <= 0
    lo = np.where(yes, a.lo, np.where(no, b.lo, np.minimum(a.lo, b.lo)))
    hi = np.where(yes, a.hi, np.where(no, b.hi, np.maximum(a.hi, b.hi)))
    return Interval(lo, hi, np.where(yes, a.nan, np.where(no, b.nan, a.nan | b.nan)))


def cast(dtype: str, a: Interval) -> Interval:
    d = DTYPES[dtype]
    if d.kind == "float":
        return fit(dtype, a.lo, a.hi, a.nan)
    if d.kind == "bool":
        zero = (a.lo <= 0) & (a.hi >= 0)
        return truth(~np.asarray(zero), (a.lo == 0) & (a.hi == 0) & ~np.asarray(a.nan))
    with np.errstate(all="ignore"):
        bad = a.nan | np.isinf(a.lo) | np.isinf(a.hi)
        return fit(dtype, np.where(bad, d.lo - 1, np.trunc(a.lo)), np.where(bad, d.hi, np.trunc(a.hi)))


def sign(dtype: str, a: Interval) -> Interval:
    # torch.sign(nan) is 0
    nan = np.asarray(a.nan)
    return Interval(np.where(nan, np.minimum(np.sign(a.lo), 0), np.sign(a.lo)), np.where(nan, np.maximum(np.sign(a.hi), 0), np.sign(a.hi)))
