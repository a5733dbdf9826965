"""Masks that FlashAttention-4 has built in: which are recognised, and that a recognised one is FlashAttention-4's rule cell by cell."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from flash_attn.cute.interface import _resolve_causal_local_window
from flash_attn.cute.testing import construct_local_mask

from cute_lab.fa4 import Direction, Kernel
from cute_lab.native import Window, window
from cute_lab.record import Shape
from cute_lab.sliders import slider
from cute_lab.trace import build

Mask = Callable[..., torch.Tensor]
SQ, SKV = 40, 64  # where a row of the table gives no lengths: the last query sees the last key at kv - q = 24
CAUSAL = Window(None, 0)
NONE = Window(None, None)
W, C = 9, 3  # captured numbers: run-time scalars of the program
MOVING = slider(1, 64, 9)
OFFSET = torch.tensor(5)
WIDTHS = torch.tensor([4, 9, 4])
IDS = torch.arange(128) // 16


def shape(Sq: int, Skv: int, B: int = 2, H: int = 3) -> Shape:
    return Shape(B, H, H, Sq, Skv, 64, "bf16")


def found(mask_mod: Mask | None, Sq: int = SQ, Skv: int = SKV, **params: int) -> Window | None:
    score_mod = (lambda score, b, h, q_idx, kv_idx: score * 2) if mask_mod is None else None
    return window(build(score_mod, mask_mod, shape(Sq, Skv), params).program, shape(Sq, Skv))


def kept(mask_mod: Mask, Sq: int, Skv: int) -> torch.Tensor:
    """bool [B, H, Sq, Skv] by calling the function itself on whole axes."""
    s = shape(Sq, Skv)
    axes = (torch.arange(n, dtype=torch.int32) for n in (s.B, s.H, Sq, Skv))
    return mask_mod(*torch.meshgrid(*axes, indexing="ij")).expand(s.B, s.H, Sq, Skv)


def rule(w: Window, Sq: int, Skv: int) -> torch.Tensor:
    """bool [Sq, Skv], what FlashAttention-4 keeps: by the reference of its own tests, which marks what it drops."""
    if w == NONE:
        return torch.ones(Sq, Skv, dtype=torch.bool)
    return ~construct_local_mask(Sq, Skv, (w.left, w.right)).expand(Sq, Skv)


# mask_mod, what it is, (Sq, Skv)
SQUARE, LONGER, SHORTER = (64, 64), (SQ, SKV), (64, 40)
TABLE: dict[str, tuple[Mask, Window | None, tuple[int, int]]] = {
    "causal": (lambda b, h, q, k: q >= k, CAUSAL, SQUARE),
    "causal, keys first": (lambda b, h, q, k: k <= q, CAUSAL, SQUARE),
    "causal, strict": (lambda b, h, q, k: q > k - 1, CAUSAL, SQUARE),
    "causal, negated": (lambda b, h, q, k: ~(k > q), CAUSAL, SQUARE),
    "causal, negated twice": (lambda b, h, q, k: ~~(k <= q), CAUSAL, SQUARE),
    "causal as a difference": (lambda b, h, q, k: -(k - q) >= 0, CAUSAL, SQUARE),
    "causal in 64 bits": (lambda b, h, q, k: q.long() >= k.to(torch.int64), CAUSAL, SQUARE),
    "causal, more keys": (lambda b, h, q, k: q >= k, None, LONGER),  # begins at the first key, FlashAttention-4 ends at the last
    "causal, fewer keys": (lambda b, h, q, k: q >= k, Window(None, 24), SHORTER),
    "causal to the end": (lambda b, h, q, k: q + (SKV - SQ) >= k, CAUSAL, LONGER),
    "causal to the end, short": (lambda b, h, q, k: q - 24 >= k, CAUSAL, SHORTER),
    "strictly before": (lambda b, h, q, k: q > k, None, SQUARE),  # the diagonal is outside
    "window": (lambda b, h, q, k: (q >= k) & (q - k < 9), Window(8, 0), SQUARE),
    "window, <=": (lambda b, h, q, k: (q >= k) & (q - k <= 9), Window(9, 0), SQUARE),
    "window, keys first": (lambda b, h, q, k: (k <= q) & (k > q - 9), Window(8, 0), SQUARE),
    "window, negated": (lambda b, h, q, k: ~(q < k) & ~(q - k >= 9), Window(8, 0), SQUARE),
    "window, and_masks": (lambda b, h, q, k: torch.logical_and(q >= k, q - k < 9), Window(8, 0), SQUARE),
    "window of one": (lambda b, h, q, k: (q >= k) & (q - k < 1), Window(0, 0), SQUARE),
    "window of none": (lambda b, h, q, k: (q >= k) & (q - k < 0), None, SQUARE),
    "left only": (lambda b, h, q, k: q - k <= 9, Window(9, None), SQUARE),
    "left only, more keys": (lambda b, h, q, k: q - k <= 9, Window(9 + SKV - SQ, None), LONGER),
    "right only": (lambda b, h, q, k: k - q < 9, Window(None, 8), SQUARE),
    "narrowest of three": (lambda b, h, q, k: (q >= k) & (q - k < 20) & (k > q - 7), Window(6, 0), SQUARE),
    "wider than the queries": (lambda b, h, q, k: (q >= k) & (q - k < 64), CAUSAL, SQUARE),
    "wider than everything": (lambda b, h, q, k: (q - k).abs() < 64, NONE, SQUARE),
    "abs": (lambda b, h, q, k: (q - k).abs() <= 9, Window(9, 9), SQUARE),
    "abs, strict": (lambda b, h, q, k: torch.abs(k - q) < 9, Window(8, 8), SQUARE),
    "abs on the right": (lambda b, h, q, k: q - q + 9 >= (k - q).abs(), Window(9, 9), SQUARE),
    "abs, shifted": (lambda b, h, q, k: (q - k - 3).abs() <= 9, Window(12, 6), SQUARE),
    "abs, shifted keys": (lambda b, h, q, k: (k + 3 - q).abs() <= 9, Window(12, 6), SQUARE),
    "abs to the end": (lambda b, h, q, k: (q + 24 - k).abs() < 9, Window(8, 8), LONGER),
    "abs, one-sided by shift": (lambda b, h, q, k: (q - k - 20).abs() <= 9, None, SQUARE),
    "abs, negated": (lambda b, h, q, k: ~((q - k).abs() > 9), None, SQUARE),  # correct to give up: two runs of keys, negated
    "captured number": (lambda b, h, q, k: (q >= k) & (q - k < W), Window(8, 0), SQUARE),
    "captured numbers": (lambda b, h, q, k: (q + C >= k) & (q - k <= W - C), Window(6, 3), SQUARE),
    "captured abs": (lambda b, h, q, k: (q - k + C).abs() < W, Window(5, 11), SQUARE),
    "slider": (lambda b, h, q, k: (q >= k) & (q - k < MOVING), Window(8, 0), SQUARE),
    "slider that moves an edge": (lambda b, h, q, k: q - MOVING >= k - MOVING - C, Window(None, 3), SQUARE),
    "always": (lambda b, h, q, k: q >= 0, NONE, LONGER),
    # what FlashAttention-4 has not
    "prefix": (lambda b, h, q, k: (k < 9) | (q >= k), None, SQUARE),
    "keys only": (lambda b, h, q, k: k < 9, None, SQUARE),
    "queries only": (lambda b, h, q, k: q < 9, None, SQUARE),
    "batch entry": (lambda b, h, q, k: q + b >= k, None, SQUARE),
    "head": (lambda b, h, q, k: (q >= k) & (q - k < 9 * (h + 1)), None, SQUARE),
    "captured tensor": (lambda b, h, q, k: q + OFFSET >= k, None, SQUARE),  # what it holds may change
    "captured widths": (lambda b, h, q, k: (q >= k) & (q - k < WIDTHS[h]), None, SQUARE),
    "documents": (lambda b, h, q, k: (q >= k) & (IDS[q] == IDS[k]), None, SQUARE),
    "dilated": (lambda b, h, q, k: (q >= k) & ((q - k) % 2 == 0), None, SQUARE),
    "scaled": (lambda b, h, q, k: 2 * q >= k, None, SQUARE),
    "sum": (lambda b, h, q, k: q + k < 40, None, SQUARE),
    "in floats": (lambda b, h, q, k: q * 0.5 >= k * 0.5, None, SQUARE),
    "diagonal": (lambda b, h, q, k: q == k, None, SQUARE),
    "all but the diagonal": (lambda b, h, q, k: q != k, None, SQUARE),
    "outside of a band": (lambda b, h, q, k: (q - k).abs() >= 9, None, SQUARE),
    "never": (lambda b, h, q, k: q < 0, None, SQUARE),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_is_recognised(name: str) -> None:
    mask_mod, expected, lengths = TABLE[name]
    assert found(mask_mod, *lengths) == expected
    if expected is not None:
        assert torch.equal(kept(mask_mod, *lengths)[1, 2], rule(expected, *lengths))


def test_a_run_time_number_moves_the_window() -> None:
    mask_mod = TABLE["captured number"][0]
    assert [found(mask_mod, *SQUARE, W=w) for w in (1, 20, 65, 0)] == [Window(0, 0), Window(19, 0), CAUSAL, None]


def test_no_mask_is_no_window() -> None:
    assert found(None) == NONE


def test_arithmetic_that_wraps_is_not_taken_for_a_band() -> None:
    """In 32 bits q + (2^31 - 1) is negative for every q but the first: torch and the kernel keep one row."""
    mask_mod: Mask = lambda b, h, q, k: q + (2**31 - 1) >= k  # noqa: E731
    assert kept(mask_mod, 8, 8)[0, 0].sum() == 8
    claimed = found(mask_mod, 8, 8)
    assert claimed is None or torch.equal(rule(claimed, 8, 8), kept(mask_mod, 8, 8)[0, 0])


# -- random bands ---------------------------------------------------------------------------------------------------------
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
INSIDE = {"<": (float("-inf"), -1), "<=": (float("-inf"), 0), ">": (1, float("inf")), ">=": (0, float("inf"))}  # of kv - q, from the edge
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def half(r: random.Random, edge: int) -> tuple[Mask, tuple[float, float]]:
    """kv - q <op> edge, in one of its spellings; and the bounds of kv - q, by hand."""
    op, own = r.choice(list(COMPARE)), r.randrange(-9, 9)
    compare, flipped = COMPARE[op], COMPARE[op.translate(str.maketrans("<>", "><"))]
    lo, hi = INSIDE[op]
    spellings: list[Mask] = [
        lambda b, h, q, k: compare(k - q, edge),
        lambda b, h, q, k: compare(k, q + edge),
        lambda b, h, q, k: flipped(q + edge, k),
        lambda b, h, q, k: flipped(q - k, -edge),
        lambda b, h, q, k: compare(k - edge + own, q + own),
        lambda b, h, q, k: compare(-(q - k).long() - own, edge - own),
        lambda b, h, q, k: flipped(edge, k - q),
        lambda b, h, q, k: ~COMPARE[OPPOSITE[op]](k - q, edge),
    ]
    return r.choice(spellings), (edge + lo, edge + hi)


def whole(r: random.Random, width: int, shift: int) -> tuple[Mask, tuple[float, float]]:
    """|kv - q - shift| <= width."""
    spellings: list[Mask] = [
        lambda b, h, q, k: (k - q - shift).abs() <= width,
        lambda b, h, q, k: torch.abs(q + shift - k) < width + 1,
        lambda b, h, q, k: k - k + width >= (k - (q + shift)).abs(),
    ]
    return r.choice(spellings), (shift - width, shift + width)


def foreign(r: random.Random) -> Mask:
    """No band; some of these keep or drop everything at some lengths."""
    c = r.randrange(0, 30)
    return r.choice(
        [
            lambda b, h, q, k: q + b * c >= k,
            lambda b, h, q, k: q - k <= h + c,
            lambda b, h, q, k: q - k < WIDTHS[h],
            lambda b, h, q, k: IDS[q] == IDS[k],
            lambda b, h, q, k: k < c,
            lambda b, h, q, k: q >= c,
            lambda b, h, q, k: (q - k) % 3 != c % 3,
            lambda b, h, q, k: ~((q - k).abs() < c),
            lambda b, h, q, k: 2 * q - k >= c,
            lambda b, h, q, k: (q >= k + c) | (k < 5),
        ]
    )


def draw(seed: int) -> tuple[Mask, tuple[float, float] | None, int, int]:
    """A mask, its bounds of kv - q (None: with a part that is no band), and lengths."""
    r = random.Random(seed)
    Sq, Skv = r.randrange(1, 40), r.randrange(1, 40)
    parts: list[Mask] = []
    lo, hi = float("-inf"), float("inf")
    for _ in range(r.choice([1, 1, 2, 2, 3])):
        edge = Skv - Sq + r.randrange(-16, 17)  # near the diagonal, on both sides of it
        mask, (low, high) = whole(r, r.randrange(0, 20), edge) if r.random() < 0.3 else half(r, edge)
        parts.append(mask)
        lo, hi = max(lo, low), min(hi, high)
    banded = r.random() < 0.75
    if not banded:
        parts.insert(r.randrange(len(parts) + 1), foreign(r))

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> torch.Tensor:
        value = parts[0](b, h, q, k)
        for part in parts[1:]:
            value = value & part(b, h, q, k)
        return value

    return mask_mod, (lo, hi) if banded else None, Sq, Skv


@pytest.mark.parametrize("hundred", range(2))
def test_a_random_band_is_the_rule_exactly(hundred: int) -> None:
    claims = 0
    for seed in range(100 * hundred, 100 * hundred + 100):
        mask_mod, band, Sq, Skv = draw(seed)
        claimed = found(mask_mod, Sq, Skv)
        if claimed is not None:
            claims += 1
            assert all(side is None or side >= 0 for side in (claimed.left, claimed.right)), (seed, claimed)
            dense = kept(mask_mod, Sq, Skv)
            assert torch.equal(dense, rule(claimed, Sq, Skv).expand_as(dense)), (seed, claimed, Sq, Skv)
        elif band is not None:  # a band with its diagonal inside is never missed
            assert not band[0] <= Skv - Sq <= band[1], (seed, band, Sq, Skv)
    assert claims > 20


@pytest.mark.parametrize("w", [NONE, CAUSAL, Window(7, 0), Window(0, 0), Window(None, 5), Window(5, None), Window(3, 4)], ids=str)
def test_the_kernel_is_asked_for_this_very_window(w: Window) -> None:
    """FlashAttention-4's own reading of the arguments: (causal, local, left, right)."""
    kernel = Kernel(None, torch.device("cpu"), Direction({}, None, w), Direction({}), (), "")
    given = kernel.arguments(kernel.forward)
    asked = _resolve_causal_local_window(given["causal"], given["window_size_left"], given["window_size_right"])
    assert asked == ((True, False, None, None) if w.causal else (False, w != NONE, w.left, w.right))
    assert str(w) == ("native causal" if w.causal else f"native window ({w.left}, {w.right})".replace("None", "∞"))
