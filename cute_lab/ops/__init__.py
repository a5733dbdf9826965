"""THE table: one record per op, in the files of this folder. `OPS[name](*nodes)` builds a node of it."""

from __future__ import annotations

from collections.abc import Mapping

from cute_lab.ops import access, arith, math
from cute_lab.ops.op import Op

OPS: Mapping[str, Op] = {op.name: op for module in (arith, math) for op in module.OPS}
ATEN: Mapping[str, tuple[Op, str]] = {overload: (op, how) for op in OPS.values() for overload, how in op.aten.items()}
LEAVES = access.LEAVES

__all__ = ["ATEN", "LEAVES", "OPS", "Op"]
