"""The record of an op: everything that any stage knows about it. A missing field is an error at import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cute_lab.ir import DTYPES, Node, const, node
from cute_lab.ops.interval import Bound

# How lowering casts the operands of an aten overload before the op sees them (torch._prims_common's kinds):
#   same    to the common dtype (add)            float   the same, integers to float32 (exp)
#   compare to the common dtype, result is bool  logical each to bool by != 0
PROMOTIONS = ("same", "float", "compare", "logical")


@dataclass(frozen=True)
class Op:
    """One op on typed operands of equal dtype (`where`: a bool, then two of equal dtype).

    `kinds` are the operand kinds it takes ("bool", "int", "float"; integers are i32 or i64, floats f32 or f64: lowering
    computes narrower types in these and rounds back). `ref` is its meaning, a torch function. `cute` is its CuTeDSL text, one
    template or one per operand kind, for operands of one vector length. `bound` is its interval rule. `aten` names the
    overloads that are this op after promotion. `rtol` is the documented relative error of the text on the host JIT.
    `vector`: constants among the operands must be printed as vectors. `nonzero`: the operand that must not be 0 (the host traps).
    """

    name: str
    kinds: tuple[str, ...]
    result: str  # "same" | "bool"
    ref: Callable[..., Any]
    cute: str | Mapping[str, str]
    bound: Bound
    aten: Mapping[str, str]
    rtol: float = 2e-6
    vector: bool = False
    nonzero: int | None = None
    pick: int = 0  # the operand whose dtype decides (where: 1)
    fast: str = ""  # the text under fast_math: approximate on the GPU, the same on the host

    def __post_init__(self) -> None:
        texts = [self.cute] if isinstance(self.cute, str) else list(self.cute.values())
        arity = {max((i + 1 for i in range(4) if f"{{{i}}}" in t), default=0) for t in texts}
        if len(arity) != 1 or not set(self.aten.values()) <= set(PROMOTIONS) or self.result not in ("same", "bool"):
            raise ValueError(f"op {self.name}: templates of different arity, or an unknown promotion or result")
        if not isinstance(self.cute, str) and set(self.cute) != set(self.kinds):
            raise ValueError(f"op {self.name}: templates for {set(self.cute)}, operands {set(self.kinds)}")

    @property
    def arity(self) -> int:
        text = self.cute if isinstance(self.cute, str) else next(iter(self.cute.values()))
        return max(i + 1 for i in range(4) if f"{{{i}}}" in text)

    def template(self, dtypes: tuple[str, ...], fast: bool = False) -> str:
        if fast and self.fast and dtypes[0] == "f32":
            return self.fast
        return self.cute if isinstance(self.cute, str) else self.cute[DTYPES[dtypes[self.pick]].kind]

    def type(self, dtypes: tuple[str, ...]) -> str:
        """The result dtype, or TypeError for operands it does not take."""
        rest = dtypes[self.pick :]
        lead_ok = all(d == "bool" for d in dtypes[: self.pick])
        if len(dtypes) != self.arity or len(set(rest)) != 1 or not lead_ok or DTYPES[rest[0]].kind not in self.kinds:
            raise TypeError(f"{self.name}{dtypes} is not typed")
        return "bool" if self.result == "bool" else rest[0]

    def __call__(self, *args: Node) -> Node:
        """Builds the node; with constants only, the constant."""
        dtype = self.type(tuple(a.dtype for a in args))
        if all(a.is_const for a in args) and not (self.nonzero is not None and args[self.nonzero].attr == 0):
            return fold(self, dtype, args)
        return node(self.name, dtype, args)


def fold(op: Op, dtype: str, args: tuple[Node, ...]) -> Node:
    import torch

    values = [torch.tensor(a.attr, dtype=getattr(torch, DTYPES[a.dtype].torch)) for a in args]
    return const(op.ref(*values).item(), dtype)
