"""What each architecture's compiler made of the kernel, side by side; a refused one says why and what to write."""

from __future__ import annotations

from collections.abc import Callable

from cute_lab.heavy import BAND
from cute_lab.quantities import number, short
from cute_lab.record import Record, TargetReport
from cute_lab.targets import TARGETS
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Code, Head, Lines, Table, missing, page
from cute_lab.views._words import column, note_words

ABOUT_COST = (
    "The cost is an estimate in scheduler cycles per tile, good to ±10 % on Hopper and not calibrated on Blackwell.",
    "It ranks variants on one target; bands that overlap are no difference. It is no speed: measure that on the GPU.",
)
ROWS: tuple[tuple[str, Callable[[TargetReport], str]], ...] = (
    ("registers per thread", lambda t: number(t.registers)),
    ("stack, bytes", lambda t: number(t.stack_bytes)),
    ("spilled stores", lambda t: number(t.spill_stores)),
    ("spilled loads", lambda t: number(t.spill_loads)),
    ("instructions", lambda t: number(t.instructions)),
)


def render(record: Record) -> Bundle:
    reports = record.targets
    if not reports:
        return missing("targets", record.name)
    rows = [("result", *("✔ compiled" if _ok(t) else f"⊘ {t.status}" for t in reports))]
    if any(_ok(t) for t in reports):
        rows += [(name, *(show(t) if _ok(t) else "–" for t in reports)) for name, show in ROWS]
        rows += [(f"in the main loop: {p}", *(_share(t, p) for t in reports)) for p in dict.fromkeys(p for t in reports for p in t.mix)]
        rows += [("estimated cost", *(_cost(t) for t in reports))] if any(t.cost is not None for t in reports) else []
        rows += [("compile time", *(_time(t) if _ok(t) else "–" for t in reports))]
    head = ("", *(column(t, reports) for t in reports))
    blocks: list[Block] = [Table(head, tuple(rows), right=len(reports))]
    if any(t.cost is not None for t in reports):
        blocks.append(Lines(ABOUT_COST))
    for report in reports:
        if report.advice or not _ok(report):
            blocks += _advice(report, column(report, reports))
    return page(*blocks)


def _ok(report: TargetReport) -> bool:
    return report.status == "compiled"


def _share(report: TargetReport, pipe: str) -> str:
    return number(report.mix.get(pipe, 0)) if _ok(report) else "–"


def _cost(report: TargetReport) -> str:
    if report.cost is None:
        return "–"
    low, middle, high = (f"{report.cost * factor:,.0f}" for factor in (1 - BAND, 1, 1 + BAND))
    calibrated = report.target in TARGETS and TARGETS[report.target].calibrated
    return f"{middle} ({low} to {high})" if calibrated else f"{middle} (not calibrated)"


def _time(report: TargetReport) -> str:
    return f"{short(report.seconds)} s" + (", cached" if report.cached else "")


def _advice(report: TargetReport, name: str) -> list[Block]:
    lines = [] if _ok(report) else [f"⊘ {report.reason}"]
    lines += [note_words(note) for note in report.advice]
    fixes = [Code(note.fix, "python") for note in report.advice if "\n" in note.fix]
    return [Head(name), Lines(tuple(lines)), *fixes]


VIEW = View("targets", "Machine code", 60, ("targets",), render)
