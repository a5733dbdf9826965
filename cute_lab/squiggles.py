"""A cell as an editor holds it, and what is said about places in it: lines from 1, columns from 0 in UTF-16 units, ends exclusive."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from cute_lab.errors import Loc

MAGIC_LINE = re.compile(r"%%cute_attention(?![\w.])[ \t]*(?P<options>.*)")
WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
_counter = itertools.count()


class Span(NamedTuple):
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Edit:
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Fix:
    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Diagnostic:
    line: int
    column: int
    end_line: int
    end_column: int
    severity: Literal["error", "warning", "info"]
    message: str
    hint: str = ""
    fixes: tuple[Fix, ...] = ()
    source: Literal["static", "trace"] = "static"

    @property
    def span(self) -> Span:
        return Span(self.line, self.column, self.end_line, self.end_column)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def units(text: str) -> int:
    """UTF-16 code units: what an editor in a browser counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def characters(text: str, column: int) -> int:
    """How many characters stand before a UTF-16 column."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * column].decode("utf-16-le", "ignore"))


@dataclass(frozen=True)
class CellText:
    """`code` has the lines of the editor; its %% line is a comment. `file` is its name while it is remembered."""

    text: str
    code: str
    options: str
    magic_line: int  # from 1
    options_column: int  # of the %% line, where the options start
    file: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """None where the cell is not one of ours."""
        lines = text.split("\n")
        at = next((i for i, line in enumerate(lines) if line.strip()), None)
        found = MAGIC_LINE.fullmatch(lines[at].rstrip("\r")) if at is not None else None
        if at is None or found is None:
            return None
        code = "\n".join([*[""] * at, f"# {lines[at]}", *lines[at + 1 :]])
        return cls(text, code, found["options"], at + 1, found.start("options"), f"<cute_lab:typed {next(_counter)}>")

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @contextmanager
    def remembered(self) -> Iterator[None]:
        """Errors find their line, and inspect the functions, as long as it lasts; nothing stays."""
        linecache.cache[self.file] = (len(self.code), None, self.code.splitlines(keepends=True), self.file)
        try:
            yield
        finally:
            linecache.cache.pop(self.file, None)

    # -- places -----------------------------------------------------------------------------------------------------------
    def at(self, line: int, first: int, last_line: int, last: int) -> Span:
        """From characters, counted from 0."""
        lines = self.lines
        line, last_line = (min(max(n, 1), len(lines)) for n in (line, last_line))
        return Span(line, units(lines[line - 1][: max(first, 0)]), last_line, units(lines[last_line - 1][: max(last, 0)]))

    def span(self, loc: Loc) -> Span:
        """An error's place: at least one character wide, and not wider than its lines."""
        end_line = loc.end_line or loc.line
        end = loc.end_column or (len(self.lines[min(loc.line, len(self.lines)) - 1]) if end_line == loc.line else 0)
        found = self.at(loc.line, loc.column - 1, end_line, end)
        return found if found[:2] < found[2:] else found._replace(end_line=found.line, end_column=found.column + 1)

    def node(self, node: ast.AST) -> Span:
        from cute_lab import usercode

        at = usercode.span(node, self.file)
        return self.at(at.line, at.column - 1, at.end_line, at.end_column)

    def whole(self, line: int) -> Span:
        """A line without its indentation and comment."""
        text = self.lines[min(line, len(self.lines)) - 1]
        return self.at(line, len(text) - len(text.lstrip()), line, len(text.partition(" #")[0].rstrip()))

    def words(self) -> list[tuple[str, Span]]:
        """The words of the %% line after the magic's name."""
        shift = self.options_column
        return [(w[0], self.at(self.magic_line, shift + w.start(), self.magic_line, shift + w.end())) for w in WORD.finditer(self.options)]

    def magic(self) -> Span:
        return self.at(self.magic_line, 0, self.magic_line, len(self.lines[self.magic_line - 1][: self.options_column].rstrip()))

    def segment(self, node: ast.AST) -> str:
        """The node as the person has written it."""
        return ast.get_source_segment(self.code, node) or ast.unparse(node)


def apply(text: str, fix: Fix) -> str:
    """The text with a fix in it: what an editor makes of it."""
    lines = text.split("\n")
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + characters(lines[line - 1], column)

    for edit in sorted(fix.edits, key=lambda e: (e.line, e.column), reverse=True):
        text = text[: offset(edit.line, edit.column)] + edit.text + text[offset(edit.end_line, edit.end_column) :]
    return text
