"""A benchmark: what it measures and leaves out, what ends it, the check beside every speed, suites and the command line."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend

import cute_lab
import cute_lab.record
from cute_lab import accuracy, bench, device, measure, parcel, progress, suite, suite_record, suite_table, timing
from cute_lab.__main__ import main
from cute_lab.baselines import Absent, Baseline, Case, Ready, _sdpa, baselines
from cute_lab.errors import DeviceCrashed, DeviceHung, DeviceMissing, OptionError
from cute_lab.forecast import Forecast
from cute_lab.measurement import DIRECTIONS, Bench, Direction, Shape, Timing, Work
from cute_lab.progress import Progress

ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")
HOST = ("cute_lab", "flex_triton", "eager")  # the contenders that run on a CPU
Score = Callable[..., torch.Tensor]
Mod = Callable[..., torch.Tensor] | None


def score_mod(score: torch.Tensor, b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
    return score * (0.5 + 0.25 * h) + 0.1 * b - 0.05 * (q_idx - kv_idx).abs()


def mask_mod(b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
    return q_idx >= kv_idx


def lab_of(score: Mod = score_mod, mask: Mod = mask_mod, **sizes: Any) -> cute_lab.Lab:
    return cute_lab.attention(score, mask, target="sm_90a", **{"H": 2, "Sq": 64, "D": 32, **sizes})


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Here and in the process: tiny tensors, and other tests beside. No process is left behind."""
    device.close_all()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
    torch.set_num_threads(threads)
    device.close_all()


# -- a whole run on the CPU -----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def forward() -> cute_lab.record.Record:
    return lab_of().bench(directions=("forward",), rounds=6, seed=3, device="cpu", quiet=True)


@pytest.fixture(scope="module")
def trained() -> cute_lab.record.Record:
    return lab_of().bench(["eager"], Sq=[32, 48], directions=DIRECTIONS[:2], rounds=6, device="cpu", quiet=True)


def test_every_contender_has_its_row(forward: cute_lab.record.Record) -> None:
    found = forward.bench
    assert [t.contender for t in found.timings] == [name for name, b in baselines().items() if not b.slow]
    for t in found.timings:
        assert (t.label, t.direction, t.shape) == (baselines()[t.contender].label, "forward", forward.shape)
        if t.contender in HOST:
            assert (t.status, t.reason, len(t.samples_us)) == ("timed", "", 6)
            assert min(t.samples_us) > 0
            assert [(a.tensor, a.ok) for a in t.accuracy] == [("out", True)]
            assert t.compile_seconds > 0
        else:
            assert (t.status, t.reason, t.samples_us, t.accuracy) == ("absent", "it needs a GPU, this is cpu", (), ())


