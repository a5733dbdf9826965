"""What each line of the cell costs: its share of the mod's cycles in the main loop, the targets side by side."""

from __future__ import annotations

from collections import Counter

from cute_lab.quantities import bar, number, percent
from cute_lab.record import LineCost, Record, TargetReport
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Lines, Table, Verbatim, missing, page
from cute_lab.views._words import cell_lines, column

ABOUT = "Shares are of the estimated cycles that the mod takes in the main loop; instructions are per tile."


def render(record: Record) -> Bundle:
    reports = tuple(t for t in record.targets if t.line_cost)
    if not reports:
        return missing("lines", record.name)
    cell = cell_lines(record)
    costs = [_by_line(report) for report in reports]
    used = sorted({line for table in costs for line in table}, key=lambda line: (line == 0, line))
    rows = tuple((str(line or ""), _code(line, cell), *(part for table in costs for part in _parts(table.get(line)))) for line in used)
    head = ("line", "your code", *(part for t in reports for part in (column(t, reports), "instructions")))
    blocks: list[Block] = [Table(head, rows), Lines((ABOUT,))]
    return page(*blocks)


def _by_line(report: TargetReport) -> dict[int, LineCost]:
    """One entry per line: a compiler reports each generated line that no line of the cell asked for on its own."""
    found: dict[int, LineCost] = {}
    for cost in report.line_cost:
        before = found.get(cost.line, LineCost(cost.line, 0, 0.0, {}))
        pipes = dict(Counter(before.by_pipe) + Counter(cost.by_pipe))
        instructions, share = before.instructions + cost.instructions, before.share + cost.share
        found[cost.line] = LineCost(cost.line, instructions, share, pipes)
    return found


def _code(line: int, cell: dict[int, str]) -> str:
    return Verbatim(cell.get(line, "").rstrip()) if line else "(from no line of yours)"


def _parts(cost: LineCost | None) -> tuple[str, str]:
    if cost is None:
        return "", ""
    pipes = sorted(cost.by_pipe.items(), key=lambda item: (-item[1], item[0]))
    mix = f" ({', '.join(f'{n} {pipe}' for pipe, n in pipes)})" if pipes else ""
    share = f"{bar(cost.share, 8)} {percent(round(cost.share, 3))}".strip().replace(" ", "\N{NO-BREAK SPACE}")
    return share, f"{number(cost.instructions)}{mix}"


VIEW = View("lines", "Cost by line", 70, ("targets",), render)
