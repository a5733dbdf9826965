"""What of a benchmark may be shown, and where: speeds that passed the check, as lines in panels, in fixed colours.

sheet = rows of panels     a row: the shapes that differ in the swept axis only; one row, if that tells all shapes apart
panel = a direction (the column) x lines, and the card's own peak at each shape
line  = a contender: per shape its timing, and its speed unless there is none or it is wrong
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cute_lab.measurement import DIRECTIONS, Accuracy, Bench, Direction, Shape, Timing
from cute_lab.quantities import short
from cute_lab.throughput import OURS, Estimate, find, peak, ratio, tflops

AXES = {
    "Sq": "query tokens (Sq)",
    "Skv": "key tokens (Skv)",
    "D": "head dimension (D)",
    "H": "query heads (H)",
    "Hkv": "key and value heads (Hkv)",
    "B": "batch (B)",
}
SHOWN = 4  # rows of panels
STRIP = 0.05  # of the height, for each contender that is wrong at one place
UNIT = "TFLOP/s"


@dataclass(frozen=True)
class Style:
    """plotly's names."""

    colour: str
    marker: str = "circle"
    dash: str = "solid"
    width: float = 2.0
    size: float = 10.0


# Okabe-Ito; orange and sky darker, so that each colour has a contrast of 3 on white and on black. A family has one hue.
BLUE, SKY, VERMILLION, GREEN, PURPLE, ORANGE = "#0072b2", "#3d8fc4", "#d55e00", "#009e73", "#c76f9f", "#b87f00"
BROWN, GREY = "#8d6e63", "#797979"
STYLES = {
    "cute_lab": Style(BLUE, "circle", "solid", 3.5, 8.0),
    "cute_lab_fast": Style(SKY, "circle-open", "dot"),
    "flex_triton": Style(VERMILLION, "square"),
    "flex_triton_tuned": Style(VERMILLION, "square-open", "dot"),
    "flex_flash": Style(GREEN, "diamond"),
    "sdpa_cudnn": Style(PURPLE, "triangle-up"),
    "sdpa_flash": Style(PURPLE, "triangle-down", "dot"),
    "eager": Style(BROWN, "pentagon"),
    "fa4_native": Style(ORANGE, "hexagon", "dash"),
    "fa4_dense": Style(ORANGE, "star", "dash"),
}
CEILINGS = ("fa4_native", "fa4_dense")  # without the user's score_mod: rates to reach, no rivals
PEAK = Style(GREY, "", "longdash", 1.5)
OTHERS = tuple(
    Style(colour, marker, "dashdot") for marker in ("cross", "triangle-left", "bowtie") for colour in (GREEN, SKY, BROWN, VERMILLION)
)


def style(contender: str) -> Style:
    """A contender that the table does not know has the same style in every chart too."""
    return STYLES.get(contender) or OTHERS[zlib.crc32(contender.encode()) % len(OTHERS)]


@dataclass(frozen=True)
class Point:
    shape: Shape
    timing: Timing | None
    speed: Estimate | None

    @property
    def wrong(self) -> bool:
        return self.timing is not None and is_wrong(self.timing)

    @property
    def status(self) -> str:
        """Why there is no speed."""
        return "" if self.timing is None else "✘ wrong: no speed" if self.wrong else self.timing.status


@dataclass(frozen=True)
class Line:
    contender: str
    label: str
    style: Style
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    title: str
    direction: Direction
    shapes: tuple[Shape, ...]
    lines: tuple[Line, ...]
    peaks: tuple[Estimate | None, ...]


@dataclass(frozen=True)
class Sheet:
    axis: str  # the field of a shape that runs along x; empty: one shape, so bars
    rows: tuple[tuple[Panel, ...], ...]
    labels: dict[str, str]  # contender -> its label
    names: dict[str, str]  # contender -> what the legend calls it: the label, with what kept it from being drawn
    top: float  # TFLOP/s: the highest end of an interval
    left_out: int  # rows

    @property
    def wrong(self) -> int:
        """The most contenders that are wrong at one place."""
        panels = [panel for row in self.rows for panel in row]
        return max((sum(line.points[i].wrong for line in p.lines) for p in panels for i in range(len(p.shapes))), default=0)


# -- what a reader may be told of one timing ------------------------------------------------------------------------------
def is_wrong(timing: Timing) -> bool:
    return timing.status == "wrong" or any(not a.ok for a in timing.accuracy)


