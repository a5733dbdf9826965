"""The gallery: each cell is a working one, says something while it is typed only where there is something to say, and has its picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from cute_lab import assist, gallery
from cute_lab.block_summary import BlockSummary
from cute_lab.codec import decode
from cute_lab.lab import Lab
from cute_lab.steps import ranges_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
try:
    import build_gallery
finally:
    sys.path.remove(str(ROOT / "tools"))

VARIANTS = {v.name: v for v in gallery.variants()}
NAMES = tuple(VARIANTS)


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    state = torch.get_rng_state()
    yield
    assert torch.equal(state, torch.get_rng_state()), "a cell of the gallery draws from the notebook's random numbers"


@pytest.fixture(scope="module")
def labs() -> dict[str, Lab]:
    return {name: build_gallery.lab_of(v.cell) for name, v in VARIANTS.items()}


def test_the_zoo_is_one() -> None:
    assert len(VARIANTS) >= 14
    assert len({v.title for v in VARIANTS.values()}) == len(VARIANTS)
    assert len({v.cell.partition("--out ")[2].split()[0] for v in VARIANTS.values()}) == len(VARIANTS)  # two may stand in one notebook
    for v in VARIANTS.values():
        assert v.cell.startswith("%%cute_attention --")
        assert v.words.endswith(".")
        assert len(v.words) <= 120, v.name


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_runs_and_its_code_is_right(labs: dict[str, Lab], name: str) -> None:
    lab = labs[name]
    proof = lab.verify()
    assert proof.ok, proof
    found = lab.blocks()
    assert found.full + found.partial > 0
    if lab.mask_mod is not None:
        assert 0 < found.kept_cells < found.total_cells
    assert all(name not in lab.traced.fixed for name in ranges_of(lab)), "a slider that recompiles"


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_is_clean_while_it_is_typed(name: str) -> None:
    answer = assist.look(VARIANTS[name].cell, {})
    assert answer.ran, answer.why
    assert [d for d in answer.diagnostics if d.severity != "info"] == []


def test_the_saved_maps_are_those_of_the_cells() -> None:
    for path, text in build_gallery.texts().items():
        assert path.exists(), "python tools/build_gallery.py writes it"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: python tools/build_gallery.py"


def test_what_a_front_end_gets(labs: dict[str, Lab]) -> None:
    rows = gallery.as_json()
    assert [row["name"] for row in rows] == list(NAMES)
    assert rows == json.loads(build_gallery.FRONT.read_text(encoding="utf-8"))
    for row in rows:
        blocks: Any = row["blocks"]
        assert (blocks is None) == (labs[row["name"]].mask_mod is None)
        if blocks is not None:
            read = decode(BlockSummary, blocks, "blocks")
            assert read.kinds().shape[-1] <= 64
            assert read.kept_cells == labs[row["name"]].blocks(64).kept_cells
    assert len(json.dumps(rows)) < 60_000
