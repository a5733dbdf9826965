"""Every vector width of the generated functions: run on the CPU, compiled for GPUs that are not here, and what a GPU said."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from corpus import cases
from cute_lab import conform, host
from cute_lab.conform import Grid, Subject
from cute_lab.lab import attention
from cute_lab.tables import moved
from cute_lab.targets import TARGETS

TESTS = Path(__file__).parent
RECORD = TESTS / "records" / "h200_conformance.json"
EVERY_WIDTH = (1, 2, 4, 8, 32, 64, 128)
DENSE = ("softcap_sliding_gemma", "packed_docs_causal")  # at every width: run-time numbers, a table read at the keys
SPARSE = (  # at two widths: tables of every dtype and layout, chained reads, integer and float formulas
    "decomposed_rel_pos",
    "t5_bucket_lut",
    "fp16_log_capture",
    "cpb_gated_minus_one",
    "lane_pattern_gathers",
    "natten2d_clamped",
    "tree_bool_matrix_clamped",
    "unix_ms_window",
)
CROSS = {
    "softcap_sliding_gemma": ("score_mod", "mask_mod_packed"),
    "fp16_log_capture": ("score_mod_bwd", "score_mod"),
    "packed_docs_causal": ("mask_mod", "mask_mod_packed"),
}
CROSS_WIDTHS = (1, 2, 32, 128)
# Rows of the GPU's record that fail, and why that is no fault of the generated code: (case, function, width) -> reason.
EXPLAINED: dict[tuple[str, str, int], str] = {}


def subject(name: str) -> Subject:
    case = cases.build(name)
    return Subject.of(attention(case.score_mod, case.mask_mod, B=case.B, H=case.H, Hkv=case.Hkv, Sq=case.Sq, Skv=case.Skv, D=case.D))


def ragged(s: Subject) -> tuple[Grid, ...]:
    """100 queries and 77 keys, neither a multiple of a width, at the start and up to the very end; first and last batch entry and head."""
    B, H, Sq, Skv = s.shape.B, s.shape.H, s.shape.Sq, s.shape.Skv
    q, keys = min(Sq, 100), min(Skv, 77)
    start = host.grid_rows([0], [0], range(q))
    end = host.grid_rows([B - 1], [H - 1], range(Sq - q, Sq))
    return Grid(start, 0, keys), Grid(end, Skv - keys, keys)


def verdicts(rows: list[conform.Conformance]) -> dict[tuple[str, int], Any]:
    return {(r.what, r.width): r.error or (r.ok, r.check and r.check.worst) for r in rows}


# -- on the CPU -----------------------------------------------------------------------------------------------------------
@pytest.mark.host
@pytest.mark.parametrize("name", [*DENSE, *SPARSE])
def test_every_width_is_what_torch_says(name: str) -> None:
    s = subject(name)
    widths = EVERY_WIDTH if name in DENSE else (2, 32)
    rows = conform.check(s, widths, "host", ragged(s))
    assert set(verdicts(rows)) == set(conform.plan(s, widths))
    assert all(row.ok for row in rows), verdicts(rows)
    assert all(row.check is not None and row.check.points == sum(len(g.rows) * g.keys for g in ragged(s)) for row in rows)


@pytest.mark.host
def test_rows_shorter_than_a_vector() -> None:
    s = subject("single_token")
    rows = conform.check(s, (8, 128), "host")
    assert {row.what for row in rows} == set(conform.FORMS)
    assert all(row.ok for row in rows), verdicts(rows)


@pytest.mark.host
def test_packed_words_of_fewer_lanes_fill_the_low_bits() -> None:
    s = subject("streaming_sink_window")
    grid = ragged(s)[1]
    right = conform.expected(s, "mask_mod_packed", grid)
    for width in (4, 16, 64):
        function = conform.build(s, "mask_mod_packed", width, "host")
        assert torch.equal(conform.launch(function, s, "mask_mod_packed", width, grid, "host").bool(), right), width


@pytest.mark.host
def test_one_head_of_a_lab() -> None:
    case = cases.build("per_head_windows")
    lab = attention(None, case.mask_mod, B=case.B, H=case.H, Hkv=case.Hkv, Sq=case.Sq, Skv=case.Skv, D=case.D)
    for what, width in (("mask_mod", 8), ("mask_mod_packed", 32)):
        assert torch.equal(conform.run(lab, width, what, 0, 3, "host").bool(), lab.apply_mask()[0, 3])


@pytest.mark.host
@pytest.mark.parametrize(
    ("name", "right", "wrong", "where"),
    [
        ("alibi_interpolated_slopes", "score + (", "score - (", {"score_mod"}),
        ("softcap_sliding_gemma", "- first", "- first + 1", {"mask_mod_packed"}),
        ("packed_docs_causal", " << lane", " << (lane ^ 1)", {"mask_mod_packed"}),
        ("prefix_lm_per_batch", "aux_scalars[0], cutlass.Int32, (4,), (1,)", "aux_scalars[0], cutlass.Int32, (4,), (0,)", {"mask_mod"}),
    ],
)
def test_a_planted_bug_is_found(name: str, right: str, wrong: str, where: set[str]) -> None:
    s = subject(name)
    assert right in s.text
    planted = dataclasses.replace(s, text=s.text.replace(right, wrong, 1))
    rows = conform.check(planted, (2, 32), "host", ragged(s))
    assert {row.what for row in rows if not row.ok} == where, verdicts(rows)
    assert all(row.check is not None and row.check.worst is not None for row in rows if not row.ok)


@pytest.mark.host
def test_a_text_that_does_not_compile_is_a_row() -> None:
    s = subject("prefix_lm_per_batch")
    wrong = dataclasses.replace(s, text=s.text.replace("q_idx >= kv_idx", "q_idx >= no_such_name", 1))
    rows = conform.check(wrong, (2, 32), "host", ragged(s))
    assert {(row.what, row.width): row.ok for row in rows} == {
        ("mask_mod", 2): False,
        ("mask_mod", 32): False,
        ("mask_mod_packed", 32): True,
    }
    assert all((row.check is None) == ("no_such_name" in row.error) == (not row.ok) for row in rows)


def test_a_result_is_neither_too_short_nor_too_long() -> None:
    """A stand-in for a kernel that writes too much, and one that writes nothing."""
    s = subject("alibi_interpolated_slopes")
    grid = ragged(s)[0]

    def too_much(leads: Any, out: torch.Tensor, *rest: Any) -> None:
        out.as_strided((out.numel() + 1,), (1,)).zero_()

    with pytest.raises(AssertionError, match="score_mod at width 8 wrote behind the end"):
        conform.launch(too_much, s, "score_mod", 8, grid, "host")
    for what in s.functions:
        right = conform.expected(s, what, grid)
        nothing = conform.launch(lambda *a: None, s, what, 32, grid, "host")
        assert not conform.compare(s, what, grid, nothing, right, 1e-5).ok, what


def test_a_table_keeps_its_layout_on_its_way() -> None:
    whole = torch.arange(24, dtype=torch.int16).view(4, 6)
    for table in (whole.t(), whole[1:, ::2], whole[2].expand(3, 6), whole[3, 5:].reshape(1)):
        there = moved(table, "cpu", copy=True)
        assert torch.equal(there, table)
        assert there.stride() == table.stride()


def test_a_long_sequence_is_cut_to_its_ends() -> None:
    s = subject("million_sliding_sink")
    first, last = conform.grids(s.shape)
    assert first.first == 0
    assert last.first + last.keys == s.shape.Skv
    right = conform.expected(s, "mask_mod", last)
    assert {int(q) for q in first.rows[:, 2]} >= {0, s.shape.Sq - 1}
    assert bool(right.any(1)[-1]) and not bool(right[-1].all())  # the window's edge lies within


def test_the_hash_is_of_the_code() -> None:
    text = "x = 1  # 12| y = f(x)\nreturn x                 # 14\n"
    assert conform.code_hash(text) == conform.code_hash("x = 1  # 345| other words\nreturn x\n")
    assert conform.code_hash(text) != conform.code_hash(text.replace("1", "2", 1))


# -- for GPUs that are not here -------------------------------------------------------------------------------------------
def crossed(name: str) -> list[tuple[str, str, int]]:
    return [(name, what, width) for what, width in conform.plan(subject(name), CROSS_WIDTHS) if what in CROSS[name]]


def refused(arch: str) -> list[tuple[str, str, int]]:
    """(case, function, width) that give no machine code for `arch`; in a process of its own, which a compiler's crash may end."""
    found = []
    for name in CROSS:
        s = subject(name)
        for _, what, width in crossed(name):
            ptx, cubin = conform.machine_code(s, what, width, arch)
            if not (f".target {arch}" in ptx and ".entry" in ptx and cubin.startswith(b"\x7fELF")):
                found.append((name, what, width))
    return found


