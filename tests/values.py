"""Operand values by dtype, with the edges that break lowerings: signs, zeros, infinities, NaN, powers of two, large integers."""

from __future__ import annotations

import itertools

import torch

from cute_lab.ir import DTYPES, Node, Table, node

INF, NAN = float("inf"), float("nan")
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    7.25,
    -7.25,
    0.1,
    -0.3,
    1e-3,
    20.0,
    -20.0,
    88.0,
    1e4,
    -1e4,
    1e-8,
    INF,
    -INF,
    NAN,
]
INTS = [0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 8, 15, 16, 31, 63, -64, 64, 100, 127, -128, 1000, -1001, 12345, 2**30]
VALUES = {
    "bool": [False, True],
    "i32": INTS,
    "i64": [*INTS, 2**40, -(2**40) - 3, 7_776_000_000],
    "f32": FLOATS,
    "f64": [*FLOATS, 1e100],
}


def operands(dtypes: tuple[str, ...], nonzero: int | None = None, count: int = 1024) -> list[torch.Tensor]:
    """Columns of all combinations (a seeded choice where there are more than `count`), a multiple of 4 long."""
    lists = [[v for v in VALUES[d] if not (k == nonzero and v == 0)] for k, d in enumerate(dtypes)]
    rows = list(itertools.product(*lists))
    if len(rows) > count:
        pick = torch.randperm(len(rows), generator=torch.Generator().manual_seed(len(rows)))[:count].tolist()
        rows = [rows[i] for i in pick]
    rows += [rows[0]] * (-len(rows) % 4)
    return [torch.tensor([r[k] for r in rows], dtype=getattr(torch, DTYPES[d].torch)) for k, d in enumerate(dtypes)]


def table(name: str, x: torch.Tensor) -> Table:
    stored = x.view({torch.bool: torch.uint8, torch.bfloat16: torch.int16}.get(x.dtype, x.dtype))
    return Table(name, stored, x, (0,), next(d.name for d in DTYPES.values() if d.torch == str(x.dtype).removeprefix("torch.")))


def read(index: int, t: Table) -> Node:
    return node("gather", t.dtype, (node("input", "i32", attr="kv_idx"),), index)


def same(got: torch.Tensor, expected: torch.Tensor, rtol: float) -> torch.Tensor:
    """Where two results agree: equal, both NaN, or within rtol of max(1, |expected|) for floats."""
    if not expected.is_floating_point():
        return got == expected
    a, b = got.double(), expected.double()
    close = (a - b).abs() <= rtol * b.abs().clamp(min=1.0)
    return (a == b) | (a.isnan() & b.isnan()) | (close & b.isfinite() & a.isfinite())
