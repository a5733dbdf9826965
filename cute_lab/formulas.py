"""aten operators that are a short formula of table ops: node -> node, in the computing dtype (i32, i64, f32, f64, bool).

A row is `overload -> (formula, promotion)`. The formulas are torch's own definitions, with its cases for NaN, signs and zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from cute_lab.ir import DTYPES, Node, const, node
from cute_lab.ops import OPS

Formula = Callable[..., Node]


def c(value: float, like: Node) -> Node:
    return const(value, like.dtype)


def is_float(x: Node) -> bool:
    return DTYPES[x.dtype].kind == "float"


def op(name: str) -> Formula:
    return OPS[name].__call__


add, sub, mul, div, neg = op("add"), op("sub"), op("mul"), op("div"), op("neg")
where, eq, ne, lt, le, gt, ge = op("where"), op("eq"), op("ne"), op("lt"), op("le"), op("gt"), op("ge")
both, either, negate, same = op("and"), op("or"), op("not"), op("xor")


def floor_divide(a: Node, b: Node) -> Node:
    """Floats as torch (and Python): by the remainder, so that 1.0 // 0.1 is 9."""
    if not is_float(a):
        return OPS["floordiv"](a, b)
    rest = OPS["fmod"](a, b)
    quotient = div(sub(a, rest), b)
    quotient = where(both(ne(rest, c(0, a)), ne(lt(b, c(0, a)), lt(rest, c(0, a)))), sub(quotient, c(1, a)), quotient)
    floor = OPS["floor"](quotient)
    floor = where(gt(sub(quotient, floor), c(0.5, a)), add(floor, c(1, a)), floor)
    zero = OPS["copysign"](c(0, a), div(a, b))
    return where(eq(b, c(0, a)), div(a, b), where(ne(quotient, c(0, a)), floor, zero))


def remainder(a: Node, b: Node) -> Node:
    """Sign of the divisor, as Python's %."""
    if not is_float(a):
        return OPS["mod"](a, b)
    rest = OPS["fmod"](a, b)
    return where(both(ne(rest, c(0, a)), ne(lt(rest, c(0, a)), lt(b, c(0, a)))), add(rest, b), rest)


def trunc_divide(a: Node, b: Node) -> Node:
    if is_float(a):
        return OPS["trunc"](div(a, b))
    inexact = both(ne(OPS["rem"](a, b), c(0, a)), ne(lt(a, c(0, a)), lt(b, c(0, a))))
    return add(OPS["floordiv"](a, b), where(inexact, c(1, a), c(0, a)))


def fmod(a: Node, b: Node) -> Node:
    return OPS["fmod" if is_float(a) else "rem"](a, b)


def power(a: Node, b: Node) -> Node:
    """torch multiplies out small constant exponents; integer powers wrap around by squaring."""
    if b.is_const:
        exponent = b.attr
        if exponent == 0:
            return c(1, a)
        if exponent in (1, 2, 3, 4):
            square = mul(a, a)
            return {1: a, 2: square, 3: mul(square, a) if exponent == 3 else a, 4: mul(square, square)}[int(exponent)]
        if is_float(a) and exponent == -2:
            return OPS["reciprocal"](mul(a, a))
        if is_float(a) and exponent in (0.5, -0.5, -1.0):
            return OPS[{0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}[exponent]](a)
    if is_float(a):
        return OPS["pow"](a, b)
    result, base = c(1, a), a
    for bit in range(DTYPES[a.dtype].bits - 1 if not b.is_const else max(1, int(b.attr).bit_length())):
        chosen = ne(OPS["and"](b, c(1 << bit, b)), c(0, b))
        result, base = where(chosen, mul(result, base), result), mul(base, base)
    if b.is_const and b.attr > 0:
        return result
    # torch: a negative integer exponent gives 1 for base 1, +-1 for base -1, else 0
    odd = ne(OPS["and"](b, c(1, b)), c(0, b))
    inverse = where(eq(a, c(1, a)), c(1, a), where(eq(a, c(-1, a)), where(odd, c(-1, a), c(1, a)), c(0, a)))
    return where(lt(b, c(0, b)), inverse, result)


