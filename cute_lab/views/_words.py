"""Phrases that several views share: a place in the score matrix, an architecture, a fix."""

from __future__ import annotations

import ast

from cute_lab.quantities import count
from cute_lab.record import Note, Record, TargetReport, Worst

NO_MASK = "No block map: this cell has no `mask_mod`, so the kernel computes every block."
FAMILY = {
    "sm_80": "Ampere",
    "sm_90": "Hopper",
    "sm_100": "Blackwell",
    "sm_103": "Blackwell Ultra",
    "sm_120": "Blackwell RTX",
}


def architecture(target: str) -> str:
    family = FAMILY.get(target.rstrip("af"))
    return f"{family} ({target})" if family else target


def column(report: TargetReport, reports: tuple[TargetReport, ...]) -> str:
    """A table's column head: the direction is named only where the record has both."""
    both = len({r.direction for r in reports}) > 1
    return architecture(report.target) + (f", {report.direction}" if both else "")


def register_words(report: TargetReport) -> list[str]:
    """`168 registers`, then what is spilled, or that nothing is."""
    spills = [(report.spill_stores, "spilled store"), (report.spill_loads, "spilled load")]
    return [count(report.registers, "register"), *([count(n, noun) for n, noun in spills if n] or ["no spills"])]


def place(worst: Worst | None) -> str:
    return f" at b{worst.b} h{worst.h} q{worst.q} kv{worst.kv}" if worst else ""


def note_words(note: Note) -> str:
    """Line, what, fix. A fix of several lines is a block of its own, which the caller shows below."""
    text = f"Line {note.line}: {note.text}" if note.line else note.text
    if not note.fix:
        return text
    if "\n" in note.fix:
        return f"{text} Write as below."
    if "`" in note.fix or not _is_code(note.fix):
        return f"{text} {note.fix[0].upper()}{note.fix[1:].rstrip('.')}."
    return f"{text} Write `{note.fix}`."


def _is_code(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def no_blocks(record: Record) -> str:
    if "mask_mod" in record.source.functions:
        return f"No block map yet. Run `{record.name if record.name.isidentifier() else 'lab'}.blocks()`: it needs no GPU."
    return NO_MASK


def cell_lines(record: Record) -> dict[int, str]:
    """The editor's line number -> the cell's text."""
    return dict(enumerate(record.cell.text.rstrip("\n").split("\n"), record.cell.first_line))
