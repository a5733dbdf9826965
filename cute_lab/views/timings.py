"""What the chart can't hold: each contender with its check, interval and ratio, and why a row has no speed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from cute_lab import series
from cute_lab.measurement import Bench, Condition, Direction, Shape, Timing, Work
from cute_lab.quantities import count, number, percent
from cute_lab.record import Record
from cute_lab.series import check_words, is_wrong, label_of, one_line, shape_words
from cute_lab.throughput import OURS, PASSES, Estimate, verdict
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Code, Head, Lines, Table, missing, page

HEAD = ("contender", "check: relative error (reference's own)", "TFLOP/s", "cute_lab against it", "of cuBLAS", "compile")
WORK = ("shape", "cells", "kept: useful work", "of all", "issued", "of all", "useful of issued")
ABOUT = (
    f"TFLOP/s: median and 95 % interval; 4 D FLOP per kept cell forward, {PASSES['backward']} times that backward, "
    f"{PASSES['forward+backward']} times that for both. A cell that is computed and masked away earns nothing.",
    "cute_lab against it: how many times faster cute_lab is, from the quotients of the same rounds; “no difference” where the "
    "interval holds 1.",
    "of cuBLAS: the share of what the card's own library reached on a dense product in the same rounds.",
    "A row whose check failed has no speed. A ceiling computes something else, so it is not checked.",
)


def render(record: Record) -> Bundle:
    bench = record.bench
    if bench is None:
        return missing("bench", record.name)
    if not bench.timings:
        return nothing(bench)
    seen = f"{one_line(bench.device)}: {count(bench.rounds, 'round')} in {bench.seconds:,.0f} s, seed {bench.seed}."
    blocks = [Lines((seen, *_stopped(bench))), *tables(bench), Lines(ABOUT)]
    blocks += [Head("How it was measured"), Lines(tuple(one_line(line, 400) for line in bench.protocol))]
    blocks += [Head("Work"), Table(WORK, tuple(map(_work, bench.work)), right=6)] if bench.work else []
    versions = ", ".join(f"{name} {version}" for name, version in bench.versions.items())
    blocks += [Head("The command that repeats it"), Code(bench.command, "shell"), Lines((f"Versions: {versions or 'not recorded'}.",))]
    return page(*blocks)


def nothing(bench: Bench) -> Bundle:
    return page(Lines((f"Nothing was measured on {one_line(bench.device)}.", *_stopped(bench))))


def tables(bench: Bench) -> list[Block]:
    """One for each direction and shape, below it what was wrong there; below all, what holds for more than one of them."""
    blocks: list[Block] = []
    remarks: dict[str, None] = {}  # in order, each once
    for direction in series.directions(bench):
        for shape in series.shapes(bench):
            found = {t.contender: t for t in bench.timings if (t.direction, t.shape) == (direction, shape)}
            rows = [found[name] for name in series.contenders(bench) if name in found]
            if rows:
                blocks += [Head(f"{series.direction_words(direction)} · {shape_words(shape)}")]
                blocks += [Table(HEAD, tuple(_row(bench, t) for t in rows), right=4)]
                lines = (*_clocks(bench, shape, direction), *(_remark(t) for t in rows if is_wrong(t)))
                blocks += [Lines(lines)] if lines else []
                remarks |= {_remark(t): None for t in rows if (t.reason or t.note) and not is_wrong(t)}
    return [*blocks, Head("Remarks"), Lines(tuple(remarks))] if remarks else blocks


def speed_words(e: Estimate) -> str:
    return f"{_figure(e.median)} [{_figure(e.low)}, {_figure(e.high)}]"


def _row(bench: Bench, t: Timing) -> tuple[str, ...]:
    found, share = series.speed(bench, t), series.share_of_peak(bench, t)
    shown = speed_words(found) if found else "✘ wrong" if is_wrong(t) else "no usable sample" if t.status == "timed" else t.status
    ours = "–" if t.contender == OURS else verdict(series.against(bench, t))
    compiled = f"{t.compile_seconds:,.1f} s" if t.compile_seconds else ""
    return label_of(t), check_words(t), shown, ours, percent(share) if share else "", compiled


def _remark(t: Timing) -> str:
    status = "✘ wrong" if is_wrong(t) else "" if t.status == "timed" else t.status
    parts = [one_line(part).rstrip(".") for part in (status, t.reason or t.note) if part]
    return f"{label_of(t)}: {'. '.join(parts)}."


def _clocks(bench: Bench, shape: Shape, direction: Direction) -> list[str]:
    """Medians over the rounds; what the driver does not say is left out."""
    here = [c for c in bench.conditions if (c.shape, c.direction) == (shape, direction)]
    parts = [("SM clock", "MHz", _known(here, "sm_mhz")), ("memory clock", "MHz", _known(here, "memory_mhz"))]
    parts += [("power", "W", _known(here, "watts")), ("temperature", "°C", _known(here, "celsius"))]
    ranges = {v: f" ({v[0]:,.0f} to {v[-1]:,.0f})" for _, _, v in parts if v and v[0] < v[-1]}
    said = [f"{name} {statistics.median(v):,.0f} {unit}{ranges.get(v, '')}" for name, unit, v in parts if v]
    return [f"The card in these rounds: {', '.join(said)}."] if said else []


def _known(found: Sequence[Condition], field: str) -> tuple[float, ...]:
    return tuple(sorted(value for c in found if (value := getattr(c, field)) > 0))


def _work(w: Work) -> tuple[str, ...]:
    shares = [percent(a / b) if b else "" for a, b in ((w.kept_cells, w.total_cells), (w.issued_cells, w.total_cells))]
    useful = percent(w.kept_cells / w.issued_cells) if w.issued_cells else ""
    name = f"{shape_words(w.shape)}, {one_line(w.block, 20).replace('x', '×')} blocks"
    return name, number(w.total_cells), number(w.kept_cells), shares[0], number(w.issued_cells), shares[1], useful


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _stopped(bench: Bench) -> tuple[str, ...]:
    return ("⚠ Interrupted: the rows that were complete are kept.",) if bench.stopped else ()


VIEW = View("timings", "Timing table", 74, ("bench",), render)
