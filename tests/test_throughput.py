"""A benchmark: its statistics are honest, what is wrong has no speed anywhere, and it reads well in every form."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from cute_lab.chart import LIMIT, MIME, figure
from cute_lab.chart_png import chart_png
from cute_lab.display import CAP, bundles, plain, size
from cute_lab.measurement import DIRECTIONS, Accuracy, Bench, Shape, Timing
from cute_lab.record import MIME as RECORD_MIME
from cute_lab.record import Record, from_json, to_json
from cute_lab.series import STYLES
from cute_lab.throughput import Estimate, estimate, find, ratio, tflops, verdict
from cute_lab.views import view
from example_bench import BENCH, CHARTS, build_bench, changed, shape_of, timing, work_at
from example_record import Seen, build_example

VIEWS = ("throughput", "timings", "accuracy")
TAGS = {"p", "br", "code", "pre", "div", "span", "h4", "a", "table", "thead", "tbody", "tr", "th", "td"}
RECORD = dataclasses.replace(build_example(), bench=BENCH)


def with_bench(bench: Bench | None) -> Record:
    return dataclasses.replace(RECORD, bench=bench)


def shown(bench: Bench) -> list[dict[str, Any]]:
    return [view(name).render(with_bench(bench)) for name in ("summary", *VIEWS)]


# -- statistics -----------------------------------------------------------------------------------------------------------
# From tables of the binomial: the ranks that enclose a median with at least 95 % (five can not), and how sure they are.
RANKS = ((5, 1, 5, 0.9375), (6, 1, 6, 0.96875), (10, 2, 9, 0.9785), (20, 6, 15, 0.9586), (30, 10, 21, 0.9572))


@pytest.mark.parametrize(("n", "low", "high", "sure"), RANKS)
def test_the_interval_has_the_ranks_of_the_tables_and_covers_as_often_as_they_say(n: int, low: int, high: int, sure: float) -> None:
    found = estimate(range(1, n + 1))
    assert (found.low, found.median, found.high) == (low, (n + 1) / 2, high)
    draws = np.random.default_rng(n).lognormal(size=(4000, n))  # skewed, as times are; the median is 1
    hits = [(e := estimate(row)).low <= 1 <= e.high for row in draws]
    assert abs(np.mean(hits) - sure) < 4 * math.sqrt(sure * (1 - sure) / len(hits))


def test_a_ratio_by_rounds_sees_through_a_clock_that_drifts() -> None:
    draw = np.random.default_rng(0)
    clock = np.linspace(1.0, 1.3, 20)
    slow, fast = (timing(name, base * clock * draw.normal(1, 0.002, 20)) for name, base in (("a", 103.0), ("b", 100.0)))
    assert estimate(slow.samples_us).overlaps(estimate(fast.samples_us))
    found = ratio(fast, slow)
    assert found is not None
    assert 1.02 < found.low < 1.03 < found.high < 1.04
    assert verdict(found).startswith("1.03× [")


def test_the_verdict_is_in_words() -> None:
    assert verdict(Estimate(1.31, 1.29, 1.33)) == "1.31× [1.29, 1.33]"
    assert verdict(Estimate(1.01, 0.99, 1.02)) == "no difference 1.01× [0.99, 1.02]"
    assert verdict(ratio(timing("a", []), timing("b", [1.0]))) == ""


def test_flops_are_those_of_the_kept_cells() -> None:
    ours = timing("cute_lab", [100.0] * 6)
    kept = work_at(shape_of(2048)).kept_cells
    assert kept == 32 * sum(min(q + 1, 1024) for q in range(2048))
    bench = dataclasses.replace(BENCH, timings=(ours,))
    for direction, passes in (("forward", 1.0), ("backward", 2.5), ("forward+backward", 3.5)):
        found = tflops(bench, dataclasses.replace(ours, direction=direction))
        assert found is not None
        assert found.median == pytest.approx(passes * 4 * 128 * kept / 100e-6 / 1e12)


# -- what is wrong has no speed -------------------------------------------------------------------------------------------
def test_samples_of_a_wrong_row_are_seen_nowhere() -> None:
    """Not a byte of a picture, a figure or a text depends on how fast a wrong kernel is."""
    assert any(t.status == "wrong" for t in BENCH.timings)
    cheat = changed(BENCH, lambda t: t.status == "wrong", samples_us=(1e-3,) * 10)
    assert shown(cheat) == shown(BENCH)


def test_a_row_that_calls_itself_timed_is_wrong_where_its_check_failed() -> None:
    assert shown(changed(BENCH, lambda t: t.status == "wrong", status="timed", samples_us=(1e-3,) * 10)) == shown(BENCH)


@pytest.mark.parametrize("odd", [0.0, -1.0, math.nan, math.inf])
def test_a_sample_that_is_no_time_gives_no_speed(odd: float) -> None:
    bench = changed(BENCH, lambda t: t.contender == "cute_lab", samples_us=(100.0,) * 9 + (odd,))
    summary, throughput, *_ = shown(bench)
    assert "TFLOP/s" not in summary["text/plain"]
    assert "no usable sample" in throughput["text/plain"]
    assert "×" not in throughput["text/plain"].split("Remarks")[0].replace("128×128", "")


# -- views ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("bench", CHARTS)
def test_every_view_renders_and_says_nothing_of_nan(bench: str, name: str) -> None:
    bundle = view(name).render(with_bench(CHARTS[bench]))
    texts = {mime: text for mime, text in bundle.items() if mime.startswith("text/")}
    assert set(bundle) == ({"image/png", "text/plain", MIME} if name == "throughput" else {"text/markdown", "text/plain"})
    for text in texts.values():
        assert text.strip()
        assert "nan" not in text.lower()
        assert "Timing(" not in text and "None" not in text
    assert max(len(line) for line in texts["text/plain"].split("\n")) < 200
    if "text/markdown" in texts:
        assert Seen(markdown2html_mistune(texts["text/markdown"])).tags <= TAGS
    if "image/png" in bundle:
        assert base64.b64decode(bundle["image/png"]) == chart_png(CHARTS[bench])


@pytest.mark.parametrize("name", VIEWS)
def test_without_a_benchmark_it_says_what_to_run(name: str) -> None:
    bundle = view(name).render(with_bench(None))
    assert "Run `example_alibi_softcap.bench()` on a machine with a GPU" in bundle["text/plain"]
    assert "python -m cute_lab bench" in bundle["text/markdown"]
    assert not view(name).ready(with_bench(None))
    empty = view(name).render(with_bench(dataclasses.replace(BENCH, timings=(), stopped=True)))
    assert set(empty) == {"text/markdown", "text/plain"}


def row(text: str, label: str) -> str:
    return " ".join(next(line for line in text.split("\n") if line.startswith(label)).split())


def test_the_table_says_who_why_and_how_much() -> None:
    text = view("timings").render(RECORD)["text/plain"]
    first, small = text.split("S8192")[0], text.split("S8192")[1]
    triton = next(t for t in BENCH.timings if t.contender == "flex_triton")
    ours = find(BENCH, "cute_lab", triton)
    assert ours is not None
    assert verdict(ratio(ours, triton)) in row(first, "FlexAttention Triton")
    assert "no difference" in row(small, "FlexAttention FLASH")
    assert row(first, "SDPA cuDNN") == "SDPA cuDNN absent"
    assert row(small, "eager") == "eager failed 0.2 s"
    assert row(text.split("S32768")[1], "FlexAttention FLASH") == "FlexAttention FLASH ✘ out 0.21 (0.0025) ✘ wrong 9.4 s"
    assert "FlexAttention FLASH: ✘ wrong. It skips the last block of a row" in text
    assert text.count("SDPA cuDNN: absent. scaled_dot_product_attention has no score_mod") == 1
    assert "SM clock 1,921 MHz (1,868 to 1,980)" in first
    assert "python -m cute_lab bench example.py" in text
    assert "in an order drawn anew" in text
    kept, issued = work_at(shape_of(8192)).kept_cells, work_at(shape_of(8192)).issued_cells
    assert f"{kept:,}" in text and f"{issued:,}" in text and f"{100 * kept / issued:.1f} %" in text
    stopped = view("timings").render(with_bench(dataclasses.replace(BENCH, stopped=True)))["text/plain"]
    assert "Interrupted" in stopped and "Interrupted" not in text


def test_the_clocks_that_a_driver_does_not_say_are_left_out() -> None:
    dumb = tuple(dataclasses.replace(c, sm_mhz=0.0, watts=0.0) for c in BENCH.conditions)
    text = view("timings").render(with_bench(dataclasses.replace(BENCH, conditions=dumb)))["text/plain"]
    assert "The card in these rounds: memory clock 3,201 MHz, temperature 62 °C (58 to 67)." in text
    assert "SM clock" not in text and "power" not in text


def test_accuracy_shows_where_a_wrong_one_differs() -> None:
    text = view("accuracy").render(RECORD)["text/plain"]
    assert text.count("✘ wrong") == 3  # out forward; out and dq of the backward
    assert "    head 1 of the checked  " + "░" * 32 in text
    assert "    head 2 of the checked  " + "░" * 24 + "▓" * 8 in text
    assert "    head 3 of the checked  " + "░" * 24 + "█" * 8 in text
    assert "FA4 dense" not in text and "SDPA" not in text  # not checked, did not run


def test_errors_that_are_no_numbers_have_words() -> None:
    where = ((0.0, math.nan, math.inf, 0.02),)
    odd = (Accuracy("out", False, math.nan, math.inf, 0.01, 0.002, where, "b0 h0 row 1"),)
    bench = changed(BENCH, lambda t: t.contender == "flex_flash", status="wrong", samples_us=(), accuracy=odd)
    texts = [plain(with_bench(bench), [name]) for name in VIEWS]
    assert "░██▒" in texts[2]
    assert "✘ out infinite (0.002)" in texts[1]
    assert "not a number" in texts[2] and "nan" not in "".join(texts).lower()


def summary(bench: Bench) -> list[str]:
    lines = view("summary").render(with_bench(bench))["text/plain"].split("\n")
    base = view("summary").render(with_bench(None))["text/plain"].split("\n")
    return [line for line in lines if line not in base]


def test_the_summary_names_the_largest_shape_and_its_rivals() -> None:
    forward, both = summary(BENCH)
    ours = next(t for t in BENCH.timings if t.shape.Sq == 32768 and t.contender == "cute_lab")
    triton, speed = find(BENCH, "flex_triton", ours), tflops(BENCH, ours)
    assert speed is not None and triton is not None
    assert forward.startswith(
        f"⏱ {speed.median:.0f} TFLOP/s on example card at B2 H16 S32768 D128 bf16: {verdict(ratio(ours, triton))} FlexAttention Triton, "
    )
    assert forward.endswith("93 % of FA4 native, 87 % of FA4 dense, 73 % of the cuBLAS peak.")
    assert both.startswith("⏱ Forward + backward: 401 TFLOP/s on example card")
    assert "SDPA" not in forward and "eager" not in forward and "FLASH" not in forward  # absent, failed, wrong there
    (single,) = summary(build_bench((8192,), ("forward",)))
    assert "no difference from FlexAttention FLASH (" in single
    assert " at B2" not in single


def test_the_summary_shows_no_speed_of_a_kernel_that_is_wrong_anywhere() -> None:
    bench = changed(BENCH, lambda t: t.contender == "cute_lab" and t.shape.Sq == 2048, status="wrong", reason="Row 3 differs.")
    lines = summary(bench)
    assert lines == [
        f"✘ {start}example card, B2 H16 S2048 D128 bf16: it did not pass the check on the GPU, so no speed is shown. Row 3 differs."
        for start in ("", "Forward + backward: ")
    ]


def test_the_summary_of_a_kernel_that_was_not_timed() -> None:
    def ours(t: Timing) -> bool:
        return t.contender == "cute_lab"

    checked = summary(changed(BENCH, ours, status="checked", samples_us=()))
    assert checked[0] == "○ It passed the check on example card; it was not timed."
    unusable = summary(changed(BENCH, ours, samples_us=()))
    assert unusable[0] == "⊘ Not measured on example card: no usable sample."
    unchecked = summary(changed(BENCH, ours, accuracy=()))
    assert " TFLOP/s, not checked, on example card" in unchecked[0]
    failed = summary(changed(BENCH, ours, status="failed", samples_us=(), accuracy=(), reason="It hung."))
    assert failed[0] == "⊘ Not measured on example card: failed. It hung."
    assert summary(dataclasses.replace(BENCH, timings=tuple(t for t in BENCH.timings if not ours(t)))) == []


# -- size and strangers' text ---------------------------------------------------------------------------------------------
def large() -> Bench:
    """12 contenders, 16 shapes, 3 directions, 40 rounds."""
    shapes = [dataclasses.replace(shape_of(128 * 2**i), D=d) for d in (64, 128) for i in range(8)]
    draw, timings = np.random.default_rng(0), []
    names = [*STYLES, *(f"mine{i}" for i in range(2))]
    for shape in shapes:
        for direction in DIRECTIONS:
            for name in names:
                us = tuple(float(x) for x in draw.uniform(50, 60, 40).round(3))
                worst = (Accuracy("dq", name != "mine3", 0.1, 0.1, 0.1, 0.1, ((0.1,) * 16,) * 2, "b" * 400),)
                timings.append(Timing(name, name * 9, direction, shape, "timed", "", "n" * 300, us, 1.0, worst))
    return dataclasses.replace(BENCH, timings=tuple(timings), work=tuple(map(work_at, shapes)), conditions=(), peaks=())


def test_no_output_passes_the_cap() -> None:
    made = bundles(with_bench(large()), VIEWS)
    assert max(map(size, made)) <= CAP
    assert set(made[0]) == {RECORD_MIME, "image/png", "text/plain", MIME}
    assert size(made[0][MIME]) <= LIMIT
    assert "fillcolor" not in json.dumps(made[0][MIME])  # the limit bit: the bands are gone


HOSTILE = ("<img src=x onerror=alert(1)>", "$x$ \\alpha $$y$$", "a | b `c` *d*", "\x1b[31mred\u202e", "注意力 \U0001f600", "x" * 500, "")


@pytest.mark.parametrize("text", HOSTILE)
def test_strangers_text_stays_text(text: str) -> None:
    bench = dataclasses.replace(
        changed(BENCH, lambda t: True, label=text, reason=text, note=text),
        device=text,
        protocol=(text,),
        versions={text: text},
        command=text,
    )
    for bundle in shown(bench):
        assert "\x1b" not in bundle["text/plain"] and "\u202e" not in bundle["text/plain"]
        if "text/markdown" in bundle:
            seen = Seen(markdown2html_mistune(bundle["text/markdown"]))
            assert seen.tags <= TAGS
            assert "$" not in seen.prose
    made = json.dumps(figure(bench), ensure_ascii=False)
    assert "<img" not in made and "$" not in made and "\u202e" not in made
    assert go.Figure(figure(bench)).data
    assert chart_png(bench)


def test_a_record_with_a_benchmark_is_read_as_it_was_written() -> None:
    assert from_json(json.loads(json.dumps(to_json(RECORD)))) == RECORD
    assert bundles(RECORD, ["throughput"])[0][MIME] == figure(BENCH)


def test_the_example_is_what_it_says() -> None:
    assert {t.status for t in BENCH.timings} == {"timed", "wrong", "absent", "failed"}
    assert all(len(t.samples_us) == BENCH.rounds for t in BENCH.timings if t.status == "timed")
    assert "Made-up" in BENCH.protocol[0]
    assert Shape(**dataclasses.asdict(shape_of(2048))) in {w.shape for w in BENCH.work}
