"""The vectorised forms that SM100 takes, on the host: a score_mod at every width up to 128, a mask as packed words of 32 lanes."""

from __future__ import annotations

import pytest
import torch

from corpus import cases
from cute_lab import cutedsl, host, host_kernels, packed
from cute_lab.record import Shape
from cute_lab.trace import build

WIDTHS = (1, 2, 4, 16, 32, 64, 128)
VALID = [make for make in cases.ALL if make().kind == "valid"]
SCORES = [make.__name__ for make in VALID if make().score_mod is not None]
MASKS = [make.__name__ for make in VALID if make().mask_mod is not None]
WIDE = (
    "softcap_sliding_gemma",
    "alibi_interpolated_slopes",
    "lane_pattern_gathers",
    "ops_medley_a",
)  # these at every width, the rest at 32
COLUMNS = 128


def program(case: cases.Case):
    shape = Shape(case.B, case.H, case.Hkv, case.Sq, case.Skv, case.D, "bf16")
    return build(case.score_mod, case.mask_mod, shape).program


def grid(case: cases.Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Some rows of all heads, and the last whole run of 128 keys (the first, where keys are fewer: clamped)."""
    rows = host.grid_rows(range(case.B), range(case.H), sorted({0, case.Sq // 3, case.Sq // 2, case.Sq - 1}))
    start = max(0, (case.Skv - COLUMNS) // 32 * 32)
    return rows, torch.arange(start, start + COLUMNS, dtype=torch.int32).clamp(max=case.Skv - 1)


@pytest.mark.parametrize("name", SCORES)
def test_score_does_not_depend_on_the_width(name: str) -> None:
    case = cases.build(name)
    p = program(case)
    text = cutedsl.emit(p).text
    rows, kv = grid(case)
    scores = torch.randn(len(rows), COLUMNS, generator=torch.Generator().manual_seed(1)) * 4
    one = host.score(text, scores, rows, kv, p.tables, p.scalars, 1)
    assert not torch.equal(one, scores)
    for lanes in WIDTHS[1:] if name in WIDE else (32,):
        many = host.score(text, scores, rows, kv, p.tables, p.scalars, lanes)
        assert torch.allclose(many, one, rtol=2e-6, atol=2e-6, equal_nan=True), (name, lanes, float((many - one).abs().nan_to_num().max()))


@pytest.mark.parametrize("name", MASKS)
def test_packed_words_are_the_mask(name: str) -> None:
    case = cases.build(name)
    p = program(case)
    text = cutedsl.emit(p, packed.functions(p)).text
    rows, kv = grid(case)
    if case.Skv < COLUMNS:  # clamped keys are no run of lanes: FlashAttention-4 masks those beyond the end itself
        kv = torch.arange(COLUMNS, dtype=torch.int32)
        if p.tables:
            kv = kv[: case.Skv // 32 * 32]
    if not kv.numel():
        kv = torch.arange(32, dtype=torch.int32)
        if p.tables:
            pytest.fail("a case with fewer than 32 keys and a table: give it more keys")
    expected = host.mask(text, rows, kv, p.tables, p.scalars)
    for lanes in [w for w in (32, 64, 128) if kv.numel() % w == 0]:
        words = torch.zeros(len(rows), kv.numel() // 32, dtype=torch.int32)
        out = (words.view(torch.uint32),)
        host.over_rows(host_kernels.packed_rows, text, "mask_mod_packed", out, rows, kv, p.tables, p.scalars, lanes)
        bits = (words[:, :, None] >> torch.arange(32)) & 1
        assert torch.equal(bits.bool().reshape(len(rows), -1), expected), (name, lanes)


def test_linear_masks_pack_as_runs() -> None:
    """Which masks take the fast form, and what stands in the way of the others."""
    words = {name: packed.form(p).words(p.mask) for name in MASKS if (p := program(cases.build(name))).mask is not None}
    assert words["softcap_sliding_gemma"] == "packed: 2 runs of lanes"
    assert words["prefix_lm_per_batch"] == "packed: 2 runs of lanes"
    assert words["streaming_sink_window"] == "packed: 3 runs of lanes"
    assert words["packed_docs_causal"] == "per lane: `doc[q_idx] == doc[kv_idx]`"
    assert words["bool_table_query_major"] == "per lane: `table[q_idx, b, kv_idx]`"
