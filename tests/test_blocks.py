"""The block map: exact against the dense mask, for masks that intervals decide and masks that they do not, at ragged sizes."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

import cute_lab
from corpus import cases
from cute_lab import blocks
from cute_lab.extremes import Extremes

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
        lists_agree(found)


# (mask, S, the blocks whose cells are run): the work is the boundary's, whatever the area
LONG = 1 << 17
ALONG = LONG // 128
DOCUMENT = torch.repeat_interleave(torch.arange(128), 1024).to(torch.int32)
STARTS = DOCUMENT * 1024
BOUNDARIES: dict[str, tuple[Callable[..., torch.Tensor], int]] = {
    "causal": (lambda b, h, q, k: q >= k, ALONG),
    "window": (lambda b, h, q, k: (q >= k) & (q - k < 4096), 2 * ALONG - 32),
    "sink and window": (lambda b, h, q, k: (q >= k) & ((q - k < 4096) | (k < 4)), 3 * ALONG - 65),
    "prefix": (lambda b, h, q, k: (k < 1024) | (q >= k), ALONG - 8),
    "documents by id": (lambda b, h, q, k: (DOCUMENT[q] == DOCUMENT[k]) & (q >= k), ALONG),
    "documents by start": (lambda b, h, q, k: (k >= STARTS[q]) & (q >= k), ALONG),
    "not causal": (lambda b, h, q, k: ~(q >= k), ALONG),
    "nothing": (lambda b, h, q, k: (q - k > LONG) | (k < 0), 0),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_the_work_is_the_boundarys(name: str) -> None:
    mask_mod, asked = BOUNDARIES[name]
    found = cute_lab.attention(mask_mod=mask_mod, H=1, Sq=LONG, D=64, target="sm_90a").blocks(128)
    assert found.classifier is not None
    assert found.classifier.asked == asked
    assert found.classifier.bounded < 24 * ALONG
    rows = random.Random(name).sample(range(ALONG), 6)
    dense = cute_lab.attention(mask_mod=mask_mod, H=1, Sq=LONG, D=64, target="sm_90a")
    for i in rows:  # whole rows of blocks, cell by cell
        kept = dense.apply_mask(q=slice(128 * i, 128 * i + 128)).view(128, ALONG, 128).sum((0, 2))
        kinds = torch.where(kept == 0, 0, torch.where(kept == 128 * 128, 2, 1))
        assert torch.equal(torch.from_numpy(found.kinds[0, 0, i]).long(), kinds), (name, i)


def test_kept_cells_of_a_long_window() -> None:
    lab = cute_lab.attention(mask_mod=lambda b, h, q, k: (q >= k) & (q - k < 4096), H=1, Sq=LONG, D=64, target="sm_90a")
    assert lab.blocks(128).kept_cells == sum(min(q + 1, 4096) for q in range(LONG))


def test_cells_are_counted_as_the_tensors_were() -> None:
    """The map stands for the mask of its moment, whenever its cells are counted."""
    allowed = torch.zeros(300, dtype=torch.bool)
    allowed[:7] = True
    found = cute_lab.attention(mask_mod=lambda b, h, q, k: allowed[k], H=1, Sq=300, D=64, target="sm_90a").blocks(128)
    allowed[:] = True
    assert (found.partial, found.kept_cells) == (3, 7 * 300)


def test_what_nothing_decides_is_run_at_once() -> None:
    table = torch.rand(4096, generator=torch.Generator().manual_seed(0)) < 0.5
    lab = cute_lab.attention(mask_mod=lambda b, h, q, k: table[(q * 31 + k * 17) % 4096], Sq=1 << 14, D=64, target="sm_90a")
    found = lab.blocks(128)
    assert found.classifier is not None
    assert found.partial == found.classifier.asked == 128 * 128
    assert found.classifier.bounded < found.classifier.asked / 2


def test_a_periodic_mask_is_not_given_up() -> None:
    """No square larger than its period is decided, and every block is."""
    lab = cute_lab.attention(mask_mod=lambda b, h, q, k: (q // 128 + k // 128) % 2 == 0, H=1, Sq=1 << 14, D=64, target="sm_90a")
    found = lab.blocks(128)
    assert found.classifier is not None
    assert (found.full, found.empty, found.classifier.asked) == (1 << 13, 1 << 13, 0)


@pytest.mark.parametrize("cell", [True, False])
def test_one_cell_makes_a_block_partial(cell: bool) -> None:
    """Whichever it is, the last of its block too."""
    for q0, k0 in ((0, 0), (127, 127), (5, 100), (383, 255), (300, 0)):
        lab = cute_lab.attention(mask_mod=lambda b, h, q, k: ((q == q0) & (k == k0)) == cell, H=1, Sq=384, Skv=256, D=64, target="sm_90a")  # noqa: B023
        found = lab.blocks(128)
        expected = np.full((3, 2), 0 if cell else 2)
        expected[q0 // 128, k0 // 128] = 1
        assert found.kinds[0, 0].tolist() == expected.tolist()
        assert found.kept_cells == (1 if cell else 384 * 256 - 1)


def test_heads_with_the_same_blocks_share_a_map() -> None:
    """A mask may read the head, and still no block depends on it: no list per head, which the kernel would not pack."""
    same, own = torch.tensor([5, 5, 5]), torch.tensor([5, 5, 500])
    both = cute_lab.attention(mask_mod=lambda b, h, q, k: (q + 200 * b >= k) & (same[h] == 5), B=2, H=3, Sq=1024, D=64, target="sm_90a")
    assert both.blocks(128).kinds.shape[:2] == (2, 1)
    for widths, Hm in ((same, 1), (own, 3)):
        lab = cute_lab.attention(mask_mod=lambda b, h, q, k: (q - k).abs() < widths[h], B=2, H=3, Sq=1024, D=64, target="sm_90a")  # noqa: B023
        found = lab.blocks(128)
        assert found.kinds.shape[:2] == (1, Hm)
        assert found.kept_cells == int(lab.apply_mask().sum())
        expected = create_block_mask(lab.mask_mod, 2, 3, 1024, 1024, device="cpu", BLOCK_SIZE=128)
        assert all(torch.equal(getattr(found.to_block_mask(), n), getattr(expected, n)) for n in TENSORS)


VALID = [make for make in cases.ALL if (case := make()).kind == "valid" and case.mask_mod is not None and case.Sq * case.Skv <= 1 << 24]


@pytest.mark.parametrize("make", VALID, ids=lambda make: make.__name__)
def test_the_corpus_equals_torch(make: Callable[[], cases.Case]) -> None:
    case = make()
    lab = cute_lab.attention(
        case.score_mod, case.mask_mod, B=case.B, H=case.H, Hkv=case.Hkv, Sq=case.Sq, Skv=case.Skv, D=case.D, target="sm_90a"
    )
    for block in ((128, 128), (256, 128), (64, 96)):
        found = lab.blocks(block)
        expected = create_block_mask(case.mask_mod, case.B, case.H, case.Sq, case.Skv, device="cpu", BLOCK_SIZE=block)
        for name in TENSORS:
            assert torch.equal(getattr(found.to_block_mask(), name), getattr(expected, name)), (block, name)
        lists_agree(found)


def lists_agree(found: blocks.BlockMap) -> None:
    """FlashAttention-4's lists, both directions, and the tiles of a picture hold the blocks of the map."""
    for transposed, dense in ((False, found.kinds), (True, found.kinds.swapaxes(2, 3))):
        for kind in (blocks.PARTIAL, blocks.FULL):
            counts, indices = found.lists(kind, transposed=transposed)
            assert (counts.dtype, indices.dtype) == (torch.int32, torch.int32)
            assert indices.shape[-1] == max(1, int(counts.max())) <= max(1, dense.shape[-1])
            made = np.zeros(dense.shape, bool)
            for at in np.ndindex(dense.shape[:3]):
                row = indices[at][: counts[at]].tolist()
                assert row == sorted(row)
                made[at][row] = True
            assert np.array_equal(made, dense == kind)
    packed = blocks.Runs.unpack(found.runs.pack(), found.runs.groups, found.runs.rows, found.runs.width)
    assert np.array_equal(packed.dense(), found.runs.dense())
    assert np.array_equal(blocks.Runs.of_dense(found.runs.dense()).start, found.runs.start)
    for tile in ((1, 1), (2, 3), (7, 5)):
        counted = found.runs.tiles(*tile)
        for kind in range(3):
            dense = (found.kinds == kind).reshape(-1, *found.kinds.shape[2:])
            padded = np.pad(dense, ((0, 0), *((0, -n % t) for n, t in zip(dense.shape[1:], tile, strict=True))))
            down, across = padded.shape[1] // tile[0], padded.shape[2] // tile[1]
            assert np.array_equal(counted[kind], padded.reshape(-1, down, tile[0], across, tile[1]).sum((2, 4)))


