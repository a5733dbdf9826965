"""The check beside every speed: out, dQ, dK and dV of a contender against float32, on whole heads, in bounded memory.

For some pairs of batch entry and key/value head everything is computed: all queries of all query heads that share it, all keys. The
yardstick is the same formula with the roundings that a kernel makes: probabilities and score gradients in the inputs' dtype,
results too. A tensor passes within twice the yardstick's error (FlashAttention's own tests use that factor) plus 1e-3 of its scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from cute_lab import reference
from cute_lab.measurement import Accuracy

if TYPE_CHECKING:
    from cute_lab.baselines import Case

CELLS = 1 << 24  # scores held at a time: some float32 matrices of 64 MiB
BANDS = 64
FACTOR, SLACK = 2.0, 1e-3
Tensors = dict[str, torch.Tensor]
NAMES: tuple[Literal["out", "dq", "dk", "dv"], ...] = ("out", "dq", "dk", "dv")


class RoundGrad(torch.autograd.Function):
    """The identity whose gradient is rounded: a kernel multiplies score gradients in the inputs' dtype."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        ctx.dtype = dtype
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad.to(ctx.dtype).float(), None


class Kept(torch.autograd.Function):
    """The identity; where the mask drops a score no gradient comes back, whatever the score_mod's derivative is there."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(keep)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        (keep,) = ctx.saved_tensors
        return torch.where(keep, grad, 0.0), None


class Round(torch.autograd.Function):
    """Rounds to the dtype; the gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return x.to(dtype).float()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad, None


def rows(
    case: Case, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, b: int, h: int, span: range, dtype: torch.dtype | None
) -> torch.Tensor:
    """softmax(score_mod(q k / sqrt(D)) where mask_mod keeps) v for the query rows of `span`, by torch's eager evaluation of the mods.

    q [len(span), D], k [Skv, D], v [Skv, Dv] -> float32 [len(span), Dv]; a row without keys is 0. `dtype` rounds as a kernel does.
    """
    scores = q.float() @ k.float().T / math.sqrt(q.shape[-1])
    if dtype is not None:
        scores = RoundGrad.apply(scores, dtype)  # type: ignore[no-untyped-call]
    q_idx = torch.arange(span.start, span.stop, dtype=torch.int32, device=q.device)
    at = (torch.full_like(q_idx, b), torch.full_like(q_idx, h), q_idx)
    kv_idx = torch.arange(k.shape[0], dtype=torch.int32, device=q.device)
    with reference.eager():
        keep = reference.over(case.mask_mod, False)(*at, kv_idx) if case.mask_mod is not None else None
        if keep is not None:
            scores = Kept.apply(scores, keep)  # type: ignore[no-untyped-call]
        if case.score_mod is not None:
            scores = reference.over(case.score_mod, True)(scores, *at, kv_idx).float()
    if keep is not None:
        scores = torch.where(keep, scores, float("-inf"))
    empty = (scores.detach() == float("-inf")).all(-1, keepdim=True)  # by the mask, or by the score_mod
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    if dtype is not None:
        weights = Round.apply(weights, dtype)  # type: ignore[no-untyped-call]
    return weights @ v.float()


