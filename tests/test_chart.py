"""The chart of a benchmark: what is drawn where, that plotly takes it, that it reads on any ground, and its PNG."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from typing import Any

import matplotlib.style
import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from cute_lab.chart import figure
from cute_lab.chart_png import chart_png
from cute_lab.display import size
from cute_lab.measurement import DIRECTIONS
from cute_lab.series import CEILINGS, GREY, OTHERS, STYLES, Style, places, sheet, style, ticks
from cute_lab.throughput import estimate, find, ratio, tflops, verdict
from example_bench import BENCH, CHARTS, build_bench, changed, shape_of, sweep, timing, work_at


# -- the figure -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CHARTS)
def test_plotly_takes_the_figure_and_keeps_all_of_it(name: str) -> None:
    made = figure(CHARTS[name])
    assert made is not None
    assert set(made) == {"data", "layout"}
    kept = go.Figure(made).to_plotly_json()  # an unknown or ill-typed property is an error
    assert len(kept["data"]) == len(made["data"])
    text = json.dumps(made, allow_nan=False)
    assert json.loads(text) == made
    panels = sum(key.startswith("xaxis") for key in made["layout"])
    assert panels == len(made["layout"]["annotations"]) == sum(map(len, sheet(CHARTS[name]).rows))
    used = {(t["xaxis"], t["yaxis"]) for t in made["data"]}
    assert used == {(f"x{n}", f"y{n}") for n in ("", *range(2, panels + 1))}


def test_a_hover_says_all_of_a_point() -> None:
    made = figure(BENCH)
    assert made is not None
    line = next(t for t in made["data"] if t.get("legendgroup") == "flex_triton" and t["mode"] == "lines+markers")
    triton = next(t for t in BENCH.timings if t.contender == "flex_triton")
    ours, speed = find(BENCH, "cute_lab", triton), tflops(BENCH, triton)
    assert ours is not None and speed is not None
    found, own = ratio(ours, triton), triton.accuracy[0].relative_error
    assert line["hovertext"][0].split("<br>") == [
        "<b>FlexAttention Triton</b>",
        "B2 H16 S2048 D128 bf16, forward",
        f"{speed.median:,.4g} TFLOP/s, 95 % in [{speed.low:,.4g}, {speed.high:,.4g}]",
        f"cute_lab against it: {verdict(found)}",
        f"check, relative error (reference's own): ✔ out {own:.3g} (0.0025)",
        "compiled in 3.1 s",
        "default options",
    ]
    assert line["y"][0] == pytest.approx(speed.median, rel=1e-3)
    assert line["error_y"]["array"][0] == pytest.approx(speed.high - speed.median, rel=1e-3)


def test_ceilings_and_the_measured_peak_are_dashed_and_the_others_are_not() -> None:
    made = figure(BENCH)
    assert made is not None
    dashes = {t["legendgroup"]: t["line"]["dash"] for t in made["data"] if t["mode"] in ("lines", "lines+markers")}
    assert {name for name, dash in dashes.items() if "dash" in dash} == {*CEILINGS, "cuBLAS peak, measured"}
    roof = next(t for t in made["data"] if t["mode"] == "lines")
    assert roof["name"] == "cuBLAS peak, measured"
    assert roof["y"] == [pytest.approx(estimate(p.samples_tflops).median, rel=1e-3) for p in BENCH.peaks[::2]]


def test_who_is_not_drawn_is_in_the_legend_with_the_reason() -> None:
    made = figure(BENCH)
    assert made is not None
    names = [t["name"] for t in sorted(made["data"], key=lambda t: t.get("legendrank", 0)) if t["showlegend"]]
    assert names == [
        "cute_lab",
        "FlexAttention Triton",
        "FlexAttention FLASH (✘ wrong at 2 of 6)",
        "SDPA cuDNN (absent)",
        "eager (failed at 4 of 6)",
        "FA4 native",
        "FA4 dense",
        "cuBLAS peak, measured",
    ]


SWEPT = (
    ({"Sq": (1024, 2048), "D": (128,)}, "Sq", [("", 2)]),
    ({"D": (64, 96, 128)}, "D", [("", 3)]),
    ({"H": (8, 16)}, "H", [("", 2)]),
    ({"B": (1, 2, 4)}, "B", [("", 3)]),
    ({"D": (128,)}, "", [("", 1)]),
    ({"D": (64, 128), "Sq": (1024, 2048)}, "Sq", [("D 64", 2), ("D 128", 2)]),
    ({"dtype": ("bf16", "fp16")}, "", [("dtype bf16", 1), ("dtype fp16", 1)]),
    ({"D": (64, 128), "B": (1, 2), "Sq": (1024, 2048)}, "Sq", [(f"D {d}, B {b}", 2) for d in (64, 128) for b in (1, 2)]),
)


@pytest.mark.parametrize(("fields", "axis", "rows"), SWEPT)
def test_the_swept_axis_and_its_rows(fields: dict[str, tuple[Any, ...]], axis: str, rows: list[tuple[str, int]]) -> None:
    page = sheet(sweep(**fields))
    assert page.axis == axis
    found = {(row[0].title.removeprefix("forward").removeprefix(", "), len(row[0].shapes)) for row in page.rows}
    assert found == set(rows)
    drawn = [getattr(s, axis, 0) for row in page.rows for s in row[0].shapes]
    assert len(drawn) == math.prod(map(len, fields.values()))


def test_batch_and_length_that_vary_together_are_one_line() -> None:
    """As FlashAttention's benchmarks do: the same number of tokens at each length."""
    shapes = [dataclasses.replace(shape_of(s), B=16384 // s) for s in (1024, 4096, 16384)]
    timings = tuple(dataclasses.replace(timing("cute_lab", [9.0] * 6), shape=s) for s in shapes)
    page = sheet(dataclasses.replace(BENCH, timings=timings, work=tuple(map(work_at, shapes))))
    assert [[len(panel.shapes) for panel in row] for row in page.rows] == [[3]]


@pytest.mark.parametrize(("top", "found"), [(790.0, [0, 200, 400, 600]), (0.0031, [0, 0.001, 0.002, 0.003]), (6.0, [0, 1, 2, 3, 4, 5, 6])])
def test_ticks_are_round(top: float, found: list[float]) -> None:
    assert ticks(top) == pytest.approx(found)


def test_numbers_at_the_axis_do_not_touch_and_the_largest_is_there() -> None:
    for n, found in ((1, [1]), (7, [1, 2, 4, 8, 16, 32, 64]), (8, [2, 8, 32, 128]), (12, [2, 8, 32, 128, 512, 2048])):
        assert places(tuple(shape_of(2**i) for i in range(n)), "Sq") == found


def test_a_figure_gives_up_bands_then_words_then_rows_then_itself() -> None:
    bench = build_bench(directions=DIRECTIONS)
    whole = figure(bench)
    assert whole is not None

    def told(made: dict[str, Any]) -> tuple[bool, bool]:
        text = json.dumps(made)
        return '"fillcolor"' in text, "compiled in" in text

    assert told(whole) == (True, True)
    steps = []
    for limit in range(size(whole), 0, -400):
        made = figure(bench, limit)
        assert made is None or size(made) <= limit
        steps.append(None if made is None else told(made))
    assert list(dict.fromkeys(steps)) == [(True, True), (False, True), (False, False), None]
    grid = sweep(D=(64, 96, 128), Sq=(1024, 2048))
    full = figure(grid)
    assert full is not None
    rows = {None if (made := figure(grid, limit)) is None else len(made["layout"]["annotations"]) for limit in range(size(full), 0, -200)}
    assert rows == {3, 1, None}


# -- wrong rows -----------------------------------------------------------------------------------------------------------
def test_a_wrong_point_stands_below_zero_with_its_reason_and_its_line_breaks() -> None:
    made = figure(BENCH)
    assert made is not None
    flash = [t for t in made["data"] if t.get("legendgroup") == "flex_flash"]
    lines, crosses = ([t for t in flash if t["mode"] == mode] for mode in ("lines+markers", "markers"))
    assert [t["x"] for t in crosses] == [[32768], [32768]]
    assert all(t["y"][0] < 0 and t["marker"]["symbol"] == "x" for t in crosses)
    assert all("✘ wrong: no speed. It skips the last block" in t["hovertext"][0] for t in crosses)
    assert all([y is None for y in t["y"]] == [False, False, True] for t in lines)
    assert [t["showlegend"] for t in lines] == [True, False]
    assert lines[0]["name"] == "FlexAttention FLASH (✘ wrong at 2 of 6)"
    low = made["layout"]["yaxis"]["range"][0]
    assert all(low < t["y"][0] for t in crosses)


def test_neither_line_nor_band_bridges_a_gap() -> None:
    made = figure(changed(BENCH, lambda t: t.contender == "flex_triton" and t.shape.Sq == 8192, status="failed", samples_us=()))
    assert made is not None
    band, line = (t for t in made["data"] if t.get("legendgroup") == "flex_triton" and t["xaxis"] == "x")
    assert (band["mode"], band["x"], band["y"]) == ("none", [], [])
    assert [y is None for y in line["y"]] == [False, True, False]
    whole = figure(BENCH)
    assert whole is not None
    band = next(t for t in whole["data"] if t.get("legendgroup") == "flex_triton")
    assert band["x"] == [2048, 8192, 32768, 32768, 8192, 2048]
    assert all(high > low for high, low in zip(band["y"][:3], band["y"][:2:-1], strict=True))


def test_two_wrong_ones_at_one_place_do_not_cover_each_other() -> None:
    both = ("flex_flash", "flex_triton")
    made = figure(changed(BENCH, lambda t: t.contender in both, status="wrong"))
    assert made is not None
    at = [(t["xaxis"], x, y) for t in made["data"] if t["mode"] == "markers" for x, y in zip(t["x"], t["y"], strict=True)]
    assert len(at) == len(set(at)) == 12
    low = made["layout"]["yaxis"]["range"][0]
    assert all(low < y < 0 for _, _, y in at)


# -- colours --------------------------------------------------------------------------------------------------------------
def luminance(colour: str) -> float:
    parts = [c / 255 for c in bytes.fromhex(colour[1:])]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_every_colour_reads_on_white_and_on_black() -> None:
    for ground in ("#ffffff", "#111111"):
        assert min(contrast(s.colour, ground) for s in (*STYLES.values(), *OTHERS)) >= 3  # WCAG, for graphics
        assert contrast(GREY, ground) > 4.3  # no grey has 4.5 on both


def test_no_two_contenders_look_alike_and_unknown_ones_never_change() -> None:
    looks = [(s.colour, s.marker) for s in (*STYLES.values(), *OTHERS)]
    assert len(set(looks)) == len(looks)
    assert (style("mine"), style("yours")) == (Style("#d55e00", "triangle-left", "dashdot"), Style("#d55e00", "bowtie", "dashdot"))


# -- the picture ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CHARTS)
def test_the_picture_is_a_small_white_card_in_the_fixed_colours(name: str) -> None:
    png = chart_png(CHARTS[name])
    image = Image.open(io.BytesIO(png))
    assert image.format == "PNG"
    assert len(png) < 60_000
    assert 700 <= image.width <= 1440
    pixels = np.asarray(image.convert("RGB")).astype(int)
    assert (pixels[1:5, 1:-1] == 255).all() and (pixels[-5:-1, 1:-1] == 255).all()
    page = sheet(CHARTS[name])
    lines = [line for panels in page.rows for panel in panels for line in panel.lines]
    drawn = {line.style.colour for line in lines if page.axis or line.points[0].speed}
    for colour in drawn:  # a legend has all, bars have who was timed
        there = np.abs(pixels - np.array(tuple(bytes.fromhex(colour[1:])))).max(axis=2) <= 10
        assert there.sum() >= 5, colour


def test_the_picture_does_not_take_the_notebooks_style() -> None:
    before = chart_png(BENCH)
    with matplotlib.style.context(["dark_background", {"font.size": 30}]):
        assert chart_png(BENCH) == before
    assert chart_png(BENCH) == before


def test_a_wrong_kernel_changes_the_picture() -> None:
    """The strip is drawn: the same rows without their failed check give another picture."""
    absent = changed(BENCH, lambda t: t.status == "wrong", status="absent", accuracy=())
    assert chart_png(absent) != chart_png(BENCH)
