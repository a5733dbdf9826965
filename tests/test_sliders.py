"""Sliders: numbers with a range, run-time parameters of the kernel, and a panel that shows the newest values and nothing stale."""

from __future__ import annotations

import copy
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

import cute_lab
from cute_lab import steps
from cute_lab.capture import captured
from cute_lab.cell import from_text
from cute_lab.errors import OptionError
from cute_lab.lab import Lab, attention
from cute_lab.latest import Latest, Outdated
from cute_lab.options import parse
from cute_lab.sliders import Asked, FloatSlider, IntSlider, Range, slider

WINDOW = """\
window = slider(0, 4096, 1024, step=64)
cap = slider(-2.0, 50.0, 20.0)

def score_mod(score, b, h, q_idx, kv_idx):
    return cap * (score * 0.01).tanh() + cap

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
"""


def lab_of(text: str, namespace: dict[str, Any] | None = None, params: dict[str, Any] | None = None, **shape: Any) -> Lab:
    mods = from_text(text, namespace, params=params)
    return attention(mods.score_mod, mods.mask_mod, params=mods.params, **{"H": 2, "Sq": 256, "D": 64, "target": "sm_90a", **shape})


# -- a number -------------------------------------------------------------------------------------------------------------
def test_a_slider_is_its_number() -> None:
    whole, real = slider(64, 4096, 1024, step=64), slider(1, 50.0, 20)
    assert (whole, repr(whole), whole.range) == (1024, "1024", Range(64, 4096, 64))
    assert (real, repr(real), real.range) == (20.0, "20.0", Range(1.0, 50.0, 0.1))
    assert (whole.low, whole.high, whole.step) == (64, 4096, 64)
    assert type(whole // 2) is int and type(real / 2) is float and type(-whole) is int
    assert list(range(3))[slider(0, 2, 1)] == 1
    for number in (whole, real):
        for again in (copy.copy(number), copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
            assert (again, type(again), again.range) == (number, type(number), number.range)
    assert cute_lab.slider is slider


@pytest.mark.parametrize("number", [slider(1, 100, 7), slider(-3.0, 3.0, 0.5)])
def test_eager_torch_takes_it_for_the_number(number: Any) -> None:
    plain = int(number) if isinstance(number, int) else float(number)
    i, x = torch.arange(-20, 20, dtype=torch.int32), torch.linspace(-3, 3, 40)
    for f in (
        lambda n: i < n,
        lambda n: i * n,
        lambda n: i // n,
        lambda n: i % n,
        lambda n: x / n,
        lambda n: n - x,
        lambda n: torch.where(x > n, x, n),
        lambda n: x.clamp(-n, n),
        lambda n: torch.vmap(lambda a: a * n)(x),
        lambda n: torch.tensor(n),
    ):
        got, expected = f(number), f(plain)
        assert got.dtype == expected.dtype
        assert torch.equal(got, expected)


@pytest.mark.parametrize(
    ("make", "says", "write"),
    [
        (lambda: slider(64, 64, 64), "slider: the range 64..64 is empty", "window = slider(64, 4096, 1024, step=64)"),
        (lambda: slider(64, 128, 1024), "slider: 1024 is outside of 64..128", "slider(64, 1024, 1024)"),
        (lambda: slider(0.0, 1.0, -0.5), "slider: -0.5 is outside of 0..1", "slider(-0.5, 1, -0.5)"),
        (lambda: slider(0, 10, 5, step=0), "slider: no step of 0 fits into 0..10", "step=64"),
        (lambda: slider(0, 10, 5, step=11), "slider: no step of 11 fits into 0..10", "step=64"),
        (lambda: slider(0, 2**31, 5), "slider: 0..2147483648 is beyond 32 bits", "step=64"),
        (lambda: slider(0, float("inf"), 5), "slider: a range must be finite", "step=64"),
        (lambda: slider(0, True, 0), "slider: high must be a number, not True", "step=64"),  # type: ignore[arg-type]
        (lambda: slider(0, 9, "4"), "slider: value must be a number, not '4'", "step=64"),  # type: ignore[call-overload]
    ],
)
def test_a_wrong_slider_says_what_to_write(make: Callable[[], object], says: str, write: str) -> None:
    with pytest.raises(OptionError) as caught:
        make()
    assert caught.value.summary == says
    assert write in caught.value.hint


# -- in a cell ------------------------------------------------------------------------------------------------------------
def test_a_cell_needs_no_import_and_leaves_the_name_alone() -> None:
    mods = from_text(WINDOW)
    assert type(mods.namespace["window"]) is IntSlider and type(mods.namespace["cap"]) is FloatSlider
    mods.forget_unused()
    assert "slider" in mods.namespace
    assert lab_of("def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < slider", {"slider": 5}).runtime == {"slider": 5}


def test_a_wrong_slider_of_a_cell_is_shown_at_its_line() -> None:
    with pytest.raises(OptionError) as caught:
        from_text("import torch\nwindow = slider(64, 128, 1024)\n")
    assert (caught.value.line, caught.value.column) == (2, 10)


def test_a_slider_that_moves_nothing_is_refused() -> None:
    text = "window = slider(2, 64, 8)\nhalf = window // 2\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < half\n"
    with pytest.raises(OptionError, match="the slider `window` moves nothing") as caught:
        from_text(text)
    assert caught.value.line == 1
    assert caught.value.hint.startswith("def mask_mod(b, h, q_idx, kv_idx):    # use `window` in here")
    inside = text.replace("half = window // 2\n", "").replace("< half", "< window // 2")
    assert steps.ranges_of(lab_of(inside)) == {"window": Range(2, 64, 1)}


PLAIN = "window = 24\ncap = 2.0\n\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return score * cap + window\n"


def test_an_option_makes_a_slider_of_a_number() -> None:
    given = dict(parse("--param window=8..64:8 --param cap=1..4")["--param"])
    assert given == {"window": Asked(8, 64, 8), "cap": Asked(1, 4, None)}
    lab = lab_of(PLAIN, params=given)
    assert steps.ranges_of(lab) == {"window": Range(8, 64, 8), "cap": Range(1.0, 4.0, 0.01)}
    assert lab.params == {"window": 24, "cap": 2.0}  # the cell's own values
    assert {type(value) for value in lab.params.values()} == {int, float}
    assert lab_of(WINDOW, params={"window": 128}).params["window"] == 128  # a slider that starts elsewhere
    assert steps.ranges_of(lab_of(WINDOW, params={"window": 128}))["window"] == Range(0, 4096, 64)
    notebook: dict[str, Any] = {"window": 24}
    exec("def near(q, kv):\n    return q - kv < window\n", notebook)  # a helper whose number the cell does not name
    helped = lab_of("def mask_mod(b, h, q_idx, kv_idx):\n    return near(q_idx, kv_idx)\n", notebook, {"window": Asked(8, 64, 8)})
    assert steps.ranges_of(helped) == {"window": Range(8, 64, 8)}
    assert "window" in helped.runtime


@pytest.mark.parametrize(
    ("option", "says", "write"),
    [
        ("window=8..", "--param window: '8..' is not low..high:step", "--param window=64..4096:64"),
        ("window=a..b", "--param window: 'a..b' is not low..high:step", "--param window=64..4096:64"),
        ("window=64..8", "--param window: the range 64..8 is empty", "--param window=64..4096:64"),
        ("window=8..64:0", "--param window: no step of 0 fits into 8..64", "--param window=64..4096:64"),
        ("window=8..16", "--param window: it is 24 in the code, outside of 8..16", "--param window=8..24"),
        ("window=0.5..64", "--param window: it is an integer in the code, 0.5..64 is no range of integers", "--param window=0..64"),
        ("cap=4..8:.5", "--param cap: it is 2 in the code, outside of 4..8:0.5", "--param cap=2..8"),
        ("windov=8..64", "--param windov: no number is called 'windov' (did you mean 'window'?)", "--param window=8..64"),
        ("q=8..64", "--param q: no number is called 'q'", "q = slider(8, 64, 8)"),
    ],
)
def test_a_wrong_range_says_what_to_write(option: str, says: str, write: str) -> None:
    with pytest.raises(OptionError) as caught:
        lab_of(PLAIN, params=dict(parse(f"--param {option}")["--param"]))
    assert caught.value.summary == says
    assert caught.value.hint == write


def test_an_option_outside_of_a_slider_is_refused() -> None:
    with pytest.raises(OptionError, match=r"9000 is outside of the slider's 0\.\.4096 step 64") as caught:
        lab_of(WINDOW, params={"window": 9000})
    assert caught.value.hint == "--param window=4096"


# -- a run-time parameter -------------------------------------------------------------------------------------------------
DIVIDED = """\
n = slider(-7, 70, 3)
x = slider(-2.0, 2.0, 0.5)

def score_mod(score, b, h, q_idx, kv_idx):
    return score / (x * x + 1) + x - x * (q_idx - kv_idx) * n

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx // (n + 8) >= kv_idx % (n + 8)) | (q_idx + n < kv_idx)
"""
SPECIAL = (-2, -1, 0, 1, 2, 3, 8, 64)  # neutral elements, signs and powers of two, by which a rewrite could choose


def test_every_value_has_the_same_text_and_is_right() -> None:
    for text, names in ((WINDOW, ("window", "cap")), (DIVIDED, ("n", "x"))):
        lab = lab_of(text)
        whole, real = steps.ranges_of(lab)[names[0]], steps.ranges_of(lab)[names[1]]
        pairs = [(a, real.high) for a in (*SPECIAL, whole.low, whole.high) if a in whole]
        pairs += [(whole.low, float(b)) for b in SPECIAL if b in real]
        for values in (dict(zip(names, pair, strict=True)) for pair in pairs):
            moved = steps.moved(lab, values, {})
            assert moved.source == lab.source, values
            assert moved.params == values
            assert moved.verify().ok
        assert not lab.traced.fixed


def test_a_plain_number_in_its_place_gives_the_same_blocks_and_torch_gets_plain_numbers() -> None:
    lab, plain = lab_of(WINDOW), lab_of(re.sub(r"slider\(.*?, .*?, ([^,)]+).*?\)", r"\1", WINDOW))
    assert (lab.blocks(16).kinds == plain.blocks(16).kinds).all()
    assert {type(value) for mod in lab.mods.values() for value in captured(mod).numbers.values()} == {int, float}


# -- the newest request ---------------------------------------------------------------------------------------------------
def test_the_newest_is_worked_on_and_the_rest_is_not() -> None:
    seen: list[int] = []
    dropped: list[int] = []
    first, go = threading.Event(), threading.Event()

    def work(item: int, outdated: Outdated) -> None:
        seen.append(item)
        first.set()
        go.wait(10)
        dropped.extend([item] * outdated())

    latest = Latest("test", work, failed=lambda error: None)
    latest.put(0)
    assert first.wait(10)
    for item in range(1, 200):
        latest.put(item)
    go.set()
    assert latest.idle(10)
    assert (seen, dropped, latest.done) == ([0, 199], [0], 2)
    assert not any(t.name == "test" for t in threading.enumerate())
    latest.close()
    latest.put(5)
    assert seen == [0, 199]


def test_what_fails_is_told_and_the_next_item_is_worked_on() -> None:
    told: list[str] = []
    done: list[int] = []

    def work(item: int, outdated: Outdated) -> None:
        if item == 0:
            raise SystemExit("zero")
        done.append(item)

    latest = Latest("test", work, lambda error: told.append(str(error)) or 1 / 0)  # type: ignore[func-returns-value,arg-type]
    for item in (0, 1):
        latest.put(item)
        assert latest.idle(10)
    assert (told, done) == (["zero"], [1])


def test_stop_forgets_what_waits_and_a_worker_may_close_itself() -> None:
    seen: list[bool] = []
    first, go = threading.Event(), threading.Event()

    def work(item: int, outdated: Outdated) -> None:
        first.set()
        go.wait(10)
        seen.append(outdated())
        latest.close()

    latest = Latest("test", work, failed=lambda error: None)
    latest.put(1)
    assert first.wait(10)
    latest.put(2)
    latest.stop()
    go.set()
    assert latest.idle(10)
    assert seen == [True]
