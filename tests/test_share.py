"""A notebook made fit to be shared: what is left out, what stays, what is said, and what each viewer shows."""

from __future__ import annotations

import base64
import copy
import getpass
import json
import os
import re
import socket
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.error import UsageError

from cute_lab import __main__ as cli
from cute_lab import share_magic, viewers
from cute_lab.errors import OptionError
from cute_lab.notebook import execute
from cute_lab.private import HOMES, Scrubber
from cute_lab.record import MIME, from_json
from cute_lab.record import SLIDERS as SLIDERS_LINE
from cute_lab.share import CONTROLS, share
from cute_lab.viewers import PLAIN, PLOTLY, VIEWERS, WIDGET

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SLIDERS = "VBox(children=(IntSlider(value=7), HTML(value='')))"


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def save(notebook: Any, path: Path) -> Path:
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    return path


def output(**data: Any) -> Any:
    return nbformat.v4.new_output("display_data", data={k.replace("__", "/"): v for k, v in data.items()})  # type: ignore[no-untyped-call]


def cell(source: str, *outputs: Any) -> Any:
    return nbformat.v4.new_code_cell(source, outputs=list(outputs))  # type: ignore[no-untyped-call]


def notebook(folder: Path, *cells: Any, **metadata: Any) -> Path:
    made = nbformat.v4.new_notebook(cells=list(cells), metadata=metadata)  # type: ignore[no-untyped-call]
    return save(made, folder / "nb.ipynb")


def record(**changed: Any) -> dict[str, Any]:
    """The record of a real run."""
    found = next(o.data[MIME] for c in read(NOTEBOOKS[0]).cells if c.cell_type == "code" for o in c.outputs if MIME in o.get("data", {}))
    return {**json.loads(json.dumps(found)), **changed}


# -- the notebooks of this project ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_our_notebooks_are_fit_and_stay_as_they_are(path: Path, tmp_path: Path) -> None:
    report = share(path, tmp_path / "shared.ipynb")
    assert report.ok, report
    assert not report.changes
    assert (tmp_path / "shared.ipynb").read_text() == path.read_text()
    assert share(path, check=True).ok
    shows = {output.shown for output in report.outputs}
    assert all("nothing" not in shown and "error: no model" not in shown for shown in shows)
    assert any(shown[0] == shown[1] == "live card" for shown in shows)


# -- widgets ----------------------------------------------------------------------------------------------------------------
def test_widgets_are_left_out_and_their_static_form_stays(tmp_path: Path) -> None:
    view = {"model_id": "abc", "version_major": 2, "version_minor": 0}
    path = notebook(
        tmp_path,
        cell("a", output(**{WIDGET: view, "text/plain": SLIDERS, "image/png": "iVBORw0KGgo="})),
        cell("b", output(**{WIDGET: view, "text/plain": SLIDERS})),
        cell("c", output(**{WIDGET: view, "text/plain": "7 of 9"})),
        widgets={"application/vnd.jupyter.widget-state+json": {"state": {"abc": {}}, "version_major": 2, "version_minor": 0}},
    )
    before = path.read_bytes()
    report = share(path)
    made = read(tmp_path / "nb.shared.ipynb")
    assert report.ok and report.written == tmp_path / "nb.shared.ipynb"
    assert path.read_bytes() == before
    assert "widgets" not in made.metadata
    assert [dict(c.outputs[0].data) for c in made.cells] == [
        {"text/plain": SLIDERS, "image/png": "iVBORw0KGgo="},
        {"text/plain": CONTROLS},
        {"text/plain": "7 of 9"},
    ]
    assert len(report.changes) == 2
    assert "widget state" in report.changes[0] and CONTROLS in report.changes[1]
    assert [note.split("; ")[1] for note in report.notes] == ["without one it shows its picture", "without one it shows its plain text"]
    checked = share(path, check=True)
    assert not checked.ok and checked.written is None and "To be changed" in str(checked)


def test_a_live_slider_alone_is_no_reason_not_to_share(tmp_path: Path) -> None:
    view = {"model_id": "abc", "version_major": 2, "version_minor": 0}
    path = notebook(tmp_path, cell("a", output(**{WIDGET: view, "text/plain": "window=512"})))
    report = share(path, check=True)
    assert report.ok and not report.changes and len(report.notes) == 1
    share(path)
    assert WIDGET not in read(tmp_path / "nb.shared.ipynb").cells[0].outputs[0].data