def test_every_shape_and_direction_has_its_rows(trained: cute_lab.record.Record) -> None:
    found = trained.bench
    shapes = [Shape(1, 2, 2, S, S, 32, "bf16") for S in (32, 48)]
    wanted = [(s, d, c) for s in shapes for d in DIRECTIONS[:2] for c in ("cute_lab", "eager")]
    assert [(t.shape, t.direction, t.contender) for t in found.timings] == wanted
    assert all(t.status == "timed" and len(t.samples_us) == 6 for t in found.timings)
    answered = {(t.direction, tuple(a.tensor for a in t.accuracy), all(a.ok for a in t.accuracy)) for t in found.timings}
    assert answered == {("forward", ("out",), True), ("backward", accuracy.NAMES, True)}
    assert found.peaks == ()  # a CPU's product says nothing about a card
    rounds = [(s, d, i) for s in shapes for d in DIRECTIONS[:2] for i in range(6)]
    assert [(c.shape, c.direction, c.round) for c in found.conditions] == rounds
    causal = {s: s.H * s.Sq * (s.Sq + 1) // 2 for s in shapes}
    assert [(w.shape, w.kept_cells, w.total_cells) for w in found.work] == [(s, causal[s], s.H * s.Sq**2) for s in shapes]
    assert all(w.kept_cells <= w.issued_cells <= w.total_cells for w in found.work)


def test_the_record_says_how(forward: cute_lab.record.Record, tmp_path: Path) -> None:
    found = forward.bench
    assert (found.device, found.rounds, found.seed, found.stopped) == ("CPU: no GPU was used", 6, 3, False)
    assert any("says nothing about a GPU" in line for line in found.protocol)
    assert found.versions["torch"].startswith(torch.__version__.split("+")[0])
    forward.save(tmp_path / "forward.json")
    assert cute_lab.record.load(tmp_path / "forward.json") == forward


def test_the_command_repeats_the_run(trained: cute_lab.record.Record) -> None:
    asked: dict[str, Any] = {}
    eval(trained.bench.command, {"lab": type("L", (), {"bench": lambda self, **options: asked.update(options)})()})
    assert (asked["Sq"], asked["directions"], asked["rounds"], asked["seed"]) == ([32, 48], DIRECTIONS[:2], 6, 0)


def test_the_command_names_the_contenders(trained: cute_lab.record.Record) -> None:
    assert "eager" in trained.bench.command


# -- one contender that goes wrong ----------------------------------------------------------------------------------------
def eager(case: Case, *inputs: torch.Tensor) -> torch.Tensor:
    return baselines()["eager"].prepare(case).run(*inputs)


class WrongGradient(torch.autograd.Function):
    """The identity, with a gradient whose last entry is wrong."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        wrong = grad.clone()
        wrong[0, -1, 40, 7] += 1.0
        return wrong


def raised(error: BaseException) -> Any:
    raise error


def planted(run: Callable[..., torch.Tensor], **options: Any) -> Callable[[Case], Ready]:
    return lambda case: Ready(lambda q, k, v: run(case, q, k, v), **options)


def one_row(case: Case, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    spot = torch.zeros_like(q)
    spot[0, 1, 17, 5] = 0.5
    return eager(case, q, k, v) + spot


class NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        raise NotImplementedError("no backward here\nmore")


# what it does, its statuses (forward, forward + backward), words of the reason
PLANTED: dict[str, tuple[Callable[[Case], Ready], tuple[str, str], str]] = {
    "one wrong row": (planted(one_row), ("wrong", "wrong"), "out differs from float32: b0 h1 row 17 column 5: "),
    "a wrong dk": (
        planted(lambda c, q, k, v: eager(c, q, WrongGradient.apply(k), v)),
        ("timed", "wrong"),
        "dk differs from float32: b0 kv head 1 row 40 column 7: ",
    ),
    "nan": (planted(lambda c, q, k, v: eager(c, q, k, v) * math.nan), ("wrong", "wrong"), "out, dq, dk, dv differ from float32: "),
    "one percent off": (planted(lambda c, q, k, v: eager(c, q, k, v) * 1.01), ("wrong", "wrong"), "differ from float32"),
    "raises": (planted(lambda *_: raised(ValueError("no\n such kernel"))), ("failed", "failed"), "ValueError: no"),
    "raises at once": (lambda case: raised(RuntimeError("")), ("failed", "failed"), "RuntimeError: "),
    "out of memory": (planted(lambda *_: raised(torch.OutOfMemoryError("tried"))), ("failed", "failed"), "out of memory"),
    "can't express it": (lambda case: raised(Absent("it has no masks")), ("absent", "absent"), "it has no masks"),
    "no backward": (planted(eager, trains=False, why_not="too old"), ("timed", "absent"), "no backward: too old"),
    "raises in the backward": (
        planted(lambda c, q, k, v: NoBackward.apply(eager(c, q, k, v))),
        ("timed", "failed"),
        "its backward: NotImplementedError: no backward here",
    ),
    "computes less": (planted(lambda c, q, k, v: q * k * v, ceiling=True), ("timed", "timed"), ""),
}


def measured(
    prepare: Callable[[Case], Ready],
    monkeypatch: pytest.MonkeyPatch,
    rounds: int = 6,
    directions: Sequence[Direction] = DIRECTIONS[::2],
    lab: cute_lab.Lab | None = None,
) -> list[tuple[str, Any]]:
    """The events of a measurement in this process, with a contender "planted" between cute_lab and eager."""
    known = baselines()
    table = {"cute_lab": known["cute_lab"], "planted": Baseline("Planted", 5, prepare, ("cpu",)), "eager": known["eager"]}
    monkeypatch.setattr(measure, "baselines", lambda: table)
    monkeypatch.setattr(timing, "peak_product", lambda where: timing.Product(lambda: None, 1.0, "nothing"))
    lab = lab or lab_of()
    packed = parcel.pack((lab.score_mod, lab.mask_mod))
    request = bench.request_of(lab, lab.shape, packed, tuple(table), tuple(directions), rounds, 0, "cpu")
    events: list[tuple[str, Any]] = []
    try:
        measure.run(request, lambda event, value: events.append((event, value)))
    except KeyboardInterrupt:
        events.append(("stopped", None))
    return events


def rows(events: list[tuple[str, Any]]) -> dict[tuple[str, str], Timing]:
    found = {(value.contender, value.direction): value for event, value in events if event == "row"}
    assert len(found) == sum(event == "row" for event, _ in events)
    return found


@pytest.mark.parametrize("name", PLANTED)
def test_a_contender_that_goes_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets no speed, and the others get theirs."""
    prepare, statuses, reason = PLANTED[name]
    found = rows(measured(prepare, monkeypatch, rounds=5))
    for direction, status in zip(DIRECTIONS[::2], statuses, strict=True):
        row = found["planted", direction]
        assert (row.status, len(row.samples_us)) == (status, 5 if status == "timed" else 0), row
        assert (reason in row.reason) if status != "timed" else row.reason == ""
        assert bool(row.accuracy) == name.startswith(("one ", "a wrong", "nan", "no backward", "raises in"))
        assert direction != "forward" or {a.tensor for a in row.accuracy} <= {"out"}  # a forward answers for its own result
        for other in ("cute_lab", "eager"):
            assert (found[other, direction].status, len(found[other, direction].samples_us)) == ("timed", 5)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: planted(fails_after(4)), id="while it is timed"),
        pytest.param(
            lambda: planted(lambda c, q, k, v: eager(c, q, k, v)[:, :1].expand(1, 2, -1, -1)[:, :1]),
            id="a result of another shape",
        ),
    ],
)
def test_a_contender_that_goes_wrong_late(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows(measured(make(), monkeypatch, directions=("forward",)))
    assert found["planted", "forward"].status == "failed"
    assert found["eager", "forward"].status == "timed"


def fails_after(calls: int, error: BaseException | None = None) -> Callable[..., torch.Tensor]:
    count = itertools.count(1)

    def run(case: Case, *inputs: torch.Tensor) -> torch.Tensor:
        return raised(error or RuntimeError("late")) if next(count) > calls else eager(case, *inputs)

    return run


def test_a_score_mod_without_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_of(lambda score, b, h, q, k: (q - k) * 0.1)
    found = rows(measured(planted(eager), monkeypatch, rounds=0, lab=lab))
    assert {(t.status, t.reason) for t in found.values()} == {("checked", "")}


def test_no_rounds_check_only(monkeypatch: pytest.MonkeyPatch) -> None:
    events = measured(planted(eager), monkeypatch, rounds=0)
    assert {(t.status, t.direction, t.samples_us, all(a.ok for a in t.accuracy), len(t.accuracy)) for t in rows(events).values()} == {
        ("checked", "forward", (), True, 1),
        ("checked", "forward+backward", (), True, 4),
    }
    assert not [event for event, _ in events if event in ("condition", "peak")]


def test_stop_keeps_complete_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six calls of a contender: one to check, one to see how long it takes, four rounds; Stop in the fifth."""
    events = measured(planted(fails_after(6, KeyboardInterrupt())), monkeypatch, directions=("forward", "backward"))
    assert events[-1] == ("stopped", None)
    found = rows(events)
    assert set(found) == {(name, "forward") for name in ("cute_lab", "planted", "eager")}
    assert {(t.status, len(t.samples_us)) for t in found.values()} == {("timed", 4)}
    assert [v.round for event, v in events if event == "condition"] == [0, 1, 2, 3]


def test_stop_before_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    events = measured(planted(fails_after(2, KeyboardInterrupt())), monkeypatch, directions=("forward",))
    assert {(t.status, len(t.samples_us)) for t in rows(events).values()} == {("stopped", 0)}
    assert not [event for event, _ in events if event in ("condition", "peak")]


def test_each_round_has_an_order_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    sample = timing.Clock.sample

    def spy(clock: timing.Clock, step: Callable[[], Any], calls: int) -> float:
        called.append(getattr(getattr(step, "__self__", None), "timing", Timing("peak", "", "forward", SHAPES[0], "timed")).contender)
        return sample(clock, step, calls)

    monkeypatch.setattr(timing.Clock, "sample", spy)
    events = measured(planted(eager), monkeypatch, rounds=8, directions=("forward",))
    order = [tuple(called[i : i + 4]) for i in range(4, len(called), 4)]  # after one call each that counts
    assert len(order) == 8
    assert all(sorted(names[:3]) == ["cute_lab", "eager", "planted"] and names[3] == "peak" for names in order)
    assert len(set(order)) > 2
    assert [len(p.samples_tflops) for event, p in events if event == "peak"] == [8]


# -- what ends a run ------------------------------------------------------------------------------------------------------
SHAPES = [Shape(1, 2, 2, n, n, 32, "bf16") for n in (16, 32)]
Script = list[Any]  # events of a job; an exception is raised in its place


class Played:
    """Stands for the process: plays a script for each job, leaves out contenders that were not asked for, notes what was asked."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts, self.asked = list(scripts), list[tuple[int, tuple[str, ...]]]()

    def run(self, verb: str, request: measure.Request) -> Iterator[tuple[str, Any]]:
        assert verb == "measure"
        self.asked.append((request.shape.Sq, request.contenders))
        for event in self.scripts.pop(0):
            if isinstance(event, BaseException):
                raise event
            yield event


def row(name: str, shape: Shape) -> tuple[str, Timing]:
    return "row", Timing(name, name, "forward", shape, "timed", samples_us=(1.0,) * 6)


def job(shape: Shape, *names: str) -> Script:
    return [("device", {"name": "made up"}), ("work", Work(shape, 1, 1, 1, "1x1")), *(row(n, shape) for n in names), ("done", None)]


def preparing(name: str) -> tuple[str, Any]:
    return "progress", (name, f"{name}: compiling", 0.0)


FATAL = {"reason": "RuntimeError: CUDA error: an illegal memory access", "traceback": "...", "fatal": True, "error": None}
MISTAKE = {"reason": "no", "traceback": "...", "fatal": False, "error": OptionError("no such table")}


def play(monkeypatch: pytest.MonkeyPatch, *scripts: Script, shapes: Sequence[Shape] = SHAPES) -> tuple[Bench, Played]:
    process = Played(*scripts)
    monkeypatch.setattr(device, "current", lambda where: process)
    lab = lab_of()
    packed = parcel.pack((lab.score_mod, lab.mask_mod))
    requests = [bench.request_of(lab, s, packed, ("cute_lab", "eager"), ("forward",), 6, 0, "cpu") for s in shapes]
    return bench.measure(requests, "", quiet=True), process


def seen(found: Bench) -> list[tuple[int, str, str]]:
    return [(t.shape.Sq, t.contender, t.status) for t in found.timings]


@pytest.mark.parametrize("error", [DeviceCrashed("it died", detail="SIGSEGV"), DeviceHung("it hangs")], ids=["crash", "hang"])
def test_a_contender_that_kills_the_process_is_left_out(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = (
        [*job(SHAPES[0], "cute_lab")[:-1], preparing("eager"), error],
        job(SHAPES[0], "cute_lab"),
        job(SHAPES[1], "cute_lab", "eager"),
    )
    found, process = play(monkeypatch, *scripts)
    assert process.asked == [(16, ("cute_lab", "eager")), (16, ("cute_lab",)), (32, ("cute_lab", "eager"))]
    assert seen(found) == [(16, "cute_lab", "timed"), (16, "eager", "failed"), (32, "cute_lab", "timed"), (32, "eager", "timed")]
    assert found.timings[1].reason.startswith(str(error.args[0]))
    assert not found.stopped


def test_a_cuda_error_is_its_contenders_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker ends after one, as after a crash."""
    scripts = ([*job(SHAPES[0], "cute_lab")[:-1], preparing("eager"), ("error", FATAL)], job(SHAPES[0], "cute_lab"))
    found, _ = play(monkeypatch, *scripts, shapes=SHAPES[:1])
    assert seen(found) == [(16, "cute_lab", "timed"), (16, "eager", "failed")]


def test_a_crash_that_is_nobodys_is_the_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = play(
        monkeypatch, [preparing("eager"), ("progress", ("", "round 1", 0.0)), DeviceCrashed("it died")], job(SHAPES[1], "cute_lab", "eager")
    )
    assert seen(found) == [(16, "cute_lab", "failed"), (16, "eager", "failed"), (32, "cute_lab", "timed"), (32, "eager", "timed")]
    with pytest.raises(DeviceCrashed, match="it died"):
        play(monkeypatch, [DeviceCrashed("it died")], shapes=SHAPES[:1])


def test_a_users_mistake_at_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = play(monkeypatch, [("error", MISTAKE)], job(SHAPES[1], "cute_lab", "eager"))
    assert seen(found)[:3] == [(16, "cute_lab", "failed"), (16, "eager", "failed"), (32, "cute_lab", "timed")]
    assert found.timings[0].reason == "no such table"
    with pytest.raises(OptionError, match="no such table"):
        play(monkeypatch, [("error", MISTAKE)], shapes=SHAPES[:1])


def test_stop_keeps_what_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    found, process = play(monkeypatch, [*job(SHAPES[0], "cute_lab")[:-1], ("stopped", None)], [])
    assert (seen(found), found.stopped, found.device) == ([(16, "cute_lab", "timed")], True, "made up")
    assert len(process.asked) == 1


def test_stop_while_an_event_is_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when it is pressed while the progress is printed."""
    monkeypatch.setattr(Progress, "step", lambda *_: raised(KeyboardInterrupt()))
    found, _ = play(monkeypatch, [*job(SHAPES[0], "cute_lab")[:-1], preparing("eager")], [])
    assert found.stopped
    assert seen(found) == [(16, "cute_lab", "timed")]


def test_stop_in_the_last_moment_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes, and the job's last word is under way already."""
    receive, count = device.receive, itertools.count(1)
    monkeypatch.setattr(device, "receive", lambda where: raised(KeyboardInterrupt()) if next(count) == 1 else receive(where))
    assert list(device.current("cpu").run("ping", "echo"))[-1] == ("stopped", None)


# -- what is asked for ----------------------------------------------------------------------------------------------------
def test_sizes_that_were_equal_stay_equal() -> None:
    base = lab_of(H=4, Sq=64).shape
    assert [(s.Sq, s.Skv) for s in bench.shapes(base, {"Sq": [16, 32], "H": None})] == [(16, 16), (32, 32)]
    assert [(s.H, s.Hkv) for s in bench.shapes(base, {"H": (2, 8)})] == [(2, 2), (8, 8)]
    assert [(s.H, s.Hkv) for s in bench.shapes(base, {"H": 8, "Hkv": [1, 2]})] == [(8, 1), (8, 2)]
    apart = lab_of(H=4, Hkv=2, Sq=64, Skv=128).shape
    assert [(s.H, s.Hkv, s.Sq, s.Skv, s.D) for s in bench.shapes(apart, {"Sq": 32, "H": 8, "D": [64]})] == [(8, 2, 32, 128, 64)]
    assert len(bench.shapes(base, {"Sq": [16, 32], "H": [2, 4], "B": [1, 2, 3]})) == 12
    assert lab_of(H=4).with_shape(H=2, Sq=32).shape == Shape(1, 2, 2, 32, 32, 32, "bf16")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"rounds": 3}, "rounds must be 0 .check only. or at least 5, not 3"),
    ({"rounds": -1}, "rounds must be"),
    ({"rounds": True}, "rounds must be"),
    ({"rounds": 6.0}, "rounds must be"),
    ({"against": ["flex_trition"]}, "there is no contender 'flex_trition'"),
    ({"against": "cudnn"}, "there is no contender 'cudnn'"),
    ({"directions": ("sideways",)}, "there is no direction 'sideways'"),
    ({"H": [3], "Hkv": [2]}, "3 query heads can't share 2"),
    ({"Sq": [0]}, "Sq must be a positive integer"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED, ids=lambda x: str(x)[:40])
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        lab_of().bench(**{"device": "cpu", "quiet": True, **options})


