"""A benchmark as a plotly figure, in plotly's own JSON: nothing of plotly is needed to make, keep or read it.

Text and axes are one grey and the ground is transparent, so that it reads on white and on black. What is wrong stands in
a hatched strip below zero, where no speed can be read from it.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cute_lab.measurement import Bench
from cute_lab.series import (
    BLUE,
    CEILINGS,
    GREY,
    PEAK,
    SHOWN,
    UNIT,
    Line,
    Panel,
    Point,
    Sheet,
    against,
    axis_title,
    check_words,
    depth,
    ends,
    one_line,
    places,
    shape_words,
    sheet,
    strip,
    ticks,
)
from cute_lab.throughput import Estimate, verdict

MIME = "application/vnd.plotly.v1+json"
LIMIT = 100_000  # bytes of JSON, so that the picture, the table and a record of usual size fit into the same output
HEIGHT, BAR, BETWEEN, LEGEND = 340, 30, 80, 27  # pixels: a panel, a bar, between two rows, a row of the legend
CUBLAS = "cuBLAS peak, measured"
Json = dict[str, Any]


def figure(bench: Bench, limit: int = LIMIT) -> Json | None:
    """With everything that fits: without bands, then with short hovers, then the first row only, then not at all."""
    if not bench.timings:
        return None
    for bands, full, rows in ((True, True, SHOWN), (False, True, SHOWN), (False, False, SHOWN), (False, False, 1)):
        page = sheet(bench, rows)
        made = _lines(bench, page, bands, full) if page.axis else _bars(bench, page, full)
        if len(json.dumps(made, ensure_ascii=False).encode()) <= limit:
            return made
    return None


@dataclass(frozen=True)
class Place:
    """A panel and its two axes; plotly leaves out the number of the first."""

    panel: Panel
    row: int
    column: int
    n: str

    @property
    def axes(self) -> Json:
        return {"xaxis": f"x{self.n}", "yaxis": f"y{self.n}"}


def _placed(page: Sheet) -> list[Place]:
    across = len(page.rows[0])
    at = [(r, c, panel) for r, row in enumerate(page.rows) for c, panel in enumerate(row)]
    return [Place(panel, r, c, str(r * across + c + 1) if r or c else "") for r, c, panel in at]


# -- lines over the swept axis --------------------------------------------------------------------------------------------
def _lines(bench: Bench, page: Sheet, bands: bool, full: bool) -> Json:
    layout, data = _layout(page, HEIGHT, LEGEND * -(-(len(page.names) + 1) // 3)), list[Json]()
    named: set[str] = set()
    for place in _placed(page):
        panel, low, high = place.panel, *ends(place.panel, page.axis)
        if page.wrong:
            data.append(_hatched(place, [low, high, high, low], strip(page)))
        new = [line for line in panel.lines if line.contender not in named]
        if any(panel.peaks):
            said = [_peak_hover(e) for e in panel.peaks]
            look = {
                "mode": "lines",
                "line": {"color": PEAK.colour, "dash": PEAK.dash, "width": PEAK.width},
                "showlegend": CUBLAS not in named,
            }
            data.append(
                {**_scatter(place, panel, page.axis, panel.peaks, said), **look, "name": CUBLAS, "legendgroup": CUBLAS, "legendrank": 2000}
            )
            named.add(CUBLAS)
        for rank, line in reversed([*enumerate(panel.lines)]):  # ours is drawn last, on top
            group = {"legendgroup": line.contender, "name": escape(page.names[line.contender]), "legendrank": 1000 + rank}
            data += [{**trace, **group} for trace in _line(bench, page, place, line, bands, full, line in new)]
        named |= {line.contender for line in new}
        marks, scale = places(panel.shapes, page.axis), ticks(page.top * 1.06)
        layout[f"xaxis{place.n}"] |= {
            "type": "log",
            "range": [math.log10(low), math.log10(high)],
            "tickvals": marks,
            "ticktext": [f"{v:,}" for v in marks],
            "title": _title(axis_title(page, panel)),
        }
        layout[f"yaxis{place.n}"] |= {
            "range": [-strip(page), page.top * 1.06],
            "tickvals": [*([-strip(page) / 2] if page.wrong else []), *scale],
            "ticktext": [*(["✘" if place.column else "✘ wrong"] if page.wrong else []), *(f"{v:,g}" for v in scale)],
            "title": _title("" if place.column else UNIT),
        }
    return {"data": data, "layout": layout}


def _line(bench: Bench, page: Sheet, place: Place, line: Line, bands: bool, full: bool, listed: bool) -> list[Json]:
    """Band, line and crosses of one contender. A line breaks where there is no speed."""
    panel, look, speeds = place.panel, line.style, [point.speed for point in line.points]
    said = [_hover(bench, line, point, full) if point.speed else "" for point in line.points]
    pen = {"mode": "lines+markers", "line": {"color": look.colour, "dash": look.dash, "width": look.width}, "showlegend": listed}
    dot = {"marker": {"symbol": look.marker, "size": look.size, "color": look.colour}, "error_y": _whiskers(speeds, look.colour)}
    made = [{**_scatter(place, panel, page.axis, speeds, said), **pen, **dot}]
    if bands and any(speeds):
        paint = {"fill": "toself", "fillcolor": faint(look.colour), "mode": "none", "hoverinfo": "skip", "showlegend": False}
        made.insert(0, {"type": "scatter", **place.axes, **_band([getattr(s, page.axis) for s in panel.shapes], speeds), **paint})
    wrong = [(i, point) for i, point in enumerate(line.points) if point.wrong]
    if wrong:
        where = {"x": [getattr(p.shape, page.axis) for _, p in wrong], "y": [depth(page, panel, line, i) for i, _ in wrong]}
        cross = {"symbol": "x", "size": 11, "color": look.colour, "line": {"color": GREY, "width": 1}}
        told = {"hovertext": [_hover(bench, line, point, full) for _, point in wrong], "hoverinfo": "text"}
        made.append({"type": "scatter", **place.axes, **where, **told, "mode": "markers", "marker": cross, "showlegend": False})
    return made


def _band(x: list[int], speeds: list[Estimate | None]) -> Json:
    """One outline for each run of neighbours: out along the highs, back along the lows."""
    runs: list[list[tuple[int, Estimate]]] = [[]]
    for at, e in zip(x, speeds, strict=True):
        if e:
            runs[-1].append((at, e))
        elif runs[-1]:
            runs.append([])
    bx: list[int | None] = []
    by: list[float | None] = []
    for run in (run for run in runs if len(run) > 1):
        bx += [*(at for at, _ in run), *(at for at, _ in reversed(run)), None]
        by += [*(rounded(e.high) for _, e in run), *(rounded(e.low) for _, e in reversed(run)), None]
    return {"x": bx[:-1], "y": by[:-1]}


def _hatched(place: Place, x: list[float], below: float) -> Json:
    hatch = {"shape": "/", "fgcolor": GREY, "bgcolor": "rgba(0,0,0,0)", "size": 7, "solidity": 0.12}
    corners = {"x": x, "y": [0, 0, -below, -below], "fill": "toself", "fillpattern": hatch, "mode": "none"}
    return {"type": "scatter", **place.axes, **corners, "hoverinfo": "skip", "showlegend": False}


# -- one shape: bars ------------------------------------------------------------------------------------------------------
def _bars(bench: Bench, page: Sheet, full: bool) -> Json:
    layout, data, names = _layout(page, BAR * len(page.names) + 40, 0), list[Json](), list(page.names)
    for place in _placed(page):
        for line in place.panel.lines:
            data += _bar(bench, line, line.points[0], names.index(line.contender), place, full)
        if found := place.panel.peaks[0]:
            pen = {"mode": "lines+text", "line": {"color": PEAK.colour, "dash": PEAK.dash, "width": PEAK.width}}
            words = {"text": ["", f"cuBLAS {found.median:,.0f} "], "textposition": "middle left", "textfont": {"color": GREY}}
            where = {"x": [rounded(found.median)] * 2, "y": [len(names) - 0.4, -0.85], "hovertext": [_peak_hover(found)] * 2}
            data.append({"type": "scatter", **place.axes, **where, "hoverinfo": "text", **pen, **words})
        layout[f"xaxis{place.n}"] |= {
            "range": [0, page.top * 1.2],
            "tickvals": ticks(page.top * 1.06),
            "title": _title(axis_title(page, place.panel)),
        }
        layout[f"yaxis{place.n}"] |= {
            "range": [len(names) - 0.4, -1.2],
            "tickvals": list(range(len(names))),
            "ticktext": [escape(page.labels[name]) for name in names],
            "showticklabels": place.column == 0,
            "showgrid": False,
            "automargin": True,
        }
    return {"data": data, "layout": {**layout, "showlegend": False}}


def _bar(bench: Bench, line: Line, point: Point, row: int, place: Place, full: bool) -> list[Json]:
    look, e, told = line.style, point.speed, {"hovertext": [_hover(bench, line, point, full)], "hoverinfo": "text"}
    words = {"textposition": "middle right", "textfont": {"color": GREY}, "cliponaxis": False}
    if e is None:
        mark = {"symbol": "x" if point.wrong else "line-ns-open", "size": 10, "color": look.colour}
        said = {"mode": "markers+text", "text": [f"  {point.status}"], **words}
        return [{"type": "scatter", **place.axes, "x": [0], "y": [row], **told, "marker": mark, **said}]
    ink = {"color": faint(look.colour, 0.1 if line.contender in CEILINGS else 0.5), "line": {"color": look.colour, "width": 1.5}}
    bar = {"type": "bar", "orientation": "h", "x": [rounded(e.median)], "y": [row], "width": 0.62, "marker": ink}
    number = {"type": "scatter", "x": [rounded(e.high)], "y": [row], "mode": "text", "text": [f" {e.median:,.0f}"], "hoverinfo": "skip"}
    return [{**bar, **place.axes, **told, "error_x": _whiskers([e], look.colour)}, {**number, **place.axes, **words}]


# -- what both share ------------------------------------------------------------------------------------------------------
def _layout(page: Sheet, height: int, legend: int) -> Json:
    """Panels side by side, a row below the other, the legend below all. The height is fixed, the width is the page's."""
    down, across = len(page.rows), len(page.rows[0])
    total = height * down + BETWEEN * (down - 1)
    gap_x, gap_y = 0.05, BETWEEN / total
    wide, high = (1 - gap_x * (across - 1)) / across, height / total
    below = {"orientation": "h", "x": 0, "y": -54 / total, "xanchor": "left", "yanchor": "top", "entrywidth": 250}
    layout: Json = {
        **{"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": GREY, "size": 13}},
        **{"hovermode": "closest", "hoverlabel": {"bgcolor": "#1f2d3a", "font": {"color": "#ffffff"}, "align": "left"}},
        **{"height": total + 50 + 66 + legend, "margin": {"l": 76, "r": 16, "t": 50, "b": 66 + legend}, "legend": below},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": BLUE},
    }
    titles = []
    for place in _placed(page):
        left, floor = place.column * (wide + gap_x), 1 - (place.row + 1) * high - place.row * gap_y
        axis = {"gridcolor": faint(GREY), "linecolor": GREY, "zeroline": False, "showline": True}
        layout[f"xaxis{place.n}"] = {**axis, "domain": [left, min(1, left + wide)], "anchor": f"y{place.n}"}
        layout[f"yaxis{place.n}"] = {**axis, "domain": [max(0, floor), floor + high], "anchor": f"x{place.n}"}
        where = {"xref": "paper", "yref": "paper", "x": left, "y": floor + high, "xanchor": "left", "yanchor": "bottom", "yshift": 6}
        titles.append({**where, "text": f"<b>{escape(place.panel.title)}</b>", "showarrow": False})
    return {**layout, "annotations": titles}


