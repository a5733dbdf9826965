"""Where the generated code was compared with the user's function, and the cell where they differ most."""

from __future__ import annotations

from cute_lab.quantities import exact, number, short
from cute_lab.record import Record
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Head, Lines, Table, missing, page

HEAD = ("generated code", "verdict", "compared on", "points", "max error", "error over max(1, |x|)", "its tolerance")
WORST = ("generated code", "b", "h", "q", "kv", "your function", "generated", "difference")
NAMES = {
    "score_mod": "forward: `score_mod`",
    "mask_mod": "mask: `mask_mod`",
    "score_mod_bwd": "backward: `score_mod_bwd`",
    "mask_mod_packed": "mask on Blackwell: `mask_mod_packed`",
}


def render(record: Record) -> Bundle:
    if not record.checks:
        return missing("checks", record.name)
    rows = tuple(
        (
            NAMES[check.name],
            "✔ equal" if check.ok else "✘ differs",
            check.grid,
            number(check.points),
            short(check.max_abs_error),
            short(check.max_rel_error),
            short(check.tolerance),
        )
        for check in record.checks
    )
    blocks: list[Block] = [
        Lines(("The generated CuTeDSL, run on the host, against your function, run by torch.",)),
        Table(HEAD, rows, right=4),
    ]
    worst = tuple(
        (NAMES[c.name], *map(number, (w.b, w.h, w.q, w.kv)), exact(w.expected), exact(w.got), short(w.got - w.expected))
        for c in record.checks
        if (w := c.worst)
    )
    if worst:
        blocks += [Head("The cell where they differ most"), Table(WORST, worst, right=7)]
    return page(*blocks)


VIEW = View("check", "Check", 50, ("checks",), render)