@pytest.mark.parametrize("seed", range(40))
def test_extremes_are_never_too_narrow(seed: int) -> None:
    """And exact where a line is sorted, or where a box starts and ends with a tile."""
    r = np.random.default_rng(seed)
    sizes = tuple(r.integers(1, 90, size=int(r.integers(1, 4))))
    kind = seed % 4
    x = torch.from_numpy(r.integers(-50, 50, sizes))
    x = x.sort(-1).values if kind == 1 else x.double() if kind == 2 else x > 0 if kind == 3 else x
    if kind == 2 and seed % 8 == 2:
        x.view(-1)[int(r.integers(x.numel()))] = float("nan")
    ends = [np.sort(r.integers(0, n, (2, 60)), axis=0) for n in sizes]
    if seed % 3 == 0:  # one index runs
        ends = [e if axis == len(sizes) - 1 else np.stack([e[0], e[0]]) for axis, e in enumerate(ends)]
    low, high = Extremes(x).over([e[0] for e in ends], [e[1] for e in ends])
    for n in range(60):
        part = x[tuple(slice(int(e[0, n]), int(e[1, n]) + 1) for e in ends)].double()
        if part.isnan().any():
            assert np.isnan(low[n]) or np.isnan(high[n])
            continue
        if not (np.isnan(low[n]) or np.isnan(high[n])):  # a NaN beside the box may be taken in
            assert low[n] <= float(part.min()) and high[n] >= float(part.max())
        if kind == 1 and (len(sizes) == 1 or seed % 3 == 0):
            assert (low[n], high[n]) == (float(part.min()), float(part.max()))


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