@pytest.mark.cross
def test_every_width_compiles_for_hopper_and_blackwell() -> None:
    assert {what for name in CROSS for _, what, _ in crossed(name)} == set(conform.FORMS)
    archs = [TARGETS[name].cute_arch for name in ("sm_90a", "sm_100a")]
    with ProcessPoolExecutor(len(archs), mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(refused, archs)) == [[], []]


# -- what a GPU said ------------------------------------------------------------------------------------------------------
@pytest.mark.host
def test_the_script_for_the_gpu_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(TESTS.parent / "tools"))
    import gpu_conformance

    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["gpu_conformance.py", str(out), "--device", "host", "--widths", "1,32", "single_token"])
    assert gpu_conformance.main() == 0
    made = json.loads(out.read_text())
    s = subject("single_token")
    assert list(made["cases"]) == ["single_token"]
    assert made["cases"]["single_token"]["sha256"] == conform.code_hash(s.text)
    assert [(r["what"], r["width"], r["ok"]) for r in made["cases"]["single_token"]["rows"]] == [
        (*x, True) for x in conform.plan(s, (1, 32))
    ]
    assert "1 of 1 cases and 7 of 7 rows pass" in capsys.readouterr().out


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def test_the_record_is_of_a_gpu_and_of_the_whole_corpus(record: dict[str, Any]) -> None:
    assert "cpu" not in record["environment"]["device"]
    assert all(record["environment"][name] for name in ("torch", "nvidia-cutlass-dsl", "device"))
    assert list(record["cases"]) == [make.__name__ for make in cases.ALL if make().kind == "valid"]


def test_every_row_of_the_record_passes_or_is_explained(record: dict[str, Any]) -> None:
    rows = {(name, row["what"], row["width"]): row for name, case in record["cases"].items() for row in case["rows"]}
    assert {key for key, row in rows.items() if not row["ok"]} == set(EXPLAINED)
    for (_, what, _), row in rows.items():
        if row["ok"]:
            assert float(row["check"]["max_rel_error"]) <= row["check"]["tolerance"] <= 1e-4
            assert row["check"]["tolerance"] == 0.0 or not what.startswith("mask_mod")


def test_the_record_is_of_the_code_that_is_generated_today(record: dict[str, Any]) -> None:
    old = []
    for name, case in record["cases"].items():
        s = subject(name)
        old += [name] if conform.code_hash(s.text) != case["sha256"] else []
        assert [(row["what"], row["width"]) for row in case["rows"]] == conform.plan(s), name
    assert old == [], "the printer has changed since: make the record anew with tools/gpu_conformance.py"
