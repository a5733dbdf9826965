"""Every record of the op table: its text on the host is its torch meaning, its bound holds, its aten overloads lead back to it.

That these tests bite was proved with tools/mutate_ops.py: it replaces each field of each record by a near miss, one at a time, and
runs this file; every mutant is caught.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from cute_lab import host
from cute_lab.evaluate import Inputs, evaluate
from cute_lab.ir import Graph
from cute_lab.ops import ATEN, OPS, Op
from cute_lab.ops import interval as iv
from values import operands, read, same, table

WIDTHS = {"bool": ("bool",), "int": ("i32", "i64"), "float": ("f32", "f64")}
CASES = [(op, dtype) for op in OPS.values() for kind in op.kinds for dtype in WIDTHS[kind]]


def dtypes_of(op: Op, dtype: str) -> tuple[str, ...]:
    return ("bool",) * op.pick + (dtype,) * (op.arity - op.pick)


def in_domain(op: Op, columns: list[torch.Tensor]) -> list[torch.Tensor]:
    """Shift counts outside 0..bits-1 are lowering's business (formulas.shift_left guards them)."""
    if op.name in ("shl", "shr"):
        keep = (columns[1] >= 0) & (columns[1] < columns[1].element_size() * 8)
        columns = [c[keep] for c in columns]
        columns = [torch.cat([c, c[:1].expand(-len(c) % 4)]) for c in columns]
    return columns