LARGE, SMALL = torch.full((64,), 2**53 + 1), torch.full((64,), 2**50)
ENDS = torch.full((64,), -(2**63) + 1)
EXTREME: dict[str, Callable[..., torch.Tensor]] = {
    "2**53 + 1 is not 2**53": lambda b, h, q, k: (LARGE[q] == 2**53) & (k >= 0),
    "nor is its negative": lambda b, h, q, k: (-LARGE[q] < -(2**53)) & (k >= 0),
    "sums beyond 2**53": lambda b, h, q, k: (k.long() + 2**53) > 2**53,
    "xor of large numbers": lambda b, h, q, k: (SMALL[q] ^ k) > 2**50 - 1,
    "or of large numbers": lambda b, h, q, k: (SMALL[q] | k) <= 2**50 + 5,
    "and of large numbers": lambda b, h, q, k: ((LARGE - 1)[q] & (k + 64)) >= 64,
    "a large remainder": lambda b, h, q, k: ((LARGE - 1)[q] % -3) == 0,
    "not of a large number": lambda b, h, q, k: ~(LARGE - 1)[q] == -(2**53),
    "a quotient at the end of int64": lambda b, h, q, k: (ENDS[q] // 2047) >= -4505799724892416,
    "float16 below its least": lambda b, h, q, k: ((k * 1e-9).half() > 4e-8) & (q >= 0),
    "float16's least": lambda b, h, q, k: ((k * 1e-9).half().float() == 0) & (q >= 0),
}


@pytest.mark.parametrize("name", EXTREME)
def test_numbers_at_the_ends_of_their_dtypes(name: str) -> None:
    """Against torch, not the generated code: a bound that is too narrow would fold a comparison there too."""
    lab = cute_lab.attention(mask_mod=EXTREME[name], H=1, Sq=64, D=64, target="sm_90a")
    kept = torch.stack([EXTREME[name](*(torch.tensor(0, dtype=torch.int32),) * 2, torch.tensor(q, dtype=torch.int32), torch.arange(64, dtype=torch.int32)).expand(64) for q in range(64)])  # fmt: skip  # noqa: E501
    assert torch.equal(lab.apply_mask()[0, 0], kept)
    for size in (1, 16):
        found = lab.blocks(size)
        cells = kept.view(64 // size, size, 64 // size, size).sum((1, 3))
        expected = torch.where(cells == 0, 0, torch.where(cells == size * size, 2, 1))
        assert torch.equal(torch.from_numpy(found.kinds[0, 0]).long(), expected)
        assert found.kept_cells == int(kept.sum())


@pytest.mark.parametrize("block", [2**31 - 1, (1, 2**31 - 1), (2**30, 7), 2**20])
def test_blocks_beyond_the_sequence(block: int | tuple[int, int]) -> None:
    lab = cute_lab.attention(mask_mod=lambda b, h, q, k: q >= k, H=1, Sq=300, Skv=70, D=64, target="sm_90a")
    found = lab.blocks(block)
    assert found.kept_cells == int(lab.apply_mask().sum())
    assert found.empty == 0 or found.kinds.shape[2:] == (300, 1)


@pytest.mark.parametrize("block", [(128,), (1, 2, 3), (0, 1), "128", 1.5, (True, 1), 2**31, (64, None)])
def test_what_is_no_block(block: object) -> None:
    lab = cute_lab.attention(mask_mod=lambda b, h, q, k: q >= k, H=1, Sq=300, D=64, target="sm_90a")
    with pytest.raises(cute_lab.CuteLabError, match="a block "):
        lab.blocks(block)  # type: ignore[arg-type]
    assert str(lab.blocks([np.int64(64), torch.tensor(64)])) == str(lab.blocks(64))  # type: ignore[arg-type]


def test_a_block_of_too_many_cells() -> None:
    lab = cute_lab.attention(mask_mod=lambda b, h, q, k: q >= k, H=1, Sq=65536, D=64, target="sm_90a")
    with pytest.raises(cute_lab.CuteLabError, match="4,294,967,296 cells"):
        lab.blocks(65536)


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
