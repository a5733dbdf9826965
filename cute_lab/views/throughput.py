"""Speed over the swept shapes as a picture, as a figure where plotly is shown, and as a table where neither is."""

from __future__ import annotations

import base64

from cute_lab.chart import LIMIT, MIME, figure
from cute_lab.chart_png import chart_png
from cute_lab.record import Record
from cute_lab.views import Bundle, View
from cute_lab.views._text import missing, page
from cute_lab.views.timings import nothing, tables

ROOM = 170_000  # bytes for picture and figure: of an output's 256 kB the text has up to 60, the rest is for the record


def render(record: Record) -> Bundle:
    bench = record.bench
    if bench is None:
        return missing("bench", record.name)
    if not bench.timings:
        return nothing(bench)
    png = base64.b64encode(chart_png(bench)).decode()
    found = figure(bench, min(LIMIT, ROOM - len(png)))
    return {"image/png": png, "text/plain": page(*tables(bench))["text/plain"], **({MIME: found} if found else {})}


VIEW = View("throughput", "Throughput", 72, ("bench",), render)