@pytest.mark.parametrize("lanes", [1, 4])
def test_text_on_the_host_is_the_meaning(lanes: int) -> None:
    """All records in two compilations: one module, one function per record and dtype."""
    graphs, tables, expected, names = [], [], [], []
    length = 1024
    for op, dtype in CASES:
        columns = in_domain(op, operands(dtypes_of(op, dtype), op.nonzero))
        columns = [c.repeat(-(-length // len(c)))[:length].contiguous() for c in columns]
        mine = [table(f"t{len(tables) + k}", c) for k, c in enumerate(columns)]
        args = tuple(read(len(tables) + k, t) for k, t in enumerate(mine))
        tables += mine
        graphs.append(Graph("score", op(*args)))
        expected.append(op.ref(*columns))
        names.append((op, dtype))
    kv = torch.arange(length, dtype=torch.int32)
    got = host.evaluate_all(graphs, tables, (), torch.zeros(length), kv, lanes)
    bad = []
    for (op, dtype), g, e in zip(names, got, expected, strict=True):
        assert g.dtype == e.dtype, (op.name, dtype, g.dtype, e.dtype)
        wrong = ~same(g, e, op.rtol)
        if wrong.any():
            at = int(wrong.nonzero()[0])
            bad.append(f"{op.name}[{dtype}] at {at}: got {g[at].item()}, torch {e[at].item()} ({int(wrong.sum())} of {length})")
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=lambda x: x.name if isinstance(x, Op) else x)
def test_bound_holds(op: Op, dtype: str) -> None:
    """The bound of random boxes contains every value in them, and a point's bound is tight where the op is exact."""
    g = torch.Generator().manual_seed(7)
    columns = in_domain(op, operands(dtypes_of(op, dtype), op.nonzero, 512))
    for _ in range(40):
        picks = torch.randint(0, len(columns[0]), (12,), generator=g)
        box = [interval_of(c[picks]) for c in columns]
        if op.nonzero is not None and box[op.nonzero].lo <= 0 <= box[op.nonzero].hi:
            box[op.nonzero] = interval_of(columns[op.nonzero][picks][:1])
            values = [c[picks][:1].expand(12) if k == op.nonzero else c[picks] for k, c in enumerate(columns)]
        else:
            values = [c[picks] for c in columns]
        grid = (
            [torch.stack(list(v)) for v in zip(*itertools.product(*(v.unbind() for v in values)), strict=True)] if op.arity < 3 else values
        )
        result = op.ref(*grid)
        bound = op.bound("bool" if op.result == "bool" else dtype, *box)
        assert_inside(op, bound, result, box)


def interval_of(x: torch.Tensor) -> iv.Interval:
    wide = x.double()
    real = wide[~wide.isnan()]
    if real.numel() == 0:
        return iv.Interval(-np.inf, np.inf, True)
    return iv.Interval(real.min().item(), real.max().item(), bool(wide.isnan().any()))


def assert_inside(op: Op, bound: iv.Interval, result: torch.Tensor, box: list[iv.Interval]) -> None:
    values = result.double()
    if values.isnan().any():
        assert bool(np.any(bound.nan)), f"{op.name}: NaN in {box}, bound {bound}"
    real = values[~values.isnan()]
    inside = (real >= float(bound.lo)) & (real <= float(bound.hi))
    assert inside.all(), f"{op.name}: {real[~inside][:3].tolist()} outside {bound} for {box}"


POINTS = {"bool": [1.0], "int": [6.0, -7.0, 3.0], "float": [0.4, -0.7, 2.25]}
LOOSE = {"sin", "cos", "tan", "atan2", "copysign", "fmod", "rem", "or", "xor", "and", "isinf"}  # by design not tight at a point


@pytest.mark.parametrize("op", [o for o in OPS.values() if o.name not in LOOSE], ids=lambda o: o.name)
def test_bound_is_tight_at_a_point(op: Op) -> None:
    kind = op.kinds[-1]
    dtype = WIDTHS[kind][0]
    for values in itertools.product(POINTS[kind], repeat=op.arity):
        given = [abs(v) if op.name in ("log", "log2", "log10", "sqrt", "rsqrt", "pow", "shl", "shr") else v for v in values]
        if op.name in ("asin", "acos"):
            given = [v / 3 for v in given]
        box = [iv.Interval(float(k < 1), float(k < 1)) if k < op.pick else iv.Interval(v, v) for k, v in enumerate(given)]
        args = [
            torch.tensor(
                b.lo, dtype=torch.bool if k < op.pick else getattr(torch, {"i32": "int32", "f32": "float32", "bool": "bool"}[dtype])
            )
            for k, b in enumerate(box)
        ]
        box = [iv.Interval(float(a), float(a)) for a in args]
        exact = float(op.ref(*args))
        bound = op.bound("bool" if op.result == "bool" else dtype, *box)
        slack = 1e-3 * max(1.0, abs(exact)) + (1.0 if op.name in ("floordiv",) and kind == "float" else 0.0)
        assert bound.lo >= exact - slack and bound.hi <= exact + slack, f"{op.name}{given}: {bound}, exact {exact}"


def test_a_comparison_decides_what_it_can() -> None:
    low, high = iv.Interval(0.0, 3.0), iv.Interval(3.0, 9.0)
    far = iv.Interval(4.0, 9.0)
    table_ = {"lt": (low, far), "le": (low, high), "gt": (far, low), "ge": (high, low), "ne": (low, far)}
    for name, (a, b) in table_.items():
        assert OPS[name].bound("bool", a, b)[:2] == (1.0, 1.0), name
    opposite = {"lt": (high, low), "le": (far, low), "gt": (low, high), "ge": (low, far), "eq": (low, far)}
    for name, (a, b) in opposite.items():
        assert OPS[name].bound("bool", a, b)[:2] == (0.0, 0.0), name
    maybe = {"lt": (low, high), "gt": (high, low), "eq": (low, high), "ne": (low, high), "le": (high, low), "ge": (low, high)}
    for name, (a, b) in maybe.items():
        assert OPS[name].bound("bool", a, b)[:2] == (0.0, 1.0), name


@pytest.mark.parametrize("overload", sorted(ATEN))
def test_an_overload_is_its_op(overload: str) -> None:
    """torch's overload and our op agree on example operands: a swapped row of `aten` shows here."""
    op, how = ATEN[overload]
    name, variant = overload.split(".")
    packet = getattr(torch.ops.aten, name)
    kinds = ("bool", "int", "float") if how == "logical" else op.kinds
    for kind in kinds if how != "logical" else ("bool",):
        dtype = WIDTHS[kind][0]
        columns = operands((dtype,) * op.arity, op.nonzero, 64)
        args = [c if i == 0 or variant != "Scalar" else None for i, c in enumerate(columns)]
        if variant == "Scalar":
            scalar = next(v for v in columns[1].tolist() if v == v and v not in (0, float("inf"), float("-inf")))
            args[1] = scalar
            expected_args = [columns[0], torch.full_like(columns[0], scalar)]
        else:
            expected_args = columns
        got = getattr(packet, variant)(*args)
        expected = op.ref(*expected_args)
        assert same(got, expected, 1e-6).all(), overload


def test_evaluator_and_table_agree() -> None:
    x, y = operands(("f32", "f32"))
    tables = [table("x", x), table("y", y)]
    graph = OPS["add"](OPS["mul"](read(0, tables[0]), read(1, tables[1])), read(0, tables[0]))
    got = evaluate(graph, Inputs({"kv_idx": torch.arange(len(x), dtype=torch.int32)}, tables))
    assert same(got, x * y + x, 0.0).all()
