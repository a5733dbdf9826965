"""The typed expression graph of a mod: frozen, hash-consed nodes, so that equality is identity.

    Program ::= score: Graph?, score_bwd: Graph?, mask: Graph?, tables: Table*, scalars: Scalar*
    Graph   ::= kind ("score" | "score_bwd" | "mask"), output: Node, origin: Node -> Loc, names: Node -> str
    Node    ::= op: str, dtype: str, args: Node*, attr      -- the operands' dtypes are exactly what the op wants
    leaves  ::= input(name) | const(value) | scalar(i) | size(table, dim)
    Table   ::= a captured tensor, read by `gather(table)(index*)`
    Scalar  ::= a run-time number (aux_scalars[i]) with its present value
    dtype   ::= bool | u8 | i8 | i16 | i32 | i64 | f16 | bf16 | f32 | f64

Casts are nodes, put there once by lowering; no later stage decides a type. What an op means, prints as and
bounds is its record in `ops`; this file knows no op.
"""

from __future__ import annotations

import struct
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cute_lab.errors import Loc

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class DType:
    name: str
    torch: str
    cute: str
    kind: str  # "bool" | "int" | "float"
    bits: int

    @property
    def lo(self) -> float:
        return {"bool": 0.0, "float": float("-inf")}.get(self.kind, 0.0 if self.name[0] == "u" else -(2.0 ** (self.bits - 1)))

    @property
    def hi(self) -> float:
        unsigned = self.name[0] == "u"
        return {"bool": 1.0, "float": float("inf")}.get(self.kind, 2.0 ** (self.bits - (not unsigned)) - 1)


DTYPES: Mapping[str, DType] = {
    d.name: d
    for d in (
        DType("bool", "bool", "Boolean", "bool", 1),
        DType("u8", "uint8", "Uint8", "int", 8),
        DType("i8", "int8", "Int8", "int", 8),
        DType("i16", "int16", "Int16", "int", 16),
        DType("i32", "int32", "Int32", "int", 32),
        DType("i64", "int64", "Int64", "int", 64),
        DType("f16", "float16", "Float16", "float", 16),
        DType("bf16", "bfloat16", "BFloat16", "float", 16),
        DType("f32", "float32", "Float32", "float", 32),
        DType("f64", "float64", "Float64", "float", 64),
    )
}
FROM_TORCH = {d.torch: d.name for d in DTYPES.values()}
STORED = {"bool": "Uint8", "bf16": "Int16"}  # how a captured tensor of this dtype lies in an aux tensor
INPUTS = {
    "score": (("score", "f32"), ("b", "i32"), ("h", "i32"), ("q_idx", "i32"), ("kv_idx", "i32")),
    "score_bwd": (("grad", "f32"), ("score", "f32"), ("b", "i32"), ("h", "i32"), ("q_idx", "i32"), ("kv_idx", "i32")),
    "mask": (("b", "i32"), ("h", "i32"), ("q_idx", "i32"), ("kv_idx", "i32")),
}
RESULT = {"score": "f32", "score_bwd": "f32", "mask": "bool"}


@dataclass(frozen=True, eq=False)
class Node:
    op: str
    dtype: str
    args: tuple[Node, ...] = ()
    attr: Any = None
    _key: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    def __str__(self) -> str:
        inner = [str(a) for a in self.args]
        if self.op == "input":
            return str(self.attr)
        if self.op == "const":
            return repr(self.attr)
        if self.attr is not None:
            inner.append(f"@{self.attr}")
        return f"{self.op}({', '.join(inner)})"


_nodes: weakref.WeakValueDictionary[tuple[Any, ...], Node] = weakref.WeakValueDictionary()
_nodes_lock = threading.Lock()


def _attr_key(attr: Any) -> Any:
    # 0.0 == -0.0 and nan != nan would merge or duplicate constants: compare bits; True == 1 would merge types.
    return struct.pack("<d", attr) if isinstance(attr, float) else (type(attr).__name__, attr)


