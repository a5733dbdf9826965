"""The panel in a real kernel: above the card, moved by a front end's messages while a cell runs, and readable without a kernel."""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from cute_lab.__main__ import execute
from cute_lab.record import MIME, SLIDERS

ROOT = Path(__file__).parent.parent
VIEW = "application/vnd.jupyter.widget-view+json"
CELL = """\
%%cute_attention --H 2 --Sq 512 --target none --out local --views summary
window = slider(64, 512, 256, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
"""
SENTENCE = "sliders: window 64..512 step 64, now {}; run the cell for live sliders"


# -- nbclient -------------------------------------------------------------------------------------------------------------
def run(*cells: str) -> list[list[Any]]:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell, metadata={"tags": ["raises-exception"]}) for cell in ("%load_ext cute_lab", *cells)]
    execute(notebook, ROOT, still=False)
    return [cell.outputs for cell in notebook.cells[1:]]


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    moved = "panel = local.panel()\npanel.set(window=128)\nprint(panel.settled().params, threads())"
    score = CELL.replace("local", "score").split("def")[0] + "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + window"
    threads = "import threading\nthreads = lambda: [t.name for t in threading.enumerate() if 'panel' in t.name]"
    missing = "local.panel().set(windov=3)"
    return run(CELL, threads, moved, "panel", "panel.close()", CELL.replace("local", "open"), score, "score.panel().close()", missing)


def test_the_panel_is_an_output_of_its_own_above_the_card(outputs: list[list[Any]]) -> None:
    panel, card = outputs[5]
    assert set(panel.data) == {VIEW, SLIDERS, "text/plain"}
    assert panel.data[SLIDERS] == {"words": SENTENCE.format(256)}
    assert panel.data["text/plain"] == SENTENCE.format(256)
    assert set(card.data) == {MIME, "text/markdown", "text/plain"}


def test_a_closed_panel_leaves_its_last_picture_in_each_place(outputs: list[list[Any]]) -> None:
    for panel in (outputs[0][0], outputs[3][0]):
        assert set(panel.data) == {SLIDERS, "image/png", "text/plain"}
        assert panel.data[SLIDERS] == {"words": SENTENCE.format(128)}
        assert base64.b64decode(panel.data["image/png"]).startswith(b"\x89PNG")
        assert panel.data["text/plain"].splitlines()[0] == SENTENCE.format(128)
        assert "✔ The generated CuTeDSL equals your function" in panel.data["text/plain"]
    assert outputs[0][1].data[MIME]
    assert outputs[4] == []
    (scored, _) = outputs[6]
    assert set(scored.data) == {SLIDERS, "text/markdown", "text/plain"}  # nothing to draw without a mask


def test_python_moves_it(outputs: list[list[Any]]) -> None:
    assert outputs[2][0].text == "{'window': 128} []\n"
    assert outputs[8][0].ename == "OptionError"


# -- a front end ----------------------------------------------------------------------------------------------------------
class FrontEnd:
    """What JupyterLab does, as far as it matters here."""

    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), transport="ipc", ip=str(folder / "kernel"))
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.manager.start_kernel(env={**os.environ, "PYTHONPATH": path}, cwd=str(ROOT))
        self.client: Any = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def begin(self, code: str) -> str:
        return str(self.client.execute(code))

    def printed(self, request: str, timeout: float = 90) -> str:
        """What a request has printed, when it is over."""
        out, end = "", time.monotonic() + timeout
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") == request:
                if message["msg_type"] == "stream":
                    out += message["content"]["text"]
                elif message["msg_type"] == "error":
                    raise AssertionError("\n".join(message["content"]["traceback"]))
                elif message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                    return out
        raise AssertionError(f"not over after {timeout} s: {out}")

    def run(self, code: str) -> str:
        return self.printed(self.begin(code))

    def subshell(self) -> str:
        self.client.control_channel.send(self.client.session.msg("create_subshell_request", {}))
        return str(self.client.get_control_msg(timeout=30)["content"]["subshell_id"])

    def send(self, comm: str, data: dict[str, Any], subshell: str | None) -> None:
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontEnd]:
    made = FrontEnd(tmp_path_factory.mktemp("sockets"))
    try:
        made.run("%load_ext cute_lab\nimport re, time, threading")
        made.run(CELL.replace("%%", "%%", 1))
        made.run("panel = local.panel()\npanel.settled();")
        yield made
    finally:
        made.client.stop_channels()
        made.manager.shutdown_kernel(now=True)


