"""Attention on the CPU with the generated code, where float32 has few digits left: huge scores, no scores, not a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cute_lab.accuracy import rows
from cute_lab.baselines import Case
from cute_lab.lab import Lab, attention

S, D = 48, 16
Mod = Callable[..., torch.Tensor]
EDGES: dict[str, Mod] = {
    "every score far below": lambda score, b, h, q, k: score - 1e9,
    "some rows far below": lambda score, b, h, q, k: score + torch.where(q < 20, -1e4, 0.0),
    "rows at the lowest number": lambda score, b, h, q, k: torch.where(q < 20, torch.finfo(torch.float32).min, score),
    "a padding bias": lambda score, b, h, q, k: score + torch.where(k < 30, 0.0, -1e6),
    "large scores": lambda score, b, h, q, k: score * 30,
}


def inputs() -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(5)
    return [torch.randn(1, 2, S, D, generator=g).requires_grad_() for _ in range(3)]


def both(run: Callable[..., Any], leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    out = run(*leaves)
    return [out, *torch.autograd.grad(out, leaves, torch.linspace(-1, 1, out.numel()).view_as(out))]


def eager(lab: Lab) -> Callable[..., torch.Tensor]:
    """torch's own formula in float32, autograd and all."""
    case = Case(lab, torch.device("cpu"))
    return lambda q, k, v: torch.stack([rows(case, q[0, h], k[0, h], v[0, h], 0, h, range(S), None) for h in range(2)])[None]


@pytest.mark.host
@pytest.mark.parametrize("name", EDGES)
def test_large_scores_are_torchs(name: str) -> None:
    lab = attention(EDGES[name], H=2, Sq=S, D=D)
    got = both(lambda *x: lab.run(*x), inputs())
    right = both(eager(lab), inputs())
    for mine, theirs in zip(got, right, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=2e-5 * float(theirs.detach().abs().max()) + 1e-6)


@pytest.mark.host
def test_a_row_without_keys_is_zero_and_so_is_its_gradient() -> None:
    def mask(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >= k) & (q != 7)

    lab = attention(mask_mod=mask, H=2, Sq=S, D=D)
    got = both(lambda *x: lab.run(*x), inputs())
    right = both(eager(lab), inputs())
    assert (got[0][:, :, 7] == 0).all() and (got[1][:, :, 7] == 0).all()
    for mine, theirs in zip(got, right, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


@pytest.mark.host
def test_what_is_not_a_number_stays_so() -> None:
    """As in torch: a row with a NaN is NaN, the others are as they were."""
    table = torch.zeros(S)
    table[3] = float("nan")

    def score_mod(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return score + table[q]

    with torch.no_grad():
        lab = attention(score_mod, H=2, Sq=S, D=D)
        out, right = lab.run(*inputs()), eager(lab)(*inputs())
    assert isinstance(out, torch.Tensor)
    assert out[:, :, 3].isnan().all()
    assert torch.allclose(out, right, atol=1e-5, equal_nan=True)


@pytest.mark.host
def test_lse_is_the_logarithm_of_the_row_sums() -> None:
    lab = attention(EDGES["some rows far below"], H=2, Sq=S, D=D)
    q, k, v = inputs()
    _, lse = lab.run(q, k, v, return_lse=True)
    scores = (q @ k.transpose(-1, -2) / D**0.5).double() + torch.where(torch.arange(S) < 20, -1e4, 0.0)[:, None]
    assert torch.allclose(lse.double(), torch.logsumexp(scores, -1), rtol=1e-6)