def usable(timing: Timing) -> bool:
    """Timed, right, and every sample is a time."""
    times = timing.samples_us
    return timing.status == "timed" and not is_wrong(timing) and bool(times) and all(0 < us < math.inf for us in times)


def speed(bench: Bench, timing: Timing) -> Estimate | None:
    """TFLOP/s over the cells that the mask keeps."""
    return tflops(bench, timing) if usable(timing) else None


def against(bench: Bench, timing: Timing) -> Estimate | None:
    """How many times faster cute_lab is."""
    ours = find(bench, OURS, timing)
    if ours is None or timing.contender == OURS or not (usable(ours) and usable(timing)):
        return None
    return ratio(ours, timing)


def share_of_peak(bench: Bench, timing: Timing) -> float | None:
    reached, possible = speed(bench, timing), peak(bench, timing)
    return reached.median / possible.median if reached and possible and possible.median else None


def worst_tensor(timing: Timing) -> Accuracy | None:
    """The one that differs most, measured by the reference's own error; one that failed before one that did not."""

    def excess(a: Accuracy) -> tuple[bool, float]:
        own = a.relative_error / max(a.reference_relative_error, 1e-30)
        return not a.ok, math.inf if math.isnan(own) else own

    return max(timing.accuracy, key=excess, default=None)


def error_words(value: float) -> str:
    return "not a number" if math.isnan(value) else "infinite" if math.isinf(value) else short(value)


def check_words(timing: Timing) -> str:
    """`✔ dv 3.9e-3 (3.8e-3)`: relative error, and the reference's own in brackets."""
    worst, mark = worst_tensor(timing), "✘" if is_wrong(timing) else "✔"
    if worst:
        return f"{mark} {worst.tensor} {error_words(worst.relative_error)} ({error_words(worst.reference_relative_error)})"
    return mark if is_wrong(timing) else "not checked" if timing.status == "timed" else ""


def one_line(text: str, limit: int = 160) -> str:
    """Printable, in one line, and not the whole of a compiler's message: the record holds all."""
    line = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in " ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def label_of(timing: Timing) -> str:
    return one_line(timing.label or timing.contender, 40)


def direction_words(direction: Direction) -> str:
    return direction.replace("+", " + ")


def shape_words(shape: Shape) -> str:
    heads = f"H{shape.H}" if shape.Hkv == shape.H else f"H{shape.H} Hkv{shape.Hkv}"
    length = f"S{shape.Sq}" if shape.Sq == shape.Skv else f"Sq{shape.Sq} Skv{shape.Skv}"
    return f"B{shape.B} {heads} {length} D{shape.D} {shape.dtype}"


# -- where it stands ------------------------------------------------------------------------------------------------------
def contenders(bench: Bench) -> list[str]:
    """In the order of the table, unknown ones before the ceilings."""
    known = list(STYLES)
    rank = {name: i + len(OTHERS) * (name in CEILINGS) for i, name in enumerate(known)}
    return sorted({t.contender for t in bench.timings}, key=lambda name: (rank.get(name, len(known)), name))


def directions(bench: Bench) -> list[Direction]:
    return [direction for direction in DIRECTIONS if any(t.direction == direction for t in bench.timings)]


def shapes(bench: Bench) -> list[Shape]:
    """From small to large."""
    found = {t.shape for t in bench.timings}
    return sorted(found, key=lambda s: (s.Sq * s.Skv, s.B * s.H * s.D, s.D, s.B, s.Hkv, s.dtype))


def sheet(bench: Bench, rows: int = SHOWN) -> Sheet:
    found = shapes(bench)
    axis = next((name for name in AXES if len({getattr(s, name) for s in found}) > 1), "")
    groups = _groups(found, axis)
    drawn = tuple(tuple(_panel(bench, d, title, group) for d in directions(bench)) for title, group in groups[:rows])
    speeds = [point.speed for row in drawn for panel in row for line in panel.lines for point in line.points]
    peaks = [one for row in drawn for panel in row for one in panel.peaks]
    top = max((e.high for e in (*speeds, *peaks) if e), default=0.0) or 1.0
    labels = {name: label_of(next(t for t in bench.timings if t.contender == name)) for name in contenders(bench)}
    names = {name: label + _kept_from(bench, name) for name, label in labels.items()}
    return Sheet(axis, drawn, labels, names, top, max(0, len(groups) - rows))