def comm(front: FrontEnd, what: str) -> str:
    return front.run(f"print({what}.comm.comm_id)").strip()


def value(x: int) -> dict[str, Any]:
    return {"method": "update", "state": {"value": x}, "buffer_paths": []}


# The cell that runs does not end before the panel has shown what it waits for, so only a second thread can have shown it.
WAITS = """
end = time.time() + 60
arrived = lambda: panel.controls.inputs["window"][0].value == {0} and panel._now and panel._now.params == {{"window": {0}}}
while not arrived() and time.time() < end:
    time.sleep(0.01)
print(panel._now.params, re.search(r"[\\d,]+ of [\\d,]+ cells", panel.text["mask"])[0], panel.text["check"][:1])
"""


def kept(window: int, size: int = 512) -> int:
    return sum(min(window, q + 1) for q in range(size))


def test_a_slider_moved_while_a_cell_runs_is_shown_while_it_runs(front: FrontEnd) -> None:
    subshell, slide, box = front.subshell(), comm(front, "panel.controls.inputs['window'][0]"), "panel.controls.inputs['window'][1]"
    for moved, widget in ((64, slide), (448, slide), (320, comm(front, box))):  # each time a cell has touched the kernel in between
        request = front.begin(WAITS.format(moved).replace("[0].value", f"[{int(widget != slide)}].value"))
        time.sleep(0.2)
        for x in (512, 128, 384, moved):
            front.send(widget, value(x), subshell)
        assert front.printed(request) == f"{{'window': {moved}}} {kept(moved):,} of {512 * 512:,} cells ✔\n"


def test_a_slider_that_python_moved_still_listens_while_a_cell_runs(front: FrontEnd) -> None:
    subshell, slide = front.subshell(), comm(front, "panel.controls.inputs['window'][0]")
    request = front.begin("panel.set(window=192)\n" + WAITS.format(64))
    time.sleep(0.2)
    front.send(slide, value(64), subshell)
    assert front.printed(request).startswith("{'window': 64}")


def test_stop_and_pin_arrive_while_a_cell_runs(front: FrontEnd) -> None:
    subshell = front.subshell()
    button = comm(front, "next(w for w in panel.controls.widgets if getattr(w, 'description', '') == 'Pin values')")
    front.run("panel.set(window=128); panel.settled(); panel.pinned.clear()")
    request = front.begin(
        "end = time.time() + 60\nwhile not panel.pinned and time.time() < end: time.sleep(0.01)\nprint(panel.pinned[0].params)"
    )
    time.sleep(0.2)
    front.send(button, {"method": "custom", "content": {"event": "click"}}, subshell)
    assert front.printed(request) == "{'window': 128}\n"


def test_without_a_subshell_the_newest_value_counts_when_the_cell_is_over(front: FrontEnd) -> None:
    slide = comm(front, "panel.controls.inputs['window'][0]")
    front.run("panel.set(window=512); panel.settled(); before = panel._follower.done")
    request = front.begin("time.sleep(1)\nprint(panel.settled().params)")
    time.sleep(0.2)
    for x in range(64, 512, 4):
        front.send(slide, value(x), None)
    assert front.printed(request) == "{'window': 512}\n"
    shown = front.run("print(panel.settled().params, panel._follower.done - before)")
    found = re.fullmatch(r"\{'window': 508\} (\d+)\n", shown)
    assert found, shown
    assert int(found[1]) < 60  # of 112 moves


def test_running_the_cell_again_ends_the_panel_of_its_first_run(front: FrontEnd) -> None:
    """As a front end does that names its cells."""
    code = CELL.replace("local", "again")
    for _ in range(2):
        message = front.client.session.msg("execute_request", {"code": code, "silent": False, "store_history": True, "allow_stdin": False})
        message["metadata"]["cellId"] = "cell-7"
        front.client.shell_channel.send(message)
        front.printed(message["header"]["msg_id"])
        front.run("first = first if 'first' in globals() else again.panel()")
    assert front.run("print(first.closed, again.panel().closed, panel.closed)") == "True False False\n"