def sign(a: Node) -> Node:
    return where(gt(a, c(0, a)), c(1, a), where(lt(a, c(0, a)), c(-1, a), c(0, a)))


def relu(a: Node) -> Node:
    return where(lt(a, c(0, a)), c(0, a), a)  # a NaN is not < 0 and stays


def frac(a: Node) -> Node:
    return sub(a, OPS["trunc"](a))


def shift_left(a: Node, s: Node) -> Node:
    bits = DTYPES[a.dtype].bits
    if s.is_const and 0 <= s.attr < bits:
        return OPS["shl"](a, s)
    legal = both(ge(s, c(0, s)), lt(s, c(bits, s)))
    return where(legal, OPS["shl"](a, where(legal, s, c(0, s))), c(0, a))


def shift_right(a: Node, s: Node) -> Node:
    """Keeps the sign; a count beyond the width leaves the sign alone."""
    bits = DTYPES[a.dtype].bits
    if s.is_const and 0 <= s.attr < bits:
        return OPS["shr"](a, s)
    legal = both(ge(s, c(0, s)), lt(s, c(bits, s)))
    return OPS["shr"](a, where(legal, s, c(bits - 1, s)))


def horner(x: Node, coefficients: Sequence[float]) -> Node:
    value = c(coefficients[0], x)
    for k in coefficients[1:]:
        value = add(mul(value, x), c(k, x))
    return value


def expm1(a: Node) -> Node:
    """Kahan: (u - 1) x / log(u) keeps the digits that exp(x) - 1 loses near 0."""
    u = OPS["exp"](a)
    small = where(eq(u, c(1, a)), a, div(mul(sub(u, c(1, a)), a), OPS["log"](u)))
    return where(lt(OPS["abs"](a), c(0.5, a)), small, sub(u, c(1, a)))


def asinh(a: Node) -> Node:
    x = OPS["abs"](a)
    root = OPS["sqrt"](add(mul(x, x), c(1, a)))
    near = OPS["log1p"](add(x, div(mul(x, x), add(c(1, a), root))))
    far = add(OPS["log"](x), c(math.log(2), a))
    return OPS["copysign"](where(lt(x, c(1e10, a)), near, far), a)


def acosh(a: Node) -> Node:
    t = sub(a, c(1, a))
    near = OPS["log1p"](add(t, OPS["sqrt"](add(mul(c(2, a), t), mul(t, t)))))
    return where(lt(a, c(1e10, a)), near, add(OPS["log"](a), c(math.log(2), a)))


def atanh(a: Node) -> Node:
    x = OPS["abs"](a)
    value = mul(c(0.5, a), OPS["log1p"](div(mul(c(2, a), x), sub(c(1, a), x))))
    return OPS["copysign"](value, a)


def hypot(a: Node, b: Node) -> Node:
    x, y = OPS["abs"](a), OPS["abs"](b)
    big, small = where(lt(x, y), y, x), where(lt(x, y), x, y)
    ratio = div(small, big)
    length = mul(big, OPS["sqrt"](add(c(1, a), mul(ratio, ratio))))
    inf = c(math.inf, a)
    return where(either(eq(x, inf), eq(y, inf)), inf, where(eq(big, c(0, a)), add(x, y), length))  # hypot(0, nan) is nan


def fmax(a: Node, b: Node) -> Node:
    """The number, where one of the two is no number."""
    larger = where(gt(a, b), a, b)
    return where(OPS["isnan"](b), a, larger) if is_float(a) else larger  # a NaN in a is not > b


def fmin(a: Node, b: Node) -> Node:
    smaller = where(lt(a, b), a, b)
    return where(OPS["isnan"](b), a, smaller) if is_float(a) else smaller


