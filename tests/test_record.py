"""Records: what is written can be read, by this version and by the next one, and nothing else is let in."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cute_lab import block_summary
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.record import (
    BlockSummary,
    Check,
    Param,
    Worst,
    digest,
    environment,
    from_json,
    load,
    to_json,
)
from cute_lab.runs import Runs
from example_record import EXAMPLE, STORED, build_example


@pytest.fixture
def obj() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(EXAMPLE.read_text())
    return loaded


def test_example_is_what_its_builder_makes() -> None:
    stored = load(EXAMPLE)
    built = dataclasses.replace(build_example(), created=stored.created, environment=stored.environment)
    assert dataclasses.replace(built, checks=()) == dataclasses.replace(stored, checks=())
    ours, theirs = built.checks[0], stored.checks[0]  # numpy's tanh differs by an ulp between machines
    assert math.isclose(ours.max_abs_error, theirs.max_abs_error, rel_tol=0.5)
    assert stored.name.startswith("example")


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_stored_records_round_trip(path: Path, tmp_path: Path) -> None:
    stored = load(path)
    stored.save(tmp_path / "again.cute.json")
    assert (tmp_path / "again.cute.json").read_bytes() == path.read_bytes()
    assert load(tmp_path / "again.cute.json") == stored


def test_floats_that_json_lacks() -> None:
    worst = Worst(0, 1, 2, 3, -math.inf, math.nan)
    check = Check("score_mod", False, 1, math.inf, math.nan, 1e-5, worst, "one point")
    text = json.dumps(to_json(dataclasses.replace(build_example(), checks=(check,))), allow_nan=False)
    assert '"expected": "-inf", "got": "nan"' in text
    back = from_json(json.loads(text)).checks[0]
    assert back.max_abs_error == math.inf
    assert math.isnan(back.max_rel_error)
    assert back.worst is not None
    assert back.worst.expected == -math.inf


@pytest.mark.parametrize("value", [True, 3, 0.5, -math.inf])
def test_a_parameter_keeps_its_type(value: bool | int | float) -> None:
    back = from_json(to_json(dataclasses.replace(build_example(), params=(Param("p", value, True),)))).params[0].value
    assert (back, type(back)) == (value, type(value))


def test_a_future_schema_names_both_versions(obj: dict[str, Any]) -> None:
    obj["schema"], obj["environment"]["cute_lab"] = 7, "9.9.0"
    with pytest.raises(OptionError) as caught:
        from_json(obj)
    assert isinstance(caught.value, CuteLabError)
    mine = environment()["cute_lab"]
    assert caught.value.summary == f"this record has schema 7 (cute_lab 9.9.0), this cute_lab {mine} reads schema 3"
    assert caught.value.hint == "pip install -U cute_lab"


def test_an_old_schema_is_migrated(obj: dict[str, Any]) -> None:
    del obj["cells"]
    for target in obj["targets"]:
        del target["listing"]
    assert from_json({**obj, "schema": 2}) == load(EXAMPLE)
    with pytest.raises(OptionError, match=r"record\.targets must be tuple, got int '3'"):
        from_json({**obj, "schema": 2, "targets": 3})
    del obj["bench"]
    obj |= {"schema": 1, "timings": []}
    assert from_json(obj) == load(EXAMPLE)
    with pytest.raises(OptionError, match=r"this record has schema 0, this cute_lab .* reads schema 3"):
        from_json({**obj, "schema": 0})


WRONG: tuple[tuple[str, Any, str], ...] = (
    ("name", 3, "record.name must be str, got int '3'"),
    ("seconds", True, "record.seconds must be float, got bool"),
    ("seconds", "fast", "record.seconds must be float, got str"),
    ("kind", "poetry", "record.kind must be 'attention'"),
    ("shape.B", 1.0, "record.shape.B must be int, got float"),
    ("shape.batch", 1, "record.shape has an unknown field 'batch'"),
    ("targets.0.status", "perhaps", "record.targets[0].status must be 'compiled' or 'refused'"),
    ("targets.0.mix.fma", None, "record.targets[0].mix['fma'] must be int, got NoneType"),
    ("checks.0.worst", [], "record.checks[0].worst must be Worst, got list"),
    ("source.user_lines", [1], "record.source: user_lines has 1 entries, the source has 14 lines"),
    ("blocks.full", 0, "record.blocks: full + partial + empty is not"),
    ("blocks.data", "AAAA", "record.blocks: the block map can't be unpacked"),
    ("blocks.encoding", "raw", "record.blocks.encoding must be 'zlib-2bit-b64'"),
    ("notes", "none", "record.notes must be tuple, got str"),
)


@pytest.mark.parametrize(("place", "value", "said"), WRONG, ids=[f"{place}={value}" for place, value, _ in WRONG])
def test_a_wrong_value_is_named(obj: dict[str, Any], place: str, value: Any, said: str) -> None:
    *way, last = place.split(".")
    inner: Any = copy.deepcopy(obj)
    changed = inner
    for step in way:
        inner = inner[int(step) if step.isdigit() else step]
    inner[last] = value
    with pytest.raises(OptionError) as caught:
        from_json(changed)
    assert caught.value.summary.startswith(said)


@pytest.mark.parametrize("junk", [None, [], "record", {}, {"schema": "1"}, {"schema": True}, {"schema": 1}])
def test_what_is_no_record_is_refused(junk: object) -> None:
    with pytest.raises(OptionError):
        from_json(junk)


def test_a_record_that_could_not_be_read_is_not_written() -> None:
    wrong = dataclasses.replace(build_example(), seconds=np.float32(1.0))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"record\.seconds must be float, got float32"):
        to_json(wrong)


SHAPES = ((1, 1, 1, 1), (2, 3, 5, 7), (1, 1, 300, 280))


@pytest.mark.parametrize(("shape", "by_block"), [*((s, 1 << 20) for s in (*SHAPES, (1, 2, 4, 0))), *((s, -1) for s in SHAPES)])
def test_block_maps_survive_packing(shape: tuple[int, int, int, int], by_block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_summary, "BY_BLOCK", by_block)
    kinds = np.random.default_rng(1).integers(0, 3, shape).astype(np.uint8)
    sizes = {"block_q": 128, "block_kv": 64, "kept_cells": 1, "total_cells": 4}
    packed = BlockSummary.from_kinds(kinds, **sizes, seconds=0.0)
    assert np.array_equal(packed.kinds(), kinds)
    assert (packed.empty, packed.partial, packed.full) == tuple((kinds == kind).sum() for kind in range(3))
    assert packed.kept == 0.25


KINDS = ("<i4", "<i4", "u1")
RUNS = {
    "fewer rows": lambda counts, start, kind: (counts[:-1], start, kind),
    "fewer runs": lambda counts, start, kind: (counts, start[:-1], kind),
    "a row without runs": lambda counts, start, kind: (np.concatenate([[0], counts[1:]]), start[int(counts[0]) :], kind[int(counts[0]) :]),
    "a run outside": lambda counts, start, kind: (counts, start + 9 * (np.arange(len(start)) == 1), kind),
    "runs out of order": lambda counts, start, kind: (counts, start - 3 * (np.arange(len(start)) == 1), kind),
    "a row that starts late": lambda counts, start, kind: (counts, start + (np.arange(len(start)) == 0), kind),
    "another kind": lambda counts, start, kind: (counts, start, kind + 1),
    "no kinds": lambda counts, start, kind: (counts, start, kind[:0]),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_that_are_no_map_are_refused(name: str) -> None:
    import zlib

    runs = Runs.of_dense(np.array([[[0, 1, 2, 2], [0, 0, 1, 2], [0, 0, 0, 1]]], np.uint8))
    raw = zlib.decompress(runs.pack())
    ends = 12, 12 + 4 * len(runs.start)  # three rows' counts, then the starts, then the kinds
    parts = [np.frombuffer(x, kind) for x, kind in zip((raw[: ends[0]], raw[ends[0] : ends[1]], raw[ends[1] :]), KINDS, strict=True)]
    changed = RUNS[name](*parts)
    data = zlib.compress(b"".join(x.astype(kind).tobytes() for x, kind in zip(changed, KINDS, strict=True)))
    with pytest.raises(ValueError, match="the block map's"):
        Runs.unpack(data, 1, 3, 4)


def test_the_first_block_is_in_the_low_bits() -> None:
    """The front end unpacks the same bytes: 1, 2, 0, 1 is 0b01_00_10_01."""
    import base64
    import zlib

    kinds = np.array([[[[1, 2, 0, 1, 2]]]], np.uint8)
    packed = BlockSummary.from_kinds(kinds, block_q=1, block_kv=1, kept_cells=0, total_cells=5, seconds=0.0)
    assert zlib.decompress(base64.b64decode(packed.data)) == bytes([0b01001001, 0b10])


def test_a_map_with_false_counts_is_refused(obj: dict[str, Any]) -> None:
    obj["blocks"]["full"] -= 1
    obj["blocks"]["empty"] += 1
    with pytest.raises(OptionError, match="does not agree with its counts"):
        from_json(obj)


def test_the_window_of_the_example_is_the_known_one() -> None:
    blocks = build_example().blocks
    assert blocks is not None
    assert (blocks.full, blocks.partial, blocks.empty) == (7 * 32 - 28, 32 + 24, 1024 - 196 - 56)
    assert blocks.kept_cells == sum(min(q + 1, 1024) for q in range(4096))


def test_the_stamp_names_no_person_host_or_folder() -> None:
    import getpass
    import platform

    text = json.dumps(environment())
    for private in (platform.node(), getpass.getuser(), str(Path.home()), str(Path.cwd())):
        assert private not in text.split('"')
    assert "/" not in text
    assert set(environment()) == {
        "cute_lab", "torch", "nvidia-cutlass-dsl", "flash-attn-4", "python", "machine", "device"
    }  # fmt: skip


def test_the_device_is_a_name_or_the_reason_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class NVMLError(Exception):
        pass

    def refuse() -> None:
        raise NVMLError("driver not loaded")

    handle = {"nvmlDeviceGetHandleByIndex": lambda i: i, "nvmlDeviceGetName": lambda i: f"NVIDIA H200 {i}"}
    with_gpu = SimpleNamespace(NVMLError=NVMLError, nvmlInit=lambda: None, **handle)
    monkeypatch.setitem(sys.modules, "pynvml", with_gpu)
    assert environment()["device"] == "NVIDIA H200 0"
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=NVMLError, nvmlInit=refuse))
    assert environment()["device"] == "cpu: no GPU"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert environment()["device"] in ("cpu: no GPU", "GPU of unknown name: nvidia-ml-py is not installed")


def test_the_hash_follows_source_and_shape() -> None:
    example = build_example()
    assert example.hash == digest(example.source.text, example.shape)
    assert example.hash != digest(example.source.text + " ", example.shape)
    assert example.hash != digest(example.source.text, dataclasses.replace(example.shape, B=1))


def test_a_file_that_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "x.cute.json").write_text("{")
    with pytest.raises(OptionError, match=r"x\.cute\.json is not JSON"):
        load(tmp_path / "x.cute.json")


def test_no_heavy_import() -> None:
    code = """if True:
        import sys, cute_lab.display, cute_lab.views
        cute_lab.views.views()
        print([name for name in ("torch", "cutlass", "flash_attn", "plotly", "matplotlib") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_functions_of_a_file_keep_the_numbers_of_their_lines() -> None:
    from cute_lab.lab import attention

    def score_mod(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return score * 2.0

    # what stands between the two counts

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return q_idx >= kv_idx

    record = attention(score_mod, mask_mod, Sq=256).record(())
    lines = Path(__file__).read_text().split("\n")
    cell = dict(enumerate(record.cell.text.split("\n"), record.cell.first_line))
    used = sorted(set(record.source.user_lines) - {0})
    assert [lines[n - 1].strip() for n in used] == ["return score * 2.0", "return q_idx >= kv_idx"]
    assert [cell[n] for n in used] == [lines[n - 1] for n in used]
