"""On a GPU: block lists of every geometry that the target's table calls legal, inside FlashAttention-4; and a million tokens.

    python tools/gpu_blocks.py out.json [--jobs N] [--million]

A geometry: a causal mask by document at a ragged length with grouped heads, lists at the given block made on the GPU, forward or
backward against torch in float32 (tools/gpu_check.py's yardstick and limits). The million: the corpus case, its output and dQ on
random blocks of rows, dK and dV on random blocks of keys, against float32 over all keys (all rows that see them).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import multiprocessing
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tools")]

import torch

import gpu_check
from corpus import cases
from cute_lab import accuracy, fa4, sparse, targets
from cute_lab.baselines import Case
from cute_lab.environment import version
from cute_lab.lab import attention
from cute_lab.runs import EMPTY
from cute_lab.tiles import BlockRule

LENGTH, HEADS, SHARED = 900, 4, 2
DIMS = (64, 96, 128, 192, 256)
SAMPLES, ROWS = 3, 512  # blocks of the million, rows of the score matrix held at a time
Geometry = tuple[str, int, tuple[int, int]]  # direction, D, block


def legal(rule: BlockRule, limit: int = 256) -> list[tuple[int, int]]:
    """The smallest and the largest keys, with rows once and twice."""
    keys = {rule.kv, min(rule.kv_max, limit) // rule.kv * rule.kv}
    return [(times * q, kv) for q in rule.q for times in (1, 2) for kv in sorted(keys)]


def geometries(target: targets.Target) -> list[Geometry]:
    found = []
    for direction in ("forward", "backward"):
        for D in DIMS:
            rule = targets.tile_rule(target, D, LENGTH, None, targets.DIRECTIONS[direction], HEADS // SHARED)
            blocks = dict.fromkeys([rule.block, *(block for r in rule.legal for block in legal(r))])
            found += [(direction, D, block) for block in blocks]
    return found


def documents(device: str) -> Any:
    ids = torch.repeat_interleave(torch.arange(7), torch.tensor([130, 7, 256, 1, 200, 64, 242])).to(device, torch.int32)
    return lambda b, h, q_idx, kv_idx: (ids[q_idx] == ids[kv_idx]) & (q_idx >= kv_idx)


def geometry(what: Geometry) -> tuple[Geometry, dict[str, Any]]:
    direction, D, block = what
    try:
        shape: dict[str, Any] = {"B": 1, "H": HEADS, "Hkv": SHARED, "Sq": LENGTH, "Skv": LENGTH, "D": D}
        device = torch.device("cuda")
        name = fa4.target_of(device).name
        lab = attention(None, documents("cuda"), **shape, target=name)
        words = dict.fromkeys(("name", "description", "source", "wanted", "theme"), "")
        case = cases.Case(**words, kind="valid", split="open", **shape, mask_mod=documents("cpu"))  # type: ignore[arg-type]
        g = torch.Generator().manual_seed(5)
        q, k, v = (torch.randn(1, H, LENGTH, D, generator=g).bfloat16() for H in (HEADS, SHARED, SHARED))
        d_out = torch.randn(1, HEADS, LENGTH, D, generator=g).bfloat16()
        leaves = [x.float().requires_grad_() for x in (q, k, v)]
        exact, rounded = (gpu_check.dense(case, *leaves, dtype) for dtype in (None, torch.bfloat16))
        wanted, noisy = [exact], [rounded]
        if direction == "backward":
            wanted, noisy = ([*torch.autograd.grad(x, leaves, d_out.float())] for x in (exact, rounded))
        kernel = fa4.prepare(lab, device, use_native=False)
        lists = sparse.lists(lab.blocks(block), device, direction)
        changed = dataclasses.replace(getattr(kernel, direction), lists=lists)
        kernel = dataclasses.replace(kernel, **{direction: changed})

        def run() -> list[torch.Tensor]:
            inputs = [x.cuda().requires_grad_() for x in (q, k, v)]
            out, _ = fa4.attend(kernel, *inputs, None)
            return [out.detach()] if direction == "forward" else [*torch.autograd.grad(out, inputs, d_out.cuda())]

        least = 2.0**-8 if direction == "backward" else 0.0
        noise = [max(float((a - b).abs().max()), least * float(b.abs().max())) for a, b in zip(noisy, wanted, strict=True)]
        return what, gpu_check.measure(run, [x.detach() for x in wanted], noise)
    except Exception as error:
        return what, {"ok": False, "error": f"{type(error).__name__}: {str(error)[:300]}", "where": traceback.format_exc()[-500:]}


def million() -> dict[str, Any]:
    device = torch.device("cuda")
    case = cases.million_sliding_sink()
    lab = attention(None, case.mask_mod, B=1, H=1, Sq=case.Sq, D=case.D, target=fa4.target_of(device).name)
    start = time.perf_counter()
    kernel = fa4.prepare(lab, device)
    found: dict[str, Any] = {"lists_seconds": time.perf_counter() - start, "blocks": str(lab.blocks())}
    g = torch.Generator("cuda").manual_seed(3)
    q, k, v, d_out = (torch.randn(1, 1, case.Sq, case.D, generator=g, device=device).bfloat16() for _ in range(4))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    start = time.perf_counter()
    out, _ = fa4.attend(kernel, *inputs, None)
    got = dict(zip(("dq", "dk", "dv"), torch.autograd.grad(out, inputs, d_out), strict=True)) | {"out": out.detach()}
    torch.cuda.synchronize()
    found["seconds_with_compile"] = time.perf_counter() - start
    found["peak_mib"] = torch.cuda.max_memory_allocated() >> 20
    mine = Case(lab, device)

    def rows(first: int, last: int, dtype: torch.dtype | None) -> tuple[torch.Tensor, ...]:
        """out, dq of the rows, and what they add to dk and dv."""
        leaves = [x[0, 0].detach().float().requires_grad_() for x in (q[:, :, first:last], k, v)]
        made = accuracy.rows(mine, *leaves, 0, 0, range(first, last), dtype)
        return (made.detach(), *torch.autograd.grad(made, leaves, d_out[0, 0, first:last].float()))

    size = lab.blocks().block
    dice, errors = random.Random(0), {}
    for sample in range(SAMPLES):
        at = dice.randrange(1, case.Sq // size[0])
        span = slice(at * size[0], (at + 1) * size[0])
        exact, rounded = (rows(span.start, span.stop, dtype)[:2] for dtype in (None, torch.bfloat16))
        for name, want, noisy in zip(("out", "dq"), exact, rounded, strict=True):
            errors[f"{name} rows {span.start}"] = _error(got[name][0, 0, span], want, noisy)
        j = dice.randrange(1, case.Skv // size[1] - 40)
        keys = slice(j * size[1], (j + 1) * size[1])
        line = lab.blocks().columns
        runs = range(line.offsets[j], line.offsets[j + 1])
        ends = [*(int(line.start[n]) for n in runs[1:]), line.width]
        seen = [(int(line.start[n]), end) for n, end in zip(runs, ends, strict=True) if line.kind[n] != EMPTY]
        sums = {dtype: [torch.zeros(size[1], case.D, device=device) for _ in range(2)] for dtype in (None, torch.bfloat16)}
        for a, z in seen:
            for first in range(a * size[0], z * size[0], ROWS):
                for dtype, total in sums.items():
                    for part, grad in zip(total, rows(first, min(first + ROWS, z * size[0]), dtype)[2:], strict=True):
                        part += grad[keys]
        for name, want, noisy in zip(("dk", "dv"), sums[None], sums[torch.bfloat16], strict=True):
            errors[f"{name} keys {keys.start}"] = _error(got[name][0, 0, keys], want, noisy)
        print(f"a million tokens, sample {sample + 1}: {errors}"[:300], flush=True)
    found |= {"errors": errors, "ok": all(e["ok"] for e in errors.values())}
    return found


def _error(got: torch.Tensor, want: torch.Tensor, noisy: torch.Tensor) -> dict[str, Any]:
    error, noise = float((got.float() - want).abs().max()), float((noisy.bfloat16().float() - want).abs().max())
    limit = accuracy.FACTOR * noise + accuracy.SLACK * float(want.abs().max())
    return {"error": error, "limit": limit, "ok": math.isfinite(error) and error <= limit}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--million", action="store_true")
    given = parser.parse_args()
    target = fa4.target_of(torch.device("cuda"))
    versions = {name: version(name) for name in ("torch", "flash-attn-4", "nvidia-cutlass-dsl")} | {"gpu": torch.cuda.get_device_name(0)}
    result: dict[str, Any] = {"environment": versions, "target": target.name}
    if given.million:
        result["million"] = million()
        print(json.dumps(result["million"])[:600], flush=True)
        given.out.write_text(json.dumps(result, indent=1))
    rows = []
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=6) as pool:
        for (direction, D, block), row in pool.imap_unordered(geometry, geometries(target)):
            rows.append({"direction": direction, "D": D, "block": block, **row})
            words = "ok" if row["ok"] else f"FAILS {str(row.get('error', row.get('errors')))[:200]}"
            print(f"{direction:8} D{D} {block[0]} x {block[1]}: {words}", flush=True)
            result["geometries"] = sorted(rows, key=lambda r: (r["direction"], r["D"], r["block"]))
            given.out.write_text(json.dumps(result, indent=1))
    print(f"{sum(r['ok'] for r in rows)} of {len(rows)} geometries pass")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
