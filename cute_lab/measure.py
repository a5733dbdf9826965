"""One variant at one shape, in the process that owns the GPU: prepare every contender, check it, time all of them round by round."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from cute_lab import accuracy, timing
from cute_lab.baselines import Absent, Baseline, Case, Ready, baselines
from cute_lab.failures import is_fatal, reason
from cute_lab.forecast import Forecast
from cute_lab.lab import attention
from cute_lab.measurement import Condition, Direction, Peak, Shape, Status, Timing, Work
from cute_lab.parcel import Parcel, unpack

Emit = Callable[[str, Any], None]
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Request:
    """What to measure. `contenders` are file names of cute_lab/baselines."""

    parcel: Parcel
    name: str
    shape: Shape
    params: Mapping[str, int | float]
    block: tuple[int, int] | None
    fast_math: bool
    contenders: tuple[str, ...]
    directions: tuple[Direction, ...]
    rounds: int
    seed: int
    device: str

    def case(self) -> Case:
        device = torch.device(self.device)
        score_mod, mask_mod = unpack(self.parcel, device)
        s = self.shape
        lab = attention(
            score_mod,
            mask_mod,
            B=s.B,
            H=s.H,
            Hkv=s.Hkv,
            Sq=s.Sq,
            Skv=s.Skv,
            D=s.D,
            dtype=s.dtype,
            params=self.params,
            block=self.block,
            fast_math=self.fast_math,
            name=self.name,
        )
        return Case(lab, device)


@dataclass
class Runner:
    """A contender that works: its steps by direction, and the samples so far."""

    timing: Timing
    ready: Ready
    inputs: Inputs
    d_out: torch.Tensor
    held: torch.Tensor | None = None  # the forward's result with its graph, for the backward alone
    no_backward: str = ""  # what the backward raised, where the forward works
    wrong_backward: str = ""  # what differs in its gradients, where the forward is right
    samples: dict[Direction, list[float]] = field(default_factory=dict)

    def forward(self) -> torch.Tensor:
        return self.ready.run(*self.inputs)

    def backward(self) -> Any:
        if self.held is None:
            self.held = self.forward()
        return torch.autograd.grad(self.held, self.inputs, self.d_out, retain_graph=True, materialize_grads=True)

    def both(self) -> Any:
        return torch.autograd.grad(self.forward(), self.inputs, self.d_out, materialize_grads=True)

    def row(self, direction: Direction) -> Timing:
        """A forward computes no gradients: they are the other directions' to answer for."""
        accuracy = tuple(a for a in self.timing.accuracy if direction != "forward" or a.tensor == "out")
        return replace(self.timing, direction=direction, accuracy=accuracy)

    @property
    def has_backward(self) -> bool:
        return self.ready.trains and not self.no_backward and not self.wrong_backward

    def step(self, direction: Direction) -> Callable[[], Any]:
        return {"forward": self.forward, "backward": self.backward, "forward+backward": self.both}[direction]


@dataclass(frozen=True)
class Round:
    """Microseconds by contender (None for one that broke), the card's own rate, its state at the end."""

    us: Mapping[str, float | None]
    peak: float
    sensors: tuple[float, float, float, float]