# -- what is private ----------------------------------------------------------------------------------------------------------
def test_home_directories_leave_outputs_and_the_report_says_where(tmp_path: Path) -> None:
    error = nbformat.v4.new_output(  # type: ignore[no-untyped-call]
        "error", ename="E", evalue="/home/alice/x.py failed", traceback=["File \x1b[32m/home/alice/x.py\x1b[39m", "C:\\Users\\bob\\y"]
    )
    stream = nbformat.v4.new_output("stream", name="stdout", text="read /Users/carol/data and /homework/1 and https://x.org/home/\n")  # type: ignore[no-untyped-call]
    path = notebook(tmp_path, cell("1", error, stream), papermill={"input_path": "/home/alice/nb.ipynb"})
    report = share(path)
    text = (tmp_path / "nb.shared.ipynb").read_text()
    assert report.ok
    assert not [name for name in ("alice", "bob", "carol") if name in text]
    assert "/homework/1" in text and "https://x.org/home/" in text
    assert [line for line in report.changes if "output 1: a home directory is left out, 3 times" in line]
    assert [line for line in report.changes if "metadata" in line]
    kept = share(path, keep_environment=True)
    assert kept.ok and not kept.changes and "alice" in (tmp_path / "nb.shared.ipynb").read_text()


def test_what_the_author_wrote_stays_and_is_a_problem(tmp_path: Path) -> None:
    path = notebook(tmp_path, cell("x = open('/home/alice/data')"), nbformat.v4.new_markdown_cell("see /Users/bob/notes"))  # type: ignore[no-untyped-call]
    report = share(path)
    assert [c.source for c in read(tmp_path / "nb.shared.ipynb").cells] == ["x = open('/home/alice/data')", "see /Users/bob/notes"]
    assert len(report.problems) == 2 and not report.ok
    assert "/home/alice" in report.problems[0] and "cell 2" in report.problems[1]
    assert share(path, private="").ok


def test_names_of_this_machine_and_this_person_are_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-box-17.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "marie")
    scrubber = Scrubber()
    assert scrubber.text("marie@gpu-box-17: marietta ran on gpu-box-175") == "user@host: marietta ran on gpu-box-175"
    assert Scrubber(("hostname",)).text("marie@gpu-box-17") == "marie@host"
    monkeypatch.setattr(getpass, "getuser", lambda: "root")
    assert Scrubber().text("the root of 2") == "the root of 2"
    assert not HOMES.search("/homes/x, ./root/x, a/root b, /home/")


def test_private_fields_leave_the_record_and_the_texts_beside_it(tmp_path: Path) -> None:
    value = record()
    value["environment"] |= {"hostname": "box-with-a-name", "device": "NVIDIA H200 of alice"}
    table = {
        MIME: {"schema": value["schema"], "view": "environment", "of": "x"},
        "text/markdown": "| device | NVIDIA H200 of alice |",
        PLAIN: "-",
    }
    path = notebook(tmp_path, cell("1", output(**{MIME: value, PLAIN: "on box-with-a-name"}), output(**table)))
    report = share(path, private="hostname,user,path,device")
    made = [o.data for o in read(tmp_path / "nb.shared.ipynb").cells[0].outputs]
    assert made[0][MIME]["environment"]["device"] == made[0][MIME]["environment"]["hostname"] == "left out"
    assert made[0][PLAIN] == "on left out"
    assert made[1]["text/markdown"] == "| device | left out |"
    assert from_json(made[0][MIME]).source.text == value["source"]["text"]
    assert report.ok and len(report.changes) >= 3
    share(path)
    assert read(tmp_path / "nb.shared.ipynb").cells[0].outputs[0].data[MIME]["environment"]["device"] == "NVIDIA H200 of alice"


def test_a_packed_listing_is_read_too() -> None:
    text = '.file 1 "/home/alice/x.py"\nmov.u32 r1, 0;\n'
    packed = {"encoding": "zlib-b64", "data": base64.b64encode(zlib.compress(text.encode())).decode(), "total": 2}
    made = Scrubber().record({"targets": [{"listing": {"ptx": packed, "sass": None}}]})["targets"][0]["listing"]["ptx"]
    assert zlib.decompress(base64.b64decode(made["data"])).decode() == text.replace("/home/alice", "~")
    assert made["total"] == 2
    bomb = {"encoding": "zlib-b64", "data": "AAAA", "total": 0}
    assert Scrubber().record({"listing": {"ptx": bomb}}) == {"listing": {"ptx": bomb}}


