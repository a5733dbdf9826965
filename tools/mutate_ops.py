"""Proves that the tests of the op table bite: every rule of every op is flipped to a near miss, and a test must fail.

    python tools/mutate_ops.py [op ...]

One mutant at a time replaces one field of one record (text, approximate text, meaning, bound, promotion, dtype rule, nonzero) and
runs the checks of tests/test_ops.py and tests/test_lowering.py that walk that record. A mutant that survives is printed; the exit
status is the number of survivors. About 4 minutes.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
warnings.simplefilter("ignore")

import numpy as np
import torch

import test_lowering
import test_ops
from cute_lab import ops
from cute_lab.ops import OPS, Op
from cute_lab.ops import interval as iv


def texts(op: Op) -> Iterator[tuple[str, Any]]:
    """Near misses of the text: operands swapped, a constant added, the result negated."""
    plain = op.cute if isinstance(op.cute, str) else None
    for kind in op.kinds if plain is None else (None,):
        text: str = plain if plain is not None else op.cute[kind]  # type: ignore[index]
        swapped = text.replace("{0}", "{9}").replace("{1}", "{0}").replace("{9}", "{1}")
        boolean = op.result == "bool" or kind == "bool" or op.kinds[0] == "bool"
        changed = {"swap": swapped} if op.arity == 2 and op.name not in SYMMETRIC and kind != "bool" else {}
        changed["not"] = f"({text} == False)" if boolean and (kind == "bool" or op.result == "bool") else f"({text} + 1)"
        for name, new in changed.items():
            yield f"text {kind or ''} {name}", new if plain is not None else {**op.cute, kind: new}  # type: ignore[dict-item]


SYMMETRIC = {"add", "mul", "eq", "ne", "and", "or", "xor", "minimum", "maximum"}


def bounds(op: Op) -> Iterator[tuple[str, Any]]:
    """A bound one step too narrow at either end, one that forgets NaN, and one that knows nothing."""

    def narrow(side: int) -> Callable[..., iv.Interval]:
        def bound(dtype: str, *args: iv.Interval) -> iv.Interval:
            found = op.bound(dtype, *args)
            middle = np.where(np.isfinite(found.lo) & np.isfinite(found.hi), (np.asarray(found.lo) + found.hi) / 2, 0.0)
            return iv.Interval(middle, found.hi, found.nan) if side == 0 else iv.Interval(found.lo, middle, found.nan)

        return bound

    yield "bound too high", narrow(0)
    yield "bound too low", narrow(1)
    if op.name not in test_ops.LOOSE:
        yield "bound unknown", iv.unknown
    if "float" in op.kinds and op.result == "same" and op.name not in ("copysign",):
        yield "bound forgets NaN", lambda dtype, *args: op.bound(dtype, *args)._replace(nan=False)


def promotions(op: Op) -> Iterator[tuple[str, Any]]:
    for overload, how in op.aten.items():
        other = {"same": "float", "float": "same", "compare": "same", "logical": "same"}[how]
        if op.kinds == ("float",) and how == "same" and overload.split(".")[0] in ("floor", "ceil", "trunc", "round"):
            continue  # a rule of its own takes these
        yield f"promotion of {overload}", {**op.aten, overload: other}


def mutants(op: Op) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, new in texts(op):
        yield name, {"cute": new}
    for name, new in bounds(op):
        yield name, {"bound": new}
    for name, new in promotions(op):
        yield name, {"aten": new}
    yield (
        "meaning",
        {
            "ref": (lambda *a: ~op.ref(*a))
            if op.result == "bool"
            else lambda *a: op.ref(*a) + 1 if a[-1].dtype != torch.bool else ~op.ref(*a)
        },
    )
    yield "dtype rule", {"result": "same" if op.result == "bool" else "bool"}
    if op.nonzero is not None:
        yield "nonzero", {"nonzero": None}


def killed(op: Op, change: dict[str, Any]) -> str:
    """The first check that fails for this mutant; empty if it survives."""
    mutant = dataclasses.replace(op, **change)
    rows = [(mutant, d) for k in mutant.kinds for d in test_ops.WIDTHS[k]]
    saved = dict(OPS), dict(ops.ATEN), test_ops.CASES
    everything: dict[str, Any] = OPS  # type: ignore[assignment]
    everything[op.name] = mutant
    for overload, how in mutant.aten.items():
        ops.ATEN[overload] = (mutant, how)  # type: ignore[index]
    test_ops.CASES = rows
    checks: list[tuple[str, Callable[[], None]]] = []
    if "aten" not in change:
        if "bound" not in change:
            checks.append(("text", lambda: test_ops.test_text_on_the_host_is_the_meaning(4)))
        for row in rows:
            checks.append(("bound", lambda row=row: test_ops.test_bound_holds(*row)))  # type: ignore[misc]
        if op.name not in test_ops.LOOSE:
            checks.append(("tight", lambda: test_ops.test_bound_is_tight_at_a_point(mutant)))
        checks.append(("compare", test_ops.test_a_comparison_decides_what_it_can))
    for overload in mutant.aten:
        checks.append(("lowering", lambda overload=overload: test_lowering.test_overload_lowers_as_torch_computes(overload)))  # type: ignore[misc]
    try:
        if "nonzero" in change:
            test_ops.operands(("i32", "i32"), mutant.nonzero)
            return "nonzero" if any((c == 0).any() for c in test_ops.operands(("i32", "i32"), mutant.nonzero)[1:]) else ""
        for name, check in checks:
            try:
                check()
            except Exception:
                return name
        return ""
    finally:
        everything.update(saved[0])
        ops.ATEN.clear()  # type: ignore[attr-defined]
        ops.ATEN.update(saved[1])  # type: ignore[attr-defined]
        test_ops.CASES = saved[2]


def in_child(op: Op, change: dict[str, Any]) -> str:
    """A mutant may divide by zero or read anywhere: a child that dies is a test that fails."""
    pid = os.fork()
    if pid == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        os._exit(1 if killed(op, change) else 0)
    status = os.waitpid(pid, 0)[1]
    return "a check" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1 else "a signal" if os.WIFSIGNALED(status) else ""


def main() -> int:
    chosen = sys.argv[1:] or list(OPS)
    survivors, count = [], 0
    for name in chosen:
        for what, change in mutants(OPS[name]):
            count += 1
            by = in_child(OPS[name], change)
            if not by:
                survivors.append(f"{name}: {what}")
                print("SURVIVES", survivors[-1], flush=True)
    print(f"{count} mutants of {len(chosen)} ops, {count - len(survivors)} killed, {len(survivors)} survive")
    return len(survivors)


if __name__ == "__main__":
    raise SystemExit(main())
