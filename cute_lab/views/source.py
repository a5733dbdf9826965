"""The user's cell and the CuTeDSL made of it, whose lines end with the cell's line that asked for them."""

from __future__ import annotations

from cute_lab.record import Record
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Code, Head, Table, Verbatim, missing, page
from cute_lab.views._words import cell_lines


def render(record: Record) -> Bundle:
    if not record.source.text.strip():
        return missing("source", record.name)
    cell = cell_lines(record)
    digits = len(str(max(cell)))
    blocks: list[Block] = [
        Head("Your cell"),
        Code("\n".join(f"{n:>{digits}}  {text}" for n, text in cell.items())),
        Head(f"Generated CuTeDSL: {', '.join(f'`{name}`' for name in record.source.functions)}"),
        Code(record.source.text.rstrip("\n"), "python"),
    ]
    origins = _origins(record.source.user_lines)
    if origins:
        rows = [(str(n), Verbatim(cell.get(n, "")), _ranges(made)) for n, made in origins.items()]
        blocks += [Head("Which line made which"), Table(("cell line", "your code", "generated lines"), tuple(rows))]
    return page(*blocks)


def _origins(user_lines: tuple[int, ...]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for generated, line in enumerate(user_lines, 1):
        found.setdefault(line, []).append(generated)
    return {line: found[line] for line in sorted(found) if line}


def _ranges(numbers: list[int]) -> str:
    """[3, 4, 5, 9] -> 3-5, 9"""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


VIEW = View("source", "Code", 20, ("source",), render)
