"""Masks that FlashAttention-4 has built in: causal and windows, proved on the mask's graph.

The kernel then needs neither a mask_mod nor block lists; its own masks are scheduled longest row first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cute_lab.ir import Node, Scalar
from cute_lab.ir import Program as Program
from cute_lab.record import Shape

SAFE = 2**28  # with positions below that and coefficients up to 2, every intermediate sum fits 32 bits
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@dataclass(frozen=True)
class Window:
    """Keys from q - left to q + right are kept; None is no bound. Both count from the diagonal that ends at the last query and key."""

    left: int | None
    right: int | None

    @property
    def causal(self) -> bool:
        return self.left is None and self.right == 0

    def __str__(self) -> str:
        if self.causal:
            return "native causal"
        return f"native window ({'∞' if self.left is None else self.left}, {'∞' if self.right is None else self.right})"


@dataclass(frozen=True)
class Linear:
    """q * q_idx + kv * kv_idx + rest."""

    q: int
    kv: int
    rest: int


def linear(n: Node, scalars: Sequence[Scalar]) -> Linear | None:
    """The node as a linear form of the positions, with the run-time numbers' present values; None if it is something else.

    Nor where it could leave 32 bits: there the mask's own arithmetic wraps, and no band is left.
    """
    found = _linear(n, scalars)
    return None if found is None or abs(found.rest) >= SAFE or max(abs(found.q), abs(found.kv)) > 2 else found


def _linear(n: Node, scalars: Sequence[Scalar]) -> Linear | None:
    if n.is_const and isinstance(n.attr, int):
        return Linear(0, 0, int(n.attr))
    if n.op == "scalar" and isinstance(scalars[n.attr].value, int):
        return Linear(0, 0, int(scalars[n.attr].value))
    if n.op == "input" and n.attr in ("q_idx", "kv_idx"):
        return Linear(int(n.attr == "q_idx"), int(n.attr == "kv_idx"), 0)
    if n.op == "cast" and n.dtype in ("i32", "i64") and n.args[0].dtype in ("i32", "i64"):
        return linear(n.args[0], scalars)
    if n.op == "neg":
        inner = linear(n.args[0], scalars)
        return None if inner is None else Linear(-inner.q, -inner.kv, -inner.rest)
    if n.op in ("add", "sub"):
        a, b = (linear(x, scalars) for x in n.args)
        if a is None or b is None:
            return None
        sign = 1 if n.op == "add" else -1
        return Linear(a.q + sign * b.q, a.kv + sign * b.kv, a.rest + sign * b.rest)
    return None


Bounds = tuple[float, float]  # of kv - q
EVERYTHING: Bounds = (-math.inf, math.inf)


def bounds(n: Node, scalars: Sequence[Scalar]) -> Bounds | None:
    """lo <= kv - q <= hi where the mask keeps, exactly; None if the mask is no such band."""
    if n.is_const:
        return EVERYTHING if n.attr else None
    if n.op == "and":
        parts = [bounds(x, scalars) for x in n.args]
        known = [part for part in parts if part is not None]
        return (max(lo for lo, _ in known), min(hi for _, hi in known)) if len(known) == len(parts) else None
    if n.op == "not" and n.args[0].op in MIRRORED:
        inner = bounds(n.args[0], scalars)
        return _outside(inner) if inner is not None else None
    if n.op not in MIRRORED:
        return None
    a, b = n.args
    if a.op == "abs" and n.op in ("lt", "le"):
        return _band(a.args[0], b, n.op == "lt", scalars)
    if b.op == "abs" and n.op in ("gt", "ge"):
        return _band(b.args[0], a, n.op == "gt", scalars)
    x, y = linear(a, scalars), linear(b, scalars)
    if x is None or y is None:
        return None
    form = Linear(x.q - y.q, x.kv - y.kv, x.rest - y.rest)
    op = n.op
    if (form.q, form.kv) == (1, -1):
        form, op = Linear(-1, 1, -form.rest), MIRRORED[op]
    if (form.q, form.kv) != (-1, 1):
        return None
    edge = -form.rest  # kv - q <op> edge
    return {"lt": (-math.inf, edge - 1), "le": (-math.inf, edge), "gt": (edge + 1, math.inf), "ge": (edge, math.inf)}[op]


def _outside(inner: Bounds) -> Bounds | None:
    lo, hi = inner
    if lo == -math.inf:
        return (hi + 1, math.inf)
    return (-math.inf, lo - 1) if hi == math.inf else None


def _band(inside: Node, limit: Node, strict: bool, scalars: Sequence[Scalar]) -> Bounds | None:
    """|kv - q + c| <= w."""
    form, w = linear(inside, scalars), linear(limit, scalars)
    if form is None or w is None or (w.q, w.kv) != (0, 0) or abs(form.q) != 1 or form.kv != -form.q:
        return None
    width, shift = w.rest - strict, form.rest * form.kv
    return (-width - shift, width - shift)


def window(program: Program, shape: Shape) -> Window | None:
    """The mask as FlashAttention-4's own, or None. A mask that keeps everything is (None, None)."""
    if program.mask is None:
        return Window(None, None)
    if max(shape.Sq, shape.Skv) >= SAFE:
        return None
    found = bounds(program.mask.output, program.scalars)
    if found is None:
        return None
    lo, hi = found
    end = shape.Skv - shape.Sq  # FlashAttention-4's diagonal ends at the last key
    left = None if lo <= -shape.Sq else -lo + end
    right = None if hi >= shape.Skv else hi - end
    if any(side is not None and side < 0 for side in (left, right)):
        return None  # the diagonal itself is outside; a negative side means no bound to FlashAttention-4
    return Window(*(None if side is None else int(side) for side in (left, right)))
