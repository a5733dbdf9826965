"""The records of an H200: complete, passed, and fast; what falls short is in docs/throughput.md, with the reason."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from corpus import cases
from cute_lab import suite, targets, throughput
from cute_lab.suite_record import SuiteRecord, load

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "tests" / "records"
sys.path.insert(0, str(ROOT / "tools"))
import gpu_blocks  # noqa: E402
import gpu_module  # noqa: E402
import throughput_docs  # noqa: E402

WHOLE = ("h200_mha_d128", "h200_gqa_d128", "h200_mha_d64", "h200_2k_32k")  # every variant, forward and backward
SUITES = {name: load(RECORDS / f"{name}.json") for name in throughput_docs.FILES}


FLASH_FORWARD = ("flex_flash", "forward", "timed")


@pytest.mark.parametrize("name", SUITES)
def test_cute_lab_is_right_wherever_it_is_timed(name: str) -> None:
    found = SUITES[name]
    assert isinstance(found, SuiteRecord)
    for record in found.records:
        assert record.bench is not None and not record.bench.stopped
        ours = [t for t in record.bench.timings if t.contender == throughput.OURS]
        assert ours
        for t in ours:
            assert t.status == "timed", (record.name, t.reason)
            assert {a.tensor for a in t.accuracy} >= ({"out"} if t.direction == "forward" else {"out", "dq", "dk", "dv"})
            assert all(a.ok for a in t.accuracy)
            assert len(t.samples_us) == record.bench.rounds >= 8
        assert all(check.ok for check in record.checks)


def test_the_suite_is_covered() -> None:
    variants = {v.name for v in suite.read("hopper").variants}
    for name in WHOLE:
        found = SUITES[name]
        assert isinstance(found, SuiteRecord)
        assert {r.name for r in found.records} == variants


@pytest.mark.parametrize("name", WHOLE)
def test_beside_flash_every_interval_reaches_the_aim(name: str) -> None:
    found = SUITES[name]
    assert isinstance(found, SuiteRecord)
    for record in found.records:
        assert record.bench is not None
        for ours in (t for t in record.bench.timings if t.contender == throughput.OURS):
            other = throughput.find(record.bench, "flex_flash", ours)
            assert other is not None
            estimate = throughput.ratio(ours, other)
            if estimate is None:
                assert other.status in ("wrong", "failed")  # a wrong contender shows no speed
            else:
                assert estimate.high >= 0.97, (record.name, ours.direction, estimate)


def test_at_d_128_every_forward_is_a_quarter_faster_than_triton() -> None:
    for name in ("h200_mha_d128", "h200_gqa_d128", "h200_2k_32k"):
        found = SUITES[name]
        assert isinstance(found, SuiteRecord)
        for record in found.records:
            assert record.bench is not None
            for ours in (t for t in record.bench.timings if t.contender == throughput.OURS and t.direction == "forward"):
                other = throughput.find(record.bench, "flex_triton", ours)
                assert other is not None
                estimate = throughput.ratio(ours, other)
                assert estimate is not None and estimate.median >= 1.25, (record.name, ours.shape, estimate)


def test_inductors_backward_with_grouped_heads_is_found_wrong() -> None:
    """Its text trusts the positions that FlashAttention-4's SM90 backward hands over: wrong for every score_mod that reads them."""
    found = SUITES["h200_gqa_d128"]
    assert isinstance(found, SuiteRecord)
    wrong = {r.name for r in found.records if r.bench for t in r.bench.timings if (t.contender, t.status) == ("flex_flash", "wrong")}
    assert wrong == {"alibi", "alibi_causal", "alibi_table", "relative_bias", "relative_bias_heads", "where_constants"}
    right = {r.name for r in found.records if r.bench for t in r.bench.timings if (t.contender, t.direction, t.status) == FLASH_FORWARD}
    assert right == {r.name for r in found.records} - {"where_constants"}  # there the forward is wrong too


