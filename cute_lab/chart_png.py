"""A benchmark as a PNG: the same lines, bars and colours as the plotly figure, on a white card of its own like the block map's."""

from __future__ import annotations

import io
from typing import Any

from PIL import Image, ImageOps

from cute_lab.chart import CUBLAS
from cute_lab.measurement import Bench
from cute_lab.series import CEILINGS, PEAK, UNIT, Line, Panel, Sheet, Style, axis_title, depth, ends, places, sheet, strip, ticks

LIMIT = 80_000  # bytes
DPI, WIDTHS = 110, (7.2, 10.6, 13.0)  # inches, for one, two and three directions
INK, PALE, RULE = "#1f2d3a", "#4e5c6a", "#d2d6da"  # the greys of the block map's card
# plotly's names -> matplotlib's
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "triangle-left": "<",
    "pentagon": "p",
    "hexagon": "h",
    "star": "*",
    "cross": "P",
    "bowtie": "d",
}
DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (5, 3)), "dot": (0, (1.2, 1.6)), "dashdot": "-.", "longdash": (0, (9, 3))}
SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.parse_math": False,  # a name may hold dollars
    "text.color": INK,
    "axes.labelcolor": PALE,
    "axes.edgecolor": "#7a8590",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": PALE,
    "ytick.color": PALE,
    "hatch.linewidth": 0.6,
    "hatch.color": "#a6adb5",
}


def chart_png(bench: Bench, limit: int = LIMIT) -> bytes:
    """Never more than `limit` bytes, unless one row of panels has more."""
    png = _card(sheet(bench))
    return png if len(png) <= limit else _card(sheet(bench, 1))


