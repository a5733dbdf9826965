"""Rows (name, before -> after, why) that make the graph cheaper or smaller; each can be switched off by name.

`exact` rows keep every bit. The others stay within the float32 tolerance of 2e-6 and say so. `specialises` rows look at a
constant's value: they are off where the constant is a run-time parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from cute_lab.errors import Loc
from cute_lab.evaluate import Ranges, bounds
from cute_lab.ir import DTYPES, Graph, Node, const, node, toposort
from cute_lab.ops import OPS
from cute_lab.ops import interval as iv


@dataclass(frozen=True)
class Context:
    box: Ranges
    known: dict[Node, iv.Interval]

    def bound(self, n: Node) -> iv.Interval:
        return bounds(n, self.box, self.known)[n]


Rewrite = Callable[[Node, Context], Node | None]


@dataclass(frozen=True)
class Row:
    name: str
    ops: tuple[str, ...]
    change: Rewrite
    why: str
    exact: bool = True
    specialises: bool = False
    fast: bool = False


def _is(n: Node, value: float) -> bool:
    return n.is_const and n.attr == value and not isinstance(n.attr, bool)


def _power_of_two(n: Node) -> bool:
    return n.is_const and isinstance(n.attr, int) and not isinstance(n.attr, bool) and n.attr > 0 and n.attr & (n.attr - 1) == 0


def _identity(n: Node, _: Context) -> Node | None:
    a, b = n.args
    neutral = 1 if n.op in ("mul", "div") else 0
    if DTYPES[n.dtype].kind == "float" and n.op == "add":
        return None  # -0.0 + 0.0 is 0.0
    if _is(b, neutral) and not (n.op == "sub" and isinstance(b.attr, float) and math.copysign(1, b.attr) < 0):
        return a
    return b if n.op == "mul" and _is(a, 1) else None


def _integer_zero(n: Node, _: Context) -> Node | None:
    a, b = n.args
    if DTYPES[n.dtype].kind == "int":
        return b if _is(a, 0) else a if _is(b, 0) else None
    return None


def _reciprocal(n: Node, _: Context | None) -> Node | None:
    a, b = n.args
    if not b.is_const or not math.isfinite(b.attr) or b.attr == 0 or not 1e-30 < abs(b.attr) < 1e30:
        return None
    return OPS["mul"](a, const(1.0 / b.attr, n.dtype))


def _exact_reciprocal(n: Node, ctx: Context) -> Node | None:
    b = n.args[1]
    return _reciprocal(n, ctx) if b.is_const and math.isfinite(b.attr) and math.frexp(b.attr)[0] in (0.5, -0.5) else None


def _bools(n: Node, _: Context) -> Node | None:
    """and/or with a constant, a double negation."""
    if n.dtype != "bool":
        return None
    if n.op == "not":
        return n.args[0].args[0] if n.args[0].op == "not" else None
    for a, b in (n.args, n.args[::-1]):
        if b.is_const:
            neutral = n.op == "and"
            return a if bool(b.attr) is neutral else b
    return n.args[0] if n.args[0] is n.args[1] else None


def _compare_bool(n: Node, _: Context) -> Node | None:
    """p == True -> p; p == False -> not p."""
    for a, b in (n.args, n.args[::-1]):
        if a.dtype == "bool" and b.is_const:
            return a if bool(b.attr) is (n.op == "eq") else OPS["not"](a)
    return None


def _where(n: Node, _: Context) -> Node | None:
    p, a, b = n.args
    if p.is_const:
        return a if p.attr else b
    if a is b:
        return a
    if n.dtype == "bool" and a.is_const and b.is_const:
        return p if a.attr else OPS["not"](p)
    return OPS["where"](p.args[0], b, a) if p.op == "not" else None


def _known(n: Node, ctx: Context) -> Node | None:
    """A comparison that the positions alone decide."""
    found = ctx.bound(n)
    return const(bool(found.lo), "bool") if found.known else None


def _mod_mask(n: Node, _: Context) -> Node | None:
    a, b = n.args
    return OPS["and"](a, const(b.attr - 1, n.dtype)) if _power_of_two(b) else None


def _div_shift(n: Node, _: Context) -> Node | None:
    a, b = n.args
    return OPS["shr"](a, const(b.attr.bit_length() - 1, n.dtype)) if _power_of_two(b) else None


def _mod_rem(n: Node, ctx: Context) -> Node | None:
    a, b = (ctx.bound(x) for x in n.args)
    return OPS["rem"](*n.args) if a.lo >= 0 and b.lo > 0 else None


def _casts(n: Node, _: Context) -> Node | None:
    """A widening cast on the way to another type drops out: i16 -> i32 -> f32, bool -> i32 -> f32."""
    (inner,) = n.args
    if inner.op != "cast":
        return None
    source, middle = (DTYPES[d] for d in (inner.args[0].dtype, inner.dtype))
    widens = (source.kind == "bool" and middle.kind == "int") or (
        source.kind == middle.kind == "int" and source.bits < middle.bits and source.name[0] != "u"
    )
    widens = widens or (source.kind == middle.kind == "float" and source.bits < middle.bits)
    if not widens:
        return None
    return inner.args[0] if source.name == n.dtype else node("cast", n.dtype, (inner.args[0],))


ROWS = (
    Row("identity", ("mul", "div", "sub", "add"), _identity, "x*1, x/1, x-0 -> x", specialises=True),
    Row("integer zero", ("add",), _integer_zero, "i+0 -> i", specialises=True),
    Row(
        "divide by power of two",
        ("div",),
        _exact_reciprocal,
        "x/8 -> x*0.125: a division is 8 instructions and a branch on the GPU",
        specialises=True,
    ),
    Row("divide by constant", ("div",), _reciprocal, "x/c -> x*(1/c): one rounding more, 1 ulp; under fast_math", exact=False, fast=True),
    Row("bool constants", ("and", "or", "not"), _bools, "p & True -> p, ~~p -> p"),
    Row("bool compare", ("eq", "ne"), _compare_bool, "p != False -> p"),
    Row("where", ("where",), _where, "where(True, a, b) -> a, where(p, x, x) -> x, where(~p, a, b) -> where(p, b, a)"),
    Row("decided", ("lt", "le", "gt", "ge", "eq", "ne"), _known, "q_idx >= 0 -> True: the positions decide it", specialises=True),
    Row("mod power of two", ("mod",), _mod_mask, "i % 64 -> i & 63: one instruction, also for negative i", specialises=True),
    Row("divide power of two", ("floordiv",), _div_shift, "i // 64 -> i >> 6: an arithmetic shift floors", specialises=True),
    Row("mod of naturals", ("mod",), _mod_rem, "i % n with i >= 0, n > 0 -> the C remainder, without the sign fix"),
    Row("cast of cast", ("cast",), _casts, "widening on the way is free"),
)


# Their relative error is at most that of their operand: an ulp on the way in is an ulp on the way out.
KEEPS_ERROR = frozenset(("mul", "div", "neg", "abs", "sqrt", "rsqrt"))
ABSORBS_ERROR = frozenset(("tanh",))  # |x tanh'(x)| <= |tanh(x)|, and its own text is an ulp off anyway, whatever follows


def _factors(n: Node, depth: int = 8) -> list[Node]:
    if n.op != "mul" or depth == 0:
        return [n]
    return [f for a in n.args for f in _factors(a, depth - 1)]


def _one_constant(n: Node) -> Node | None:
    """(a*20) * b * 0.05 -> a*b: the constants of a product are multiplied once, as torch's gradients leave them apart."""
    factors = _factors(n)
    constants = [float(f.attr) for f in factors if f.is_const]
    if len(constants) < 2 or any(not 1e-6 < abs(c) < 1e6 for c in constants):
        return None
    product = float(np.float32(math.prod(constants)))
    out: Node | None = None
    for f in factors:
        if not f.is_const:
            out = f if out is None else OPS["mul"](out, f)
    if out is None:
        return None
    return out if product == 1.0 else OPS["mul"](out, const(product, n.dtype))