def _groups(found: Sequence[Shape], axis: str) -> list[tuple[str, tuple[Shape, ...]]]:
    """Shapes with different places on the axis: all of them, or by one other field, or by all other fields."""
    square = all(s.Sq == s.Skv for s in found)  # then Skv tells nothing that Sq does not
    others = [name for name in ("D", "H", "Hkv", "B", "dtype", "Skv") if name != axis and not (square and name == "Skv")]
    for names in ([], *([name] for name in others), others):
        by: dict[tuple[str, ...], list[Shape]] = {}
        for shape in found:
            by.setdefault(tuple(f"{name} {getattr(shape, name)}" for name in names), []).append(shape)
        if all(len({getattr(s, axis, 0) for s in group}) == len(group) for group in by.values()):
            break
    varied = [i for i in range(len(names)) if len({key[i] for key in by}) > 1]
    ordered = [(key, sorted(group, key=lambda s: getattr(s, axis, 0))) for key, group in by.items()]
    return [(", ".join(key[i] for i in varied), tuple(group)) for key, group in ordered]


def _panel(bench: Bench, direction: Direction, title: str, group: tuple[Shape, ...]) -> Panel:
    at = {(t.contender, t.shape): t for t in bench.timings if t.direction == direction}
    lines = []
    for name in contenders(bench):
        timings = [at.get((name, shape)) for shape in group]
        points = tuple(Point(s, t, speed(bench, t) if t else None) for s, t in zip(group, timings, strict=True))
        if any(timings):
            lines.append(Line(name, label_of(next(t for t in timings if t)), style(name), points))
    peaks = []
    for shape in group:
        there = next((t for (_, s), t in at.items() if s == shape), None)
        peaks.append(peak(bench, there) if there else None)
    words = direction_words(direction)
    return Panel(f"{words}, {title}" if title else words, direction, group, tuple(lines), tuple(peaks))


def _kept_from(bench: Bench, contender: str) -> str:
    """` (✘ wrong at 2 of 6)`: what a look at the lines does not tell."""
    timings = [t for t in bench.timings if t.contender == contender]
    found = ["✘ wrong" if is_wrong(t) else t.status for t in timings if not usable(t)]
    parts = [end if len(timings) == n else f"{end} at {n} of {len(timings)}" for end, n in Counter(found).items()]
    return f" ({', '.join(parts)})" if parts else ""


# -- the axes -------------------------------------------------------------------------------------------------------------
def ticks(top: float) -> list[float]:
    """Four to seven round numbers from zero."""
    step = 10.0 ** math.floor(math.log10(top / 2))
    step *= next(m for m in (0.5, 1.0, 2.0, 2.5, 5.0) if top / (step * m) <= 6)
    return [i * step for i in range(int(top / step) + 1)]


def places(shapes: tuple[Shape, ...], axis: str) -> list[int]:
    """Where x has a number: at every shape, or at the last and as many before it as don't touch."""
    values = [getattr(shape, axis) for shape in shapes]
    return values[:: -len(values) // 7][::-1]


def ends(panel: Panel, axis: str) -> tuple[float, float]:
    """Of x, which is logarithmic, with room at both sides."""
    values = [getattr(shape, axis) for shape in panel.shapes]
    room = max((max(values) / min(values)) ** 0.06, 1.07)
    return min(values) / room, max(values) * room


def axis_title(page: Sheet, panel: Panel) -> str:
    square = page.axis == "Sq" and all(s.Sq == s.Skv for s in panel.shapes)
    more = f" · not drawn: {page.left_out} more rows of shapes" if page.left_out and panel in page.rows[-1] else ""
    return ("tokens (Sq = Skv)" if square else AXES.get(page.axis, UNIT)) + more


def strip(page: Sheet) -> float:
    """How far the hatched strip reaches below zero."""
    return page.top * STRIP * (page.wrong + 1) if page.wrong else 0.0


def depth(page: Sheet, panel: Panel, line: Line, i: int) -> float:
    """Where in the strip a wrong contender stands, so that two at the same x don't cover each other."""
    above = sum(other.points[i].wrong for other in panel.lines[: panel.lines.index(line)])
    return -strip(page) * (above + 0.5) / page.wrong