def angle(a: Node) -> Node:
    """Of a real number: 0 or pi."""
    return where(lt(a, c(0, a)), c(math.pi, a), where(is_nan(a), a, c(0, a)))


def shrink_backward(grad: Node, a: Node, lambd: Node) -> Node:
    return where(both(ge(a, neg(lambd)), le(a, lambd)), c(0, a), grad)


def is_nan(a: Node) -> Node:
    return OPS["isnan"](a) if is_float(a) else const(False, "bool")


def is_inf(a: Node) -> Node:
    return OPS["isinf"](a) if is_float(a) else const(False, "bool")


def round_to_bf16(a: Node) -> Node:
    """A float32 rounded to the nearest bfloat16, ties to even, by its bits."""
    bits = node("bitcast", "i32", (a,))
    odd = OPS["and"](OPS["shr"](bits, const(16, "i32")), const(1, "i32"))
    upper = OPS["and"](add(add(bits, const(0x7FFF, "i32")), odd), const(-0x10000, "i32"))
    return where(OPS["isnan"](a), a, node("bitcast", "f32", (upper,)))


def signbit(a: Node) -> Node:
    if not is_float(a):
        return lt(a, c(0, a))
    if a.is_const:
        return const(bool(torch.signbit(torch.tensor(a.attr, dtype=torch.float64))), "bool")
    bits = "i32" if a.dtype == "f32" else "i64"
    return lt(node("bitcast", bits, (a,)), const(0, bits))


FORMULAS: Mapping[str, tuple[Formula, str]] = {
    "floor_divide.default": (floor_divide, "same"),
    "floor_divide.Scalar": (floor_divide, "same"),
    "remainder.Tensor": (remainder, "same"),
    "remainder.Scalar": (remainder, "same"),
    "remainder.Scalar_Tensor": (remainder, "same"),
    "fmod.Tensor": (fmod, "same"),
    "fmod.Scalar": (fmod, "same"),
    "pow.Tensor_Tensor": (power, "same"),
    "pow.Tensor_Scalar": (power, "same"),
    "pow.Scalar": (power, "same"),
    "rsub.Scalar": (lambda a, b: sub(b, a), "same"),
    "rsub.Tensor": (lambda a, b: sub(b, a), "same"),
    "sign.default": (sign, "same"),
    "sgn.default": (sign, "same"),
    "relu.default": (relu, "same"),
    "frac.default": (frac, "same"),
    "square.default": (lambda a: mul(a, a), "same"),
    "bitwise_left_shift.Tensor": (shift_left, "same"),
    "bitwise_left_shift.Tensor_Scalar": (shift_left, "same"),
    "bitwise_left_shift.Scalar_Tensor": (shift_left, "same"),
    "__lshift__.Tensor": (shift_left, "same"),
    "__lshift__.Scalar": (shift_left, "same"),
    "bitwise_right_shift.Tensor": (shift_right, "same"),
    "bitwise_right_shift.Tensor_Scalar": (shift_right, "same"),
    "bitwise_right_shift.Scalar_Tensor": (shift_right, "same"),
    "__rshift__.Tensor": (shift_right, "same"),
    "__rshift__.Scalar": (shift_right, "same"),
    "expm1.default": (expm1, "float"),
    "asinh.default": (asinh, "float"),
    "acosh.default": (acosh, "float"),
    "atanh.default": (atanh, "float"),
    "hypot.default": (hypot, "same"),
    "fmax.default": (fmax, "same"),
    "fmin.default": (fmin, "same"),
    "angle.default": (angle, "float"),
    "hardshrink_backward.default": (shrink_backward, "same"),
    "softshrink_backward.default": (shrink_backward, "same"),
    "isnan.default": (is_nan, "compare"),
    "isinf.default": (is_inf, "compare"),
    "signbit.default": (signbit, "compare"),
    "isfinite.default": (lambda a: OPS["isfinite"](a) if is_float(a) else const(True, "bool"), "compare"),
}
