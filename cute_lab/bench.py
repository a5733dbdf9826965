"""Throughput anyone can trust: a variant against its baselines over a sweep of shapes, in one process, checked, round by round."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cute_lab import device as devices
from cute_lab import parcel
from cute_lab.errors import CuteLabError, DeviceCrashed, DeviceHung, OptionError
from cute_lab.measure import Request
from cute_lab.measurement import DIRECTIONS, Bench, Condition, Direction, Peak, Shape, Timing, Work
from cute_lab.progress import Progress, clock

if TYPE_CHECKING:
    from cute_lab.lab import Lab

ROUNDS, LEAST_ROUNDS = 10, 5
WAY: tuple[Direction, ...] = ("forward", "forward+backward")
INPUTS = (
    "q, k, v and the result's gradient are normal random numbers, contiguous [B, H, S, D], the same for every contender.",
    "All contenders run in one process, one sample each per round, each round in another order; ratios are taken round by round.",
    "Medians with the 95 % interval of the sign test. Compilation and tuning are not in the samples; they are listed apart.",
    "Forward is timed as training runs it (inputs that require gradients) where a backward is timed too.",
)


@dataclass
class Rows:
    """What has arrived from the process on the GPU."""

    timings: list[Timing] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    peaks: list[Peak] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    device: dict[str, Any] = field(default_factory=dict)

    def take(self, event: str, value: Any) -> None:
        target: list[Any] | None = {"row": self.timings, "condition": self.conditions, "peak": self.peaks, "work": self.work}.get(event)  # type: ignore[assignment]
        if target is not None:
            target.append(value)
        elif event == "device":
            self.device = value

    def add(self, other: Rows) -> None:
        self.timings += other.timings
        self.conditions += other.conditions
        self.peaks += other.peaks
        self.work += other.work
        self.device = other.device or self.device


class Stopped(Exception):
    """The person stopped the run; what is complete is in the rows."""


def contenders(against: Iterable[str] | None) -> tuple[str, ...]:
    """File names of cute_lab/baselines, in table order; cute_lab itself is always one. None: all but those that tune for minutes."""
    from cute_lab.baselines import baselines

    known = baselines()
    if against is None:
        return tuple(name for name, b in known.items() if not b.slow)
    wanted = {"cute_lab", *([against] if isinstance(against, str) else against)}
    for name in wanted - set(known):
        raise OptionError(f"there is no contender {name!r}", detail=f"Known: {', '.join(known)}.", example="against=['flex_triton']")
    return tuple(name for name in known if name in wanted)


def directions(given: str | Sequence[str]) -> tuple[Direction, ...]:
    given = [given] if isinstance(given, str) else list(given)
    if not given:
        raise OptionError("no direction is given", detail=f"Known: {', '.join(DIRECTIONS)}.", example="directions=['forward']")
    for name in given:
        if name not in DIRECTIONS:
            raise OptionError(
                f"there is no direction {name!r}", detail=f"Known: {', '.join(DIRECTIONS)}.", example="directions=('forward',)"
            )
    return tuple(d for d in DIRECTIONS if d in given)


def rounds_(given: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or (given != 0 and given < LEAST_ROUNDS):
        raise OptionError(
            f"rounds must be 0 (check only) or at least {LEAST_ROUNDS}, not {given!r}",
            detail="An interval of the median needs samples; six or more give 95 %.",
            example=f"rounds={ROUNDS}",
        )
    return given


def shapes(base: Shape, sweep: Mapping[str, int | Sequence[int] | None]) -> list[Shape]:
    """Every combination of the swept sizes. Skv follows Sq, and Hkv follows H, where they were equal."""
    from cute_lab.shapes import checked

    lists = {name: [v] if isinstance(v, int) else list(v) for name, v in sweep.items() if v is not None}
    for name, swept in lists.items():
        if not swept:
            raise OptionError(f"{name} is an empty list: nothing to measure", example=f"{name}=[1024, 8192]")
    out = []
    for values in itertools.product(*lists.values()):
        sizes = {"B": base.B, "H": base.H, "Hkv": base.Hkv, "Sq": base.Sq, "Skv": base.Skv, "D": base.D} | dict(
            zip(lists, values, strict=True)
        )
        if "Skv" not in lists and base.Skv == base.Sq:
            sizes["Skv"] = sizes["Sq"]
        if "Hkv" not in lists and base.Hkv == base.H:
            sizes["Hkv"] = sizes["H"]
        out.append(checked(**sizes, dtype=base.dtype))
    return out


def one_shape(request: Request, report: Callable[[str, float], None]) -> Rows:
    """A shape, measured. A contender that kills or hangs the process is failed, and the shape is measured again without it."""
    failed: list[Timing] = []
    while True:
        rows, culprit = Rows(), ""
        process = devices.current(request.device)
        try:
            for event, value in process.run("measure", request):
                if event == "progress":
                    culprit, doing, part = value
                    report(doing, part)
                elif event == "error" and value["fatal"] and culprit:
                    raise DeviceCrashed(f"a CUDA error: {value['reason']}")
                elif event == "error":
                    raise value["error"] or OptionError(f"the measurement failed: {value['reason']}", detail=value["traceback"][-600:])
                elif event == "stopped":
                    rows.timings += failed
                    raise Stopped(rows)
                rows.take(event, value)
        except KeyboardInterrupt:  # it came while an event was handled; what has arrived is kept
            rows.timings += failed
            raise Stopped(rows) from None
        except (DeviceCrashed, DeviceHung) as error:
            if not culprit:
                raise
            said = error.summary + (f" {error.reason}" if error.reason else "")
            failed += lost(request, culprit, said)
            request = replace(request, contenders=tuple(n for n in request.contenders if n != culprit))
            continue
        rows.timings += failed
        return rows


def lost(request: Request, name: str, why: str) -> list[Timing]:
    from cute_lab.baselines import baselines

    label = baselines()[name].label
    return [Timing(name, label, direction, request.shape, "failed", why) for direction in request.directions]


def measure(requests: Sequence[Request], command: str, quiet: bool = False) -> Bench:
    """All requests, one after the other. Stop (KeyboardInterrupt) returns what is complete, marked as stopped."""
    from cute_lab.baselines import baselines

    started, rows, stopped = time.perf_counter(), Rows(), False
    progress = Progress(len(requests), quiet)
    for i, request in enumerate(requests):
        s = request.shape
        where = f"{request.name} B{s.B} H{s.H} S{s.Sq} D{s.D}"
        try:
            rows.add(one_shape(request, lambda doing, part, i=i, where=where: progress.step(i + part, f"{where}: {doing}")))  # type: ignore[misc]
        except Stopped as stop:
            rows.add(stop.args[0])
            stopped = True
        except KeyboardInterrupt:
            stopped = True
        except CuteLabError as error:
            if len(requests) == 1:
                progress.end()
                raise
            rows.timings += [row for name in request.contenders for row in lost(request, name, error.summary)]
        if stopped:
            break
    order = {name: i for i, name in enumerate(baselines())}
    at = {r.shape: i for i, r in reversed(list(enumerate(requests)))}
    rows.timings.sort(key=lambda t: (at[t.shape], DIRECTIONS.index(t.direction), order[t.contender]))
    seconds = time.perf_counter() - started
    timed = sum(bool(t.samples_us) for t in rows.timings)
    progress.close(f"{'stopped: ' if stopped else ''}{timed} measurements in {clock(seconds)}")
    first = requests[0]
    return Bench(
        device=rows.device.get("name", first.device),
        versions=rows.device.get("versions", {}),
        protocol=(*INPUTS, *rows.device.get("protocol", ())),
        rounds=first.rounds,
        seed=first.seed,
        work=tuple(rows.work),
        timings=tuple(rows.timings),
        conditions=tuple(rows.conditions),
        peaks=tuple(rows.peaks),
        seconds=seconds,
        stopped=stopped,
        command=command,
    )


def request_of(
    lab: Lab,
    shape: Shape,
    packed: parcel.Parcel,
    names: tuple[str, ...],
    way: tuple[Direction, ...],
    rounds: int,
    seed: int,
    device: str,
) -> Request:
    return Request(packed, lab.name, shape, lab.given, lab.block, lab.fast_math, names, way, rounds, seed, device)


def bench(
    lab: Lab,
    against: Iterable[str] | None,
    sweep: Mapping[str, int | Sequence[int] | None],
    way: str | Sequence[str],
    rounds: int,
    seed: int,
    device: str | None,
    quiet: bool,
) -> Bench:
    """The lab's mods beside their baselines, over the swept shapes."""
    names, ways = contenders(against), directions(way)
    wanted = shapes(lab.shape, sweep)
    where = devices.chosen(device)
    packed = parcel.pack((lab.score_mod, lab.mask_mod))
    requests = [request_of(lab, s, packed, names, ways, rounds_(rounds), seed, where) for s in wanted]
    given = {n: v for n, v in sweep.items() if v is not None}
    chosen = [f"against={[n for n in names if n != 'cute_lab']!r}"] if against is not None else []
    options = ", ".join(
        chosen
        + [f"{n}={v!r}" for n, v in given.items()]
        + [f"directions={ways!r}", f"rounds={rounds}", f"seed={seed}"]
        + ([f"device={device!r}"] if device else [])
    )
    return measure(requests, f"lab.bench({options})", quiet)
