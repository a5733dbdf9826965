"""What of a long listing is kept in a record: the main loop, the lines that come from the cell, a little around them. No torch."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

AROUND = 2  # lines
MOST = 2000  # lines of a listing: 20 kB packed; most main loops have fewer, an exact tanh per element has more


@dataclass(frozen=True)
class Line:
    number: int  # in the whole listing, from 1
    user_line: int  # the cell's line that it comes from, 0 none
    text: str


@dataclass(frozen=True)
class Excerpt:
    """`data`: base64 of zlib of the kept lines in UTF-8, each as `step user_line text`, where step is from the kept line before it."""

    encoding: Literal["zlib-b64"]
    data: str
    total: int  # lines of the whole
    loop: tuple[int, ...] | None  # first and last line of the main loop

    def __post_init__(self) -> None:
        if self.loop is not None and len(self.loop) != 2:
            raise ValueError("a loop has a first and a last line")

    @property
    def lines(self) -> list[Line]:
        found, number = [], 0
        for packed in zlib.decompress(base64.b64decode(self.data)).decode().split("\n"):
            step, user_line, text = packed.split(" ", 2)
            number += int(step)
            found.append(Line(number, int(user_line), text))
        return found


@dataclass(frozen=True)
class Listing:
    sass: Excerpt
    ptx: Excerpt


def excerpt(text: str, user_lines: Mapping[int, int], loop: tuple[int, int] | None) -> Excerpt:
    """`user_lines` and `loop` count the text's lines from 0. Where that is too much: the cell's lines in the loop, the rest of the
    loop, other lines of the cell, what is around them."""
    lines = text.removesuffix("\n").split("\n")
    inside = range(loop[0], loop[1] + 1) if loop else range(0)
    own = sorted(row for row, line in user_lines.items() if line)
    around = (near for row in own for near in range(max(0, row - AROUND), min(len(lines), row + AROUND + 1)))
    chosen = sorted(list(dict.fromkeys([*(row for row in own if row in inside), *inside, *own, *around]))[:MOST]) or [0]
    steps = (row - before for row, before in zip(chosen, [-1, *chosen[:-1]], strict=True))
    kept = (f"{step} {user_lines.get(row, 0)} {lines[row]}" for step, row in zip(steps, chosen, strict=True))
    data = base64.b64encode(zlib.compress("\n".join(kept).encode(), 9)).decode()
    return Excerpt("zlib-b64", data, len(lines), (loop[0] + 1, loop[1] + 1) if loop else None)
