"""What ran this and how to run it again."""

from __future__ import annotations

from cute_lab.quantities import short
from cute_lab.record import Record
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Code, Head, Lines, Table, Verbatim, page
from cute_lab.views.summary import shape_words


def render(record: Record) -> Bundle:
    rows = [
        ("run", f"{record.created}, {short(record.seconds)} s"),
        ("shape", shape_words(record.shape)),
        *((name, Verbatim(value)) for name, value in record.environment.items()),
        ("source and shape, sha256", Verbatim(record.hash)),
        ("record", f"schema {record.schema}, {record.kind}"),
    ]
    blocks: list[Block] = [Table(("name", "value"), tuple(rows))]
    if record.params:
        kinds = {True: "run-time (no recompile)", False: "shape (recompiles)"}
        params = tuple((Verbatim(p.name), kinds[p.runtime], str(p.value)) for p in record.params)
        blocks += [Head("Parameters"), Table(("name", "kind", "value"), params, right=1)]
    if record.cell.magic:
        blocks += [Lines(("To repeat it, run the cell again with this first line:",)), Code(record.cell.magic)]
    return page(*blocks)


VIEW = View("environment", "Environment", 90, (), render)
