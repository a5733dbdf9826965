"""Reads outside a captured tensor and divisions by zero, found before they happen: on the host they kill the process, on a GPU
they read foreign memory. Where intervals do not prove an index, a guard graph is run first: the same graph with indices clamped
and divisors made safe, whose value is "something here is out of range".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cute_lab import cutedsl, host
from cute_lab.classify import Classifier
from cute_lab.errors import CuteLabError, IndexOutOfRange, UserCodeError
from cute_lab.evaluate import Inputs, Ranges, bounds, evaluate, positions
from cute_lab.ir import Graph, Node, Program, const, inputs_of, node, toposort
from cute_lab.ops import OPS
from cute_lab.record import Shape
from cute_lab.runs import EMPTY

FULL_CHECK = 1 << 24  # positions that are looked at one by one before a variant is taken; of more, those that intervals leave open
SEARCHED = (128, 128)  # positions that are looked at together then
MOST = 1 << 15  # such blocks at most, half a second of work: beyond, only what `verify` samples is known


@dataclass(frozen=True)
class Hazard:
    """An index (`dim` of a gather) or a divisor (`dim` None) that is not proven to be legal."""

    user: Node
    operand: Node
    dim: int | None
    size: int

    def bad(self, value: Node) -> Node:
        if self.dim is None:
            return OPS["eq"](value, const(0, value.dtype))
        below, above = OPS["lt"](value, const(0, value.dtype)), OPS["ge"](value, const(self.size, value.dtype))
        return OPS["or"](below, above)

    def safe(self, value: Node) -> Node:
        if self.dim is None:
            return OPS["where"](self.bad(value), const(1, value.dtype), value)
        low = OPS["maximum"](value, const(0, value.dtype))
        return OPS["minimum"](low, const(max(self.size - 1, 0), value.dtype))


def raw_index(n: Node) -> Node:
    """The index as the user computed it: before the wrap of negative values and the cast to 32 bits."""
    inner = n.args[0] if n.op == "cast" else n
    if inner.op == "where" and inner.args[1].op == "add" and inner.args[1].args[1].op == "size":
        return inner.args[2]
    return inner


def wide_index(n: Node) -> Node:
    """The wrapped index before the cast to 32 bits, which could hide a value beyond them."""
    return n.args[0] if n.op == "cast" and n.args[0].dtype == "i64" else n


def box(program: Program, shape: Shape) -> Ranges:
    return Ranges(positions(shape.B, shape.H, shape.Sq, shape.Skv), program.tables, program.scalars)


def hazards(graph: Graph, program: Program, shape: Shape) -> list[Hazard]:
    """What the positions and the present contents of the tables do not prove legal."""
    known = bounds(graph.output, where := box(program, shape))
    found = []
    for n in graph.nodes():
        if n.op == "gather":
            sizes = program.tables[n.attr].original.shape
            for dim, (index, size) in enumerate(zip(n.args, sizes, strict=True)):
                span = bounds(wide_index(index), where, known)[wide_index(index)]
                if span.lo < 0 or span.hi >= size:
                    found.append(Hazard(n, index, dim, size))
        elif n.op in OPS and (place := OPS[n.op].nonzero) is not None:
            span = known[n.args[place]]
            if span.lo <= 0 <= span.hi:
                found.append(Hazard(n, n.args[place], None, 0))
    return found


def guard(graph: Graph, found: Sequence[Hazard], wanted: Sequence[Hazard] | None = None) -> Node:
    """True where any hazard (of the `wanted` ones) strikes; it can be evaluated anywhere."""
    by_user: dict[Node, list[Hazard]] = {}
    for hazard in found:
        by_user.setdefault(hazard.user, []).append(hazard)
    done: dict[Node, Node] = {}
    flags: list[Node] = []
    for n in toposort(graph.output):
        args = [done[a] for a in n.args]
        for hazard in by_user.get(n, ()):
            for place, a in enumerate(n.args):
                if a is hazard.operand and (hazard.dim is None or hazard.dim == place):
                    value = done[wide_index(a)] if hazard.dim is not None else args[place]
                    if wanted is None or hazard in wanted:
                        flags.append(hazard.bad(value))
                    args[place] = node("cast", "i32", (hazard.safe(value),)) if value.dtype != a.dtype else hazard.safe(value)
        if tuple(args) == n.args:
            done[n] = n
        elif n.op in OPS:
            done[n] = OPS[n.op](*args)
        else:
            done[n] = node(n.op, n.dtype, tuple(args), n.attr)
    result = flags[0]
    for flag in flags[1:]:
        result = OPS["or"](result, flag)
    return result


def strike(
    graph: Graph,
    program: Program,
    shape: Shape,
    rows: torch.Tensor,
    kv: torch.Tensor,
    scores: torch.Tensor | None,
    wanted: Sequence[Hazard] | None = None,
) -> None:
    """Raises for the first position (in row order) of the given ones where an index or divisor (of the `wanted`) is illegal."""
    found = hazards(graph, program, shape)
    if not found:
        return
    flag = guard(graph, found, wanted)
    if flag.is_const and not flag.attr:
        return
    if {"score", "grad"} & inputs_of(flag):
        if scores is None:
            return
        value = OPS["where"](flag, const(1.0, "f32"), const(0.0, "f32"))
        text = cutedsl.emit(Program(score=Graph("score", value), tables=program.tables, scalars=program.scalars)).text
        hit = host.score(text, scores, rows, kv, program.tables, program.scalars) != 0
    else:
        text = cutedsl.emit(Program(mask=Graph("mask", flag), tables=program.tables, scalars=program.scalars)).text
        hit = host.mask(text, rows, kv, program.tables, program.scalars)
    if hit.any():
        row, column = divmod(int(hit.reshape(-1).to(torch.uint8).argmax()), kv.numel())
        at = [int(x) for x in rows[row]] + [int(kv[column])]
        raise describe(graph, program, shape, found, at, None if scores is None else float(scores[row, column]))


def describe(graph: Graph, program: Program, shape: Shape, found: Sequence[Hazard], at: Sequence[int], score: float | None) -> CuteLabError:
    b, h, q, kv = at
    values = {"b": b, "h": h, "q_idx": q, "kv_idx": kv}
    inputs = {name: torch.tensor(v, dtype=torch.int32) for name, v in values.items()}
    inputs |= {"score": torch.tensor(score or 0.0), "grad": torch.tensor(1.0)}
    env = Inputs(inputs, program.tables, program.scalars)
    for hazard in found:  # operands come first in the graph's order, so the first hit is the cause
        value = int(evaluate(wide_index(hazard.operand), env))
        loc = graph.origin.get(hazard.user)
        snippet = loc.snippet if loc else str(hazard.user)
        if hazard.dim is None and value == 0:
            return UserCodeError(
                f"integer division by zero at b={b}, h={h}, q_idx={q}, kv_idx={kv}",
                loc=loc,
                error="ZeroDivisionError",
                function=graph.kind + "_mod",
            )
        if hazard.dim is not None and not 0 <= value < hazard.size:
            raw = raw_index(hazard.operand)
            span = bounds(raw, box(program, shape))[raw]
            name = program.tables[hazard.user.attr].name
            lo, hi = (int(x) if abs(x) < 1e18 else x for x in (float(span.lo), float(span.hi)))
            index = int(evaluate(raw, env))
            needs = int(hi) + 1 if 0 <= hi < 2**31 else max(index + 1, 0)
            larger = f"# give {name} {needs} entries in dimension {hazard.dim}; or, where its last entry serves for all beyond:"
            example = f"{larger}\n{_clamped(snippet, hazard)}"
            if index < 0:
                example = _clamped(snippet, hazard)
            return IndexOutOfRange(
                loc=loc,
                snippet=snippet,
                name=name,
                index=index,
                b=b,
                h=h,
                q=q,
                kv=kv,
                lo=lo,
                hi=hi,
                size=hazard.size,
                dim=hazard.dim,
                example=example,
            )
    return UserCodeError("an index is out of range", loc=None, error="IndexError", function=graph.kind + "_mod")


def _clamped(snippet: str, hazard: Hazard) -> str:
    import ast

    try:
        tree = ast.parse(snippet, mode="eval").body
    except SyntaxError:
        return snippet
    if isinstance(tree, ast.Subscript) and hazard.dim is not None:
        parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        texts = [ast.unparse(p) for p in parts]
        if hazard.dim < len(texts):
            inner = texts[hazard.dim]
            texts[hazard.dim] = f"{inner}.clamp(0, {hazard.size - 1})" if inner.isidentifier() else f"({inner}).clamp(0, {hazard.size - 1})"
        return f"{ast.unparse(tree.value)}[{', '.join(texts)}]"
    return snippet


def domain(flag_inputs: set[str], shape: Shape) -> tuple[torch.Tensor, torch.Tensor] | None:
    """All positions that differ in what the guard reads; None if they are too many to look at now."""
    sizes = {"b": shape.B, "h": shape.H, "q_idx": shape.Sq, "kv_idx": shape.Skv}
    spans = {name: range(size if name in flag_inputs else 1) for name, size in sizes.items()}
    total = 1
    for r in spans.values():
        total *= len(r)
    if total > FULL_CHECK:
        return None
    return host.grid_rows(spans["b"], spans["h"], spans["q_idx"]), torch.arange(len(spans["kv_idx"]), dtype=torch.int32)


def program(p: Program, shape: Shape) -> None:
    """Looks at every position that matters, before the variant is used; what depends on scores is looked at with the scores.

    Each hazard by itself: what reads only the row is looked at for all rows, however many keys there are.
    """
    for graph in p.graphs().values():
        found = hazards(graph, p, shape)
        for hazard in found:
            flag = guard(graph, found, [hazard])
            read = inputs_of(flag)
            where = domain(read, shape)
            if where is not None:
                strike(graph, p, shape, *where, None, [hazard])
            elif not {"score", "grad"} & read:
                far(graph, p, shape, flag, hazard)


def far(graph: Graph, p: Program, shape: Shape, flag: Node, hazard: Hazard) -> None:
    """Too many positions to look at: the flag is a mask, and a block of it that is not empty holds an illegal read."""
    mask = Program(mask=Graph("mask", flag), tables=p.tables, scalars=p.scalars)
    search = Classifier(mask, cutedsl.emit(mask).text, shape, SEARCHED, MOST)
    boxes = search.boxes()
    hit = boxes.where(boxes.kind != EMPTY)
    if len(hit.i):
        first = int(np.lexsort((hit.j, hit.i, hit.group))[0])
        at = [int(x[first]) for x in (hit.group, hit.i, hit.j)]
        q, kv = ((n * size, min((n + 1) * size, end)) for n, size, end in zip(at[1:], SEARCHED, (shape.Sq, shape.Skv), strict=True))
        b, h = divmod(at[0], search.heads)
        rows = host.grid_rows([b], [h], range(*q))
        strike(graph, p, shape, rows, torch.arange(*kv, dtype=torch.int32), None, [hazard])
