"""On a Hopper GPU: the generated functions of every corpus case inside FlashAttention-4, against torch in float32.

    python tools/gpu_check.py out.json [case ...]

For each valid case: forward with the mask on every tile, forward with block-sparse lists, and (with a score_mod) forward and backward.
The reference is torch's eager evaluation of the user's own functions in float32 on the CPU; the yardstick is the error that the same
formula makes with the probabilities rounded to the inputs' dtype. A run passes if its error is at most 2 times that plus 2e-3.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import cutlass
import torch
from flash_attn.cute import flash_attn_func
from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch

from corpus import cases
from cute_lab import host, reference
from cute_lab.lab import Lab, attention

DTYPE = {"bf16": torch.bfloat16, "fp16": torch.float16}
SCALAR = {"i32": cutlass.Int32, "f32": cutlass.Float32}


def functions(lab: Lab) -> dict[str, Any]:
    """The text that is compiled for Hopper, loaded; the hash is the text's, so that FlashAttention-4 mixes nothing up."""
    spec = lab.spec("sm_90a")
    scope = host.load(spec.source)
    found = {name: getattr(scope, name) for name in spec.functions}
    for name, function in found.items():
        function.__cute_hash__ = hashlib.sha256(f"{name}\n{spec.source}".encode()).hexdigest()
    if spec.score_vec is not None:
        found["score_mod"].__vec_size__ = spec.score_vec
    return found


def arguments(lab: Lab) -> dict[str, Any]:
    program = lab.program
    return {
        "aux_tensors": [t.tensor.cuda() for t in program.tables] or None,
        "aux_scalars": tuple(SCALAR[s.dtype](s.value) for s in program.scalars) or None,
    }


def sparse(lab: Lab, direction: str) -> BlockSparseTensorsTorch:
    block = lab.block_of("sm_90a", direction)
    mask = lab.blocks(block).to_block_mask(compact=True)
    names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
    if direction == "backward":
        names = ("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")
    return BlockSparseTensorsTorch(*(getattr(mask, n).cuda() for n in names), block_size=block)


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
            scores = reference._over(score_mod, True)(scores, *reference._columns(rows), kv)
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


def check(case: cases.Case) -> dict[str, Any]:
    shape = {"B": case.B, "H": case.H, "Hkv": case.Hkv, "Sq": case.Sq, "Skv": case.Skv, "D": case.D}
    lab = attention(case.score_mod, case.mask_mod, **shape, dtype={"bfloat16": "bf16", "float16": "fp16"}[case.dtype], target="sm_90a")
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
    mods, captures = functions(lab), arguments(lab)
    device = [x.transpose(1, 2).contiguous().cuda() for x in (q, k, v)]
    forward = {n: mods[n] for n in ("score_mod", "mask_mod") if n in mods}

    def plain(**extra: Any) -> list[torch.Tensor]:
        return [flash_attn_func(*device, **forward, **captures, **extra)[0].transpose(1, 2)]

    def trained(**extra: Any) -> list[torch.Tensor]:
        inputs = [x.clone().requires_grad_() for x in device]
        out = flash_attn_func(*inputs, **mods, **captures, **extra)[0]
        found = torch.autograd.grad(out, inputs, out_grad.transpose(1, 2).contiguous().cuda())
        return [x.transpose(1, 2) for x in (out, *found)]

    expected = expected.detach()
    result = {"forward": measure(plain, [expected], [noise])}
    if case.mask_mod is not None:
        result["block_sparse"] = measure(lambda: plain(block_sparse_tensors=sparse(lab, "forward")), [expected], [noise])
    result["backward"] = measure(trained, [expected, *grads], [noise, *grad_noise])
    if case.mask_mod is not None:
        lists = {"block_sparse_tensors": sparse(lab, "forward"), "block_sparse_tensors_bwd": sparse(lab, "backward")}
        result["block_sparse_backward"] = measure(lambda: trained(**lists), [expected, *grads], [noise, *grad_noise])
    return result


def main() -> int:
    rows: dict[str, Any] = {}
    target = Path(sys.argv[1])
    for make in cases.ALL:
        case = make()
        if case.kind != "valid" or case.Sq > 4096 or (sys.argv[2:] and case.name not in sys.argv[2:]):
            continue
        try:
            rows[case.name] = check(case)
        except Exception as error:
            rows[case.name] = {
                "lab": {"ok": False, "error": f"{type(error).__name__}: {str(error)[:300]}", "where": traceback.format_exc()[-600:]}
            }
        words = "  ".join(
            f"{n} {'ok' if r['ok'] else 'FAILS ' + str(r.get('error', r.get('errors')))[:120]}" for n, r in rows[case.name].items()
        )
        print(f"{case.name:32} {words}", flush=True)
        versions = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0)}
        target.write_text(json.dumps({"environment": versions, "cases": rows}, indent=1))
    good = sum(all(r["ok"] for r in row.values()) for row in rows.values())
    print(f"{good} of {len(rows)} cases pass every run")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
