"""The panel: what it shows is of the newest values, in a notebook too, also while a cell runs; nothing stays behind."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import re
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch

from cute_lab import forkclient, host, mask_widget, steps
from cute_lab.codec import encode
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.lab import Lab
from cute_lab.latest import brisk
from cute_lab.panel import Panel
from test_sliders import WINDOW, lab_of


@pytest.fixture
def panel() -> Iterator[Callable[..., Panel]]:
    made: list[Panel] = []

    def make(lab: Lab, **more: Any) -> Panel:
        made.append(Panel(lab, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("cute_lab-panel")]


def compilations() -> tuple[int, int, object]:
    """Kernels that the host has compiled, texts it has loaded, and the process that compiles for a GPU."""
    return len(host._built), host.load.cache_info().misses, forkclient._worker


def test_moving_compiles_nothing(panel: Callable[..., Panel]) -> None:
    shown = panel(lab_of(WINDOW))
    shown.refresh()
    shown.settled()
    before = compilations()
    for window, cap in ((64, 1.0), (128, 0.0), (4096, 50.0), (0, -1.0)):
        shown.set(window=window, cap=cap)
        assert shown.settled().params == {"window": window, "cap": cap}
    assert compilations() == before
    shown.set(D=128)
    assert shown.settled().shape.D == 128


# -- the panel ------------------------------------------------------------------------------------------------------------
def kept_cells(shown: Panel) -> int:
    found = re.search(r"([\d,]+) of [\d,]+ cells are kept", shown.text["mask"])
    assert found, shown
    return int(found[1].replace(",", ""))


def dense(text: str, values: dict[str, Any], size: int, namespace: dict[str, Any]) -> int:
    """The cell with plain numbers, over every position, by torch alone."""
    scope = {**namespace, "slider": lambda low, high, value, step=None: value}
    exec(re.sub(r"^(\w+) = slider\(.*$", lambda m: f"{m[1]} = {values[m[1]]!r}", text, flags=re.MULTILINE), scope)
    position = torch.arange(size, dtype=torch.int32)
    zero = torch.zeros((), dtype=torch.int32)
    kept = scope["mask_mod"](zero, zero, position[:, None], position[None, :])
    return int(kept.expand(size, size).sum())


def test_two_hundred_moves_in_a_row_show_the_last(panel: Callable[..., Panel], monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the picture is: it is held here until all moves are made."""
    shown = panel(lab_of(WINDOW, Sq=2048))
    shown.refresh()
    shown.settled()
    before, gate, picture = shown._follower.done, threading.Event(), steps.step_mask

    def held(lab: Any) -> Any:
        gate.wait(60)
        return picture(lab)

    monkeypatch.setattr(steps, "step_mask", held)
    for i in range(200):
        shown.set(window=64 + i)
    gate.set()
    assert shown.settled().params["window"] == 263
    assert kept_cells(shown) == dense(WINDOW, {"window": 263, "cap": 1.0}, 2048, {})
    assert shown._follower.done - before <= 3


SOFTCAP = "cap = slider(1.0, 50.0, 20.0)\n\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return (score / cap).tanh() * cap\n"
EDITS = (
    WINDOW,
    "stride = slider(1, 32, 4)\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & ((q_idx - kv_idx) % stride == 0)\n",
    "size = slider(1, 64, 16)\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx // size == kv_idx // size\n",
    "prefix = slider(0, 256, 32)\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return (kv_idx < prefix) | (q_idx >= kv_idx)\n",
    "near = slider(1, 200, 9)\nscale = slider(0.25, 4.0, 1.0)\n\ndef mask_mod(b, h, q_idx, kv_idx):\n"
    "    return (q_idx - kv_idx).abs() * scale <= near\n",
    "gap = slider(0, 8, 2)\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return (docs[q_idx] - docs[kv_idx]).abs() <= gap\n",
)


def rss() -> int:
    """What is held: glibc keeps freed pages of a large process, which other tests left to it, for itself."""
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_hundred_random_edits_and_moves_show_nothing_stale_and_leave_nothing() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:  # what other tests left in this process is not the panel's
        threads, objects, resident = alone.submit(a_hundred_edits).result(timeout=300)
    assert threads <= 0
    assert objects < 500_000
    assert resident < 40_000_000


def test_threads_take_turns_as_before_when_the_picture_is_there(panel: Callable[..., Panel]) -> None:
    before = sys.getswitchinterval()
    with brisk, brisk:
        assert sys.getswitchinterval() == pytest.approx(brisk.TURN, rel=0.01)
    assert sys.getswitchinterval() == before
    shown = panel(lab_of(WINDOW, {}, Sq=512))
    shown.set(window=128)
    shown.settled()
    assert sys.getswitchinterval() == before


