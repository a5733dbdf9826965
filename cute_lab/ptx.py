"""PTX as data: which generated line each of its lines comes from, by the compiler's own `.loc` directives. No torch."""

from __future__ import annotations

import re
from collections.abc import Mapping

FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"(.*?)"')
LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
LABEL = re.compile(r"^\$?\w+:")


def line_map(ptx: str, filename: str, moved: Mapping[tuple[str, int], int]) -> list[tuple[int, int]]:
    """(line of the PTX from 0, generated line) for each instruction that comes from the generated text. A `.loc` holds until the next one
    or a label. `moved`: places in other files to which the compiler moves a mod's arithmetic, and the generated line it belongs to."""
    files = {found[1]: found[2] for found in map(FILE.match, ptx.split("\n")) if found}
    now, out = 0, []
    for row, line in enumerate(ptx.split("\n")):
        if (found := LOC.match(line)) is not None:
            file, number = files.get(found[1], ""), int(found[2])
            now = number if file == filename else moved.get((file, number), 0)
        elif LABEL.match(line):
            now = 0
        elif now and line.strip() and not line.strip().startswith((".", "//", "{", "}")):
            out.append((row, now))
    return out
