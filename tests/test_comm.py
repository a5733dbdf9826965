"""The comm in a real kernel, as a front end uses it: beside a running cell, by subshells and without, with good and bad messages."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cute_lab import comm, gallery
from cute_lab.record import SCHEMA
from test_panel_kernel import FrontEnd

CELL = """\
%%cute_attention --H 2 --Sq 256 --target none --out causal --views summary
def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (kv_idx % 3 > h - 1)
"""
MISTAKE = "%%cute_attention --Sq 64\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return score if q_idx > kv_idx else score * factor\n"
BUSY = "end = time.time() + 30\nwhile not os.path.exists({!r}) and time.time() < end:\n    sum(range(1000))\nprint('done')"


class Client:
    """One open comm. What the kernel sends is kept, whatever request it belongs to."""

    def __init__(self, front: FrontEnd, subshell: str | None, name: str) -> None:
        self.front, self.subshell, self.name, self.count = front, subshell, name, 0
        self.heard: list[dict[str, Any]] = []
        self.send("comm_open", {"comm_id": name, "target_name": "cute_lab", "data": {}})

    def send(self, kind: str, content: dict[str, Any], main: bool = False) -> None:
        message = self.front.client.session.msg(kind, content)
        message["header"]["subshell_id"] = None if main else self.subshell
        self.front.client.shell_channel.send(message)

    def wait(self, good: Callable[[dict[str, Any]], bool], seconds: float = 60) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            message = self.front.client.get_iopub_msg(timeout=seconds)
            if message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == self.name:
                self.heard.append(message["content"]["data"])
            if self.heard and good(self.heard[-1]):
                return self.heard[-1]
        raise AssertionError(f"no answer after {seconds} s")

    def ask(self, method: Any, main: bool = False, **params: Any) -> dict[str, Any]:
        self.count += 1
        self.send("comm_msg", {"comm_id": self.name, "data": {"id": self.count, "method": method, "params": params}}, main)
        return self.wait(lambda data: data.get("id") == self.count)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontEnd]:
    made = FrontEnd(tmp_path_factory.mktemp("sockets"))
    try:
        made.run("%load_ext cute_lab\nimport os, torch, time\nfactor = 2.0\ntable = torch.ones(8)")
        made.run(CELL)
        yield made
    finally:
        made.client.stop_channels()
        made.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def client(front: FrontEnd) -> Client:
    made = Client(front, front.subshell(), "typing")
    assert made.wait(lambda data: "hello" in data) == {"hello": {"protocol": 1, "cute_lab": "0.1.0", "schema": SCHEMA}}
    return made


def test_a_cell_is_diagnosed_with_the_notebook_s_names(client: Client) -> None:
    result = client.ask("diagnose", text=MISTAKE)["result"]
    (found,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert result["ran"]
    assert result["why"] == ""
    assert found.keys() == {"line", "column", "end_line", "end_column", "severity", "message", "hint", "fixes", "source"}
    assert (found["line"], found["column"], found["end_column"], found["source"]) == (3, 20, 34, "trace")
    assert found["fixes"] == [
        {
            "title": "Choose with torch.where",
            "edits": [
                {"line": 3, "column": 11, "end_line": 3, "end_column": 54, "text": "torch.where(q_idx > kv_idx, score, score * factor)"}
            ],
        }
    ]


def test_answers_come_while_a_cell_runs(front: FrontEnd, client: Client, tmp_path: Path) -> None:
    client.ask("diagnose", text=MISTAKE)
    enough = tmp_path / "enough"
    request = front.begin(BUSY.format(str(enough)))
    time.sleep(0.3)
    start = time.monotonic()
    asked = [
        client.ask(method, **params)
        for method, params in (
            ("diagnose", {"text": MISTAKE}),
            ("hover", {"text": CELL, "line": 3, "column": 5}),
            ("status", {}),
            ("complete", {"text": MISTAKE + "x = fac", "line": 4, "column": 7}),
            ("stop", {}),
            ("nonsense", {}),
            ("diagnose", {"text": MISTAKE}),
        )
    ]
    assert time.monotonic() - start < 5, "the cell was waited for"
    enough.touch()
    assert [("result" in a, "error" in a) for a in asked] == [(True, False)] * 5 + [(False, True), (True, False)]
    assert front.printed(request) == "done\n"
    hover = asked[1]["result"]
    assert hover["line"] == 3
    assert hover["generated"]
    assert [m["text"] for m in asked[3]["result"]["matches"]] == ["factor"]
    assert asked[4]["result"] == {"stopped": False}
    assert "knows no method 'nonsense'" in asked[5]["error"]["message"]


def test_a_comm_that_the_main_shell_has_answered_still_answers_beside_a_cell(front: FrontEnd, client: Client, tmp_path: Path) -> None:
    """ipykernel hands a comm's messages to the shell that has sent with it last."""
    assert "result" in client.ask("status", main=True)
    enough = tmp_path / "enough"
    request = front.begin(BUSY.format(str(enough)))
    time.sleep(0.3)
    start = time.monotonic()
    assert "result" in client.ask("status")
    assert time.monotonic() - start < 3, "the cell was waited for"
    enough.touch()
    assert front.printed(request) == "done\n"