# -- sizes and forms ----------------------------------------------------------------------------------------------------------
def test_sizes_and_missing_forms_are_problems(tmp_path: Path) -> None:
    path = notebook(
        tmp_path,
        cell("1", output(**{MIME: record()})),
        cell("2", output(**{MIME: record(), PLAIN: " "})),
        cell("3", output(**{PLAIN: "x" * 300_000})),
        cell("4", output(**{PLOTLY: {"data": []}})),
        cell("5", *(output(**{PLAIN: "y" * 200_000}) for _ in range(4))),
    )
    report = share(path)
    said = "\n".join(report.problems)
    assert "cell 1" in said and "cell 2" in said and said.count("has no static form") == 2
    assert "has 300,0" in said and "cell 3" in said
    assert re.search(r"the notebook has 1,\d\d\d,\d\d\d", said)
    assert not report.ok
    assert [note for note in report.notes if "cell 4" in note and "HTML export" in note]


@pytest.mark.parametrize(
    "value",
    [{}, [], "x", {"schema": 99, "hash": "x"}, {"schema": "<script>", "of": 1}, {"schema": 1, "hash": {}, "cell": None}, {"hash": 1}],
    ids=str,
)
def test_a_hostile_record_is_said_and_stays_data(value: Any, tmp_path: Path) -> None:
    path = notebook(tmp_path, cell("1", output(**{MIME: value, PLAIN: "x"})))
    report = share(path)
    assert len(report.problems) == 1 and "can't be read" in report.problems[0]
    assert read(tmp_path / "nb.shared.ipynb").cells[0].outputs[0].data[MIME] == value