def _card(page: Sheet) -> bytes:
    import matplotlib.style  # here, so that reading a record costs no import of it
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.text import Text

    down, across = len(page.rows), len(page.rows[0])
    high = down * (3.1 if page.axis else 0.27 * len(page.names) + 1.0) + (0.24 * -(-len(page.names) // 3) + 0.25 if page.axis else 0.1)
    with matplotlib.style.context(["default", SETTINGS]):  # whatever style the notebook has set
        letters = get_font(findfont("DejaVu Sans")).get_charmap()
        card = Figure((WIDTHS[min(across, 3) - 1], high), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1), facecolor="white")
        FigureCanvasAgg(card)
        grid = card.subplots(down, across, squeeze=False, sharey=True)
        for row, panels in zip(grid, page.rows, strict=True):
            for axes, panel in zip(row, panels, strict=True):
                axes.set_title(panel.title, loc="left", fontweight="bold", fontsize=10.5)
                (_lines if page.axis else _bars)(axes, page, panel)
            row[0].set_ylabel(UNIT if page.axis else "")
        if page.axis:
            _legend(card, page)
        for text in card.findobj(Text):  # a name may hold letters that the font lacks
            text.set_text("".join(ch if ord(ch) in letters or ch == "\n" else "\N{REPLACEMENT CHARACTER}" for ch in text.get_text()))
        out = io.BytesIO()
        card.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return _small(out)


def _lines(axes: Any, page: Sheet, panel: Panel) -> None:
    low, high = ends(panel, page.axis)
    x = [getattr(shape, page.axis) for shape in panel.shapes]
    if page.wrong:
        axes.axhspan(-strip(page), 0, facecolor="none", edgecolor=SETTINGS["hatch.color"], hatch="////", linewidth=0)
        axes.axhline(0, color=PALE, linewidth=0.8)
    if any(panel.peaks):
        axes.plot(x, [e.median if e else None for e in panel.peaks], **_pen(PEAK), zorder=2)
    for rank, line in reversed([*enumerate(panel.lines)]):
        _line(axes, page, panel, line, x, 20 - rank)
    marks, scale = places(panel.shapes, page.axis), ticks(page.top * 1.06)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(marks, [f"{mark:,}" for mark in marks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(axis_title(page, panel))
    axes.set_ylim(-strip(page), page.top * 1.06)
    wrong = [(-strip(page) / 2, "✘ wrong")] if page.wrong else []
    axes.set_yticks([*(at for at, _ in wrong), *scale], [*(said for _, said in wrong), *(f"{at:,g}" for at in scale)])


def _line(axes: Any, page: Sheet, panel: Panel, line: Line, x: list[int], order: int) -> None:
    nan = float("nan")  # matplotlib's word for a gap
    speeds = [point.speed for point in line.points]
    if any(speeds):
        lows, middles, highs = ([getattr(e, end) if e else nan for e in speeds] for end in ("low", "median", "high"))
        up, down = ([abs(a - b) for a, b in zip(end, middles, strict=True)] for end in (highs, lows))
        axes.fill_between(x, lows, highs, color=line.style.colour, alpha=0.22, linewidth=0, zorder=order)
        bars = {"ecolor": line.style.colour, "elinewidth": 1.1, "capsize": 2.5}
        axes.errorbar(x, middles, yerr=[down, up], **_pen(line.style), **bars, zorder=order)
    for i, point in enumerate(line.points):
        if point.wrong:
            look = {"marker": "X", "markersize": 8, "color": line.style.colour, "markeredgecolor": "white", "markeredgewidth": 0.7}
            axes.plot([x[i]], [depth(page, panel, line, i)], linestyle="", **look, zorder=30)


def _bars(axes: Any, page: Sheet, panel: Panel) -> None:
    names = list(page.names)
    for line in panel.lines:
        row, e, colour = names.index(line.contender), line.points[0].speed, line.style.colour
        if e:
            ceiling = line.contender in CEILINGS
            axes.barh(row, e.median, 0.62, color=colour, alpha=0.15 if ceiling else 0.6, linewidth=0, zorder=2)
            axes.barh(row, e.median, 0.62, facecolor="none", edgecolor=colour, linewidth=1.5, linestyle="--" if ceiling else "-", zorder=3)
            whisker = [[e.median - e.low], [e.high - e.median]]
            axes.errorbar([e.median], [row], xerr=whisker, ecolor=INK, elinewidth=1.1, capsize=3, linestyle="", zorder=4)
            axes.text(e.high + page.top * 0.015, row, f"{e.median:,.0f}", va="center")
            continue
        point = line.points[0]
        axes.plot([0], [row], marker="X" if point.wrong else "|", markersize=8, color=colour, clip_on=False, zorder=5)
        axes.text(page.top * 0.03, row, point.status, va="center", color=PALE)
    if peak := panel.peaks[0]:
        axes.plot([peak.median] * 2, [-0.9, len(names) - 0.4], **_pen(PEAK), zorder=1)
        axes.text(peak.median * 0.985, -0.85, f"cuBLAS {peak.median:,.0f}", ha="right", va="center", color=PALE)
    axes.set_xlim(0, page.top * 1.14)
    axes.set_xticks(scale := ticks(page.top * 1.06), [f"{at:,g}" for at in scale])
    axes.set_xlabel(axis_title(page, panel))
    axes.set_ylim(len(names) - 0.4, -1.2)
    axes.set_yticks(range(len(names)), [page.labels[name] for name in names])
    axes.grid(axis="y", visible=False)


def _legend(card: Any, page: Sheet) -> None:
    from matplotlib.lines import Line2D

    styles: dict[str, Style] = {line.contender: line.style for row in page.rows for panel in row for line in panel.lines}
    items = [Line2D([], [], label=page.names[name], **_pen(styles[name])) for name in page.names if name in styles]
    if any(e for row in page.rows for panel in row for e in panel.peaks):
        items.append(Line2D([], [], label=CUBLAS, **_pen(PEAK)))
    columns = 2 if len(page.rows[0]) == 1 else 3
    card.legend(handles=items, loc="outside lower left", ncols=columns, frameon=False, fontsize=9, handlelength=3.4, columnspacing=1.6)


def _pen(style: Style) -> dict[str, Any]:
    marker = MARKERS.get(style.marker.removesuffix("-open"), "")
    face = "white" if style.marker.endswith("-open") else style.colour
    look = {"marker": marker, "markersize": style.size * (0.9 if marker == "*" else 0.65), "markerfacecolor": face}
    return {"color": style.colour, "linewidth": style.width * 0.75, "linestyle": DASHES[style.dash], **look}


def _small(png: io.BytesIO) -> bytes:
    """With a frame, and in 256 colours, each within what an eye sees: a third of the bytes."""
    framed = ImageOps.expand(ImageOps.crop(Image.open(png).convert("RGB"), 1), 1, fill="#d9dde2")
    out = io.BytesIO()
    framed.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()
