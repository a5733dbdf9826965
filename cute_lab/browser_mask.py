"""A program's mask -> CellCode, for readers that have neither torch nor a kernel."""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

import torch

from cute_lab.cell_code import INPUTS, NODES, PACKED, UNPACKED, CellCode, CellNode, CellScalar, CellTable
from cute_lab.ir import Node, Program, Table, node, toposort

SAFE = 2**53 - 1  # beyond it a double skips integers
BITS = {torch.bool: torch.uint8, torch.bfloat16: torch.int16}


def cell_code(program: Program, packed: int = PACKED, unpacked: int = UNPACKED) -> CellCode | None:
    """None without a mask, and where its captured tensors are too large to travel with it: `packed` characters in all,
    `unpacked` bytes each."""
    if program.mask is None:
        return None
    output = program.mask.output
    order = [node("input", "i32", attr=name) for name in INPUTS]
    order += [n for n in toposort(output) if n.op != "input"]
    if len(order) > NODES:
        return None
    number = {n: i for i, n in enumerate(order)}
    read = sorted({n.attr for n in order if n.op == "gather"})
    tables: list[CellTable] = []
    for i in read:
        table = _table(program.tables[i], unpacked)
        if table is None or sum(len(t.data) for t in (*tables, table)) > packed:
            return None
        tables.append(table)
    used = sorted({n.attr for n in order if n.op == "scalar"})
    scalars = tuple(CellScalar(s.name, s.dtype, s.value) for s in (program.scalars[i] for i in used))
    place = {"gather": {t: i for i, t in enumerate(read)}, "scalar": {s: i for i, s in enumerate(used)}}
    nodes = tuple(_node(n, tuple(number[a] for a in n.args), place, program) for n in order)
    return CellCode(INPUTS, nodes, number[output], tuple(tables), scalars)


def _node(n: Node, args: tuple[int, ...], place: dict[str, dict[int, int]], program: Program) -> CellNode:
    if n.op == "size":  # as the tensor is now, like the rest of the table
        table, dim = n.attr
        return CellNode("const", n.dtype, (), int(program.tables[table].original.shape[dim]))
    attr: Any = place[n.op][n.attr] if n.op in place else n.attr
    if n.op == "const" and ((isinstance(attr, float) and not math.isfinite(attr)) or (type(attr) is int and abs(attr) > SAFE)):
        attr = str(attr)
    return CellNode(n.op, n.dtype, args, attr)


def _table(t: Table, most: int) -> CellTable | None:
    x = t.original.detach()
    if x.is_meta or x.numel() * x.element_size() > most:
        return None
    raw = x.cpu().contiguous().view(BITS.get(x.dtype, x.dtype)).numpy()
    data = base64.b64encode(zlib.compress(raw.astype(raw.dtype.newbyteorder("<")).tobytes(), 6)).decode()
    return CellTable(t.name, t.dtype, tuple(x.shape), "zlib-b64", data)