def test_what_is_no_notebook_is_said(tmp_path: Path) -> None:
    for name, text in (
        ("a.ipynb", "{"),
        ("b.ipynb", "[1]"),
        ("c.ipynb", '{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(OptionError, match="is no notebook"):
            share(tmp_path / name)
    (tmp_path / "d.ipynb").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(OptionError, match="UTF-8"):
        share(tmp_path / "d.ipynb")
    with pytest.raises(OptionError, match="there is no file"):
        share(tmp_path / "none.ipynb")


def test_in_place_keeps_permissions_and_a_failed_write_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = notebook(tmp_path, cell("1", output(**{PLAIN: "/home/alice"})))
    path.chmod(0o640)
    before = path.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            share(path, in_place=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["nb.ipynb"]
    share(path, in_place=True)
    assert "alice" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(OptionError, match="two places"):
        share(path, "x.ipynb", in_place=True)


# -- what viewers show --------------------------------------------------------------------------------------------------------
def test_the_table_of_viewers_is_what_was_measured() -> None:
    names = [viewer.name for viewer in VIEWERS]
    mask = dict(zip(names, viewers.shown((MIME, "image/png", PLAIN)), strict=True))
    assert [mask[n] for n in names] == ["live card"] * 2 + ["picture"] * 7
    code = viewers.shown((MIME, "text/markdown", PLAIN))
    assert code == ("live card",) * 2 + ("markdown",) * 7
    plotly = dict(zip(names, viewers.shown((PLOTLY,)), strict=True))
    assert plotly["HTML export"] == plotly["GitHub"] == "nothing" and plotly["VS Code"] == "live plot"
    svg = dict(zip(names, viewers.shown(("image/svg+xml", PLAIN)), strict=True))
    assert (svg["JupyterLab with cute_lab"], svg["JupyterLab with cute_lab (untrusted)"]) == ("drawing", "plain text")
    widget = dict(zip(names, viewers.shown((WIDGET, "image/png", PLAIN)), strict=True))
    assert widget["JupyterLab without cute_lab"] == "error: no model"
    assert widget["JupyterLab with cute_lab (untrusted)"] == "picture"
    sliders = viewers.shown((SLIDERS_LINE, "image/png", PLAIN))
    assert sliders == ("a line",) * 2 + ("picture",) * 7
    assert not [name for name in names if "," in name]  # they stand in lists
    assert viewers.shown(("application/x-unknown",)) == ("nothing",) * 9


# -- the command line and the magic ---------------------------------------------------------------------------------------------
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook(tmp_path, cell("1", output(**{PLAIN: "/home/alice"})))
    assert cli.main(["share", str(path), "--check"]) == 1
    assert "To be changed" in capsys.readouterr().out
    assert cli.main(["share", str(path), "--out", str(tmp_path / "out.ipynb")]) == 0
    assert "Fit to be shared" in capsys.readouterr().out
    assert cli.main(["share", str(path), "--private", "hostname", "--check"]) == 0
    assert cli.main(["share", str(tmp_path / "none.ipynb")]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_the_magic_finds_its_own_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = notebook(tmp_path, cell("1"))
    monkeypatch.delenv(share_magic.SESSION, raising=False)
    with pytest.raises(OptionError) as caught:
        share_magic.run("", {})
    assert caught.value.hint == "%cute_share NOTEBOOK.ipynb"
    assert "save first" in share_magic.run("--check", {"__session__": str(path)})
    assert "save first" in share_magic.run("--check", {"__vsc_ipynb_file__": str(path), "__session__": "/gone/x.ipynb"})
    monkeypatch.setenv(share_magic.SESSION, str(path))
    assert f"{path.name}, as it was saved at" in share_magic.run("--check", {})
    monkeypatch.setenv(share_magic.SESSION, str(tmp_path / "renamed.ipynb"))
    with pytest.raises(OptionError) as caught:
        share_magic.run("", {})
    assert "renamed.ipynb" in caught.value.reason
    with pytest.raises(UsageError, match="unrecognized arguments: --chek"):
        share_magic.run("--chek", {})
    save(nbformat.v4.new_notebook(cells=[cell("x = '/home/alice'")]), path)  # type: ignore[no-untyped-call]
    with pytest.raises(OptionError, match="is not fit to be shared") as caught:
        share_magic.run(str(path), {})
    assert "/home/alice" in caught.value.reason


def test_a_report_names_cells_as_people_find_them_and_is_data(tmp_path: Path) -> None:
    private = output(**{PLAIN: "/home/alice"})
    cells = [
        cell("1", private),
        cell("%%cute_attention --H 8 --out local --target none\nx", private),
        *(cell("x = 1", private) for _ in "ab"),
    ]
    for made, prompt in zip(cells, (None, 2, 3, 3), strict=True):
        made.execution_count = prompt
    words = nbformat.v4.new_markdown_cell("# Where my\ndata lies: /home/alice/data and more")  # type: ignore[no-untyped-call]
    path = save(nbformat.v4.new_notebook(cells=[*cells, words]), tmp_path / "a.ipynb")  # type: ignore[no-untyped-call]
    said = json.loads(share_magic.checked(str(path), "path"))
    places = [line.split(": a home")[0] for line in said["sections"][0]["lines"]]
    assert places == ["cell 1, output 1", "[2] local, output 1", "[3] (cell 3), output 1", "[3] (cell 4), output 1"]
    assert said["sections"][1]["lines"][0].startswith('cell 5 "Where my data lies: /home/alice…" itself names')
    assert (said["copy"], said["written"]) == ("a.shared.ipynb", False)

    path = save(nbformat.v4.new_notebook(cells=cells[:2]), path)  # type: ignore[no-untyped-call]
    said = json.loads(share_magic.checked(str(path), "path"))
    assert [section["title"] for section in said["sections"]] == ["To be changed"]
    assert not said["ok"] and "save first" not in json.dumps(said)
    assert "cell 1, output 1" in said["seen"] and "share a.ipynb makes these changes in a.shared.ipynb" in said["verdict"]
    before = path.read_bytes()
    done = json.loads(share_magic.checked(str(path), "path", write=True))
    assert done["ok"] and done["written"] and done["copy"] == "a.shared.ipynb"
    assert path.read_bytes() == before and "alice" not in (tmp_path / "a.shared.ipynb").read_text()
    assert json.loads(share_magic.checked(str(tmp_path / "a.shared.ipynb"), "path"))["copy"] == ""  # nothing is left to be changed
    with pytest.raises(OptionError, match="there is no file"):
        share_magic.checked(str(tmp_path / "none.ipynb"), "")


def test_the_magic_in_a_kernel(tmp_path: Path) -> None:
    target = save(copy.deepcopy(read(NOTEBOOKS[0])), tmp_path / "first.ipynb")
    made = nbformat.v4.new_notebook(cells=[cell("%load_ext cute_lab"), cell(f"%cute_share {target.name}")])  # type: ignore[no-untyped-call]
    execute(made, tmp_path)
    assert "Fit to be shared" in made.cells[1].outputs[0].text
    assert (tmp_path / "first.shared.ipynb").read_text() == target.read_text()


def test_sharing_loads_no_torch() -> None:
    run = f"from cute_lab.__main__ import main\nmain(['share', {str(NOTEBOOKS[0])!r}, '--check'])"
    code = f"import sys\n{run}\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, timeout=60)