def reciprocals(graph: Graph, merge: bool = True) -> Graph:
    """x/c -> x*(1/c) where every path to the result keeps relative errors: one ulp there, eight instructions and a branch less.

    torch's own CUDA kernels do the same for every division by a number. Where a sum, a comparison or an exponential follows, the ulp
    could grow, and the division stays (`fast_math` takes all of them). `merge` looks at the constants of products: it is off where one
    may be a run-time parameter, which can pass through 0 or cancel another.
    """
    nodes = graph.nodes()
    users: dict[Node, list[Node]] = {}
    for n in nodes:
        for a in n.args:
            users.setdefault(a, []).append(n)
    safe: set[Node] = set()
    for n in reversed(nodes):
        if n.dtype == "f32" and all(u.op in ABSORBS_ERROR or (u in safe and u.op in KEEPS_ERROR) for u in users.get(n, [])):
            safe.add(n)
    done: dict[Node, Node] = {}
    for n in nodes:
        args = tuple(done[a] for a in n.args)
        new = n if args == n.args else _rebuild(n, args)
        if n in safe and new.op == "div":
            new = _reciprocal(new, None) or new
        if merge and n in safe and new.op == "mul":
            new = _one_constant(new) or new
        done[n] = new
    origin = {done[n]: loc for n, loc in graph.origin.items() if n in done}
    names = {done[n]: name for n, name in graph.names.items() if n in done}
    return Graph(graph.kind, done[graph.output], origin, names)


def rewrite(graph: Graph, box: Ranges, off: Collection[str] = (), specialise: bool = True, fast: bool = False) -> Graph:
    """Applies the rows bottom up until none fits; places and names follow the nodes that take over."""
    rows = [r for r in ROWS if r.name not in off and (fast or not r.fast) and (specialise or not r.specialises)]
    ctx = Context(box, {})
    done: dict[Node, Node] = {}
    origin: dict[Node, Loc] = dict(graph.origin)
    names = dict(graph.names)
    for n in toposort(graph.output):
        args = tuple(done[a] for a in n.args)
        new = n if args == n.args else _rebuild(n, args)
        for _ in range(8):
            changed = next((r for row in rows if new.op in row.ops and (r := row.change(new, ctx)) is not None), None)
            if changed is None:
                break
            new = changed
        done[n] = new
        if new is not n:
            for inner in toposort(new):
                if n in origin and inner.op not in ("input", "const"):
                    origin.setdefault(inner, origin[n])
            if n in names and new.op not in ("input", "const"):
                names.setdefault(new, names[n])
    found = Graph(graph.kind, done[graph.output], origin, names)
    return found if "reciprocals" in off else reciprocals(found, merge=specialise)


def _rebuild(n: Node, args: tuple[Node, ...]) -> Node:
    if n.op in OPS:
        return OPS[n.op](*args)
    if n.op == "cast" and args[0].is_const:
        import torch

        source, target = (getattr(torch, DTYPES[d].torch) for d in (args[0].dtype, n.dtype))
        return const(torch.tensor(args[0].attr, dtype=source).to(target).item(), n.dtype)
    return node(n.op, n.dtype, args, n.attr)
