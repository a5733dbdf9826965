"""A mask as the browser computes it, cell by cell, is torch's: every op, random graphs, and the masks of the corpus."""

from __future__ import annotations

import base64
import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from corpus import cases
from cute_lab.browser_mask import cell_code
from cute_lab.cell_code import CellCode
from cute_lab.codec import decode, encode
from cute_lab.evaluate import Inputs, evaluate
from cute_lab.ir import DTYPES, Graph, Node, Program, Table, const, node, toposort
from cute_lab.lab import attention
from cute_lab.ops import OPS, Op
from random_ir import SCALARS, TABLES, graph
from test_ops import CASES, dtypes_of, in_domain
from typescript import bundled, tool
from values import operands, read, table

RUN = """
const { CellPlan } = require(process.argv[1]);
const jobs = JSON.parse(require('fs').readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(jobs.map(({ code, requests }) => {
  const plan = CellPlan.of(code);
  return plan && requests.map(r => { const cells = plan.cells(r); return cells && Buffer.from(cells).toString('base64'); });
})));
"""
NOT_HERE = {  # a browser's own functions round otherwise than torch's
    *("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "sigmoid", "pow"),
}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundled("mask/cells.ts", tmp_path_factory.mktemp("cells"))


def browser(script: Path, jobs: list[tuple[CellCode, list[dict[str, int]]]]) -> list[Any]:
    """Per job None, or per request its cells as bool [rows, columns], or None."""
    given = json.dumps([{"code": encode(code), "requests": requests} for code, requests in jobs], allow_nan=False)
    done = subprocess.run([tool("node"), "-e", RUN, script], input=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    return [
        cells and [None if c is None else matrix(c, r["rows"], r["columns"]) for c, r in zip(cells, requests, strict=True)]
        for cells, (_, requests) in zip(found, jobs, strict=True)
    ]


def matrix(cells: str, rows: int, columns: int) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(cells)), dtype=torch.uint8).view(rows, columns).bool()


def request(rows: int, columns: int, q: int = 0, kv: int = 0, step: int = 1, b: int = 0, h: int = 0) -> dict[str, int]:
    return {"b": b, "h": h, "q": q, "kv": kv, "rows": rows, "columns": columns, "step": step}


def equal(value: Node, expected: Node) -> Node:
    """Equal, or both NaN."""
    found = OPS["eq"](value, expected)
    if DTYPES[value.dtype].kind != "float":
        return found
    return OPS["or"](found, OPS["and"](OPS["isnan"](value), OPS["isnan"](expected)))


def as_mask(value: Node, tables: list[Table], expected: torch.Tensor, index: tuple[str, ...]) -> CellCode:
    wanted = dataclasses.replace(table("expected", expected), dims=tuple(range(expected.dim())))
    there = node("gather", wanted.dtype, tuple(node("input", "i32", attr=name) for name in index), len(tables))
    code = cell_code(Program(mask=Graph("mask", equal(value, there)), tables=(*tables, wanted), scalars=SCALARS))
    assert code is not None
    assert decode(CellCode, json.loads(json.dumps(encode(code), allow_nan=False)), "cells") == code
    return code


def one_op(op: Op, dtype: str) -> tuple[CellCode, int]:
    columns = in_domain(op, operands(dtypes_of(op, dtype), op.nonzero))
    tables = [table(f"t{k}", c) for k, c in enumerate(columns)]
    args = tuple(read(k, t) for k, t in enumerate(tables))
    return as_mask(op(*args), tables, op.ref(*columns), ("kv_idx",)), len(columns[0])


def test_every_op_is_torchs_or_left_to_the_kernel(script: Path) -> None:
    jobs = [one_op(op, dtype) for op, dtype in CASES]
    found = browser(script, [(code, [request(1, n)]) for code, n in jobs])
    assert {op.name for (op, _), cells in zip(CASES, found, strict=True) if cells is None} == NOT_HERE
    wrong = {
        f"{op.name}[{dtype}]": "null" if cells[0] is None else int((~cells[0]).sum())
        for (op, dtype), cells in zip(CASES, found, strict=True)
        if cells is not None and (cells[0] is None or not cells[0].all())
    }
    assert wrong == {}


@pytest.mark.parametrize("source", ["f32", "f64", "i32", "i64", "bool"])
def test_casts_and_stored_types(script: Path, source: str) -> None:
    """To every type, from numbers that it holds; floats beyond an integer type are nobody's contract."""
    jobs, names = [], []
    (column,) = operands((source,))
    g = torch.Generator().manual_seed(7)
    if source in ("f32", "f64"):
        size = 10.0 ** torch.randint(-9, 6, (2000,), generator=g)
        column = torch.cat([column, torch.randn(2000, generator=g, dtype=column.dtype) * size])
    for d in DTYPES.values():
        lo, hi = max(d.lo, -(2.0**53)), min(d.hi, 2.0**53)
        fits = d.kind != "int" or source not in ("f32", "f64")
        x = column if fits else column[(column.trunc() >= lo) & (column.trunc() <= hi)]
        t = table("x", x)
        value = node("cast", d.name, (read(0, t),)) if d.name != source else read(0, t)
        expected = x.to(getattr(torch, d.torch))
        wide = {"int": "i64", "float": "f64", "bool": "bool"}[d.kind]
        value = value if d.name == wide else node("cast", wide, (value,))
        jobs.append((as_mask(value, [t], expected.to(getattr(torch, DTYPES[wide].torch)), ("kv_idx",)), [request(1, len(x))]))
        names.append(d.name)
        stored = table("y", expected)  # and read from a table of this type
        read_back = read(0, stored) if d.name == wide else node("cast", wide, (read(0, stored),))
        jobs.append((as_mask(read_back, [stored], expected.to(getattr(torch, DTYPES[wide].torch)), ("kv_idx",)), [request(1, len(x))]))
        names.append(f"{d.name} table")
    for name, cells in zip(names, browser(script, jobs), strict=True):
        assert cells is not None and cells[0] is not None, name
        assert cells[0].all(), (name, (~cells[0]).nonzero()[:4].tolist())


