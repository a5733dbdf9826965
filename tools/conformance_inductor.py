"""Ask Inductor's FLASH lowering about every valid open case of a corpus: does its CuTeDSL compute what eager torch does?

    python tools/conformance_inductor.py [cases.py] [--out FILE.json] [--only NAME ...]

Writes {case: {"score": status, "mask": status}}; a status is "ok", "wrong (max error x)", "refused: reason",
"crashes" (a signal or no answer in time) or "n/a" (the case has no such function). At most 96 rows (b, h, q) of
a case's grid are compared, all keys of each; a case too long for that by its `probes`.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib.util
import json
import math
import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from cute_lab.errors import CompileError
from cute_lab.inductor import Kind, evaluate_points, lower

ROWS = 96
LONG = 1 << 16
RELATIVE, ABSOLUTE = 1e-4, 1e-5


def load_corpus(path: Path) -> Any:
    """The corpus module: `ALL` is a list of functions, each returns a case."""
    spec = importlib.util.spec_from_file_location("corpus", path)
    assert spec is not None and spec.loader is not None, f"{path} is not a Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules["corpus"] = module
    spec.loader.exec_module(module)
    return module


def sample(case: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Points to compare: rows int64 [3, R] of (b, h, q) and the keys [R, K] of each row."""
    if max(case.Sq, case.Skv) > LONG:
        points = torch.tensor(case.probes)
        return points[:, :3].T.contiguous(), points[:, 3:]
    total = case.B * case.H * case.Sq
    drawn = torch.randperm(total, generator=torch.Generator().manual_seed(7))[: ROWS - 2]
    flat = torch.cat([torch.tensor([0, total - 1]), drawn])  # both corners, and some rows between
    rows = torch.stack(torch.unravel_index(flat, (case.B, case.H, case.Sq)))
    return rows, torch.arange(case.Skv).expand(len(flat), case.Skv)


def eager(mod: Callable[..., torch.Tensor], rows: torch.Tensor, keys: torch.Tensor, scores: torch.Tensor | None) -> torch.Tensor:
    """What FlexAttention's eager path computes: the user's function under nested vmap, over the keys, then over the rows."""
    score_dims: tuple[int, ...] = () if scores is None else (0,)
    over_keys = torch.vmap(mod, in_dims=(*score_dims, None, None, None, 0))
    over_rows = torch.vmap(over_keys, in_dims=(*score_dims, 0, 0, 0, 0))
    with TransformGetItemToIndex(), torch.no_grad():
        result: torch.Tensor = over_rows(*(() if scores is None else (scores,)), *rows, keys)
    return result.expand(keys.shape)


def compare(got: torch.Tensor, want: torch.Tensor, rounding: float) -> str:
    """`ok`, or the largest difference; equal infinities and NaNs differ by nothing, one-sided ones by inf.

    Eager rounds each operation on captured fp16 and bf16 values to their type, Inductor computes them in float32:
    `rounding`, the epsilon of the coarsest captured type, is allowed for that and is no error of either.
    """
    a, b = got.double(), want.double()
    same = (a == b) | (a.isnan() & b.isnan())
    error = torch.where(same, 0.0, (a - b).abs()).nan_to_num(nan=math.inf, posinf=math.inf)
    size = b.abs().nan_to_num(posinf=0.0, nan=0.0)
    allowed = ABSOLUTE + RELATIVE * size + rounding * size.clamp(min=1.0)
    return "ok" if bool((error <= allowed).all()) else f"wrong (max error {error.max().item():.3g})"


def status(mod: Callable[..., torch.Tensor], kind: Kind, case: Any) -> str:
    """Lower, run and compare one function of a case, in this process."""
    lowering = lower(mod, kind)
    if lowering.error:
        return f"refused: {lowering.error}"
    rows, keys = sample(case)
    scores = torch.randn(keys.shape, generator=torch.Generator().manual_seed(11)) * 3 if kind == "score" else None
    points = torch.cat([rows[:, :, None].expand(-1, -1, keys.shape[1]), keys[None]]).reshape(4, -1).to(torch.int32)
    try:
        got = evaluate_points(lowering, kind, points, scores)
    except CompileError as error:
        return f"refused: CuTeDSL: {error.summary.split(': ', 1)[1]}"
    halves = (torch.finfo(t.dtype).eps for t in lowering.aux if t.dtype in (torch.float16, torch.bfloat16))
    return compare(got.reshape(keys.shape), eager(mod, rows, keys, scores), max(halves, default=0.0))


def guarded(job: Callable[[], str], seconds: float) -> str:
    """Run `job` in a forked child: a SIGSEGV or a hang there is the answer "crashes" here."""

    def child(pipe: Connection) -> None:
        faulthandler.disable()  # the signal is the message
        torch.set_num_threads(1)
        pipe.send(job())

    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(send,))
    process.start()
    send.close()
    try:
        return str(receive.recv()) if receive.poll(seconds) else "crashes"
    except EOFError:  # the child died without a word
        process.join()
        if process.exitcode is not None and process.exitcode > 0:
            raise RuntimeError("the comparison itself failed; its traceback is above") from None
        return "crashes"
    finally:
        process.kill()
        process.join()


def conformance(corpus: Any, seconds: float = 60.0, only: tuple[str, ...] = ()) -> dict[str, dict[str, str]]:
    """The status of both functions of each valid open case."""
    table: dict[str, dict[str, str]] = {}
    for make in corpus.ALL:
        case = make(device="cpu")
        if case.kind != "valid" or case.split != "open" or (only and case.name not in only):
            continue
        row: dict[str, str] = {}
        mods: tuple[tuple[Kind, Any], ...] = (("score", case.score_mod), ("mask", case.mask_mod))
        for kind, mod in mods:
            row[kind] = guarded(lambda m=mod, k=kind, c=case: status(m, k, c), seconds) if mod else "n/a"  # type: ignore[misc]
        table[case.name] = row
        print(f"{case.name:30} {row['score'][:70]:24} {row['mask'][:70]}", flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", type=Path, default=ROOT.parent / "shared" / "cases" / "cases.py")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "conformance_inductor.json")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=60.0, help="time-out per function")
    options = parser.parse_args()
    print(f"{'case':30} {'score_mod':24} mask_mod")
    table = conformance(load_corpus(options.corpus), options.seconds, tuple(options.only))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(table, indent=1) + "\n")
    count = {
        name: sum(s.startswith(name) for row in table.values() for s in row.values()) for name in ("ok", "wrong", "refused", "crashes")
    }
    print(f"{len(table)} cases: {count} -> {options.out}")


if __name__ == "__main__":
    main()
