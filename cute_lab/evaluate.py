"""The meaning of the graph: one loop over the table with torch; and its bounds, the same loop with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from cute_lab.ir import DTYPES, Node, Scalar, Table, toposort
from cute_lab.ops import LEAVES, OPS
from cute_lab.ops import interval as iv


@dataclass(frozen=True)
class Inputs:
    """Broadcastable tensors by input name (score and grad float32, indices int32), captured tensors and run-time numbers."""

    inputs: Mapping[str, torch.Tensor]
    tables: Sequence[Table] = ()
    scalars: Sequence[Scalar] = ()


def evaluate(outputs: Node | Sequence[Node], env: Inputs) -> Any:
    """The value of one node (or a list of values), broadcast over the inputs, in the node's dtype."""
    roots = [outputs] if isinstance(outputs, Node) else list(outputs)
    values: dict[Node, torch.Tensor] = {}
    for n in toposort(*roots):
        args = [values[a] for a in n.args]
        values[n] = LEAVES[n.op].evaluate(n, args, env) if n.op in LEAVES else OPS[n.op].ref(*args)
    return values[outputs] if isinstance(outputs, Node) else [values[r] for r in roots]


@dataclass(frozen=True)
class Ranges:
    """The box of positions to bound over."""

    inputs: Mapping[str, iv.Interval]
    tables: Sequence[Table] = ()
    scalars: Sequence[Scalar] = ()
    _contents: dict[int, iv.Interval] = field(default_factory=dict)

    def contents(self, table: int) -> iv.Interval:
        """The least and greatest value of a captured tensor."""
        if table not in self._contents:
            t = self.tables[table].original.detach()
            dtype = self.tables[table].dtype
            if t.numel() == 0 or t.is_meta:
                return iv.whole(dtype)
            t = t[tuple(slice(1) if step == 0 else slice(None) for step in t.stride())]  # expanded: each value once
            lo, hi = (x.item() for x in torch.aminmax(t.view(torch.uint8) if dtype == "bool" else t))
            self._contents[table] = held(dtype, np.float64(lo), np.float64(hi))
        return self._contents[table]

    def looked_up(self, table: int, index: Sequence[iv.Interval]) -> iv.Interval:
        return self.contents(table)


def held(dtype: str, lo: iv.Array, hi: iv.Array) -> iv.Interval:
    """What a captured tensor's least and greatest values say; NaN where there is one among them."""
    bad = np.isnan(lo) | np.isnan(hi)
    lo, hi = np.where(bad, -np.inf, lo), np.where(bad, np.inf, hi)
    nan = (DTYPES[dtype].kind == "float") & (np.isinf(lo) | np.isinf(hi))
    return iv.fit("f64" if DTYPES[dtype].kind == "float" else dtype, lo, hi, nan)


def positions(B: int, H: int, Sq: int, Skv: int) -> dict[str, iv.Interval]:
    """Every position of the score matrix, any score and gradient."""
    any_f32 = iv.whole("f32")
    tops = {"b": B, "h": H, "q_idx": Sq, "kv_idx": Skv}
    return {"score": any_f32, "grad": any_f32, **{name: iv.Interval(0.0, float(n - 1)) for name, n in tops.items()}}


def bounds(outputs: Node | Sequence[Node], box: Ranges, known: dict[Node, iv.Interval] | None = None) -> dict[Node, iv.Interval]:
    """An interval for every node below `outputs`; `known` is filled and reused."""
    found = {} if known is None else known
    for n in toposort(*([outputs] if isinstance(outputs, Node) else outputs)):
        if n not in found:
            args = [found[a] for a in n.args]
            found[n] = LEAVES[n.op].bound(n, args, box) if n.op in LEAVES else OPS[n.op].bound(n.dtype, *args)
    return found
