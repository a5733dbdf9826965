"""Attention on the CPU with the generated code: blocked like FlashAttention, matrix products by torch, mods by the host JIT.

Forward and backward work on one band of query rows at a time, so memory stays at a few bands of float32 scores. Fully masked
rows give 0, as FlexAttention does. Gradients flow to q, k and v; captured tensors get none, as in FlashAttention-4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from cute_lab.generated import Generated

BAND = 1 << 22  # float32 scores held at a time: 16 MB, a few of them


def bands(q: torch.Tensor, Skv: int) -> Iterator[tuple[int, int, slice]]:
    B, H, Sq, _ = q.shape
    step = max(1, min(Sq, BAND // max(Skv, 1)))
    for b in range(B):
        for h in range(H):
            for first in range(0, Sq, step):
                yield b, h, slice(first, min(first + step, Sq))


def positions(b: int, h: int, band: slice) -> torch.Tensor:
    rows = torch.empty((band.stop - band.start, 3), dtype=torch.int32)
    rows[:, 0], rows[:, 1] = b, h
    rows[:, 2] = torch.arange(band.start, band.stop, dtype=torch.int32)
    return rows


def scores_of(code: Generated, raw: torch.Tensor, rows: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """Modified and masked scores."""
    scores = code.score(raw, rows, kv) if code.program.score is not None else raw
    if code.program.mask is not None:
        scores = torch.where(code.mask(rows, kv), scores, float("-inf"))
    return scores


def softmax(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and the logarithm of the row sums. A row of -inf has no key: its weights are 0. NaN stays NaN."""
    top = scores.amax(-1, keepdim=True)
    empty = top == float("-inf")
    weights = torch.exp(scores - top.masked_fill(empty, 0.0))  # by the largest score: scores near 1e9 have no digits left for a logarithm
    total = weights.sum(-1, keepdim=True)
    lse = (top + torch.log(total)).squeeze(-1)
    return weights / total.masked_fill(empty, 1.0), lse


class HostAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, code: Generated, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        B, H, Sq, _ = q.shape
        group = H // k.shape[1]
        kv = torch.arange(k.shape[2], dtype=torch.int32)
        out = torch.zeros((B, H, Sq, v.shape[3]), dtype=q.dtype)
        lse = torch.full((B, H, Sq), float("-inf"))
        for b, h, band in bands(q, k.shape[2]):
            keys, values = k[b, h // group].float(), v[b, h // group].float()
            raw = (q[b, h, band].float() @ keys.T * scale).contiguous()
            scores = scores_of(code, raw, positions(b, h, band), kv)
            weights, lse[b, h, band] = softmax(scores)
            out[b, h, band] = (weights @ values).to(q.dtype)
        ctx.code, ctx.scale = code, scale
        ctx.save_for_backward(q, k, v, out)
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: torch.Tensor, _: torch.Tensor) -> Any:
        q, k, v, out = ctx.saved_tensors
        code, group = ctx.code, q.shape[1] // k.shape[1]
        kv = torch.arange(k.shape[2], dtype=torch.int32)
        dq, dk, dv = (torch.zeros(t.shape, dtype=torch.float32) for t in (q, k, v))
        delta = (d_out.float() * out.float()).sum(-1)
        for b, h, band in bands(q, k.shape[2]):
            keys, values, queries = k[b, h // group].float(), v[b, h // group].float(), q[b, h, band].float()
            rows, d_band = positions(b, h, band), d_out[b, h, band].float()
            raw = (queries @ keys.T * ctx.scale).contiguous()
            scores = scores_of(code, raw, rows, kv)
            weights, _ = softmax(scores)
            dv[b, h // group] += weights.T @ d_band
            d_scores = (weights * (d_band @ values.T - delta[b, h, band, None])).contiguous()
            if code.program.score_bwd is not None:
                d_scores = torch.where(weights == 0, 0.0, code.grad(d_scores, raw, rows, kv))
            dq[b, h, band] = d_scores @ keys * ctx.scale
            dk[b, h // group] += d_scores.T @ queries * ctx.scale
        return None, dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), None


def attend(code: Generated, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    """(out [B, H, Sq, Dv] in q's dtype, lse [B, H, Sq] float32, natural logarithm)."""
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    out, lse = HostAttention.apply(code, q, k, v, scale)  # type: ignore[no-untyped-call]
    return out, lse
