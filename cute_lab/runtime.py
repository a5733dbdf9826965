"""Which constants of a graph are captured numbers: trace again with other numbers and see which constants move.

Whatever follows from a captured number (`cap`, `1 / cap`, `window - 1`) becomes a run-time scalar, with Python's own promotion
rules, since each trace saw a Python number. A number whose change alters more than constants (a loop count, a power of two that
became a shift) stays a constant, and so does an integer divisor that the user only captured: dividing by a constant is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from cute_lab.errors import Loc
from cute_lab.ir import Graph, Node, Program, Scalar, node, toposort
from cute_lab.ops import OPS

Number = int | float
Retrace = Callable[[Mapping[str, Number], bool], Program | None]  # None: the mod fails with these values
Pairs = dict[tuple[Node, Node], list[Node]]  # (constant, what it became) -> the nodes that use it
SCALAR_DTYPES = ("i32", "f32")  # what FlashAttention-4 passes as aux_scalars


@dataclass(frozen=True)
class Lifted:
    program: Program
    fixed: Mapping[str, str]


def other_values(numbers: Mapping[str, Number]) -> dict[str, Number]:
    """Near-by values, each by a step of its own."""
    steps = enumerate(numbers.items(), 1)
    return {name: v + 2 * i + 1 if isinstance(v, int) else v * (1 + 2.0**-9 * i) + 2.0**-11 * i for i, (name, v) in steps}


def moved(base: Program, other: Program | None) -> Pairs | None:
    """The constants that differ; None where the graphs differ in more than constants."""
    if other is None:
        return None
    found: Pairs = {}
    graphs, others = base.graphs(), other.graphs()
    if [t.name for t in base.tables] != [t.name for t in other.tables]:
        return None
    for kind, graph in graphs.items():
        seen: set[tuple[Node, Node]] = set()
        stack = [(graph.output, others[kind].output)]
        while stack:
            a, b = stack.pop()
            if a is b or (a, b) in seen:
                continue
            seen.add((a, b))
            if a.is_const and b.is_const and a.dtype == b.dtype:
                found.setdefault((a, b), [])
                continue
            if (a.op, a.dtype, a.attr, len(a.args)) != (b.op, b.dtype, b.attr, len(b.args)) or a.is_const:
                return None
            for x, y in zip(a.args, b.args, strict=True):
                if x.is_const and y.is_const and x is not y and x.dtype == y.dtype:
                    found.setdefault((x, y), []).append(a)
                stack.append((x, y))
    return found


def lift(base: Program, numbers: Mapping[str, Number], explicit: Collection[str], retrace: Retrace) -> Lifted:
    others = other_values(numbers)
    fixed: dict[str, str] = {}
    specialise = not explicit  # a parameter that the user moves must not have shaped the graph by its present value
    pairs = moved(base, retrace(others, specialise))
    if pairs is None:
        for name in numbers:
            if moved(base, retrace({name: others[name]}, specialise)) is None:
                fixed[name] = "another value gives another graph"
        pairs = moved(base, retrace({n: v for n, v in others.items() if n not in fixed}, specialise))
        if pairs is None:
            return Lifted(base, dict.fromkeys(numbers, "the numbers shape the graph together"))
    divisors = {a for (a, _), users in pairs.items() if any(_is_divisor(u, a) for u in users)}
    if divisors and explicit:  # what follows from a named number moves with it: `window + 1` too
        by_hand = moved(base, retrace({n: others[n] for n in numbers if n in explicit and n not in fixed}, specialise))
        divisors -= {a for a, _ in by_hand or ()}
    chosen: dict[tuple[Node, Node], Scalar] = {}
    for a, b in pairs:
        name = _name(a, b, numbers, others, [s.name for s in chosen.values()])
        if a.dtype not in SCALAR_DTYPES:
            fixed.setdefault(name, f"{a.dtype} is no type of a run-time scalar")
        elif a in divisors:
            fixed.setdefault(name, "an integer division by a constant is cheaper; name it in params to move it at run time")
        else:
            chosen[a, b] = Scalar(name, a.dtype, a.attr)
    order = sorted(chosen, key=lambda key: chosen[key].name)
    index = {key: i for i, key in enumerate(order)}
    other = (
        retrace({n: v for n, v in others.items() if n not in fixed or n in [s.name for s in chosen.values()]}, specialise)
        if pairs
        else base
    )
    if other is None:
        return Lifted(base, dict.fromkeys(numbers, "the numbers shape the graph together"))
    graphs = {kind: _replace(g, other.graphs()[kind], index) for kind, g in base.graphs().items()}
    if any(g is None for g in graphs.values()):
        return Lifted(base, dict.fromkeys(numbers, "the numbers shape the graph together"))
    scalars = tuple(chosen[key] for key in order)
    return Lifted(Program(graphs.get("score"), graphs.get("score_bwd"), graphs.get("mask"), base.tables, scalars), fixed)


def _is_divisor(user: Node, operand: Node) -> bool:
    place = OPS[user.op].nonzero if user.op in OPS else None
    return place is not None and user.args[place] is operand


def _name(a: Node, b: Node, numbers: Mapping[str, Number], others: Mapping[str, Number], taken: Collection[str]) -> str:
    """The user's name, or one that says how the constant follows from it."""
    forms: list[tuple[str, Callable[[float], float]]] = [
        ("{}", lambda v: v),
        ("neg_{}", lambda v: -v),
        ("inv_{}", lambda v: 1 / v),
        ("{}_minus_1", lambda v: v - 1),
        ("{}_plus_1", lambda v: v + 1),
        ("half_{}", lambda v: v // 2),
        ("twice_{}", lambda v: 2 * v),
        ("{}_squared", lambda v: v * v),
    ]
    pairs = [(m, n) for m in numbers for n in numbers if m != n]
    signs: tuple[tuple[str, Callable[[float, float], float]], ...] = (
        ("minus", lambda x, y: x - y),
        ("plus", lambda x, y: x + y),
        ("times", lambda x, y: x * y),
    )
    for form, f in forms:
        for name, value in numbers.items():
            try:
                hit = math.isclose(f(value), a.attr, rel_tol=1e-12) and math.isclose(f(others[name]), b.attr, rel_tol=1e-12)
            except ZeroDivisionError:
                continue
            if hit:
                return _unique(form.format(name), taken)
    for word, g in signs:
        for m, n in pairs:
            if g(numbers[m], numbers[n]) == a.attr and g(others[m], others[n]) == b.attr:
                return _unique(f"{m}_{word}_{n}", taken)
    return _unique("number", taken)


def _unique(name: str, taken: Collection[str]) -> str:
    return name if name not in taken else next(f"{name}_{i}" for i in range(2, 9999) if f"{name}_{i}" not in taken)


def _replace(graph: Graph, other: Graph, index: Mapping[tuple[Node, Node], int]) -> Graph | None:
    """The graph with scalar leaves where the constants moved."""
    done: dict[tuple[Node, Node], Node] = {}
    origin: dict[Node, Loc] = dict(graph.origin)
    names = dict(graph.names)
    stack: list[tuple[Node, Node, bool]] = [(graph.output, other.output, False)]
    while stack:
        a, b, ready = stack.pop()
        if (a, b) in done:
            continue
        if (a, b) in index:
            done[a, b] = node("scalar", a.dtype, attr=index[a, b])
        elif a is b or a.is_const:
            done[a, b] = a
        elif not ready:
            if (a.op, a.dtype, len(a.args)) != (b.op, b.dtype, len(b.args)):
                return None
            stack.append((a, b, True))
            stack += [(x, y, False) for x, y in zip(a.args, b.args, strict=True)]
        else:
            new = node(a.op, a.dtype, tuple(done[x, y] for x, y in zip(a.args, b.args, strict=True)), a.attr)
            done[a, b] = new
            if a in origin:
                origin.setdefault(new, origin[a])
            if a in names:
                names.setdefault(new, names[a])
    result = done[graph.output, other.output]
    alive = set(toposort(result))
    return Graph(graph.kind, result, {n: o for n, o in origin.items() if n in alive}, {n: s for n, s in names.items() if n in alive})
