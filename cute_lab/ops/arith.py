"""Arithmetic, comparisons, logic and bits."""

from __future__ import annotations

import numpy as np
import torch

from cute_lab.ops import bits
from cute_lab.ops import interval as iv
from cute_lab.ops.op import Op

NUM = ("int", "float")
ALL = ("bool", "int", "float")


def _eq(a: iv.Interval, b: iv.Interval) -> iv.Array:
    return (a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo)


def _ne(a: iv.Interval, b: iv.Interval) -> iv.Array:
    return (a.hi < b.lo) | (a.lo > b.hi)


def _shift(f: object) -> object:
    return f


OPS = (
    Op("add", NUM, "same", torch.add, "({0} + {1})", iv.corners(np.add), {"add.Tensor": "same", "add.Scalar": "same"}),
    Op("sub", NUM, "same", torch.sub, "({0} - {1})", iv.corners(np.subtract), {"sub.Tensor": "same", "sub.Scalar": "same"}),
    Op("mul", NUM, "same", torch.mul, "({0} * {1})", iv.corners(np.multiply), {"mul.Tensor": "same", "mul.Scalar": "same"}),
    Op("div", ("float",), "same", torch.div, "({0} / {1})", iv.true_div, {"div.Tensor": "float", "div.Scalar": "float"}),
    # `//` floors as torch does; the host traps on 0 and the GPU gives garbage
    Op("floordiv", ("int",), "same", lambda a, b: torch.div(a, b, rounding_mode="floor"), "({0} // {1})", iv.floor_div, {}, nonzero=1),
    # `%` is C's remainder, with the sign of the dividend
    Op("mod", ("int",), "same", torch.remainder, "({0} - ({0} // {1}) * {1})", iv.floor_mod, {}, nonzero=1),
    Op("rem", ("int",), "same", torch.fmod, "({0} % {1})", iv.c_mod, {}, nonzero=1),
    Op("fmod", ("float",), "same", torch.fmod, "({0} % {1})", iv.c_mod, {}, rtol=1e-5),
    Op("neg", NUM, "same", torch.neg, "(-{0})", iv.decreasing(np.negative, exact=True), {"neg.default": "same"}),
    Op("abs", NUM, "same", torch.abs, {"int": "cute.math.absi({0})", "float": "cute.math.abs({0})"}, iv.absolute, {"abs.default": "same"}),
    # one comparison drops a NaN on the left: torch keeps it
    Op(
        "minimum",
        NUM,
        "same",
        torch.minimum,
        {"int": "cute.where({0} < {1}, {0}, {1})", "float": "cute.where({0} != {0}, {0}, cute.where({0} < {1}, {0}, {1}))"},
        iv.minimum,
        {"minimum.default": "same"},
        vector=True,
    ),
    Op(
        "maximum",
        NUM,
        "same",
        torch.maximum,
        {"int": "cute.where({0} > {1}, {0}, {1})", "float": "cute.where({0} != {0}, {0}, cute.where({0} > {1}, {0}, {1}))"},
        iv.maximum,
        {"maximum.default": "same"},
        vector=True,
    ),
    Op("where", ALL, "same", torch.where, "cute.where({0}, {1}, {2})", iv.select, {}, vector=True, pick=1),
    Op("eq", ALL, "bool", torch.eq, "({0} == {1})", iv.compare(_eq, _ne), {"eq.Tensor": "compare", "eq.Scalar": "compare"}),
    Op("ne", ALL, "bool", torch.ne, "({0} != {1})", iv.compare(_ne, _eq, nan_is=True), {"ne.Tensor": "compare", "ne.Scalar": "compare"}),
    Op(
        "lt",
        NUM,
        "bool",
        torch.lt,
        "({0} < {1})",
        iv.compare(lambda a, b: a.hi < b.lo, lambda a, b: a.lo >= b.hi),
        {"lt.Tensor": "compare", "lt.Scalar": "compare"},
    ),
    Op(
        "le",
        NUM,
        "bool",
        torch.le,
        "({0} <= {1})",
        iv.compare(lambda a, b: a.hi <= b.lo, lambda a, b: a.lo > b.hi),
        {"le.Tensor": "compare", "le.Scalar": "compare"},
    ),
    Op(
        "gt",
        NUM,
        "bool",
        torch.gt,
        "({0} > {1})",
        iv.compare(lambda a, b: a.lo > b.hi, lambda a, b: a.hi <= b.lo),
        {"gt.Tensor": "compare", "gt.Scalar": "compare"},
    ),
    Op(
        "ge",
        NUM,
        "bool",
        torch.ge,
        "({0} >= {1})",
        iv.compare(lambda a, b: a.lo >= b.hi, lambda a, b: a.hi < b.lo),
        {"ge.Tensor": "compare", "ge.Scalar": "compare"},
    ),
    Op(
        "and",
        ("bool", "int"),
        "same",
        torch.bitwise_and,
        "({0} & {1})",
        bits.bits_and,
        {"bitwise_and.Tensor": "same", "bitwise_and.Scalar": "same", "logical_and.default": "logical"},
    ),
    Op(
        "or",
        ("bool", "int"),
        "same",
        torch.bitwise_or,
        "({0} | {1})",
        bits.bits_or,
        {"bitwise_or.Tensor": "same", "bitwise_or.Scalar": "same", "logical_or.default": "logical"},
    ),
    Op(
        "xor",
        ("bool", "int"),
        "same",
        torch.bitwise_xor,
        "({0} ^ {1})",
        bits.bits_xor,
        {"bitwise_xor.Tensor": "same", "bitwise_xor.Scalar": "same", "logical_xor.default": "logical"},
    ),
    # `~` on a vector of i1 is refused, on integers it gives a raw vector
    Op(
        "not",
        ("bool", "int"),
        "same",
        torch.bitwise_not,
        {"bool": "({0} == False)", "int": "({0} ^ -1)"},
        bits.bits_not,
        {"bitwise_not.default": "same", "logical_not.default": "logical"},
    ),
    # `<<` on vectors gives a raw vector; lowering guards counts outside 0..bits-1
    Op("shl", ("int",), "same", torch.bitwise_left_shift, "{0}.apply_op(operator.lshift, {1})", bits.shift_left, {}, vector=True),
    Op("shr", ("int",), "same", torch.bitwise_right_shift, "{0}.apply_op(operator.rshift, {1})", bits.shift_right, {}, vector=True),
)
