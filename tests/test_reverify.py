"""A notebook run again: what is the same is verified, and each kind of damage is found where it is."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

from cute_lab import __main__ as cli
from cute_lab import compared, reverify
from cute_lab.notebook import execute, read
from cute_lab.record import MIME, Record, digest, from_json, to_json
from cute_lab.reverify import verify

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXAMPLE = from_json(__import__("json").loads((ROOT / "tests/records/example.cute.json").read_text()))
MOD = "window = 256\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)\n"
CELL = f"%%cute_attention --H 2 --Sq 512 --target none --out local\n{MOD}"
OTHER = CELL.replace("local", "other").replace("256", "128")
MISTAKE = "%%cute_attention --target none\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx if q_idx > 3 else kv_idx\n"


def book(*sources: str) -> Any:
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(("%load_ext cute_lab", *sources), 1)]  # type: ignore[no-untyped-call]
    return nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]


@cache
def ran() -> Any:
    """A small notebook, run once: a record, its code shown, one more record, a mistake on purpose."""
    made = book(CELL, OTHER, MISTAKE, "print(local)")
    execute(made, ROOT, allow_errors=True)
    return made


def saved(folder: Path, change: Callable[[Any], None] = lambda _: None) -> Path:
    made = copy.deepcopy(ran())
    change(made)
    path = folder / "nb.ipynb"
    nbformat.write(made, path)  # type: ignore[no-untyped-call]
    return path


def first_record(made: Any, index: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = next(o.data[MIME] for o in made.cells[index].outputs if "hash" in o.get("data", {}).get(MIME, {}))
    return found


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run of an unchanged text is the one that there was: most damage is to what is saved."""

    def run(made: Any, folder: Path, **options: Any) -> None:
        known = ran().cells
        if [c.source for c in made.cells[:-1]] != [c.source for c in known]:
            execute(made, folder, **options)
        for new, old in zip(made.cells, known, strict=False):
            if new.execution_count is None:
                new.outputs, new.execution_count = copy.deepcopy(old.outputs), old.execution_count

    monkeypatch.setattr(reverify.files, "execute", run)


def edit(**changes: Any) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        first_record(made).update(changes)

    return change


