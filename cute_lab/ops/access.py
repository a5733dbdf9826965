"""The ops that look something up: inputs, constants, run-time scalars, captured tensors; and the casts between dtypes.

They are records as the others are, so that evaluator, printer and bounds are loops without branches; each rule sees the
node (for its attribute) and the stage's environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from cute_lab.ir import DTYPES, Node, Scalar, Table
from cute_lab.ops import interval as iv

if TYPE_CHECKING:
    from cute_lab.ops.interval import Interval


class Values(Protocol):
    """What evaluation reads: one tensor per input name, the captured tensors, the run-time numbers."""

    @property
    def inputs(self) -> Mapping[str, torch.Tensor]: ...
    @property
    def tables(self) -> Sequence[Table]: ...
    @property
    def scalars(self) -> Sequence[Scalar]: ...


class Box(Protocol):
    """What bounding reads: an interval per input, and what a captured tensor holds where it is read."""

    @property
    def inputs(self) -> Mapping[str, Interval]: ...
    @property
    def tables(self) -> Sequence[Table]: ...
    @property
    def scalars(self) -> Sequence[Scalar]: ...

    def looked_up(self, table: int, index: Sequence[Interval]) -> Interval: ...


class Emit(Protocol):
    """What printing offers to a rule: names of tables and scalars, statements, and whether lanes share a value."""

    def table(self, index: int) -> str: ...
    def scalar(self, index: int) -> str: ...
    def size(self, table: int, dim: int) -> str: ...
    def gather(self, node: Node, index: Sequence[str]) -> str: ...


@dataclass(frozen=True)
class Leaf:
    name: str
    evaluate: Callable[[Node, Sequence[torch.Tensor], Values], torch.Tensor]
    bound: Callable[[Node, Sequence[Interval], Box], Interval]
    text: Callable[[Node, Sequence[str], Emit], str]


def literal(value: float | int | bool) -> str:
    """A Python expression for a constant, infinities and NaN included."""
    if isinstance(value, bool) or not isinstance(value, float) or math.isfinite(value):
        return repr(value)
    return f'float("{value}")'


def _torch_dtype(n: Node) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, DTYPES[n.dtype].torch)
    return dtype


def _point(value: float | int) -> Interval:
    if isinstance(value, int) and abs(value) > iv.EXACT_INT:
        return iv.Interval(math.nextafter(float(value), -math.inf), math.nextafter(float(value), math.inf))
    nan = isinstance(value, float) and math.isnan(value)
    return iv.Interval(-math.inf, math.inf, True) if nan else iv.Interval(float(value), float(value))


def _const_value(n: Node) -> float | int:
    """The constant as the dtype holds it (0.1 in float32 is another number)."""
    if DTYPES[n.dtype].kind != "float" or n.dtype == "f64":
        return n.attr  # type: ignore[no-any-return]
    return float(torch.tensor(n.attr, dtype=_torch_dtype(n)))


def _gather(n: Node, index: Sequence[torch.Tensor], env: Values) -> torch.Tensor:
    table: torch.Tensor = env.tables[n.attr].original.detach()
    if not index:
        return table
    return table[tuple(i.to(torch.int64).to(table.device) for i in torch.broadcast_tensors(*index))]


def _size_bound(n: Node, args: Sequence[Interval], box: Box) -> Interval:
    return _point(int(box.tables[n.attr[0]].original.shape[n.attr[1]]))


def _cast_bound(n: Node, args: Sequence[Interval], box: Box) -> Interval:
    return iv.cast(n.dtype, args[0])


def _size_text(n: Node, args: Sequence[str], emit: Emit) -> str:
    return emit.size(*n.attr)


def _cast_text(n: Node, args: Sequence[str], emit: Emit) -> str:
    """A loaded bf16 becomes float32 by its bits: LLVM narrows what follows a plain extension to bf16, by a call that the host lacks."""
    text, source = args[0], n.args[0]
    if source.dtype == "bf16" and source.op == "gather":
        text = f"({text}.to(cutlass.Int32) * 65536).bitcast(cutlass.Float32)"
        if n.dtype == "f32":
            return text
    return f"{text}.to(cutlass.{DTYPES[n.dtype].cute})"


LEAVES: Mapping[str, Leaf] = {
    leaf.name: leaf
    for leaf in (
        Leaf("input", lambda n, a, env: env.inputs[n.attr], lambda n, a, box: box.inputs[n.attr], lambda n, a, emit: str(n.attr)),
        Leaf(
            "const",
            lambda n, a, env: torch.tensor(n.attr, dtype=_torch_dtype(n)),
            lambda n, a, box: _point(_const_value(n)),
            lambda n, a, emit: literal(n.attr),
        ),
        Leaf(
            "scalar",
            lambda n, a, env: torch.tensor(env.scalars[n.attr].value, dtype=_torch_dtype(n)),
            lambda n, a, box: _point(float(np.float32(box.scalars[n.attr].value)) if n.dtype == "f32" else box.scalars[n.attr].value),
            lambda n, a, emit: emit.scalar(n.attr),
        ),
        Leaf(
            "size",
            lambda n, a, env: torch.tensor(env.tables[n.attr[0]].original.shape[n.attr[1]], dtype=_torch_dtype(n)),
            _size_bound,
            _size_text,
        ),
        Leaf("gather", _gather, lambda n, a, box: box.looked_up(n.attr, a), lambda n, a, emit: emit.gather(n, a)),
        Leaf(
            "cast",
            lambda n, a, env: a[0].to(_torch_dtype(n)),
            _cast_bound,
            _cast_text,
        ),
        Leaf(
            "bitcast",
            lambda n, a, env: a[0].contiguous().view(_torch_dtype(n)),
            lambda n, a, box: iv.unknown(n.dtype, *a),
            lambda n, a, emit: f"{a[0]}.bitcast(cutlass.{DTYPES[n.dtype].cute})",
        ),
    )
}
