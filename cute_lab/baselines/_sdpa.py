"""What scaled_dot_product_attention can express of a variant: causal by itself, masks and added biases as a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from cute_lab import native, reference
from cute_lab.baselines import Absent, Case, Ready
from cute_lab.ir import Node, toposort

LARGEST = 16 << 30  # bytes of a materialised bias


@dataclass(frozen=True)
class Form:
    causal: bool
    bias: torch.Tensor | None  # [B or 1, H or 1, Sq, Skv]: bool keep mask, or added in the inputs' dtype
    note: str


def additive(n: Node) -> bool:
    """Is the score_mod score + f(positions)?"""
    if n.op == "input" and n.attr == "score":
        return True
    if n.op not in ("add", "sub"):
        return False
    on_score = [any(x.op == "input" and x.attr == "score" for x in toposort(a)) for a in n.args]
    if on_score == [True, False]:
        return additive(n.args[0])
    return n.op == "add" and on_score == [False, True] and additive(n.args[1])


def form(case: Case, takes_bias: bool) -> Form:
    program, s = case.lab.program, case.shape
    window = native.window(program, s)
    scored = program.score is not None and program.score.output.op != "input"
    if not scored and window is not None and (window.causal or window == native.Window(None, None)):
        return Form(window.causal, None, "is_causal" if window.causal else "")
    if scored and not additive(program.score.output):  # type: ignore[union-attr]
        raise Absent("scaled_dot_product_attention has no score_mod: this one is more than an added bias")
    if not takes_bias:
        raise Absent("this kernel takes neither masks nor biases, only is_causal")
    return Form(False, *materialised(case, scored))


def materialised(case: Case, scored: bool) -> tuple[torch.Tensor, str]:
    s, program = case.shape, case.lab.program
    graphs = [g for g in (program.score if scored else None, program.mask) if g is not None]
    used = {str(n.attr) for g in graphs for n in g.nodes() if n.op == "input"}
    B, H = (s.B if "b" in used else 1), (s.H if "h" in used else 1)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[s.dtype] if scored else torch.bool
    size = B * H * s.Sq * s.Skv * dtype.itemsize
    what = "bias" if scored else "mask"
    said = f"the {what} is materialised, {size / 2**20:,.0f} MiB"
    if size > LARGEST:
        raise Absent(f"{said}: too large")
    out = torch.empty((B, H, s.Sq, s.Skv), dtype=dtype, device=case.device)
    kv = torch.arange(s.Skv, dtype=torch.int32, device=case.device)
    step = max(1, (1 << 24) // s.Skv)
    for b in range(B):
        for h in range(H):
            for first in range(0, s.Sq, step):
                q = torch.arange(first, min(first + step, s.Sq), dtype=torch.int32, device=case.device)
                out[b, h, first : first + len(q)] = _band(case, scored, b, h, q, kv).to(dtype)
    return out, said


def _band(case: Case, scored: bool, b: int, h: int, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    at = (torch.full_like(q, b), torch.full_like(q, h), q)
    with reference.eager(), torch.no_grad():
        keep: torch.Tensor | None = reference.over(case.mask_mod, False)(*at, kv) if case.mask_mod is not None else None
        if not scored or case.score_mod is None:
            assert keep is not None
            return keep
        bias: torch.Tensor = reference.over(case.score_mod, True)(torch.zeros(len(q), len(kv), device=q.device), *at, kv)
    return bias if keep is None else bias.masked_fill(~keep, float("-inf"))


def prepare(case: Case, backend: SDPBackend, takes_bias: bool) -> Ready:
    found, s = form(case, takes_bias), case.shape
    options: dict[str, Any] = {"enable_gqa": True} if s.Hkv != s.H else {}
    if found.causal and s.Sq != s.Skv:
        raise Absent("is_causal aligns the first query with the first key; only square shapes are compared")

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=found.bias, is_causal=found.causal, **options)

    return Ready(run, found.note)
