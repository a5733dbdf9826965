"""Every aten overload that lowers by table or formula, on every pair of dtypes: dtype and value as torch's own, casts included."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

from cute_lab.capture import Captured
from cute_lab.evaluate import Inputs, evaluate
from cute_lab.formulas import FORMULAS
from cute_lab.ir import FROM_TORCH, Node
from cute_lab.ops import ATEN
from cute_lab.record import Shape
from cute_lab.trace import Session
from cute_lab.tracer import Tracer
from values import same

N = 24
INF, NAN = float("inf"), float("nan")
COLUMNS = {
    torch.float32: [0.5, -0.5, 1.0, 2.0, -3.0, 0.25, 7.5, -7.5, INF, -INF, NAN, 0.0],
    torch.float64: [0.5, -0.5, 1.0, 2.0, -3.0, 0.25, 7.5, -7.5, 1e30, 0.1, NAN, 0.0],
    torch.float16: [0.5, -0.5, 1.0, 2.0, -3.0, 0.25, 7.5, -7.5, 0.1, 100.0, NAN, 0.0],
    torch.bfloat16: [0.5, -0.5, 1.0, 2.0, -3.0, 0.25, 7.5, -7.5, 0.1, 100.0, NAN, 0.0],
    torch.int32: [1, 2, 3, -4, 5, 7, -8, 16, 31, 100, 2**20, -1],
    torch.int64: [1, 2, 3, -4, 5, 7, -8, 16, 31, 100, 2**40, -1],
    torch.int16: [1, 2, 3, -4, 5, 7, -8, 16, 31, 100, 12345, -1],
    torch.uint8: [1, 2, 3, 4, 5, 7, 8, 16, 31, 100, 200, 255],
    torch.bool: [True, False, True, True],
}
NUMBERS = [2, 3.5, True]
ROWS = {**ATEN, **FORMULAS}
# Beyond 4 ulp: what the formula or torch's own half path documents. float16 results round at 2**-11, bfloat16 at 2**-8.
ROUNDING = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float64: 1e-9, torch.float32: 2e-5}


def column(dtype: torch.dtype, shift: int) -> torch.Tensor:
    values = COLUMNS[dtype]
    return torch.tensor([values[(i * (1 + shift) + shift) % len(values)] for i in range(N)], dtype=dtype)


def lower(function: object, *operands: object) -> tuple[Node, list, torch.dtype]:
    """The node that function(x[kv], y[kv]) lowers to, its tables, and the dtype that torch gives."""
    names = tuple((f"t{i}", x) for i, x in enumerate(operands) if isinstance(x, torch.Tensor))
    session = Session(Shape(1, 1, 1, N, N, 64, "bf16"))
    t = Tracer(Captured({}, names, frozenset()), session.tables, session.box)
    kv = t.add_input("kv_idx", torch.int32)
    with t, TransformGetItemToIndex():
        out = function(*(x[kv] if isinstance(x, torch.Tensor) else x for x in operands))  # type: ignore[operator]
    return t.nodes(out)[()], session.tables.rows, out.dtype


def combinations(overload: str) -> list[tuple]:
    """Operand kinds that the overload takes: tensors of all dtypes, and Python numbers where its schema has them."""
    name, variant = overload.split(".")
    schema = getattr(getattr(torch.ops.aten, name), variant)._schema
    kinds = [str(a.type) for a in schema.arguments if a.name != "alpha" and not a.kwarg_only]
    pools = [list(COLUMNS) if k == "Tensor" else NUMBERS for k in kinds]
    return list(itertools.product(*pools))


@pytest.mark.parametrize("overload", sorted(ROWS))
def test_overload_lowers_as_torch_computes(overload: str) -> None:
    name, variant = overload.split(".")
    function = getattr(getattr(torch.ops.aten, name), variant)
    tried = 0
    for kinds in combinations(overload):
        operands = [column(k, i) if isinstance(k, torch.dtype) else k for i, k in enumerate(kinds)]
        try:
            expected = function(*operands)
        except (RuntimeError, TypeError, ZeroDivisionError, NotImplementedError):
            continue  # torch itself does not take these
        if expected.dtype not in COLUMNS:
            continue  # complex powers
        node, tables, dtype = lower(function, *operands)
        assert dtype == expected.dtype and node.dtype == FROM_TORCH[str(expected.dtype).removeprefix("torch.")], (overload, kinds)
        got = evaluate(node, Inputs({"kv_idx": torch.arange(N, dtype=torch.int32)}, tables)).expand(N)
        right = same(got, expected, ROUNDING.get(expected.dtype, 0.0))
        assert right.all(), f"{overload}{kinds}: {got[~right][:4].tolist()} != {expected[~right][:4].tolist()}"
        tried += 1
    assert tried, f"{overload}: torch takes none of the operands"


def test_casts_reach_every_dtype_from_every_dtype() -> None:
    for source, target in itertools.product(COLUMNS, COLUMNS):
        x = column(source, 1)
        if source.is_floating_point and not target.is_floating_point and target != torch.bool:
            x = x.nan_to_num(1.0, 3.0, -3.0).clamp(0, 100)  # outside of the target's range a cast is undefined in torch
        node, tables, dtype = lower(lambda v, target=target: v.to(target), x)
        got = evaluate(node, Inputs({"kv_idx": torch.arange(N, dtype=torch.int32)}, tables)).expand(N)
        assert dtype == target and same(got, x.to(target), 0.0).all(), (source, target)