def node(op: str, dtype: str, args: tuple[Node, ...] = (), attr: Any = None) -> Node:
    """The one node with these fields: built twice, it is the same object."""
    key = (op, dtype, args, _attr_key(attr))
    with _nodes_lock:  # sliders trace on a thread of their own
        found = _nodes.get(key)
        if found is None:
            found = Node(op, dtype, args, attr, key)
            _nodes[key] = found
        return found


def const(value: float | int | bool, dtype: str) -> Node:
    kind = DTYPES[dtype].kind
    return node("const", dtype, attr={"bool": bool, "int": int, "float": float}[kind](value))


def toposort(*outputs: Node) -> list[Node]:
    """Every node once, operands first."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(n, False) for n in reversed(outputs)]
    while stack:
        current, done = stack.pop()
        if done:
            order.append(current)
        elif current not in seen:
            seen.add(current)
            stack.append((current, True))
            stack += [(a, False) for a in reversed(current.args)]
    return order


def inputs_of(n: Node) -> set[str]:
    """The positions (and the score) that it reads."""
    return {str(x.attr) for x in toposort(n) if x.op == "input"}


@dataclass(frozen=True)
class Table:
    """A captured tensor, by reference. Size-1 dimensions are dropped in `tensor`: `dims[k]` is dimension k's place in it, or None.

    `tensor` views bool as uint8 and bf16 as int16 (its bits): `stored`.
    """

    name: str
    tensor: torch.Tensor
    original: torch.Tensor
    dims: tuple[int | None, ...]
    dtype: str
    trained: bool = False  # it requires a gradient, which it will not get
    source: torch.Tensor | None = None  # the user's own, where `original` is its copy on the host

    @property
    def stored(self) -> str:
        return STORED.get(self.dtype, DTYPES[self.dtype].cute)


@dataclass(frozen=True)
class Scalar:
    """A run-time number: moving it recompiles nothing. `dtype` is i32 or f32 (what FlashAttention-4's aux_scalars take)."""

    name: str
    dtype: str
    value: float | int


@dataclass(frozen=True)
class Graph:
    kind: str
    output: Node
    origin: Mapping[Node, Loc] = field(default_factory=dict)
    names: Mapping[Node, str] = field(default_factory=dict)

    def nodes(self) -> list[Node]:
        return toposort(self.output)

    def __str__(self) -> str:
        return "\n".join(_text(self))


def _text(graph: Graph) -> Iterator[str]:
    signature = ", ".join(f"{name}: {dtype}" for name, dtype in INPUTS[graph.kind])
    yield f"{graph.kind}({signature}) -> {graph.output.dtype}"
    label: dict[Node, str] = {}
    for n in graph.nodes():
        if n.op in ("input", "const"):
            label[n] = str(n)
            continue
        label[n] = f"%{graph.names[n]}" if n in graph.names else f"%{len(label)}"
        attr = "" if n.attr is None else f"[{', '.join(map(str, n.attr)) if isinstance(n.attr, tuple) else n.attr}]"
        line = f"  {label[n]} = {n.op}{attr}({', '.join(label[a] for a in n.args)}) : {n.dtype}"
        where = graph.origin.get(n)
        yield f"{line:<56}# {where.line}: {where.snippet}" if where else line
    yield f"  return {label[graph.output]}"


@dataclass(frozen=True)
class Program:
    """What one variant is: up to three graphs over the same tables and run-time scalars."""

    score: Graph | None = None
    score_bwd: Graph | None = None
    mask: Graph | None = None
    tables: tuple[Table, ...] = ()
    scalars: tuple[Scalar, ...] = ()

    @property
    def captures(self) -> bool:
        """Do the generated functions take aux_scalars: addresses of tables, then run-time numbers?"""
        return bool(self.tables or self.scalars)

    def graphs(self) -> dict[str, Graph]:
        named = {"score": self.score, "score_bwd": self.score_bwd, "mask": self.mask}
        return {kind: g for kind, g in named.items() if g is not None}

    def __str__(self) -> str:
        head = [f"table {t.name}: {t.dtype}{list(t.original.shape)}" for t in self.tables]
        head += [f"scalar {s.name}: {s.dtype} = {s.value}" for s in self.scalars]
        return "\n".join(head + [str(g) for g in self.graphs().values()])
