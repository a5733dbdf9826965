"""What lies between the cell and the CuTeDSL: the typed IR, torch's trace, and what Inductor would emit."""

from __future__ import annotations

from cute_lab.record import Record
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Code, Head, missing, page


def render(record: Record) -> Bundle:
    stages = record.stages
    told = (
        ("IR, from which the CuTeDSL is printed", stages.ir, ""),
        ("FX graph, as torch traced your function", stages.fx, "python"),
        ("What Inductor would emit (for comparison, not used)", stages.inductor or "", "python"),
    )
    blocks: list[Block] = []
    for title, text, language in told:
        if text.strip():
            blocks += [Head(title), Code(text, language)]
    return page(*blocks) if blocks else missing("stages", record.name)


VIEW = View("graph", "IR", 30, ("stages",), render)
