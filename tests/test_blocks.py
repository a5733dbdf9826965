"""The block map: exact against the dense mask, for masks that intervals decide and masks that they do not, at ragged sizes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

import cute_lab
from cute_lab import blocks

TENSORS = (
    "kv_num_blocks",
    "kv_indices",
    "full_kv_num_blocks",
    "full_kv_indices",
    "q_num_blocks",
    "q_indices",
    "full_q_num_blocks",
    "full_q_indices",
)


def random_mask(seed: int) -> Callable[..., torch.Tensor]:
    """And/or of comparisons as masks have them: windows, blocks, strides, heads, tables; some true or false nearly everywhere."""
    r = random.Random(seed)
    ids = torch.tensor(sorted(r.randrange(6) for _ in range(600)))
    widths = torch.tensor([r.randrange(1, 200) for _ in range(3)])

    def atom() -> Callable[..., torch.Tensor]:
        c, d, e = r.randrange(-50, 300), r.choice([1, 2, 3, 7, 16, 64]), r.randrange(0, 3)
        return r.choice(
            [
                lambda b, h, q, k: q - k >= c,
                lambda b, h, q, k: k < c,
                lambda b, h, q, k: q // d == k // d,
                lambda b, h, q, k: (q - k) % d <= e,
                lambda b, h, q, k: ids[q] == ids[k],
                lambda b, h, q, k: (q - k).abs() <= widths[h],
                lambda b, h, q, k: q * 2 + c > k,
                lambda b, h, q, k: (q == c) | (k != c + 1),
                lambda b, h, q, k: (q & d) == (k & d),
                lambda b, h, q, k: b * 100 + q >= k,
                lambda b, h, q, k: (k * 0.5 - q).abs() < c,
                lambda b, h, q, k: torch.where(q < c, k < d, k >= d),
            ]
        )

    parts = [(r.choice(["and", "or", "not"]), atom()) for _ in range(r.randrange(1, 4))]

    def mask_mod(b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        value = q >= 0
        for how, part in parts:
            other = part(b, h, q, k)
            value = value & other if how == "and" else value & ~other if how == "not" else value | (other & (q >= k))
        return value

    return mask_mod


@pytest.mark.parametrize("seed", range(24))
def test_random_masks_are_exact(seed: int) -> None:
    r = random.Random(1000 + seed)
    B, H, Sq, Skv = r.choice([1, 2]), r.choice([1, 3]), r.randrange(1, 500), r.randrange(1, 500)
    mask_mod = random_mask(seed)
    lab = cute_lab.attention(mask_mod=mask_mod, B=B, H=H, Sq=Sq, Skv=Skv, D=64, target="sm_90a")
    dense = lab.apply_mask()
    for block in ((128, 128), (64, 96), (r.randrange(1, 40), r.randrange(1, 40))):
        found = lab.blocks(block)
        assert found.kept_cells == int(dense.sum()), (seed, block)
        expected = create_block_mask(mask_mod, B, H, Sq, Skv, device="cpu", BLOCK_SIZE=block)
        for name in TENSORS:
            assert torch.equal(getattr(found.to_block_mask(), name), getattr(expected, name)), (seed, block, name)


def test_intervals_decide_most_of_a_window() -> None:
    """The generated code is asked about the boundary only; the whole square would be a million blocks."""
    asked: list[int] = []

    class Counting(blocks.Grid):
        def count(self, text: str, rows, columns):  # type: ignore[no-untyped-def]
            asked.append(len(rows))
            return super().count(text, rows, columns)

    lab = cute_lab.attention(
        mask_mod=lambda b, h, q_idx, kv_idx: (q_idx >= kv_idx) & (q_idx - kv_idx < 4096), Sq=1 << 17, D=64, target="sm_90a"
    )
    grid = Counting(lab.program, lab.program.mask.output, lab.shape, (128, 128), 0, 0)
    kinds, kept = grid.classify(lab.source)
    assert kinds.shape == (1024, 1024)
    assert asked == [1024 + 1024 - 32]  # the diagonal and the far edge of the window
    assert kept == sum(min(q + 1, 4096) for q in range(1 << 17))


def test_no_mask_is_full_but_for_the_ragged_ends() -> None:
    lab = cute_lab.attention(score_mod=lambda score, b, h, q_idx, kv_idx: score * 2, Sq=200, Skv=333, D=64, target="sm_90a")
    found = lab.blocks((128, 128))
    assert found.kinds[0, 0].tolist() == [[2, 2, 1], [1, 1, 1]]
    assert (found.full, found.partial, found.empty, found.sparsity) == (2, 4, 0, 0.0)


def test_block_of_the_kernel_is_the_default() -> None:
    lab = cute_lab.attention(mask_mod=lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, Sq=1024, D=128, target=("sm_90a", "sm_100a"))
    assert lab.blocks().block == (128, 128)
    assert lab.block_of("sm_100a") == (256, 128)
    assert lab.blocks((256, 128)).kinds.shape == (1, 1, 4, 8)


def test_a_bad_block_is_refused() -> None:
    lab = cute_lab.attention(mask_mod=lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, Sq=64, D=64, target="sm_90a")
    with pytest.raises(cute_lab.CuteLabError, match="positive number of rows"):
        lab.blocks((0, 128))


def test_a_head_dim_without_a_kernel_still_has_a_map() -> None:
    lab = cute_lab.attention(mask_mod=lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, Sq=512, D=192, target=("sm_100a", "sm_90a"))
    assert lab.blocks().block == lab.block_of("sm_90a")
    alone = cute_lab.attention(mask_mod=lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, Sq=512, D=192, target="sm_100a")
    assert alone.blocks().block == (128, 128)
    assert [a.level for a in alone.advice()] == ["refused"]