@dataclass(frozen=True)
class Reference:
    """float32 results and the yardstick's, on the checked heads only: out and dq [n, group, Sq, D], dk and dv [n, Skv, D]."""

    heads: tuple[tuple[int, int], ...]  # (b, kv head)
    group: int
    exact: Tensors
    rounded: Tensors

    def part(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """The checked heads of a contender's [B, H or Hkv, S, D]."""
        if name in ("dk", "dv"):
            return torch.stack([x[b, h] for b, h in self.heads])
        return torch.stack([x[b, h * self.group : (h + 1) * self.group] for b, h in self.heads])


def sample(B: int, Hkv: int) -> tuple[tuple[int, int], ...]:
    """The first and the last head of the first and the last entry: where slopes, offsets and strides are at their extremes."""
    return tuple(dict.fromkeys([(0, 0), (B - 1, Hkv - 1), (B // 2, Hkv // 2)]))


def make(case: Case, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor | None) -> Reference:
    """Both evaluations for the sampled heads; gradients where `d_out` [B, H, Sq, Dv] is given."""
    B, H, _, _ = q.shape
    Hkv = k.shape[1]
    heads, group = sample(B, Hkv), H // Hkv
    exact = _evaluate(case, q, k, v, d_out, heads, group, None)
    rounded = _evaluate(case, q, k, v, d_out, heads, group, q.dtype)
    return Reference(heads, group, exact, {n: x.to(q.dtype).float() for n, x in rounded.items()})


def _evaluate(
    case: Case,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    d_out: torch.Tensor | None,
    heads: Sequence[tuple[int, int]],
    group: int,
    dtype: torch.dtype | None,
) -> Tensors:
    Sq, Skv = q.shape[2], k.shape[2]
    step = max(1, CELLS // Skv)
    found: dict[str, list[torch.Tensor]] = {name: [] for name in (NAMES if d_out is not None else ("out",))}
    for b, hkv in heads:
        keys, values = k[b, hkv].detach().float(), v[b, hkv].detach().float()
        d_keys, d_values = torch.zeros_like(keys), torch.zeros_like(values)
        outs, d_queries = [], []
        for h in range(hkv * group, (hkv + 1) * group):
            for first in range(0, Sq, step):
                span = range(first, min(first + step, Sq))
                leaves = [x.detach().float().requires_grad_(d_out is not None) for x in (q[b, h, first : span.stop], keys, values)]
                with torch.set_grad_enabled(d_out is not None):
                    out = rows(case, leaves[0], leaves[1], leaves[2], b, h, span, dtype)
                outs.append(out.detach())
                if d_out is not None:
                    grads = torch.autograd.grad(out, leaves, d_out[b, h, first : span.stop].float(), allow_unused=True)
                    dq, dk, dv = (torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True))
                    d_queries.append(dq)
                    d_keys += dk
                    d_values += dv
        found["out"].append(torch.cat(outs).view(group, Sq, -1))
        if d_out is not None:
            found["dq"].append(torch.cat(d_queries).view(group, Sq, -1))
            found["dk"].append(d_keys)
            found["dv"].append(d_values)
    return {name: torch.stack(parts) for name, parts in found.items()}


def compare(reference_: Reference, results: dict[str, torch.Tensor]) -> tuple[Accuracy, ...]:
    """Every tensor of a contender ([B, H, S, D] as it made them) against the reference."""
    return tuple(_one(reference_, name, results[name]) for name in NAMES if name in results)


def _one(ref: Reference, name: Literal["out", "dq", "dk", "dv"], given: torch.Tensor) -> Accuracy:
    exact, rounded = ref.exact[name], ref.rounded[name]
    got = ref.part(name, given).float()
    error, yard = (got - exact).abs(), (rounded - exact).abs()
    error = torch.where(error.isnan(), float("inf"), error)
    scale, norm = float(exact.abs().max()), float(exact.norm()) or 1.0
    largest, relative = float(error.max()), float(error.norm()) / norm
    yard_largest, yard_relative = float(yard.max()), float(yard.norm()) / norm
    ok = largest <= FACTOR * yard_largest + SLACK * scale and relative <= FACTOR * yard_relative + SLACK
    at = [int(i) for i in torch.unravel_index(error.argmax(), error.shape)]
    seen = f"{float(got[tuple(at)]):.4g}, float32 says {float(exact[tuple(at)]):.4g}"
    b, hkv = ref.heads[at[0]]
    head = f"kv head {hkv}" if name in ("dk", "dv") else f"h{hkv * ref.group + at[1]}"
    worst = f"b{b} {head} row {at[-2]:,} column {at[-1]}: {seen}"
    bands = _bands(error)
    return Accuracy(name, ok, largest, relative, yard_largest, yard_relative, bands, worst)


def _bands(error: torch.Tensor) -> tuple[tuple[float, ...], ...]:
    """[checked heads][bands of rows]: the largest error, in up to 64 bands."""
    lines = error.flatten(0, -3).amax(-1)
    size = -(-lines.shape[1] // BANDS)
    padded = torch.nn.functional.pad(lines, (0, -lines.shape[1] % size))
    return tuple(tuple(float(f"{x:.3g}") for x in line) for line in padded.view(len(lines), -1, size).amax(-1).tolist())
