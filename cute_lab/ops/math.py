"""Functions of floats: the libm ones, and the few that need a text of their own."""

from __future__ import annotations

import numpy as np
import torch

from cute_lab.ops import interval as iv
from cute_lab.ops.op import Op

F = ("float",)
INF = 'float("inf")'
INSIDE = 'cute.where(cute.math.abs({{0}}) <= 1.0, {}, cute.full_like({{0}}, float("nan")))'


def unary(name: str, cute: str, bound: iv.Bound, rtol: float = 2e-6, promote: str = "float", fast: str = "") -> Op:
    return Op(name, F, "same", getattr(torch, name), cute, bound, {f"{name}.default": promote}, rtol, fast=fast)


def libm(name: str, bound: iv.Bound, rtol: float = 2e-6) -> Op:
    """A function that has an approximate instruction on the GPU (ex2, lg2, tanh, sin, cos .approx; rsqrt)."""
    return unary(name, f"cute.math.{name}({{0}})", bound, rtol, fast=f"cute.math.{name}({{0}}, fastmath=True)")


def _exp(x: iv.Array) -> iv.Array:
    return np.exp(x)


def _is_nan(dtype: str, a: iv.Interval) -> iv.Interval:
    nan = np.asarray(a.nan)
    return iv.truth(np.zeros_like(nan, dtype=bool), ~nan)


def _is_finite(dtype: str, a: iv.Interval) -> iv.Interval:
    finite = ~(np.asarray(a.nan) | np.isinf(a.lo) | np.isinf(a.hi))
    return iv.truth(finite, np.zeros_like(finite, dtype=bool))


def _is_inf(dtype: str, a: iv.Interval) -> iv.Interval:
    return iv.truth(np.zeros_like(np.isinf(a.lo)), ~(np.isinf(a.lo) | np.isinf(a.hi)))


def _signbit(dtype: str, a: iv.Interval) -> iv.Interval:
    return iv.truth((a.hi < 0) & ~np.asarray(a.nan), (a.lo > 0) & ~np.asarray(a.nan))


def _copysign(dtype: str, a: iv.Interval, b: iv.Interval) -> iv.Interval:
    size = np.maximum(np.abs(a.lo), np.abs(a.hi))
    return iv.Interval(-size, size, a.nan)


def _pow(dtype: str, a: iv.Interval, b: iv.Interval) -> iv.Interval:
    # monotone in each operand for a base above 0; else anything
    with np.errstate(all="ignore"):
        points = np.broadcast_arrays(*(np.power(np.maximum(x, 0.0), y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)))
        odd = (a.lo <= 0) | np.isinf(a.hi) | np.isinf(b.lo) | np.isinf(b.hi)
        lo, hi = np.minimum.reduce(points), np.maximum.reduce(points)
    # the exponent's rounding error grows with the size of the logarithm
    return iv.fit(dtype, np.where(odd, -np.inf, lo * (1 - 1e-4)), np.where(odd, np.inf, hi * (1 + 1e-4)), a.nan | b.nan | odd, exact=False)


def _cosh(dtype: str, a: iv.Interval) -> iv.Interval:
    size = iv.absolute(dtype, a)
    return iv.increasing(np.cosh)(dtype, size)


def _reciprocal(dtype: str, a: iv.Interval) -> iv.Interval:
    return iv.true_div(dtype, iv.Interval(1.0, 1.0), a)


def _rsqrt(dtype: str, a: iv.Interval) -> iv.Interval:
    with np.errstate(all="ignore"):
        low = np.where(np.isinf(a.hi), 0.0, 1 / np.sqrt(np.maximum(a.hi, 0.0)))
        high = np.where(a.lo <= 0, np.inf, 1 / np.sqrt(np.maximum(a.lo, 0.0)))
    # 1/sqrt(-0.0) is -inf
    zero = (a.lo <= 0) & (a.hi >= 0)
    return iv.fit(dtype, np.where(zero, -np.inf, low), high, a.nan | (a.lo < 0), exact=False)


def _log(f: object) -> iv.Bound:
    return iv.increasing(f, 0.0)  # type: ignore[arg-type]


def _log1p(x: iv.Array) -> iv.Array:
    return np.log1p(x)


OPS = (
    libm("exp", iv.increasing(_exp)),
    libm("exp2", iv.increasing(np.exp2)),
    libm("log", _log(np.log)),
    libm("log2", _log(np.log2)),
    libm("log10", _log(np.log10)),
    unary("log1p", "cute.math.log1p({0})", iv.increasing(_log1p, -1.0)),
    unary("sqrt", "cute.math.sqrt({0})", iv.increasing(np.sqrt, 0.0)),
    libm("rsqrt", _rsqrt),
    unary("reciprocal", "(1.0 / {0})", _reciprocal),
    libm("sin", iv.within(-1.0, 1.0), 1e-5),
    libm("cos", iv.within(-1.0, 1.0), 1e-5),
    unary("tan", "cute.math.tan({0})", iv.unknown, 1e-5),
    # outside of [-1, 1] LLVM takes "not NaN" for granted and folds t != t: the NaN is put in by hand
    unary("asin", INSIDE.format("cute.math.asin({0})"), iv.increasing(np.arcsin, -1.0, 1.0)),
    unary("acos", INSIDE.format("cute.math.acos({0})"), iv.decreasing(np.arccos, -1.0, 1.0)),
    unary("atan", "cute.math.atan({0})", iv.increasing(np.arctan)),
    unary("sinh", "cute.math.sinh({0})", iv.increasing(np.sinh)),
    unary("cosh", "cute.math.cosh({0})", _cosh),
    libm("tanh", iv.increasing(np.tanh)),
    # exp of a large negative number is 0 and of a large positive one infinity: both ends come out right
    unary(
        "sigmoid",
        "(1.0 / (1.0 + cute.math.exp(-{0})))",
        iv.increasing(lambda x: 1 / (1 + np.exp(-x))),
        fast="cute.math.rcp(1.0 + cute.math.exp(-{0}, fastmath=True), fastmath=True)",
    ),
    unary("floor", "cute.math.floor({0})", iv.increasing(np.floor, exact=True), promote="same"),
    unary("ceil", "cute.math.ceil({0})", iv.increasing(np.ceil, exact=True), promote="same"),
    unary("trunc", "cute.math.trunc({0})", iv.increasing(np.trunc, exact=True), promote="same"),
    # math.round rounds half away from zero; torch rounds half to even
    unary("round", "cute.math.roundeven({0})", iv.increasing(np.round, exact=True), promote="same"),
    Op("atan2", F, "same", torch.atan2, "cute.math.atan2({0}, {1})", iv.within(-3.1416, 3.1416), {"atan2.default": "float"}, vector=True),
    Op("pow", F, "same", torch.pow, "({0} ** {1})", _pow, {}, rtol=1e-5, vector=True),
    Op(
        "copysign",
        F,
        "same",
        torch.copysign,
        "cute.math.copysign({0}, {1})",
        _copysign,
        {"copysign.Tensor": "float", "copysign.Scalar": "float"},
        vector=True,
    ),
    # cute.math.isnan and its kin build a type the DSL refuses
    Op("isnan", F, "bool", torch.isnan, "({0} != {0})", _is_nan, {}),
    Op("isinf", F, "bool", torch.isinf, f"(cute.math.abs({{0}}) == {INF})", _is_inf, {}),
    Op("isfinite", F, "bool", torch.isfinite, f"(cute.math.abs({{0}}) < {INF})", _is_finite, {}),
)
