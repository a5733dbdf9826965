"""Intervals of integers as bits: what and, or, xor, not and shifts make of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cute_lab.ir import DTYPES
from cute_lab.ops.interval import EXACT_INT, Array, Interval, fit, truth


def bits_and(dtype: str, a: Interval, b: Interval) -> Interval:
    if dtype == "bool":
        return Interval(np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi))
    d = DTYPES[dtype]  # a non-negative operand caps the result
    high = np.where((a.lo >= 0) & (b.lo >= 0), np.minimum(a.hi, b.hi), np.where(a.lo >= 0, a.hi, np.where(b.lo >= 0, b.hi, d.hi)))
    low = np.where((a.lo >= 0) | (b.lo >= 0), 0.0, d.lo)
    for x, m in ((a, b), (b, a)):  # the low bits of a box that crosses none of their multiples: as a remainder
        period = m.lo + 1.0
        ones = (m.lo == m.hi) & (m.lo >= 0) & (np.frexp(period)[0] == 0.5) & (period <= EXACT_INT)
        base, last = (np.floor(end / np.where(ones, period, 1.0)) for end in (x.lo, x.hi))
        one = ones & (base == last) & (np.abs(x.lo) <= EXACT_INT) & (np.abs(x.hi) <= EXACT_INT)
        low, high = np.where(one, x.lo - base * period, low), np.where(one, x.hi - base * period, high)
    return Interval(*_if_known(np.bitwise_and, a, b, low, high))


def _if_known(op: Callable[..., Array], a: Interval, b: Interval, low: Array, high: Array) -> tuple[Array, Array]:
    """The one result where both operands are one number, which float64 holds exactly."""
    sure = (a.lo == a.hi) & (b.lo == b.hi) & (np.abs(a.lo) <= EXACT_INT) & (np.abs(b.lo) <= EXACT_INT)
    value = op(*(np.where(sure, x.lo, 0.0).astype(np.int64) for x in (a, b))).astype(np.float64)
    return np.where(sure, value, low), np.where(sure, value, high)


def _ones(x: Array) -> Array:
    """All ones as wide as x: the largest number that bits of numbers up to x can make."""
    return 2.0 ** np.frexp(np.maximum(x, 0))[1] - 1  # log2 rounds from 2**49 on


def bits_or(dtype: str, a: Interval, b: Interval) -> Interval:
    if dtype == "bool":
        return Interval(np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi))
    return _joined(np.bitwise_or, dtype, a, b, np.maximum(a.lo, b.lo))


def bits_xor(dtype: str, a: Interval, b: Interval) -> Interval:
    if dtype == "bool":
        sure = (a.lo == a.hi) & (b.lo == b.hi)
        return truth(sure & (a.lo != b.lo), sure & (a.lo == b.lo))
    return _joined(np.bitwise_xor, dtype, a, b, 0.0)


def _joined(op: Callable[..., Array], dtype: str, a: Interval, b: Interval, least: Array) -> Interval:
    """`least` is the smallest result of operands that are not negative."""
    d, positive = DTYPES[dtype], (a.lo >= 0) & (b.lo >= 0)
    low, high = np.where(positive, least, d.lo), np.where(positive, np.maximum(_ones(a.hi), _ones(b.hi)), d.hi)
    return fit(dtype, *_if_known(op, a, b, low, high))


def bits_not(dtype: str, a: Interval) -> Interval:
    return truth(a.hi <= 0, a.lo >= 1) if dtype == "bool" else fit(dtype, -1.0 - a.hi, -1.0 - a.lo)


def shift_left(dtype: str, a: Interval, b: Interval) -> Interval:
    d = DTYPES[dtype]
    legal = (b.lo >= 0) & (b.hi < d.bits)
    scale = [2.0 ** np.clip(x, 0, 63) for x in (b.lo, b.hi)]
    points = np.broadcast_arrays(*(x * s for x in (a.lo, a.hi) for s in scale))
    return fit(dtype, np.where(legal, np.minimum.reduce(points), d.lo - 1), np.where(legal, np.maximum.reduce(points), d.hi))


def shift_right(dtype: str, a: Interval, b: Interval) -> Interval:
    scale = [2.0 ** -np.clip(x, 0, 63) for x in (b.lo, b.hi)]
    points = np.broadcast_arrays(*(np.floor(x * s) for x in (a.lo, a.hi) for s in scale))
    legal = (b.lo >= 0) & (b.hi < DTYPES[dtype].bits)
    low, high = np.minimum.reduce(points), np.maximum.reduce(points)
    # torch gives 0 or -1 for a shift by 64 and more; the bound covers both
    return Interval(np.where(legal, low, np.minimum(low, -1.0)), np.where(legal, high, np.maximum(high, 0.0)))
