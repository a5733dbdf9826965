"""A made-up benchmark of a card that does not exist: three lengths, two directions, and every way a contender can end."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cute_lab.measurement import DIRECTIONS, Accuracy, Bench, Condition, Direction, Peak, Shape, Timing, Work
from cute_lab.throughput import flops

LENGTHS, ROUNDS, BLOCK, WINDOW = (2048, 8192, 32768), 10, 128, 1024
PEAK = 780.0
# name, label, TFLOP/s forward at the three lengths, seconds to compile, note
CONTENDERS: tuple[tuple[str, str, tuple[float, float, float], float, str], ...] = (
    ("cute_lab", "cute_lab", (402.0, 548.0, 573.0), 6.2, ""),
    ("flex_triton", "FlexAttention Triton", (311.0, 421.0, 438.0), 3.1, "default options"),
    ("flex_flash", "FlexAttention FLASH", (400.0, 547.0, 0.0), 9.4, "BACKEND=FLASH, blocks 128×128"),
    ("sdpa_cudnn", "SDPA cuDNN", (0.0, 0.0, 0.0), 0.0, ""),
    ("fa4_native", "FA4 native", (430.0, 590.0, 612.0), 4.0, "native window (1023, 0), without the score_mod: a ceiling"),
    ("fa4_dense", "FA4 dense", (520.0, 640.0, 660.0), 3.9, "without the score_mod: a ceiling"),
    ("eager", "eager", (21.0, 0.0, 0.0), 0.2, "float32 scores in memory"),
)
REASONS = {
    "sdpa_cudnn": ("absent", "scaled_dot_product_attention has no score_mod: this one is more than an added bias"),
    "eager": ("failed", "CUDA out of memory: it wanted 16.00 GiB for the scores."),
    "flex_flash": ("wrong", "It skips the last block of a row where the window ends inside of it."),
}


def shape_of(length: int) -> Shape:
    return Shape(B=2, H=16, Hkv=16, Sq=length, Skv=length, D=128, dtype="bf16")


def work_at(shape: Shape) -> Work:
    """The exact numbers of a causal window."""
    S, heads, rows = shape.Sq, shape.B * shape.H, np.arange(shape.Sq // BLOCK)
    kept = int(np.minimum(np.arange(S) + 1, WINDOW).sum())
    blocks = int((rows - np.maximum(rows - WINDOW // BLOCK, 0) + 1).sum())
    return Work(shape, heads * kept, heads * blocks * BLOCK * BLOCK, heads * S * S, f"{BLOCK}x{BLOCK}")


def accuracy(direction: Direction, ok: bool, draw: np.random.Generator) -> tuple[Accuracy, ...]:
    tensors = ("out",) if direction == "forward" else ("out", "dq", "dk", "dv")
    found = []
    for tensor in tensors:
        where = draw.uniform(0.004, 0.0078, (3, 32))
        bad = not ok and tensor in ("out", "dq")
        if bad:
            where[1:, 24:] = (0.05, 0.4)[tensor == "dq"]
        relative = 0.21 if bad else float(draw.uniform(2.2e-3, 2.6e-3))
        worst = f"b0 h{1 if bad else 0} row 1,017 column 5: {float(where.max()):.4f}, float32 says 0.0010"
        at = tuple(tuple(float(f"{x:.3g}") for x in head) for head in where)
        found.append(Accuracy(tensor, not bad, float(where.max()), relative, 7.8e-3, 2.5e-3, at, worst))  # type: ignore[arg-type]
    return tuple(found)


def build_bench(lengths: tuple[int, ...] = LENGTHS, directions: tuple[Direction, ...] = (DIRECTIONS[0], DIRECTIONS[2])) -> Bench:
    """Each round has a clock of its own, which all contenders share: only ratios within a round are free of it."""
    draw = np.random.default_rng(7)
    timings, conditions, peaks = [], [], []
    for length in lengths:
        shape, at = shape_of(length), LENGTHS.index(length)
        work = work_at(shape)
        for direction in directions:
            clock = 1 - 0.06 * np.arange(ROUNDS) / ROUNDS + draw.normal(0, 0.004, ROUNDS)
            for name, label, rates, compiling, note in CONTENDERS:
                status, reason = REASONS[name] if not rates[at] else ("timed", "")
                rate = rates[at] * (1.0 if direction == "forward" else 0.72)
                us = flops(work, direction) / max(rate, 1.0) / 1e6 / clock * (1 + np.abs(draw.normal(0, 0.008, ROUNDS)))
                samples = tuple(float(f"{x:.5g}") for x in us) if status == "timed" else ()
                same = status in ("timed", "wrong") and not name.startswith("fa4")  # a ceiling computes something else
                checked = accuracy(direction, status != "wrong", draw) if same else ()
                compiling = compiling if status != "absent" else 0.0
                timings.append(Timing(name, label, direction, shape, status, reason, note, samples, compiling, checked))  # type: ignore[arg-type]
            conditions += [Condition(shape, direction, i, round(1980 * c), 3201, 690 + i, 58 + i) for i, c in enumerate(clock)]
            peaks.append(Peak("cuBLAS bf16 8192³", shape, direction, tuple(float(f"{PEAK * c:.5g}") for c in clock)))
    return Bench(
        device="example card",
        versions={"torch": "0.0", "driver": "0"},
        protocol=(
            "Made-up numbers, to show what a benchmark looks like.",
            f"{ROUNDS} rounds; in each round every contender runs once, in an order drawn anew.",
            "The L2 cache is flushed before each call; CUDA events around one call.",
        ),
        rounds=ROUNDS,
        seed=7,
        work=tuple(work_at(shape_of(length)) for length in lengths),
        timings=tuple(timings),
        conditions=tuple(conditions),
        peaks=tuple(peaks),
        seconds=48.0,
        stopped=False,
        command="python -m cute_lab bench example.py --lengths 2048,8192,32768",
    )


BENCH = build_bench()


def changed(bench: Bench, which: Any, **change: Any) -> Bench:
    """The benchmark with the timings for which `which(timing)` holds changed."""
    return dataclasses.replace(bench, timings=tuple(dataclasses.replace(t, **change) if which(t) else t for t in bench.timings))


def timing(contender: str, samples: Any, **more: Any) -> Timing:
    return Timing(contender, contender, "forward", shape_of(2048), "timed", samples_us=tuple(float(us) for us in samples), **more)


def sweep(**fields: tuple[Any, ...]) -> Bench:
    """One timing per combination of a shape's fields."""
    shapes = [shape_of(2048)]
    for name, values in fields.items():
        shapes = [dataclasses.replace(s, **{name: v}, **({"Skv": v} if name == "Sq" else {})) for s in shapes for v in values]
    timings = tuple(dataclasses.replace(timing("cute_lab", [100.0 + i] * 6), shape=s) for i, s in enumerate(shapes))
    return dataclasses.replace(BENCH, timings=timings, work=tuple(map(work_at, shapes)), peaks=(), conditions=())


CHARTS = {
    "lines": BENCH,
    "three directions": build_bench(directions=DIRECTIONS),
    "bars": build_bench((32768,)),
    "one direction": build_bench((2048, 8192), ("backward",)),
    "grid": sweep(D=(64, 128), Sq=(1024, 2048)),
    "no speed": changed(BENCH, lambda t: True, status="absent", samples_us=(), accuracy=()),
    "unknown contender": changed(BENCH, lambda t: t.contender == "flex_triton", contender="mine"),
}
