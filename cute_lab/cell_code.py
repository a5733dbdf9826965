"""A mask's typed IR as data, with which any reader computes it cell by cell. No torch.

cells = inputs nodes result tables scalars
node  = op, dtype, args, attr          the first four are the inputs; args are numbers of nodes above; `result` is a bool's number
attr  = the input's name | the constant | the number of a scalar | the number of a table | null
table = name, dtype, shape, data       base64 of zlib of the little-endian values in C order; bool as bytes, bf16 as its bits

A constant that JSON or a double can't hold is a string: "inf", "-inf", "nan", or an integer's digits.
What an op means is its record in `ops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INPUTS = ("b", "h", "q_idx", "kv_idx")
PACKED = 64_000  # characters of all tables
UNPACKED = 8 << 20  # bytes of one table
NODES = 20_000


@dataclass(frozen=True)
class CellNode:
    op: str
    dtype: str
    args: tuple[int, ...] = ()
    attr: bool | int | float | str | None = None


@dataclass(frozen=True)
class CellTable:
    name: str
    dtype: str
    shape: tuple[int, ...]
    encoding: Literal["zlib-b64"]
    data: str


@dataclass(frozen=True)
class CellScalar:
    name: str
    dtype: str
    value: bool | int | float


@dataclass(frozen=True)
class CellCode:
    inputs: tuple[str, ...]
    nodes: tuple[CellNode, ...]
    result: int
    tables: tuple[CellTable, ...]
    scalars: tuple[CellScalar, ...]

    def __post_init__(self) -> None:
        if self.inputs != INPUTS or tuple(n.attr for n in self.nodes[: len(INPUTS)] if n.op == "input") != INPUTS:
            raise ValueError(f"its first nodes are not the inputs {', '.join(INPUTS)}")
        if any(not 0 <= a < i for i, n in enumerate(self.nodes) for a in n.args) or not 0 <= self.result < len(self.nodes):
            raise ValueError("a node reads one that does not stand above it")
