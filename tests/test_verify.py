"""The check itself: it passes what is right and catches what is not, in every function that it vouches for."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import cute_lab
from cute_lab import cutedsl, packed, verify

WINDOW = 100
SLOPES = torch.tensor([0.5, 0.25])


def score_mod(score: torch.Tensor, b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
    return score * score + SLOPES[h] * (kv_idx - q_idx)


def mask_mod(b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
    return (q_idx >= kv_idx) & (q_idx - kv_idx < WINDOW)


def lab(**options: object) -> cute_lab.Lab:
    return cute_lab.attention(score_mod, mask_mod, H=2, Sq=300, D=64, target="sm_90a", **options)  # type: ignore[arg-type]


def test_every_generated_function_is_checked() -> None:
    found = lab().verify()
    assert found.ok
    assert bool(found)
    assert [c.name for c in found.checks] == ["score_mod", "score_mod_bwd", "mask_mod", "mask_mod_packed"]
    assert all(c.points > 0 for c in found.checks)


@pytest.mark.parametrize(
    ("broken", "old", "new"),
    [
        ("score_mod", "(score * score)", "(score + score)"),
        ("score_mod_bwd", "grad", "-grad"),
        ("mask_mod", "q_idx >= kv_idx", "q_idx > kv_idx"),
    ],
)
def test_a_wrong_text_is_caught(broken: str, old: str, new: str) -> None:
    mine = lab()
    text = cutedsl.emit(mine.program).text
    start = text.index(f"def {broken}(")
    head = text.index("\n", start)
    wrong = text[:head] + text[head:].replace(old, new, 1)
    assert wrong != text
    found = verify.verify(mine.program, wrong, mine.mods, mine.shape)
    assert not found.ok
    assert [c.name for c in found.checks if not c.ok] == [broken]
    assert found.worst is not None


def test_a_wrong_packed_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = packed.function

    def off_by_one(program: object, name: str) -> list[tuple[str, int]]:
        return [(line.replace("- first + 1", "- first + 2"), n) for line, n in right(program, name)]  # type: ignore[arg-type]

    monkeypatch.setattr(packed, "function", off_by_one)
    found = lab().verify()
    assert [c.name for c in found.checks if not c.ok] == ["mask_mod_packed"]


def test_a_wrong_lowering_is_not_taken_for_rounding() -> None:
    """The tolerance grows with torch's own error only, never with ours."""
    mine = lab()
    other = cute_lab.attention(lambda score, b, h, q_idx, kv_idx: score * 1.001, H=2, Sq=300, D=64, target="sm_90a")
    found = verify.verify(dataclasses.replace(other.program, mask=None), cutedsl.emit(other.program).text, {"score": score_mod}, mine.shape)
    assert not found.ok
    assert all(c.tolerance <= verify.NOISE_LIMIT for c in found.checks)


def test_cancellation_is_rounding() -> None:
    """20 (2 sigmoid(x / 10) - 1) loses digits in torch's float32 as well."""
    cap = 20.0
    mine = cute_lab.attention(lambda score, b, h, q_idx, kv_idx: cap * (2 * torch.sigmoid(2 * score / cap) - 1), Sq=4096, target="sm_90a")
    assert mine.verify().ok


def test_a_captured_parameter_gets_no_gradient_and_run_says_so() -> None:
    bias = torch.zeros(64, requires_grad=True)
    mine = cute_lab.attention(lambda score, b, h, q_idx, kv_idx: score + bias[kv_idx], H=1, Sq=64, D=16, target="sm_90a")
    q = torch.randn(1, 1, 64, 16, requires_grad=True)
    with pytest.warns(UserWarning, match="no gradient, only q, k and v do: bias"):
        mine.run(q, q, q)