# -- whole notebooks ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.stem.startswith("03")], ids=lambda path: path.stem)
def test_our_notebooks_are_verified(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert cli.main(["verify", str(path)]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert "Verified: " in said and "code and shape: same" in said
    assert path.read_bytes() == before


def test_a_notebook_is_the_same_and_a_mistake_on_purpose_too(tmp_path: Path) -> None:
    report = verify(saved(tmp_path))
    assert report.ok, report
    assert [(c.place.number, c.verdict, [x.name for x in c.comparisons]) for c in report.cells] == [
        (2, "same", ["local"]),
        (3, "same", ["other"]),
    ]
    assert "Verified: 2 records the same." in str(report)


def damage_a_line_of_code(made: Any) -> None:
    value = first_record(made)
    value["source"]["text"] = value["source"]["text"].replace("q_idx >= kv_idx", "q_idx > kv_idx", 1)


def damage_a_line_and_its_hash(made: Any) -> None:
    damage_a_line_of_code(made)
    record = from_json(first_record(made))
    first_record(made)["hash"] = digest(record.source.text, record.shape)


def damage_only_the_shown_code(made: Any) -> None:
    shown = next(o for o in made.cells[1].outputs if o.get("data", {}).get(MIME, {}).get("view") == "source")
    shown.data["text/plain"] = shown.data["text/plain"].replace(">=", ">", 1)


def lose_a_record(made: Any) -> None:
    made.cells[1].outputs = []


def add_a_record(made: Any) -> None:
    made.cells[4].outputs.append(made.cells[1].outputs[0])


@pytest.mark.parametrize(
    ("change", "cell", "words"),
    [
        (damage_a_line_of_code, 2, ["the generated code differs", "-    return (q_idx > kv_idx)", "+    return (q_idx >= kv_idx)"]),
        (damage_a_line_and_its_hash, 2, ["the generated code differs", "+    return (q_idx >= kv_idx)"]),
        (damage_only_the_shown_code, 2, ["the code that its outputs show is not the code that is generated", ">="]),
        (edit(hash="0" * 64), 2, ["the saved record was changed after it was made", "it says 000000000000"]),
        (edit(checks=[]), 2, ["check of mask_mod: saved not checked, run again equal"]),
        (edit(blocks=None), 2, ["block map: saved none, run again there"]),
        (
            edit(schema=99),
            2,
            ["the saved output can't be read: this record has schema 99", "a record that the saved notebook does not have"],
        ),
        (lose_a_record, 2, ["a record that the saved notebook does not have"]),
        (add_a_record, 5, ["no such record when run again"]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.usefixtures("replayed")
def test_damage_is_found(
    change: Callable[[Any], None], cell: int, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, change)
    assert cli.main(["verify", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"cell {cell} [c{cell}]: differs" in said, said
    assert all(word in said for word in words), said
    assert said.count(": differs") <= 4


def test_cells_that_were_changed_are_found(tmp_path: Path) -> None:
    def change(made: Any) -> None:
        made.cells[1].source = made.cells[1].source.replace("q_idx >= kv_idx", "q_idx > kv_idx")
        made.cells[2].source = "1 / 0"
        made.cells[3].source = "pass"  # the mistake is repaired

    report = verify(saved(tmp_path, change))
    assert [(c.place.number, c.verdict) for c in report.cells] == [(2, "differs"), (3, "differs"), (4, "differs")]
    changed, raises, repaired = str(report).split("\n\n")[1:4]
    assert "the generated code differs" in changed
    assert "raises ZeroDivisionError: division by zero" in raises and "no such record when run again" in raises
    assert "raises nothing; the saved one raises BranchOnTensor" in repaired


def test_blocks_at_other_places_are_found(tmp_path: Path) -> None:
    new = from_json(first_record(ran()))
    assert new.blocks is not None
    kinds = new.blocks.runs.dense().reshape(new.blocks.Bm, new.blocks.Hm, new.blocks.nq, new.blocks.nkv)
    b = new.blocks
    fields = {n: getattr(b, n) for n in ("block_q", "block_kv", "kept_cells", "total_cells", "seconds")}
    old = dataclasses.replace(new, blocks=type(b).from_kinds(kinds[:, :, ::-1].copy(), **fields), created="earlier")
    found = compared.records(old, new, "cpu: no GPU")
    assert found.verdict == "differs" and "the counts are the same, but other blocks" in str(found)


# -- a GPU's notebook on a machine without one ------------------------------------------------------------------------------------
def test_a_gpu_notebook_verifies_its_code_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # a machine that has one is one without
    monkeypatch.setattr(reverify, "device", lambda: reverify.CPU)
    bench = "measured = local.bench(Sq=[512, 1024])\nmeasured.show()"
    made = book(CELL, bench, "assert measured.bench.timings", "measured = None", bench)
    gpu = from_json(copy.deepcopy(first_record(ran())))
    there = dataclasses.replace(gpu, environment={**gpu.environment, "device": "NVIDIA H200"}, created="2026-01-01T00:00:00Z")
    wrong = dataclasses.replace(there, source=dataclasses.replace(there.source, text=there.source.text.replace(">=", ">")))
    made.cells[1].outputs = copy.deepcopy(ran().cells[1].outputs)
    for index, record in ((1, there), (2, there), (5, wrong)):  # as the GPU's notebook was saved; the last was damaged
        value = {MIME: to_json(record), "text/plain": "x"}
        made.cells[index].outputs[:1] = [nbformat.v4.new_output("display_data", data=value)]  # type: ignore[no-untyped-call]
    path = tmp_path / "gpu.ipynb"
    nbformat.write(made, path)  # type: ignore[no-untyped-call]
    report = verify(path)
    assert [(c.place.number, c.verdict) for c in report.cells] == [(2, "same"), (3, "not run"), (4, "not run"), (6, "differs")]
    assert "it needs a GPU" in report.cells[1].said[0] and "code and shape: same" in str(report.cells[1].comparisons[0])
    assert "the generated code differs" in str(report.cells[3].comparisons[0])


def benched(scale: float, device: str = "NVIDIA H200") -> Record:
    from example_bench import build_bench

    made = build_bench()
    timings = tuple(dataclasses.replace(t, samples_us=tuple(x * scale for x in t.samples_us)) for t in made.timings)
    return dataclasses.replace(EXAMPLE, bench=dataclasses.replace(made, timings=timings, device=device), created=f"{scale}")


def test_timings_are_compared_on_the_same_gpu_only() -> None:
    same = compared.records(benched(1.0), benched(1.0001), "NVIDIA H200")
    assert same.verdict == "same" and "intervals as before or overlapping, on NVIDIA H200" in str(same)
    slower = compared.records(benched(1.0), benched(1.5), "NVIDIA H200")
    assert slower.verdict == "differs" and "1.50 times as long" in str(slower) and "timing of cute_lab" in str(slower)
    other = compared.records(benched(1.0), benched(1.5, "NVIDIA B200"), "NVIDIA B200")
    assert other.verdict == "same" and "timings not compared: saved on NVIDIA H200, this is NVIDIA B200" in str(other)
    none = compared.records(benched(1.0), dataclasses.replace(EXAMPLE, created="now"), "cpu: no GPU")
    assert none.verdict == "same" and "saved on NVIDIA H200, nothing was measured here (cpu: no GPU)" in str(none)
    hidden = compared.records(benched(1.0, "left out"), benched(1.5), "NVIDIA H200")
    assert "does not say its GPU" in str(hidden)


def test_a_kernel_ends_with_its_notebook() -> None:
    made = book("import os\nprint(os.getpid())")
    execute(made, ROOT)
    pid = int(made.cells[1].outputs[0].text)
    gone = not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert gone


def test_a_kernel_that_dies_is_said(tmp_path: Path) -> None:
    def die(made: Any) -> None:
        made.cells[2].source = "import os\nos._exit(3)"

    report = verify(saved(tmp_path, die))
    assert not report.ok and "DeadKernelError" in str(report)
    assert [c.verdict for c in report.cells] == ["same"]


def test_what_is_no_notebook_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.ipynb").write_text("{}")
    assert cli.main(["verify", str(tmp_path / "x.ipynb")]) == 1
    assert "is no notebook" in capsys.readouterr().err
    made = tmp_path / "empty.ipynb"
    nbformat.write(book(), made)  # type: ignore[no-untyped-call]
    assert "no record to compare" in str(verify(made)) and read(made).cells
