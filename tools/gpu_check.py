"""On a GPU: the generated functions of every corpus case inside FlashAttention-4, against torch in float32.

    python tools/gpu_check.py out.json [--jobs N] [case ...]

For each valid case, with its captured tensors on the GPU: forward and backward with block lists, and with FlashAttention-4's own mask
where the mask is proved to be one. The reference is torch's eager evaluation of the user's own functions in float32 on the CPU; the
yardstick is the error that the same formula makes with the probabilities rounded to the inputs' dtype. A run passes if its error is
at most 2 times that plus 2e-3.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import torch

from corpus import cases
from cute_lab import fa4, host, native, reference
from cute_lab.environment import version
from cute_lab.lab import attention

DTYPE = {"bf16": torch.bfloat16, "fp16": torch.float16}


def dense(case: cases.Case, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rounded: torch.dtype | None) -> torch.Tensor:
    """softmax(score_mod(q k) where mask_mod) v in float32, [B, H, S, D]; `rounded` rounds the probabilities as a kernel does."""
    group = case.H // case.Hkv
    keys, values = (x.repeat_interleave(group, 1) for x in (k, v))
    rows = host.grid_rows(range(case.B), range(case.H), range(case.Sq))
    kv = torch.arange(case.Skv, dtype=torch.int32)
    scores = (q @ keys.transpose(-1, -2) / case.D**0.5).reshape(-1, case.Skv)
    score_mod = case.grad_twin or case.score_mod
    if score_mod is not None:
        with reference.eager():
            scores = reference.over(score_mod, True)(scores, *reference._columns(rows), kv)
    keep = torch.ones_like(scores, dtype=torch.bool) if case.mask_mod is None else reference.mask(case.mask_mod, rows, kv)
    seen = keep.any(-1, keepdim=True)
    weights = torch.where(keep, scores, float("-inf")).masked_fill(~seen, 0.0).softmax(-1).masked_fill(~seen, 0.0)
    if rounded is not None:
        weights = weights.to(rounded).float()
    return weights.view(case.B, case.H, case.Sq, case.Skv) @ values


def measure(run: Callable[[], list[torch.Tensor]], expected: list[torch.Tensor], yardstick: list[float]) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        got = [x.float().cpu() for x in run()]
        torch.cuda.synchronize()
    except Exception as error:  # recorded: a refusal of FlashAttention-4 is a result
        return {"ok": False, "error": f"{type(error).__name__}: {str(error)[:300]}", "where": traceback.format_exc()[-400:]}
    errors = [float((g - e).abs().max()) for g, e in zip(got, expected, strict=True)]
    limits = [2 * y + 2e-3 for y in yardstick]
    ok = all(e <= limit for e, limit in zip(errors, limits, strict=True))
    return {"ok": ok, "errors": errors, "limits": limits, "seconds": round(time.perf_counter() - start, 2)}


def check(make: Callable[..., cases.Case]) -> dict[str, Any]:
    case = make()
    shape = {"B": case.B, "H": case.H, "Hkv": case.Hkv, "Sq": case.Sq, "Skv": case.Skv, "D": case.D}
    there = make(device="cuda")
    dtype = {"bfloat16": "bf16", "float16": "fp16"}[case.dtype]
    lab = attention(there.score_mod, there.mask_mod, **shape, dtype=dtype, target="sm_90a")
    dtype = DTYPE[lab.shape.dtype]
    g = torch.Generator().manual_seed(11)
    sizes = ((case.B, case.H, case.Sq), (case.B, case.Hkv, case.Skv), (case.B, case.Hkv, case.Skv))
    q, k, v = (torch.randn(*s, case.D, generator=g).to(dtype) for s in sizes)
    leaves = [x.float().requires_grad_() for x in (q, k, v)]
    expected = dense(case, *leaves, None)
    out_grad = torch.randn(expected.shape, generator=g).to(dtype)
    grads = torch.autograd.grad(expected, leaves, out_grad.float(), allow_unused=True)
    grads = [torch.zeros_like(x) if d is None else d for d, x in zip(grads, leaves, strict=True)]
    rounded = dense(case, *leaves, dtype)
    noise = float((rounded - expected).abs().max())
    rounded_grads = torch.autograd.grad(rounded, leaves, out_grad.float(), allow_unused=True)
    grad_noise = [
        max(0.0 if d is None else float((d - e).abs().max()), 2**-8 * float(e.abs().max()))
        for d, e in zip(rounded_grads, grads, strict=True)
    ]
    device = [x.transpose(1, 2).contiguous().transpose(1, 2).cuda() for x in (q, k, v)]

    def run(use_native: bool) -> list[torch.Tensor]:
        kernel = fa4.prepare(lab, device[0].device, use_native)
        inputs = [x.clone().requires_grad_() for x in device]
        out, _ = fa4.attend(kernel, *inputs, None)
        return [out, *torch.autograd.grad(out, inputs, out_grad.cuda())]

    expected = expected.detach()
    result = {"listed": measure(lambda: run(False), [expected, *grads], [noise, *grad_noise])}
    if case.mask_mod is not None and native.window(lab.program, lab.shape) is not None:
        result["native"] = measure(lambda: run(True), [expected, *grads], [noise, *grad_noise])
    return result


def one(name: str) -> tuple[str, dict[str, Any]]:
    torch.set_num_threads(2)
    make = next(m for m in cases.ALL if m().name == name)
    try:
        return name, check(make)
    except Exception as error:
        where = traceback.format_exc()[-600:]
        return name, {"lab": {"ok": False, "error": f"{type(error).__name__}: {str(error)[:300]}", "where": where}}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=8)
    given = parser.parse_args()
    made = [make() for make in cases.ALL]
    wanted = [c.name for c in made if c.kind == "valid" and c.Sq <= 4096 and (not given.names or c.name in given.names)]
    rows: dict[str, Any] = {}
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=4) as pool:
        for name, row in pool.imap_unordered(one, wanted):
            rows[name] = row
            words = "  ".join(f"{n} {'ok' if r['ok'] else 'FAILS ' + str(r.get('error', r.get('errors')))[:160]}" for n, r in row.items())
            print(f"{name:32} {words}", flush=True)
    versions = {name: version(name) for name in ("torch", "flash-attn-4", "nvidia-cutlass-dsl")} | {"gpu": torch.cuda.get_device_name(0)}
    ordered = {name: rows[name] for name in wanted if name in rows}
    given.out.write_text(json.dumps({"environment": versions, "cases": ordered}, indent=1))
    good = sum(all(r["ok"] for r in row.values()) for row in rows.values())
    print(f"{good} of {len(rows)} cases pass every run, forward and backward")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
