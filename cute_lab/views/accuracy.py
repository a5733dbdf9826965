"""Each contender's results on the GPU against float32, beside the error that the inputs' own dtype makes; and where they differ."""

from __future__ import annotations

import math

from cute_lab.measurement import Accuracy, Timing
from cute_lab.quantities import number
from cute_lab.record import Record
from cute_lab.series import contenders, direction_words, directions, error_words, label_of, one_line, shape_words, shapes
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Code, Head, Lines, Table, missing, page

HEAD = ("contender", "tensor", "verdict", "worst place", "max error", "reference's own", "relative error", "reference's own")
SHADES = ((1.0, "░"), (3.0, "▒"), (10.0, "▓"), (math.inf, "█"))
HEADS, BANDS = 8, 64  # strips of one tensor, characters of one strip
ABOUT = (
    "Errors are against float32. “reference's own” is what torch's eager formula makes of it in the inputs' dtype: the yardstick.",
    "A contender that computes something else (a ceiling), or did not run, is not in the table.",
)
KEY = (
    "A strip runs over a head's rows. Error there, by the reference's own largest: ░ within, ▒ to 3 times, ▓ to 10 times, █ above or none."
)


def render(record: Record) -> Bundle:
    bench = record.bench
    if bench is None:
        return missing("bench", record.name)
    at = {(t.direction, t.shape, t.contender): t for t in bench.timings if t.accuracy}
    blocks: list[Block] = [Lines(ABOUT if at else ("No contender's results were checked.",))]
    for direction in directions(bench):
        for shape in shapes(bench):
            found = [at[direction, shape, name] for name in contenders(bench) if (direction, shape, name) in at]
            if found:
                rows = tuple(_row(t, a) for t in found for a in t.accuracy)
                blocks += [Head(f"{direction_words(direction)} · {shape_words(shape)}"), Table(HEAD, rows, right=4)]
                strips = [line for t in found for a in t.accuracy if not a.ok for line in _strips(t, a)]
                blocks += [Lines((KEY,)), Code("\n".join(strips))] if strips else []
    return page(*blocks)


def _row(t: Timing, a: Accuracy) -> tuple[str, ...]:
    errors = (a.max_error, a.reference_max_error, a.relative_error, a.reference_relative_error)
    return label_of(t), a.tensor, "✔ right" if a.ok else "✘ wrong", one_line(a.worst, 70), *map(error_words, errors)


def _strips(t: Timing, a: Accuracy) -> list[str]:
    heads = [f"head {i + 1} of the checked  {_strip(rows, a.reference_max_error)}" for i, rows in enumerate(a.where[:HEADS])]
    more = len(a.where) - HEADS
    return [f"{label_of(t)}, {a.tensor}", *heads, *([f"{number(more)} more heads"] if more > 0 else [])]


def _strip(rows: tuple[float, ...], own: float) -> str:
    step = -(-len(rows) // BANDS)
    bands = [rows[i : i + step] for i in range(0, len(rows), step)] if rows else []
    return "".join(_shade(max((math.inf if math.isnan(e) else e for e in band), default=0.0), own) for band in bands)


def _shade(error: float, own: float) -> str:
    if not own:
        return "█" if error else "░"
    return next(shade for limit, shade in SHADES if error / own <= limit)


VIEW = View("accuracy", "Check on the GPU", 76, ("bench",), render)