def a_hundred_edits() -> tuple[int, int, int]:
    """Growth from the 40th edit to the end: threads, bytes of Python objects, bytes of the process."""
    rng = random.Random(20261130)
    size = 256
    namespace = {"docs": torch.arange(size, dtype=torch.int32) // 16}
    labs = {text: lab_of(text, namespace, Sq=size) for text in EDITS}
    for lab in labs.values():
        lab.blocks(), lab.verify()  # the hosts' kernels are compiled before memory is looked at
    shown, text = Panel(labs[WINDOW]), WINDOW
    threads = memory = resident = 0
    tracemalloc.start()
    for i in range(100):
        if i == 40:
            gc.collect()
            threads, memory, resident = threading.active_count(), tracemalloc.get_traced_memory()[0], rss()
        edit = rng.random()
        if edit < 0.3:  # another cell, run again
            text = rng.choice(EDITS)
            shown.close()
            shown = Panel(lab_of(text, namespace, Sq=size))
        elif edit < 0.5:  # the notebook writes into a captured tensor
            namespace["docs"].copy_(torch.arange(size, dtype=torch.int32) // rng.randint(2, 60))
        found = steps.ranges_of(shown.lab)
        values = {n: rng.randint(r.low, r.high) if r.whole else rng.uniform(r.low, r.high) for n, r in found.items()}
        for name, value in values.items():
            shown.set(**{name: value})
        assert shown.settled().params == values
        assert kept_cells(shown) == dense(text, values, size, namespace), (i, text, values)
        assert shown.text["check"].startswith("✔"), shown
    shown.close()
    del shown
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - memory
    tracemalloc.stop()
    return threading.active_count() - threads, grown, rss() - resident


def is_shown(shown: Panel) -> bool:
    """Is its picture that of the newest block map, as a widget or as a PNG?"""
    if shown.controls.mask is None:
        return bool(shown.controls.image.value == shown.png)
    return bool(shown.controls.image.mask["blocks"] == encode(shown.settled().blocks().summary()))


@pytest.fixture(params=["widget", "PNG"])
def front(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A front end that is built, and one that is not."""
    monkeypatch.setattr(mask_widget, "module", lambda: "export default {}" if request.param == "widget" else None)
    return str(request.param)


BREAKS = """\
n = slider(0, 8, 1)

def score_mod(score, b, h, q_idx, kv_idx):
    return score + 8 // n

def mask_mod(b, h, q_idx, kv_idx):
    return table[kv_idx * n] > 0
"""


@pytest.mark.usefixtures("front")
def test_an_error_is_shown_and_the_panel_works_on(panel: Callable[..., Panel]) -> None:
    shown = panel(lab_of(BREAKS, {"table": torch.ones(512)}))
    shown.refresh()
    assert shown.settled().params == {"n": 1}
    for n, says in ((0, "ZeroDivisionError in score_mod"), (5, "index out of range: `table[kv_idx * n]` reads table[")):
        shown.set(n=n)
        with pytest.raises(CuteLabError, match=re.escape(says)):
            shown.settled()
        assert says in shown.text["mask"]
        assert says.split(":")[0] in shown.controls.lines["mask"].value
        assert (shown.png, shown.text["check"], shown.controls.image.layout.visibility) == (None, "", "hidden")  # nothing of other values
        shown.set(n=2)
        assert shown.settled().params == {"n": 2}
        assert shown.controls.image.layout.visibility == "visible" and is_shown(shown)
        assert shown.text["check"].startswith("✔")


def test_a_bug_is_shown_with_its_stack_and_as_text(panel: Callable[..., Panel], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = panel(lab_of(WINDOW))

    def check(lab: Lab) -> str:
        raise RuntimeError("<b>bug</b>" * 5000)

    with monkeypatch.context() as patch:
        patch.setattr(steps, "step_check", check)
        shown.refresh()
        with pytest.raises(RuntimeError):
            shown.settled()
    assert shown.text["mask"].startswith("▦")  # this step was right
    assert "&lt;b&gt;bug&lt;/b&gt;" in shown.controls.lines["check"].value
    assert "<b>bug" not in shown.controls.lines["check"].value
    assert shown.controls.bytes_held() < 50_000
    shown.refresh()
    assert shown.settled() and shown.text["check"].startswith("✔")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"window": 5000}, "window: 5000 is not an integer in 0..4096"),
        ({"window": 64.5}, "window: 64.5 is not an integer in 0..4096"),
        ({"cap": True}, "cap: True is not a number in -2..50"),
        ({"Sq": 1000}, "Sq: 1000 is no stop of its slider"),
        ({"windov": 64}, "there is no slider 'windov'"),
    ],
)
def test_a_wrong_move_from_python_is_refused(panel: Callable[..., Panel], values: dict[str, Any], says: str) -> None:
    shown = panel(lab_of(WINDOW))
    with pytest.raises(OptionError) as caught:
        shown.set(**values)
    assert caught.value.summary == says
    assert shown.present().params == {"window": 1024, "cap": 20.0}


def test_widgets_move_values_and_values_move_widgets(panel: Callable[..., Panel]) -> None:
    shown = panel(lab_of(WINDOW))
    slide, box = shown.controls.inputs["window"]
    shown.set(window=512)
    assert (slide.value, box.value) == (512, 512)
    box.value = 448  # what a front end sends when a person types
    assert shown.settled().params["window"] == 448
    shown.controls.inputs["Sq"][0].value = 512
    assert (shown.settled().shape.Sq, shown.settled().shape.Skv) == (512, 512)
    assert kept_cells(shown) == dense(WINDOW, {"window": 448, "cap": 1.0}, 512, {})
    assert shown.controls.bytes_held() < 50_000


def test_the_shape_follows_groups_of_heads_and_a_prefix_of_keys() -> None:
    lab = lab_of(WINDOW, H=8, Hkv=2, Sq=256, Skv=1024)
    assert steps.stops(lab)["H"] == (4, 8, 16, 32, 64, 128)
    moved = steps.moved(lab, {}, {"H": 16, "Sq": 512})
    assert (moved.shape.H, moved.shape.Hkv, moved.shape.Sq, moved.shape.Skv) == (16, 4, 512, 1024)


def test_a_number_named_like_a_size_is_the_number(panel: Callable[..., Panel]) -> None:
    shown = panel(lab_of("H = slider(1, 64, 8)\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < H\n"))
    shown.set(H=16, Sq=512)
    assert (shown.settled().params, shown.settled().shape.H, shown.settled().shape.Sq) == ({"H": 16}, 2, 512)


def test_pins_keep_labs_and_stop_keeps_what_is_shown(panel: Callable[..., Panel]) -> None:
    began, going = threading.Event(), threading.Event()
    stopped: list[bool] = []

    def retime(lab: Lab) -> str:
        began.set()
        going.wait(10)
        return f"{lab.params['window']} takes 1.5 ms"

    shown = panel(lab_of(WINDOW), retime=retime, interrupt=lambda: stopped.append(True) or going.set())  # type: ignore[func-returns-value]
    buttons = {widget.description: widget for widget in shown.controls.widgets if type(widget).__name__ == "Button"}
    assert list(buttons) == ["Run", "Stop", "Compile", "Pin values"]
    shown.set(window=128)
    assert began.wait(60)
    buttons["Stop"].click()
    shown.settled()
    assert stopped == [True]
    assert shown.text["time"] == "⏱ timing …"  # what came back after Stop is not shown
    buttons["Run"].click()
    shown.settled()
    assert shown.text["time"] == "⏱ 128 takes 1.5 ms"
    buttons["Pin values"].click()
    shown.set(window=256)
    shown.settled()
    assert [lab.params["window"] for lab in shown.pinned] == [128]
    assert "256 takes" in shown.text["time"]


@pytest.mark.cross
def test_compile_says_the_cost_which_no_value_changes(panel: Callable[..., Panel], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUTE_LAB_CACHE", str(tmp_path))
    shown = panel(lab_of(WINDOW, Sq=1024, D=128))
    shown.set(window=256)
    shown.settled()
    assert shown.text["cost"] == "⚙ No machine code at this shape yet: Compile makes it, with no GPU."
    assert shown.text["time"] == "⏱ no GPU here: not timed; the machine code is the same for every value of this parameter"
    shown._compiler.put(None)
    assert shown._compiler.idle(120)
    cost = shown.text["cost"]
    assert re.fullmatch(r"⚙ Hopper \(sm_90a\): about [\d,]+ cycles per tile, \d+ registers, .+ for every value of .+", cost), cost
    made = sorted(tmp_path.rglob("*.json.gz"))
    shown.set(window=512, cap=1.0)
    shown.settled()
    assert shown.text["cost"] == cost
    assert sorted(tmp_path.rglob("*.json.gz")) == made and len(made) == 1
    shown.set(Sq=2048)
    shown.settled()
    assert shown.text["cost"].startswith("⚙ No machine code")


def test_without_a_mask_there_is_no_picture(panel: Callable[..., Panel]) -> None:
    shown = panel(lab_of(SOFTCAP))
    shown.set(cap=3.5)
    assert shown.settled().params == {"cap": 3.5}
    assert (shown.png, shown.controls.image.layout.display) == (None, "none")
    assert "the kernel computes every block" in str(shown)
    assert str(shown).startswith("sliders: cap 1..50 step 0.1, now 3.5; run the cell for live sliders\n")


def test_a_lab_has_one_panel_until_it_is_closed() -> None:
    lab = lab_of(WINDOW)
    first = lab.panel()
    assert lab.panel() is first
    first.settled()
    first.close()
    second = lab.panel()
    assert second is not first
    second.close()
    assert repr(second).endswith("now 20, closed>")