class Measurement:
    """The state of one request: inputs, reference, runners. `emit` sends rows as soon as they are known."""

    def __init__(self, request: Request, emit: Emit) -> None:
        self.request, self.emit = request, emit
        self.case = request.case()
        self.device, self.shape = self.case.device, request.shape
        self.trains = any(d != "forward" for d in request.directions)
        s, g = request.shape, torch.Generator(self.case.device).manual_seed(request.seed)
        sizes = {"q": (s.B, s.H, s.Sq, s.D), "k": (s.B, s.Hkv, s.Skv, s.D), "v": (s.B, s.Hkv, s.Skv, s.D), "d_out": (s.B, s.H, s.Sq, s.D)}
        dtype = DTYPES[s.dtype]
        self.base = {n: torch.randn(*size, generator=g, device=self.device).to(dtype) for n, size in sizes.items()}
        self.reference: accuracy.Reference | None = None
        self.forecast = Forecast(len(request.contenders), request.directions, request.rounds)

    def tell(self, name: str, doing: str) -> None:
        """What is under way, whose mistake it is if the process dies now, and how much of this shape's time has passed."""
        self.emit("progress", (name, doing, self.forecast.part))

    def inputs(self) -> tuple[Inputs, torch.Tensor]:
        """Leaves [B, H, S, D] of a contender's own on the shared values, and the result's gradient."""
        q, k, v = (self.base[name].detach().requires_grad_(self.trains) for name in ("q", "k", "v"))
        return (q, k, v), self.base["d_out"]

    def work(self) -> Work:
        s, lab = self.shape, self.case.lab
        blocks = lab.blocks()
        total = s.B * s.H * s.Sq * s.Skv
        return Work(s, blocks.kept_cells, min(blocks.issued_cells, total), total, f"{blocks.block[0]}x{blocks.block[1]}")

    def expected(self) -> accuracy.Reference:
        if self.reference is None:
            q, k, v, d_out = self.base.values()
            self.reference = accuracy.make(self.case, q, k, v, d_out if self.trains else None)
        return self.reference

    def row(self, name: str, contender: Baseline, direction: Direction, status: Status, why: str = "") -> Timing:
        return Timing(name, contender.label, direction, self.shape, status, why)

    def prepare(self, name: str) -> Runner | None:
        """The contender, run once and checked; None after its rows with the reason are sent."""
        contender = baselines()[name]

        def refuse(status: Status, why: str) -> None:
            for direction in self.request.directions:
                self.emit("row", self.row(name, contender, direction, status, why))

        self.tell(name, f"{contender.label}: compiling")
        if self.device.type not in contender.devices:
            refuse("absent", f"it needs a GPU, this is {self.device.type}")
            return None
        started = time.perf_counter()
        try:
            ready = contender.prepare(self.case)
            inputs, d_out = self.inputs()
            runner = Runner(self.row(name, contender, "forward", "timed"), ready, inputs, d_out)
            results = self.results(runner)
            self.synchronize()
            seconds = time.perf_counter() - started
            self.tell(name, f"{contender.label}: checking")
            checked = () if ready.ceiling else accuracy.compare(self.expected(), results)
        except Absent as absent:
            refuse("absent", str(absent))
            return None
        except Exception as error:
            if is_fatal(error):
                raise
            traceback.print_exc()
            refuse("failed", reason(error))
            self.free()
            return None
        runner.timing = replace(runner.timing, note=ready.note, compile_seconds=seconds, accuracy=checked)
        bad = [a for a in checked if not a.ok]
        why = f"{', '.join(a.tensor for a in bad)} {'differ' if len(bad) > 1 else 'differs'} from float32: {bad[0].worst}" if bad else ""
        if any(a.tensor == "out" for a in bad):
            for direction in self.request.directions:
                self.emit("row", replace(runner.row(direction), status="wrong", reason=why))
            return None
        runner.wrong_backward = why
        return runner

    def results(self, runner: Runner) -> dict[str, torch.Tensor]:
        out = runner.forward()
        found = {"out": out.detach()}
        if self.trains and runner.ready.trains:
            try:
                # zeros where the result does not depend on an input: a score_mod may leave the score out
                grads = torch.autograd.grad(out, runner.inputs, runner.d_out, materialize_grads=True)
                found |= dict(zip(("dq", "dk", "dv"), grads, strict=True))
            except Exception as error:
                if is_fatal(error):
                    raise
                traceback.print_exc()
                runner.no_backward = reason(error)
        return found

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def free(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def rounds(self, runners: Mapping[str, Runner], direction: Direction) -> None:
        """All contenders in every round, each time in another order: the card's clock depends on what ran just before."""
        clock, sensors = timing.Clock(self.device), timing.Sensors(self.device)
        product = timing.peak_product(self.device)
        steps = {name: r.step(direction) for name, r in runners.items() if direction == "forward" or r.has_backward}
        broken: dict[str, str] = {}

        def attempt(name: str, call: Callable[[], float]) -> float | None:
            """One contender's turn; what it raises is its own matter, unless the card is lost with it."""
            self.tell(name, f"{direction}: {runners[name].timing.label}")
            try:
                return call()
            except Exception as error:
                if is_fatal(error):
                    raise
                traceback.print_exc()
                broken[name] = reason(error)
                self.free()
                return None

        done: list[Round] = []
        try:
            if self.request.rounds:
                calls = {name: int(attempt(name, lambda step=step: clock.calls(step)) or 0) for name, step in steps.items()}  # type: ignore[misc]
                if product is not None:
                    peak_calls = clock.calls(product.step)
                    clock.heat(product.step)
            for i in range(self.request.rounds):
                self.forecast.round(direction, i)
                self.tell("", f"{direction}: round {i + 1} of {self.request.rounds}")
                taken = {}
                for name in random.Random(self.request.seed + i).sample(list(steps), len(steps)):
                    if name not in broken:
                        taken[name] = attempt(name, lambda name=name: clock.sample(steps[name], calls[name]))  # type: ignore[misc]
                peak = product.flop / clock.sample(product.step, peak_calls) / 1e6 if product is not None else 0.0
                done.append(Round(taken, peak, sensors.read()))  # whole or not at all: Stop may come at any moment
        finally:  # an interrupted direction keeps its complete rounds
            for i, complete in enumerate(done):
                self.emit("condition", Condition(self.shape, direction, i, *complete.sensors))
            for name, runner in runners.items():
                samples = [us for complete in done if (us := complete.us.get(name)) is not None] if name in steps else None
                row = self.finished(runner, name, direction, samples)
                if name in broken:
                    row = replace(row, status="failed", reason=f"while it was timed: {broken[name]}", samples_us=())
                self.emit("row", row)
                runner.held = None
            if product is not None and done:
                self.emit("peak", Peak(product.what, self.shape, direction, tuple(complete.peak for complete in done)))

    def finished(self, runner: Runner, name: str, direction: Direction, samples: list[float] | None) -> Timing:
        t = runner.row(direction)
        if samples is None and runner.wrong_backward:
            return replace(t, status="wrong", reason=runner.wrong_backward)
        if samples is None and runner.no_backward:
            return replace(t, status="failed", reason=f"its backward: {runner.no_backward}")
        if samples is None:
            return replace(t, status="absent", reason=f"no backward: {runner.ready.why_not}")
        status: Status = "timed" if samples else ("checked" if self.request.rounds == 0 else "stopped")
        return replace(t, status=status, samples_us=tuple(round(x, 3) for x in samples))


def run(request: Request, emit: Emit) -> None:
    """Sends progress, rows, conditions, peaks and the work of one shape."""
    if request.device.startswith("cuda"):
        torch._functorch.config.donated_buffer = False  # the backward alone is run again and again on one graph
        torch._dynamo.reset()
    measurement = Measurement(request, emit)
    emit("device", timing.described(measurement.device))
    emit("work", measurement.work())
    runners = {}
    for i, name in enumerate(request.contenders):
        measurement.forecast.contender(i)
        if (runner := measurement.prepare(name)) is not None:
            runners[name] = runner
    measurement.reference = None
    measurement.free()
    for direction in request.directions:
        measurement.rounds(runners, direction)
    runners.clear()
    measurement.base.clear()
    measurement.free()  # the card is the next run's, or another process's
