"""The special functions, as approximations whose fractional error in float32 is a few ulp: one text for the host and for GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cute_lab.formulas import Formula, add, both, c, div, eq, gt, horner, le, lt, mul, neg, sub, where
from cute_lab.ir import Node
from cute_lab.ops import OPS

# Rational approximation of erf on [-4, 4] in float32 (the odd/even pair used by Eigen and XLA); error within 4 ulp there.
ERF_P = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
ERF_Q = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02)
# Chebyshev fit of erfc(x) exp(x^2) in t = 1 / (1 + x/2), fractional error below 1.2e-7 everywhere (Press et al., Numerical Recipes, 6.2)
ERFC = (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223)
# Modified Bessel functions (Abramowitz and Stegun, 9.8.1 to 9.8.4), below and above 3.75, error below 2.2e-7
I0_NEAR = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
I0_FAR = (0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592, 0.39894228)
I1_NEAR = (0.00032411, 0.00301532, 0.02658733, 0.15084934, 0.51498869, 0.87890594, 0.5)
I1_FAR = (-0.00420059, 0.01787654, -0.02895312, 0.02282967, -0.01031555, 0.00163801, -0.00362018, -0.03988024, 0.39894228)
# Giles' polynomials for erfinv(x) / x in w = -log(1 - x^2), in w - 2.5 below 5 and in sqrt(w) - 3 above; error 3e-7
ERFINV_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
ERFINV_FAR = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)
LANCZOS = (76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 0.1208650973866179e-2, -0.5395239384953e-5)


def erf(a: Node) -> Node:
    """cute.math.erf has no translation on the host; this text is the same everywhere."""
    x = where(gt(a, c(4, a)), c(4, a), where(lt(a, c(-4, a)), c(-4, a), a))
    square = mul(x, x)
    return div(mul(x, horner(square, ERF_P)), horner(square, ERF_Q))


def _tail(size: Node, square: Node | None) -> Node:
    """erfc(size) for size >= 0, without the factor exp(-size^2) where `square` is None."""
    t = OPS["reciprocal"](add(c(1, size), mul(c(0.5, size), size)))
    power = horner(t, ERFC)
    return mul(t, OPS["exp"](power if square is None else add(neg(square), power)))


def erfc(a: Node) -> Node:
    size = OPS["abs"](a)
    tail = _tail(size, mul(size, size))
    return where(lt(size, c(0.5, a)), sub(c(1, a), erf(a)), where(lt(a, c(0, a)), sub(c(2, a), tail), tail))


def erfcx(a: Node) -> Node:
    """erfc(a) exp(a^2), by its value at -a for a < 0."""
    tail = _tail(OPS["abs"](a), None)
    return where(lt(a, c(0, a)), sub(mul(c(2, a), OPS["exp"](mul(a, a))), tail), tail)


def erfinv(a: Node) -> Node:
    w = neg(OPS["log"](mul(sub(c(1, a), a), add(c(1, a), a))))
    near, far = horner(sub(w, c(2.5, a)), ERFINV_NEAR), horner(sub(OPS["sqrt"](w), c(3, a)), ERFINV_FAR)
    end = OPS["copysign"](c(math.inf, a), a)
    return where(eq(OPS["abs"](a), c(1, a)), end, mul(where(lt(w, c(5, a)), near, far), a))


def _bessel(size: Node, near: tuple[float, ...], far: tuple[float, ...], scaled: bool) -> tuple[Node, Node]:
    """The two forms; `scaled` by exp(-size)."""
    t = div(size, c(3.75, size))
    small, large = horner(mul(t, t), near), div(horner(div(c(3.75, size), size), far), OPS["sqrt"](size))
    grow = OPS["exp"](neg(size) if scaled else size)
    return (mul(small, grow), large) if scaled else (small, mul(large, grow))


def i0(a: Node, scaled: bool = False) -> Node:
    size = OPS["abs"](a)
    small, large = _bessel(size, I0_NEAR, I0_FAR, scaled)
    return where(lt(size, c(3.75, a)), small, large)


def i1(a: Node, scaled: bool = False) -> Node:
    size = OPS["abs"](a)
    small, large = _bessel(size, I1_NEAR, I1_FAR, scaled)
    return where(lt(size, c(3.75, a)), mul(a, small), where(lt(a, c(0, a)), neg(large), large))


def lgamma(a: Node) -> Node:
    """Lanczos (g = 5, n = 6; Press et al. 6.1, error below 2e-10) with the reflection formula for a < 0.5."""
    flip = lt(a, c(0.5, a))
    x = where(flip, sub(c(1, a), a), a)
    series = c(1.000000000190015, a)
    for i, k in enumerate(LANCZOS):
        series = add(series, div(c(k, a), add(x, c(float(i + 1), a))))
    base = add(x, c(5.5, a))
    value = add(sub(mul(add(x, c(0.5, a)), OPS["log"](base)), base), OPS["log"](div(mul(c(2.5066282746310005, a), series), x)))
    sine = OPS["abs"](OPS["sin"](_turn(a)))
    value = where(flip, sub(sub(c(math.log(math.pi), a), OPS["log"](sine)), value), value)
    return where(OPS["isinf"](a), c(math.inf, a), value)


def _turn(a: Node) -> Node:
    """pi times the distance to the nearest integer: sin and tan of pi a, up to the sign of the sine."""
    return mul(c(math.pi, a), sub(a, OPS["round"](a)))


def digamma(a: Node) -> Node:
    """Recurrence up to 6, then the asymptotic series; by reflection for a < 0; nan at the negative integers, as torch."""
    flip = lt(a, c(0, a))
    x = where(flip, sub(c(1, a), a), a)
    value = c(0, a)
    for _ in range(6):
        low = lt(x, c(6, a))
        value, x = where(low, sub(value, OPS["reciprocal"](x)), value), where(low, add(x, c(1, a)), x)
    w = OPS["reciprocal"](mul(x, x))
    series = mul(w, horner(w, (-1 / 240, 1 / 252, -1 / 120, 1 / 12)))
    value = sub(sub(add(value, OPS["log"](x)), div(c(0.5, a), x)), series)
    value = where(flip, sub(value, div(c(math.pi, a), OPS["tan"](_turn(a)))), value)
    pole = where(lt(a, c(0, a)), c(math.nan, a), OPS["copysign"](c(math.inf, a), neg(a)))
    return where(both(le(a, c(0, a)), eq(a, OPS["floor"](a))), pole, where(eq(a, c(math.inf, a)), a, value))


def trigamma(a: Node) -> Node:
    """The derivative of digamma, in the same way."""
    flip = lt(a, c(0.5, a))
    x = where(flip, sub(c(1, a), a), a)
    value = c(0, a)
    for _ in range(6):
        low = lt(x, c(6, a))
        value, x = where(low, add(value, OPS["reciprocal"](mul(x, x))), value), where(low, add(x, c(1, a)), x)
    r = OPS["reciprocal"](x)
    w = mul(r, r)
    value = add(value, add(r, add(mul(c(0.5, a), w), mul(mul(w, r), horner(w, (-1 / 30, 1 / 42, -1 / 30, 1 / 6))))))
    ratio = div(c(math.pi, a), OPS["sin"](_turn(a)))
    return where(flip, sub(mul(ratio, ratio), value), value)


SPECIAL: Mapping[str, tuple[Formula, str]] = {
    "erf.default": (erf, "float"),
    "erfc.default": (erfc, "float"),
    "special_erfcx.default": (erfcx, "float"),
    "erfinv.default": (erfinv, "float"),
    "i0.default": (i0, "float"),
    "special_i0e.default": (lambda a: i0(a, True), "float"),
    "special_i1.default": (i1, "float"),
    "special_i1e.default": (lambda a: i1(a, True), "float"),
    "lgamma.default": (lgamma, "float"),
    "digamma.default": (digamma, "float"),
}