def test_a_wrong_value_shows(script: Path) -> None:
    """The comparison above sees one last bit."""
    x = torch.linspace(-3, 3, 64)
    t = table("x", x)
    off = torch.nextafter(x + x, torch.full_like(x, 9.0))
    code = as_mask(OPS["add"](read(0, t), read(0, t)), [t], off, ("kv_idx",))
    assert not browser(script, [(code, [request(1, 64)])])[0][0].any()


def test_random_graphs_are_torchs(script: Path) -> None:
    rows, columns = 24, 256
    q, kv, zero = torch.arange(rows, dtype=torch.int32), torch.arange(columns, dtype=torch.int32), torch.zeros((), dtype=torch.int32)
    env = Inputs({"b": zero, "h": zero, "q_idx": q[:, None], "kv_idx": kv[None, :]}, TABLES, SCALARS)
    jobs = []
    for seed in range(3000):
        g = graph(seed)
        names = {n.op for n in g.nodes()}
        if names & NOT_HERE or any(n.attr == "score" for n in g.nodes() if n.op == "input"):
            continue
        expected = evaluate(g.output, env).expand(rows, columns).contiguous()
        jobs.append((as_mask(g.output, list(TABLES), expected, ("q_idx", "kv_idx")), [request(rows, columns)]))
    assert len(jobs) > 300
    found = browser(script, jobs)
    told = [cells[0] for cells in found if cells and cells[0] is not None]
    assert len(told) > 0.98 * len(jobs)  # a float beyond an integer type can't be told
    assert all(cells.all() for cells in told)


MASKS = [c for c in (make() for make in cases.ALL) if c.kind == "valid" and c.mask_mod is not None and not c.heavy]


def test_masks_of_the_corpus_are_torchs(script: Path) -> None:
    g = torch.Generator().manual_seed(1)
    jobs, expected, names = [], [], []
    for case in MASKS:
        shape = {name: getattr(case, name) for name in ("B", "H", "Hkv", "Sq", "Skv", "D", "dtype")}
        lab = attention(None, case.mask_mod, **shape, target="none")
        code = cell_code(lab.program)
        if code is None:
            continue
        asked = []
        for _ in range(4):
            rows, columns = min(case.Sq, 96), min(case.Skv, 80)
            pick = [int(torch.randint(0, n, (), generator=g)) for n in (case.B, case.H, case.Sq - rows + 1, case.Skv - columns + 1)]
            asked.append(request(rows, columns, pick[2], pick[3], 1, *pick[:2]))
        jobs.append((code, asked))
        names.append(case.name)
        expected.append([torch_cells(lab.program, r) for r in asked])
    told = 0
    for name, code, cells, wanted in zip(names, jobs, browser(script, jobs), expected, strict=True):
        ops = {n.op for n in code[0].nodes}
        assert cells is not None or ops & NOT_HERE, (name, ops)
        told += cells is not None
        for got, right in zip(cells or (), wanted, strict=bool(cells)):
            assert got is not None and torch.equal(got, right), name
    assert told > 0.9 * len(MASKS), (told, len(MASKS))


def torch_cells(program: Program, r: dict[str, int]) -> torch.Tensor:
    def along(first: str, count: str) -> torch.Tensor:
        return torch.arange(r[count], dtype=torch.int32) * r["step"] + r[first]

    places = {"b": torch.tensor(r["b"]), "h": torch.tensor(r["h"]), "q_idx": along("q", "rows")[:, None], "kv_idx": along("kv", "columns")}
    assert program.mask is not None
    inputs = Inputs({k: v.to(torch.int32) for k, v in places.items()}, program.tables, program.scalars)
    found: torch.Tensor = evaluate(program.mask.output, inputs)
    return found.expand(r["rows"], r["columns"])


def test_what_has_no_meaning_is_not_told(script: Path) -> None:
    kv = node("input", "i32", attr="kv_idx")
    t = table("t", torch.arange(8, dtype=torch.int32))
    beyond = Graph("mask", OPS["ge"](node("gather", "i32", (kv,), 0), const(0, "i32")))
    by_zero = Graph("mask", OPS["eq"](OPS["mod"](const(5, "i32"), kv), const(0, "i32")))
    codes = [cell_code(Program(mask=g, tables=(t,))) for g in (beyond, by_zero)]
    found = browser(script, [(code, [request(1, 8, kv=1), request(1, 7, kv=1)]) for code in codes if code])
    assert found[0][0] is None and found[0][1].all()
    assert [x is None for x in found[1]] == [False, False]
    assert browser(script, [(codes[1], [request(1, 4)])])[0][0] is None  # type: ignore[list-item]


def test_large_tensors_stay_at_home() -> None:
    kv = node("input", "i32", attr="kv_idx")
    noise = table("t", torch.randint(-(2**31), 2**31 - 1, (1 << 17,), dtype=torch.int32, generator=torch.Generator().manual_seed(2)))
    mask = Graph("mask", OPS["ge"](node("gather", "i32", (kv,), 0), const(0, "i32")))
    assert cell_code(Program(mask=mask, tables=(noise,))) is None
    assert cell_code(Program()) is None
    assert len(toposort(mask.output)) == 4