@pytest.mark.parametrize("options", [{"Sq": []}, {"directions": ()}], ids=str)
def test_nothing_is_refused(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "current", lambda where: Played(job(SHAPES[0])))
    with pytest.raises(OptionError):
        lab_of(Sq=16).bench(device="cpu", quiet=True, **options)


def test_one_direction_by_its_name() -> None:
    """As one contender."""
    assert bench.directions("forward") == ("forward",)


def test_contenders() -> None:
    assert bench.contenders(None) == tuple(name for name in baselines() if name != "flex_triton_tuned")
    assert bench.contenders(["eager", "flex_triton_tuned"]) == ("cute_lab", "flex_triton_tuned", "eager")
    assert bench.contenders("eager") == ("cute_lab", "eager")
    assert bench.directions(["forward+backward", "forward"]) == ("forward", "forward+backward")


def test_no_gpu_says_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "available", lambda: False)
    with pytest.raises(DeviceMissing, match="no NVIDIA GPU here") as caught:
        lab_of().bench()
    assert "cute_lab.load('record.json')" in caught.value.hint


# -- the check beside the speed -------------------------------------------------------------------------------------------
def inputs(s: Shape, dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(1)
    sizes = ((s.H, s.Sq), (s.Hkv, s.Skv), (s.Hkv, s.Skv), (s.H, s.Sq))
    return [torch.randn(s.B, heads, n, s.D, generator=g).to(dtype) for heads, n in sizes]


def dense(lab: cute_lab.Lab, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The formula over the whole score matrix, float32; rows without keys are 0."""
    s = lab.shape
    keys, values = (x.float().repeat_interleave(s.H // s.Hkv, 1) for x in (k, v))
    at = [torch.arange(n).view([-1 if i == d else 1 for i in range(4)]) for d, n in enumerate((s.B, s.H, s.Sq, s.Skv))]
    scores = q.float() @ keys.transpose(2, 3) / math.sqrt(s.D)
    scores = lab.score_mod(scores, *at) if lab.score_mod else scores
    keep = lab.mask_mod(*at).expand_as(scores) if lab.mask_mod else torch.ones_like(scores, dtype=torch.bool)
    weights = torch.where(keep, scores, -1e30).softmax(-1) * keep
    return weights @ values


def gradients(out: torch.Tensor, leaves: Sequence[torch.Tensor], d_out: torch.Tensor) -> dict[str, torch.Tensor]:
    found = torch.autograd.grad(out, leaves, d_out.to(out.dtype), allow_unused=True)
    zeros = (torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True))
    return dict(zip(accuracy.NAMES, (out.detach(), *zeros), strict=True))


CHECKED: dict[str, tuple[Mod, Mod, dict[str, int]]] = {
    "square": (score_mod, mask_mod, {"B": 2, "H": 3}),
    "grouped": (score_mod, mask_mod, {"B": 2, "H": 6, "Hkv": 2, "Sq": 24, "Skv": 40}),
    "one kv head": (score_mod, None, {"B": 3, "H": 4, "Hkv": 1}),
    "rows without keys": (score_mod, lambda b, h, q, k: q > k + 3, {"H": 2}),
    "nothing kept": (None, lambda b, h, q, k: q > k + 1000, {"H": 1}),
    "no score in it": (lambda score, b, h, q, k: (q - k) * 0.1, None, {"H": 2}),
}


@pytest.mark.parametrize("cells", [1 << 24, 600], ids=["whole", "in parts"])
@pytest.mark.parametrize("name", CHECKED)
def test_the_reference_is_the_formula(name: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "CELLS", cells)
    score, mask, sizes = CHECKED[name]
    lab = lab_of(score, mask, **{"Sq": 32, "D": 16, **sizes})
    q, k, v, d_out = inputs(lab.shape)
    found = accuracy.make(Case(lab, CPU), q, k, v, d_out)
    leaves = [x.float().requires_grad_() for x in (q, k, v)]
    right = gradients(dense(lab, *leaves), leaves, d_out)
    assert found.heads[0] == (0, 0)
    assert (lab.shape.B - 1, lab.shape.Hkv - 1) in found.heads
    for tensor, expected in right.items():
        torch.testing.assert_close(found.exact[tensor], found.part(tensor, expected), rtol=2e-5, atol=2e-6)
        assert bool(found.rounded[tensor].isfinite().all())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("name", CHECKED)
def test_what_is_right_passes(name: str, dtype: torch.dtype) -> None:
    """cute_lab's own attention, and the formula in float32, rounded once."""
    score, mask, sizes = CHECKED[name]
    lab = lab_of(score, mask, **{"Sq": 32, "D": 16, **sizes})
    q, k, v, d_out = inputs(lab.shape, dtype)
    reference = accuracy.make(Case(lab, CPU), q, k, v, d_out)
    for run in (lab.run, lambda *x: dense(lab, *x).to(dtype)):
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        found = accuracy.compare(reference, gradients(run(*leaves), leaves, d_out))
        assert [(a.tensor, a.ok) for a in found] == [(n, True) for n in accuracy.NAMES], found


WRONG_REFERENCE: dict[str, tuple[Mod, Mod]] = {
    "rows that the score_mod empties": (lambda score, b, h, q, k: torch.where(q > k, score, -float("inf")), None),
    "an infinite derivative where the mask drops": (lambda score, b, h, q, k: score / (q - k), lambda b, h, q, k: q > k),
}


@pytest.mark.parametrize("name", WRONG_REFERENCE)
def test_what_is_right_passes_at_the_edges(name: str) -> None:
    lab = lab_of(*WRONG_REFERENCE[name], Sq=32, D=16)
    q, k, v, d_out = inputs(lab.shape)
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    found = gradients(lab.run(*leaves), leaves, d_out)
    assert all(bool(x.isfinite().all()) for x in found.values())
    assert all(a.ok for a in accuracy.compare(accuracy.make(Case(lab, CPU), q, k, v, d_out), found))


# tensor, its place in [B, H or Hkv, rows, D], what the message says, [checked head][band] of the largest error
SPOTS = [
    ("out", (0, 0, 0, 0), "b0 h0 row 0 column 0: ", (0, 0)),
    ("out", (1, 5, 199, 15), "b1 h5 row 199 column 15: ", (5, 49)),  # 200 rows in bands of 4; three heads of each of two groups
    ("dq", (1, 4, 100, 3), "b1 h4 row 100 column 3: ", (4, 25)),
    ("dk", (1, 1, 120, 7), "b1 kv head 1 row 120 column 7: ", (1, 60)),  # 128 rows in bands of 2
    ("dv", (0, 0, 5, 2), "b0 kv head 0 row 5 column 2: ", (0, 2)),
]


@pytest.fixture(scope="module")
def checked() -> tuple[accuracy.Reference, dict[str, torch.Tensor]]:
    lab = lab_of(B=2, H=6, Hkv=2, Sq=200, Skv=128, D=16)
    q, k, v, d_out = inputs(lab.shape)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    return accuracy.make(Case(lab, CPU), q, k, v, d_out), gradients(lab.run(*leaves), leaves, d_out)


@pytest.mark.parametrize("value", [0.75, math.nan, math.inf], ids=str)
@pytest.mark.parametrize(("tensor", "at", "words", "where"), SPOTS)
def test_one_wrong_number_is_found(
    tensor: str, at: tuple[int, ...], words: str, where: tuple[int, int], value: float, checked: tuple[accuracy.Reference, dict[str, Any]]
) -> None:
    reference, right = checked
    assert all(a.ok for a in accuracy.compare(reference, right))
    wrong = {name: x.clone() for name, x in right.items()}
    wrong[tensor][at] += value
    found = {a.tensor: a for a in accuracy.compare(reference, wrong)}
    assert [name for name, a in found.items() if not a.ok] == [tensor]
    bad = found[tensor]
    assert bad.worst.startswith(words)
    bands = torch.tensor(bad.where)
    assert divmod(int(bands.argmax()), bands.shape[1]) == where
    assert bands.shape == ({"out": 6, "dq": 6}.get(tensor, 2), 50 if tensor in ("out", "dq") else 64)
    assert bad.max_error == pytest.approx(value if value < 1 else math.inf, rel=0.1)


# -- what scaled_dot_product_attention can express ------------------------------------------------------------------------
TABLE = torch.linspace(-1, 1, 64)
ADDED: dict[str, tuple[Mod, Mod, dict[str, int], str]] = {
    "causal": (None, mask_mod, {}, "is_causal"),
    "plain": (lambda score, b, h, q, k: score, None, {}, ""),
    "window": (None, lambda b, h, q, k: (q - k).abs() < 9, {}, "the mask is materialised, 0 MiB"),
    "alibi": (lambda score, b, h, q, k: score - 0.1 * (h + 1) * (q - k).abs(), None, {}, "the bias is materialised, 0 MiB"),
    "table": (lambda score, b, h, q, k: TABLE[q - k + 31] + score + 0.1 * b, mask_mod, {"B": 2}, "the bias is materialised, 0 MiB"),
    "grouped": (
        lambda score, b, h, q, k: score + 0.1 * h,
        lambda b, h, q, k: q >= k - h,
        {"H": 4, "Hkv": 2},
        "the bias is materialised, 0 MiB",
    ),
}
NOT_ADDED: dict[str, tuple[Mod, Mod, bool, str]] = {
    "softcap": (lambda score, b, h, q, k: 20 * torch.tanh(score / 20), None, True, "more than an added bias"),
    "scaled": (lambda score, b, h, q, k: score * TABLE[q], None, True, "more than an added bias"),
    "subtracted": (lambda score, b, h, q, k: q - score, None, True, "more than an added bias"),
    "twice": (lambda score, b, h, q, k: score + score, None, True, "more than an added bias"),
    "a mask for a kernel without": (None, lambda b, h, q, k: q > k, False, "neither masks nor biases"),
    "a bias for a kernel without": (lambda score, b, h, q, k: score + 0.1 * q, mask_mod, False, "neither masks nor biases"),
}


@pytest.mark.parametrize("name", ADDED)
def test_sdpa_says_the_same(name: str) -> None:
    score, mask, sizes, note = ADDED[name]
    lab = lab_of(score, mask, **{"Sq": 32, "D": 16, **sizes})
    q, k, v, _ = inputs(lab.shape)
    ready = _sdpa.prepare(Case(lab, CPU), SDPBackend.MATH, takes_bias=True)
    assert ready.note == note
    torch.testing.assert_close(ready.run(q, k, v).float(), dense(lab, q, k, v), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", NOT_ADDED)
def test_sdpa_is_absent(name: str) -> None:
    score, mask, takes_bias, words = NOT_ADDED[name]
    with pytest.raises(Absent, match=words):
        _sdpa.prepare(Case(lab_of(score, mask, Sq=32, D=16), CPU), SDPBackend.MATH, takes_bias)


def test_sdpa_is_causal_on_squares_alone() -> None:
    """FlashAttention-4's diagonal ends at the last key, torch's begins at the first."""
    lab = lab_of(None, lambda b, h, q, k: q + 16 >= k, Sq=32, Skv=48)
    with pytest.raises(Absent, match="only square shapes"):
        _sdpa.prepare(Case(lab, CPU), SDPBackend.MATH, takes_bias=True)


# -- suites ---------------------------------------------------------------------------------------------------------------
OWN = """about = "mine"
variants = ["near", "causal"]
dtype = "fp16"
tokens = 96
directions = ["forward"]
rounds = 6
against = ["eager"]

[shapes]
Sq = [32, 48]
D = 16
H = 2

[variant.near]
about = "a window by hand"
cell = '''
def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx).abs() < Sq // 4 + H
'''
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return path


def test_a_suite_of_ones_own(own: Path) -> None:
    found = suite.read(str(own))
    assert (found.name, found.about, [v.name for v in found.variants]) == ("own", "mine", ["near", "causal"])
    assert found.shapes == (Shape(3, 2, 2, 32, 32, 16, "fp16"), Shape(2, 2, 2, 48, 48, 16, "fp16"))
    assert (found.directions, found.rounds, found.against) == (("forward",), 6, ("cute_lab", "eager"))
    near = found.variants[0].lab(found.shapes[0], "fp16")
    assert int(near.apply_mask()[0, 0, 31].sum()) == 32 // 4 + 2
    changed = suite.read(
        str(own), {"Sq": [64], "B": [5], "Hkv": [1, 2], "variants": ["sinks"], "rounds": 0, "against": None, "dtype": "bf16"}
    )
    assert [v.name for v in changed.variants] == ["sinks"]
    assert [(s.B, s.Hkv, s.Sq, s.dtype) for s in changed.shapes] == [(5, 1, 64, "bf16"), (5, 2, 64, "bf16")]
    assert (changed.rounds, changed.against) == (0, ("cute_lab", "eager"))


@pytest.mark.parametrize("name", suite.names())
def test_a_suite_of_ours(name: str) -> None:
    found = suite.read(name)
    assert len(found.variants) >= 12
    assert len(found.shapes) == len(set(found.shapes)) >= 12
    assert {s.B * s.Sq for s in found.shapes} == {32768}
    assert {"flex_triton", "flex_flash", "sdpa_cudnn"} < set(found.against)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"variants": ["casual"]}, "there is no variant 'casual' in own.toml"),
        ({"against": ["flex"]}, "there is no contender 'flex'"),
        ({"directions": ["up"]}, "there is no direction 'up'"),
        ({"rounds": 2}, "rounds must be"),
        ({"dtype": "fp8"}, "dtype 'fp8'"),
        ({"D": [0]}, "D must be a positive integer"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_a_suite_is_refused(change: dict[str, Any], words: str, own: Path) -> None:
    with pytest.raises(OptionError, match=words):
        suite.read(str(own), change)


def test_what_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no suite 'hoper'") as caught:
        suite.read("hoper")
    assert "blackwell, hopper" in caught.value.reason
    (tmp_path / "broken.toml").write_text("variants = [")
    with pytest.raises(OptionError, match=r"broken\.toml is not TOML"):
        suite.read(str(tmp_path / "broken.toml"))


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'", "directon = ['backward']\nvariants = ['causal']", "[variant.x]\nabout = ''"])
def test_a_file_that_is_no_suite(text: str, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(OptionError):
        suite.read(str(tmp_path / "odd.toml"))


def run_suite(monkeypatch: pytest.MonkeyPatch, *cells: str, save: Path | None = None) -> tuple[suite_record.SuiteRecord, Played]:
    """Variants v0, v1, .. at one shape, with a process that times whatever it is asked for; "crash" in a name's cell ends it."""
    shape = SHAPES[0]
    variants = tuple(suite.Variant(f"v{i}", "", f"def mask_mod(b, h, q_idx, kv_idx):\n    return {cell}\n") for i, cell in enumerate(cells))
    scripts = [[DeviceCrashed("it died")] if "999" in cell else job(shape, "cute_lab") for cell in cells]
    process = Played(*scripts)
    monkeypatch.setattr(device, "current", lambda where: process)
    asked = suite.Suite("made up", "", variants, (shape,), ("forward",), 6, ("cute_lab",))
    return suite.run(asked, "cpu", 0, "", quiet=True, save=save), process


def test_the_file_of_a_suite_is_written_after_each_variant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, counts = tmp_path / "suite.json", list[int]()
    save = suite_record.SuiteRecord.save
    monkeypatch.setattr(suite_record.SuiteRecord, "save", lambda found, to: (counts.append(len(found.records)), save(found, to)))
    found, _ = run_suite(monkeypatch, "q_idx >= kv_idx", "q_idx > kv_idx", save=path)
    assert counts == [1, 2]
    assert suite_record.load(path) == found


@pytest.mark.parametrize("cell", ["q_idx >= nowhere", "q_idx >= kv_idx + 999"], ids=["refused", "crashed"])
def test_one_bad_variant_does_not_end_a_suite(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = run_suite(monkeypatch, cell, "q_idx >= kv_idx")
    assert [t.status for t in found.records[-1].bench.timings] == ["timed"]


VARIANTS = [v for name in suite.names() for v in suite.read(name).variants]


@pytest.mark.parametrize("variant", {v.name: v for v in VARIANTS}.values(), ids=lambda v: v.name)
def test_a_variant_is_verified(variant: suite.Variant) -> None:
    lab = variant.lab(Shape(1, 2, 2, 256, 256, 64, "bf16"), "bf16")
    found = lab.verify()
    assert found.ok, str(found)
    assert lab.name == lab.cell.name == variant.name


# -- the command line -----------------------------------------------------------------------------------------------------
SHOW = "import sys\nfrom cute_lab.__main__ import main\ncode = main(['show', sys.argv[1]])\nprint('torch' in sys.modules)\nsys.exit(code)"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[str]]:
    """The suite's record, what the run printed, and what `show` prints of it in a process of its own; then whether that had torch."""
    folder = tmp_path_factory.mktemp("suite")
    path, out = folder / "own.toml", folder / "own.json"
    path.write_text(OWN)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["bench", str(path), "--device", "cpu", "--Sq", "40", "--rounds", "5", "--out", str(out)]) == 0
    done = subprocess.run([sys.executable, "-c", SHOW, str(out)], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return out, printed.getvalue(), done.stdout.strip().splitlines()


def test_a_suite_on_the_command_line(shown: tuple[Path, str, list[str]], tmp_path: Path) -> None:
    path, printed, again = shown
    found = suite_record.load(path)
    assert isinstance(found, suite_record.SuiteRecord)
    assert [(r.name, [t.shape.Sq for t in r.bench.timings]) for r in found.records] == [(n, [40, 40]) for n in ("near", "causal")]
    assert all(t.status == "timed" for r in found.records for t in r.bench.timings)
    table = suite_table.plain(found.records)
    assert table in printed and " 0 ±" not in table  # a CPU's speed is a small number, and no zero
    assert str(path) in printed
    assert again[:-1] == table.strip().splitlines()
    found.save(tmp_path / "again.json")
    assert suite_record.load(tmp_path / "again.json") == found
    assert (tmp_path / "again.json").read_text() == path.read_text()


def test_to_show_a_record_needs_no_torch(shown: tuple[Path, str, list[str]]) -> None:
    assert shown[2][-1] == "False"


def test_no_gpu_on_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(device, "available", lambda: False)
    assert main(["bench", "hopper"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("CuteLabError: there is no NVIDIA GPU here")
    assert "Traceback" not in shown.err
    assert main(["bench", "no-such-suite"]) == 1
    assert "there is no suite 'no-such-suite'" in capsys.readouterr().err
    assert main(["bench", "hopper", "--out", str(tmp_path / "none.json")]) == 1
    assert list(tmp_path.iterdir()) == []  # no file that looks like a record


# -- small things ---------------------------------------------------------------------------------------------------------
class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    plain, terminal, silent = io.StringIO(), Terminal(), io.StringIO()
    shown = [Progress(4, stream=plain), Progress(4, stream=terminal), Progress(4, True, silent)]
    for at, done, text in ((0.0, 0, "a"), (0.1, 0, "too soon"), (10.0, 1, "b"), (120.0, 3, "c")):
        now[0] = at
        for one in shown:
            one.step(done, text)
    for one in shown:
        one.close("ready")
    assert plain.getvalue().splitlines() == [
        "1 of 4 · a · 0 s",
        "2 of 4 · b · 10 s, about 30 s left",
        "4 of 4 · c · 2 min, about 40 s left",
        "ready",
    ]
    assert terminal.getvalue().count("\n") == 1
    assert terminal.getvalue().count("\r") == 4
    assert silent.getvalue() == ""


def test_a_forecast_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    found = Forecast(2, ("forward", "forward+backward"), 10)

    def at(seconds: float, tell: Callable[[], None]) -> float:
        now[0] = 100 + seconds
        tell()
        return round(found.part, 3)

    assert at(0, lambda: found.contender(0)) == 0  # nothing is known
    assert at(10, lambda: found.contender(1)) == 0.5
    assert at(15, lambda: None) == 0.75
    assert at(40, lambda: None) == 0.99  # longer than thought, but not over
    assert at(20, lambda: found.round("forward", 0)) == 0.99
    assert at(22, lambda: found.round("forward", 1)) == round(22 / (22 + 2 * 9 + 2 * 10 * 3.5), 3)
    assert at(110, lambda: found.round("forward+backward", 0)) == 0.99
    assert at(120, lambda: found.round("forward+backward", 5)) == round(120 / (120 + 10), 3)


def test_one_shape_says_how_long_is_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)  # its rounds are over before a second line would be shown
    lab_of(Sq=32).bench([], rounds=50, directions=["forward"], device="cpu")
    lines = capsys.readouterr().err.splitlines()
    assert any("round" in line and "left" in line for line in lines[:-1]), lines


def test_a_clock_on_the_cpu() -> None:
    clock = timing.Clock(CPU)
    assert clock.sample(lambda: time.sleep(0.003), 1) >= 3000
    assert 1 <= clock.calls(lambda: time.sleep(0.003)) <= 7
    assert clock.calls(lambda: None) == timing.MOST
    assert timing.Sensors(CPU).read() == (0.0, 0.0, 0.0, 0.0)


def test_stop_of_a_real_run() -> None:
    """Pressed while the process measures: complete rounds arrive, at once."""
    lab = lab_of(Sq=16)
    packed = parcel.pack((lab.score_mod, lab.mask_mod))
    requests = [bench.request_of(lab, lab.shape, packed, ("cute_lab", "eager"), ("forward",), 10_000, 0, "cpu")] * 2
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    timer = threading.Timer(8.0, press)  # the first round is over, on a busy machine too
    timer.daemon = True
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        bench.measure([dataclasses.replace(requests[0], rounds=0)], "", quiet=True)  # its imports are done when Stop is pressed
        timer.start()
        found = bench.measure(requests, "", quiet=True)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - pressed[0] < 1.0
    assert found.stopped
    assert [(t.contender, t.status) for t in found.timings] == [("cute_lab", "timed"), ("eager", "timed")]
    assert {len(t.samples_us) for t in found.timings} == {len(found.conditions)}
    assert 0 < len(found.conditions) < 10_000
