"""Document ids -> offsets: the same mask as runs of keys, which packs into words where a comparison of two reads does not."""

from __future__ import annotations

from dataclasses import replace

import torch

from cute_lab.ir import DTYPES, Graph, Node, Program, Table, inputs_of, node, toposort
from cute_lab.ops import OPS

OFFSETS = "`(kv_idx >= first[q_idx]) & (kv_idx < end[q_idx])`"


def rewritten(program: Program) -> tuple[Program | None, str]:
    """Document ids -> offsets: `ids[q] == ids[kv]` over a sorted table is a run of keys, from its first to its last."""
    if program.mask is None:
        return None, ""
    tables, changed = list(program.tables), dict[Node, Node]()
    words = ""
    for n in toposort(program.mask.output):
        at = _equal_reads(n, program)
        if at is None:
            args = tuple(changed[a] for a in n.args)
            changed[n] = n if args == n.args else OPS[n.op](*args) if n.op in OPS else node(n.op, n.dtype, args, n.attr)
            continue
        table, q, kv = at
        ids = _comparable(table.original)
        first, last = (torch.searchsorted(ids, ids, right=right).to(torch.int32) for right in (False, True))
        reads = []
        for suffix, values in (("first", first), ("end", last)):
            reads.append(node("gather", "i32", (q,), len(tables)))
            tables.append(replace(table, name=f"{table.name}_{suffix}", tensor=values, original=values, dtype="i32", source=None))
        changed[n] = OPS["and"](OPS["ge"](kv, reads[0]), OPS["lt"](kv, reads[1]))
        words = f"capture the first key and the end of each row's document instead of `{table.name}`: {OFFSETS}"
    if not words:
        return None, ""
    return Program(program.score, program.score_bwd, Graph("mask", changed[program.mask.output]), tuple(tables), program.scalars), words


def _equal_reads(n: Node, program: Program) -> tuple[Table, Node, Node] | None:
    if n.op != "eq":
        return None
    reads = [a.args[0] if _widens(a) else a for a in n.args]
    if any(r.op != "gather" or len(r.args) != 1 for r in reads) or reads[0].attr != reads[1].attr:
        return None
    by_input = {name: r.args[0] for r in reads for name in inputs_of(r)}
    table = program.tables[reads[0].attr]
    x = _comparable(table.original)
    if set(by_input) != {"q_idx", "kv_idx"} or any(i.op != "input" for i in by_input.values()):
        return None
    return (table, by_input["q_idx"], by_input["kv_idx"]) if x.dim() == 1 and bool((x[1:] >= x[:-1]).all()) else None


def _widens(n: Node) -> bool:
    """A cast that keeps unequal values unequal."""
    if n.op != "cast":
        return False
    source, goal = DTYPES[n.args[0].dtype], DTYPES[n.dtype]
    return source.kind in ("bool", goal.kind) and (source == goal or source.bits < goal.bits)


def _comparable(x: torch.Tensor) -> torch.Tensor:
    """searchsorted takes no bool."""
    return (x.double() if x.is_floating_point() else x.long()).contiguous()
