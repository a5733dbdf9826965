"""What a record keeps of PTX and SASS: the lines of the cell and the main loop, each at its place."""

from __future__ import annotations

import re

import pytest
import torch

from cute_lab import cell, lab, ptx
from cute_lab.excerpt import MOST, Excerpt, excerpt

PTX = """\
	.file	1 "/x/flash_fwd.py"
	.file	2 "<cute_lab:abc>"
	.loc	2 7 0
	add.f32 %f1, %f2, %f3;
	.pragma "nounroll";
	mul.f32 %f4, %f1, %f1;
$L__BB0_1:
	mov.u32 %r1, 0;
	.loc	1 20 3
	sub.f32 %f5, %f4, %f1;
	.loc	1 21 3
	neg.f32 %f6, %f5;
"""


def test_a_loc_holds_until_the_next_one_or_a_label() -> None:
    assert ptx.line_map(PTX, "<cute_lab:abc>", {}) == [(3, 7), (5, 7)]
    assert ptx.line_map(PTX, "<cute_lab:abc>", {("/x/flash_fwd.py", 21): 9}) == [(3, 7), (5, 7), (11, 9)]


def of_cell(found: Excerpt) -> dict[int, int]:
    return {line.number: line.user_line for line in found.lines if line.user_line}


def test_an_excerpt_has_the_cells_lines_with_what_is_around_them_and_the_loop() -> None:
    text = "".join(f"line {i}\n" for i in range(100))
    found = excerpt(text, {10: 4, 50: 5}, (60, 62))
    assert [line.number for line in found.lines] == [9, 10, 11, 12, 13, 49, 50, 51, 52, 53, 61, 62, 63]
    assert all(line.text == f"line {line.number - 1}" for line in found.lines)
    assert of_cell(found) == {11: 4, 51: 5}
    assert (found.total, found.loop) == (100, (61, 63))


def test_a_long_excerpt_keeps_the_cells_lines_first_those_of_the_loop() -> None:
    text = "x\n" * 20_000
    own = dict.fromkeys(range(0, 5000, 5), 3)
    found = excerpt(text, own, (5000, 9000))
    assert len(found.lines) == MOST
    found = excerpt(text, dict.fromkeys(range(9500), 3), (8000, 9000))
    assert set(range(8001, 9002)) <= set(of_cell(found))
    found = excerpt(text, own, None)
    assert set(of_cell(found)) == {row + 1 for row in own}


@pytest.mark.cross
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_the_listings_of_a_real_kernel_show_what_the_cell_became(target: str) -> None:
    text = (
        "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + (kv_idx * 0.01).exp2() * 20\n\n"
        "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"
    )
    mods = cell.from_text(text, {"torch": torch})
    record = lab.attention(mods.score_mod, mods.mask_mod, Sq=1024, D=128, target=target).record()
    listing = record.targets[0].listing
    assert listing is not None
    assert any(line.user_line == 2 for line in listing.sass.lines if "MUFU.EX2" in line.text)
    assert listing.sass.loop is not None
    assert set(range(listing.sass.loop[0], listing.sass.loop[1] + 1)) <= {line.number for line in listing.sass.lines}
    assert any(line.user_line == 2 for line in listing.ptx.lines if re.search(r"\bex2\.approx", line.text))
    assert len(listing.sass.data) + len(listing.ptx.data) < 40_000