def _title(text: str) -> Json:
    return {"text": text, "font": {"size": 13}, "standoff": 8}


def _scatter(place: Place, panel: Panel, axis: str, speeds: Sequence[Estimate | None], said: list[str]) -> Json:
    x, y = [getattr(shape, axis) for shape in panel.shapes], [rounded(e.median) if e else None for e in speeds]
    return {"type": "scatter", **place.axes, "x": x, "y": y, "hovertext": said, "hoverinfo": "text"}


def _whiskers(speeds: Sequence[Estimate | None], colour: str) -> Json:
    up, down = ([rounded(e.high - e.median) if e else 0 for e in speeds], [rounded(e.median - e.low) if e else 0 for e in speeds])
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "color": colour, "thickness": 1.3, "width": 3}


def _hover(bench: Bench, line: Line, point: Point, full: bool) -> str:
    timing = point.timing
    if timing is None:
        return ""
    words = [f"<b>{escape(line.label)}</b>", _speed(point.speed) if point.speed else _status(point)]
    if full:
        words.insert(1, escape(f"{shape_words(point.shape)}, {timing.direction}"))
        against_it, checked = verdict(against(bench, timing)), check_words(timing)
        words += [f"cute_lab against it: {against_it}"] if against_it else []
        words += [f"check, relative error (reference's own): {checked}"] if timing.accuracy else []
        words += [f"compiled in {timing.compile_seconds:,.1f} s"] if timing.compile_seconds else []
        words += [escape(one_line(timing.note, 90))] if timing.note else []
    return "<br>".join(words)


def _peak_hover(e: Estimate | None) -> str:
    return f"<b>{CUBLAS}</b><br>{_speed(e)}<br>a dense product, in the same rounds" if e else ""


def _speed(e: Estimate) -> str:
    return f"{e.median:,.4g} {UNIT}, 95 % in [{e.low:,.4g}, {e.high:,.4g}]"


def _status(point: Point) -> str:
    reason = escape(one_line(point.timing.reason, 90)) if point.timing else ""
    return f"{point.status}. {reason}" if reason else point.status


def escape(text: str) -> str:
    """plotly reads tags, and formulas between dollars."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def faint(colour: str, alpha: float = 0.22) -> str:
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red},{green},{blue},{alpha})"


def rounded(value: float) -> float:
    return float(f"{value:.4g}")