def test_without_a_subshell_answers_come_after_the_cell(front: FrontEnd) -> None:
    plain = Client(front, None, "plain")
    plain.wait(lambda data: "hello" in data)
    request = front.begin("time.sleep(1); print('over')")
    time.sleep(0.2)
    start = time.monotonic()
    assert plain.ask("diagnose", text=MISTAKE)["result"]["ran"]
    assert time.monotonic() - start > 0.5
    del request


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "text",
        {},
        {"id": 1},
        {"id": 2, "method": ["diagnose"]},
        {"id": 3, "method": "diagnose"},
        {"id": 4, "method": "diagnose", "params": []},
        {"id": 5, "method": "hover", "params": {"text": "x", "line": "many"}},
        {"id": 6, "method": "cells", "params": {"of": "x"}},
        {"id": 7, "method": "cells", "params": {"of": 3, "b": 0, "h": 0, "q": 0, "kv": 0, "rows": 9, "columns": 9}},
        {"id": 8, "method": "__class__"},
    ],
    ids=range(12),
)
def test_a_bad_message_gets_an_error_and_ends_nothing(client: Client, data: Any) -> None:
    client.send("comm_msg", {"comm_id": client.name, "data": data})
    wanted = data.get("id") if isinstance(data, dict) else None
    message = client.wait(lambda heard: "error" in heard and heard.get("id") == wanted)["error"]["message"]
    assert message
    assert "Traceback" not in message
    assert client.ask("status")["result"]["targets"]


def test_cells_of_the_notebook_s_run(front: FrontEnd, client: Client) -> None:
    key = front.run("print(causal.record(()).key)").strip()
    found = client.ask("cells", of=key, b=0, h=1, q=8, kv=0, rows=16, columns=24, step=2)["result"]["bits"]
    bits = "".join(f"{byte:08b}"[::-1] for byte in zlib.decompress(base64.b64decode(found)))
    expected = [q >= kv and kv % 3 > 0 for q in range(8, 40, 2) for kv in range(0, 48, 2)]
    assert [b == "1" for b in bits[: 16 * 24]] == expected
    front.run("del causal")
    front.run("%reset -f out")


def test_the_gallery_comes_with_its_maps(client: Client) -> None:
    rows = client.ask("gallery")["result"]
    assert [row["name"] for row in rows] == [v.name for v in gallery.variants()]
    assert rows == json.loads(json.dumps(gallery.as_json()))


def test_typing_changes_nothing_in_the_notebook(front: FrontEnd, client: Client) -> None:
    before = front.run(
        "import random; state = torch.get_rng_state(), random.getstate(); print(sorted(k for k in globals() if k[0] != '_'))"
    )
    heard = front.run("print('quiet')")
    text = (
        "%%cute_attention --Sq 64\nfactor = 3.0\nimport math\nw = torch.randn(8)\nx = '\\d' is 'x'\ntable[0] = 3\n"
        + MISTAKE.partition("\n")[2]
    )
    for _ in range(3):
        client.ask("diagnose", text=text)
        client.ask("diagnose", text=text.replace("table[0] = 3\n", ""))
    after = front.run("print(sorted(k for k in globals() if k[0] != '_'))")
    assert after == before
    assert heard == "quiet\n"
    same = "print(factor, table.sum().item(), torch.equal(state[0], torch.get_rng_state()), state[1] == random.getstate())"
    assert front.run(same) == "2.0 8.0 True True\n"


def test_unloading_closes_the_comm_and_loading_opens_the_way_again(front: FrontEnd) -> None:
    one = Client(front, None, "short")
    one.wait(lambda data: "hello" in data)
    found = "print('cute_lab' in get_ipython().kernel.comm_manager.targets, 'short' in get_ipython().kernel.comm_manager.comms)"
    assert front.run(found) == "True True\n"
    front.run("%unload_ext cute_lab")
    assert front.run(found) == "False False\n"
    front.run("%load_ext cute_lab")
    assert front.run(found) == "True False\n"


def test_a_terminal_has_no_comm() -> None:
    class Shell:
        user_ns: dict[str, Any] = {}  # noqa: RUF012

    comm.register(Shell())
    comm.unregister(Shell())
