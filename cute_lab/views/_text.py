"""A page of text -> Markdown and plain text. What a user wrote stays text: no markup, HTML, formula or escape acts.

page   = block*
block  = Head(text) | Lines(line*) | Table(head, rows, right) | Code(text, language)
inline = str, prose in which `backticks` mark code | Verbatim(str), code to its last character
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cute_lab.views import Bundle

MISSING = {
    "source": "No generated code yet. Run the cell: `%%cute_attention` prints the CuTeDSL that it generates.",
    "stages": "No stages were recorded. Run the cell again to record its IR and its FX graph.",
    "checks": "Not checked yet. Run `{name}.verify()`: it compares the generated code with your function, point by point.",
    "lines": "No cost per line yet: no target was compiled. Run `{name}.compile('sm_90a')`; it needs no GPU.",
    "targets": "No machine code yet. Run `{name}.compile('sm_90a')` or `{name}.compile('sm_100a')`: neither needs a GPU.",
    "bench": "Not measured yet. Run `{name}.bench()` on a machine with a GPU, or `python -m cute_lab bench` there and load its record.",
}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SPECIAL = re.compile(r"[$\\]+|[&<>`*_\[\]#|~]")


class Verbatim(str):
    """Text of the user's, shown as code."""


@dataclass(frozen=True)
class Head:
    text: str


@dataclass(frozen=True)
class Lines:
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: int = 0  # this many columns at the end are numbers


@dataclass(frozen=True)
class Code:
    text: str
    language: str = ""


Block = Head | Lines | Table | Code


def page(*blocks: Block) -> Bundle:
    return {
        "text/markdown": "\n\n".join(_markdown(block) for block in blocks),
        "text/plain": "\n\n".join(_plain(block) for block in blocks),
    }


def missing(field: str, name: str) -> Bundle:
    return page(Lines((said_missing(field, name),)))


def said_missing(field: str, name: str) -> str:
    """What to run; the record's name is the variable that holds the Lab, if it can be one."""
    return MISSING[field].format(name=name if name.isidentifier() else "lab")


def clean(text: str) -> str:
    """Control characters and direction marks made visible: they could repaint a terminal or reorder code."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").expandtabs(4))


def span(text: str, in_table: bool = False) -> str:
    text = clean(text).replace("\n", " ").rstrip()
    body = text.lstrip(" ")
    if not body:
        return ""
    ticks = "`" * (max((len(run) for run in re.findall("`+", body)), default=0) + 1)
    pad = " " if body[0] == "`" or body[-1] == "`" else ""
    indent = "\N{NO-BREAK SPACE}" * (len(text) - len(body))
    if in_table:  # a backslash before the bar would make it a column again
        body = body.replace("\\|", "\\\N{ZERO WIDTH SPACE}|").replace("|", "\\|")
    return f"{ticks}{pad}{indent}{body}{pad}{ticks}"


def prose(text: str, in_table: bool = False) -> str:
    if isinstance(text, Verbatim):
        return span(text, in_table)
    parts = re.split(r"`([^`\n]*[^`\s][^`\n]*)`", clean(text).replace("\n", " "))
    pieces = (f"\0{span(part, in_table)}\0" if i % 2 else SPECIAL.sub(_escape, part) for i, part in enumerate(parts))
    marked = "".join(pieces)
    return marked.replace("\0\0", "\N{ZERO WIDTH SPACE}").replace("\0", "")  # two code spans in touch would become one


def _escape(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] in "$\\":  # a code span, because MathJax reads the page after Markdown and skips only code
        return f"\0`{text}`\0"
    return {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(text, f"\\{text}")


def _markdown(block: Block) -> str:
    if isinstance(block, Head):
        return f"#### {prose(block.text)}"
    if isinstance(block, Lines):
        return "  \n".join(prose(line) for line in block.lines)
    if isinstance(block, Code):
        text = clean(block.text).rstrip("\n")
        fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
        return f"{fence}{block.language}\n{text}\n{fence}"
    left = len(block.head) - block.right
    rule = [":---" if i < left else "---:" for i in range(len(block.head))]
    rows = [[prose(cell, in_table=True) for cell in row] for row in (block.head, *block.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


def _plain(block: Block) -> str:
    if isinstance(block, Head):
        head = clean(block.text).replace("\n", " ").replace("`", "")
        return f"{head}\n{'─' * len(head)}"
    if isinstance(block, Lines):
        return "\n".join(clean(line).replace("\n", " ") for line in block.lines)
    if isinstance(block, Code):
        return "\n".join("    " + line for line in clean(block.text).rstrip("\n").split("\n"))
    rows = [[clean(cell).replace("\n", " ").replace("`", "") for cell in row] for row in (block.head, *block.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(block.head))]
    rows.insert(1, ["─" * width for width in widths])
    left = len(widths) - block.right
    ljust = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    aligned = [[*row[:left], *(cell.strip().rjust(len(cell)) for cell in row[left:])] for row in ljust]
    return "\n".join("  ".join(row).rstrip() for row in aligned)