def test_the_page_is_made_from_the_records() -> None:
    assert throughput_docs.PAGE.read_text(encoding="utf-8") == throughput_docs.page()


def test_the_corpus_passes_forward_and_backward() -> None:
    stored = json.loads((RECORDS / "h200_corpus.json").read_text())["cases"]
    assert set(stored) == {make.__name__ for make in cases.ALL if (case := make()).kind == "valid" and case.Sq <= 4096}
    assert all(run["ok"] and len(run["errors"]) == 4 for row in stored.values() for run in row.values())


def test_block_lists_of_every_legal_geometry_are_taken() -> None:
    found = json.loads((RECORDS / "h200_blocks.json").read_text())
    wanted = set(gpu_blocks.geometries(targets.target_named(found["target"])))
    assert {(r["direction"], r["D"], tuple(r["block"])) for r in found["geometries"]} == wanted
    assert all(r["ok"] and len(r["errors"]) == (1 if r["direction"] == "forward" else 3) for r in found["geometries"])


def test_a_million_tokens_forward_and_backward() -> None:
    found = json.loads((RECORDS / "h200_blocks.json").read_text())["million"]
    assert {name.split()[0] for name in found["errors"]} == {"out", "dq", "dk", "dv"}
    assert found["ok"] and all(e["error"] <= e["limit"] for e in found["errors"].values())


def test_a_slider_compiles_nothing_and_edits_are_never_stale() -> None:
    found = json.loads((RECORDS / "h200_sliders.json").read_text())
    runs = 2  # of the kernel, in the step that was measured
    for name, row in found["steps"].items():
        assert all(step["compiled"] == 0 for step in row["steps"]), name
        own = sorted(step["ms"] - runs * step["kernel_ms"] for step in row["steps"])
        assert own[len(own) // 2] < 60
    edits = found["edits"]["rows"]
    assert len(edits) == 100 and all(row["ok"] for row in edits)
    assert sum(row["moved"][0] > 0 for row in edits[1:]) > 80  # the edits did change the result
    assert found["edits"]["growth_of_the_last_half"]["device_kib"] == 0
    assert found["edits"]["growth_of_the_last_half"]["host_mib"] < 20


def test_exported_modules_pass_their_own_tests() -> None:
    found = json.loads((RECORDS / "h200_modules.json").read_text())["cases"]
    assert set(found) == set(gpu_module.CASES)
    for row in found.values():
        assert row["ok"] and {"test", "half"} <= set(row["said"])
        assert all(words.startswith(("the kernel equals", "equal in float32")) for words in row["said"].values())
    assert sum("at 333 x 333" in row["said"] for row in found.values()) >= 5
    assert any("other numbers, the same module" in row["said"] for row in found.values())


def test_a_notebook_is_watched_stopped_and_verified() -> None:
    found = json.loads((RECORDS / "h200_notebook.json").read_text())
    live, shared = found["live"], found["shared"]
    for when in ("stop by the comm", "stop by an interrupt"):
        stopped = live[when]
        assert stopped["over_s"] < 1 and stopped["reply"] == "ok" and stopped["idle"] is None
        assert "stopped: True" in stopped["kept"] and "'timed', 1" in stopped["kept"]
        assert all(running["left_seconds"] > 100 for running, _ in stopped["watched"])
    (gpu, *_) = live["after a bench"]["gpus"]
    assert (gpu["name"], gpu["target"]) == ("NVIDIA H200", "sm_90a") and 0 < gpu["memory_used"] < gpu["memory_total"] and gpu["sm_mhz"] > 0
    assert all("nothing was compiled" in step and "TFLOP/s" in step for step in live["a panel's steps, ms"])
    assert [shared["as it is"]["exit"], shared["made faster"]["exit"]] == [0, 1]
    assert "6 intervals as before or overlapping, on NVIDIA H200" in shared["as it is"]["said"]
    assert "times as long" in shared["made faster"]["said"]
