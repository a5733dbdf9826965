"""What the tests of records and views share. `python tests/example_record.py` writes the example record again."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from cute_lab.record import (
    SCHEMA,
    BlockSummary,
    Cell,
    Check,
    LineCost,
    Note,
    Param,
    Record,
    Shape,
    Source,
    Stages,
    TargetReport,
    Worst,
    digest,
    environment,
    now,
)

STORED = sorted((Path(__file__).parent / "records").glob("*.cute.json"))
EXAMPLE = Path(__file__).parent / "records" / "example.cute.json"


class Seen(HTMLParser):
    """Tags, attributes and text of a page; `prose` is the text outside code, which MathJax would read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text, self.prose, self.depth = "", "", 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.depth += tag in ("code", "pre")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in ("code", "pre")

    def handle_data(self, data: str) -> None:
        self.text += data
        self.prose += "" if self.depth else data


CELL = """\
%%cute_attention --B 4 --H 16 --S 4096 --D 128
import torch

def score_mod(score, b, h, q_idx, kv_idx):
    slope = torch.exp2(-(h + 1) / 2)
    biased = score - slope * (q_idx - kv_idx)
    return 20 * torch.tanh(biased / 20)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
"""
GENERATED = (
    ("@cute.jit", 0),
    ("def score_mod(score, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):", 4),
    ("    t0 = (h + 1).to(cutlass.Float32) * -0.5", 5),
    ("    t1 = cute.math.exp2(t0, fastmath=True)", 5),
    ("    t2 = (q_idx - kv_idx).to(cutlass.Float32)", 6),
    ("    t3 = score - t1 * t2", 6),
    ("    t4 = cute.math.tanh(t3 * 0.05, fastmath=True)", 7),
    ("    return t4 * 20.0", 7),
    ("", 0),
    ("@cute.jit", 0),
    ("def mask_mod(b, h, q_idx, kv_idx, seqlen_info, aux_tensors):", 9),
    ("    t0 = q_idx >= kv_idx", 10),
    ("    t1 = (q_idx - kv_idx) < seqlen_info.window", 10),
    ("    return t0 & t1", 10),
)
IR = """\
score_mod(score: f32, h: i32, q_idx: i32, kv_idx: i32)
  %0 = cast[f32](h + 1)      # line 5
  %1 = exp2(%0 * -0.5)       # line 5
  %2 = cast[f32](q_idx - kv_idx)
  %3 = score - %1 * %2       # line 6
  %4 = tanh(%3 * 0.05) * 20  # line 7
"""
FX = """\
def forward(score_1, b_1, h_1, q_idx_1, kv_idx_1):
    add = torch.ops.aten.add.Tensor(h_1, 1)
    neg = torch.ops.aten.neg.default(add)
    div = torch.ops.aten.div.Tensor(neg, 2)
    exp2 = torch.ops.aten.exp2.default(div)
    sub = torch.ops.aten.sub.Tensor(q_idx_1, kv_idx_1)
    mul = torch.ops.aten.mul.Tensor(exp2, sub)
    sub_1 = torch.ops.aten.sub.Tensor(score_1, mul)
    div_1 = torch.ops.aten.div.Tensor(sub_1, 20)
    tanh = torch.ops.aten.tanh.default(div_1)
    return torch.ops.aten.mul.Tensor(tanh, 20)
"""


def window_blocks(S: int, window: int, block: int) -> BlockSummary:
    """The exact map of a causal window, from the dense mask."""
    q, kv = np.ogrid[:S, :S]
    keep = (q >= kv) & (q - kv < window)
    kept = keep.reshape(S // block, block, S // block, block).sum(axis=(1, 3))
    kinds = np.where(kept == 0, 0, np.where(kept == block * block, 2, 1)).astype(np.uint8)
    cells = {"kept_cells": int(keep.sum()), "total_cells": S * S}
    return BlockSummary.from_kinds(kinds[None, None], block_q=block, block_kv=block, **cells, seconds=0.004)


def compared() -> Check:
    """float32 in the order of the generated code against float64 in the order of the cell."""
    draw = np.random.default_rng(0)
    score = draw.normal(size=65_536).astype(np.float32)
    b, h = draw.integers(0, 4, score.size), draw.integers(0, 16, score.size)
    q, kv = draw.integers(0, 4096, score.size), draw.integers(0, 4096, score.size)
    slope = np.exp2((h + 1).astype(np.float32) * np.float32(-0.5))
    got = np.tanh((score - slope * (q - kv).astype(np.float32)) * np.float32(0.05)) * np.float32(20)
    want = 20 * np.tanh((score.astype(np.float64) - np.exp2(-(h + 1) / 2) * (q - kv)) / 20)
    error = np.abs(got - want)
    at = int(error.argmax())
    worst = Worst(int(b[at]), int(h[at]), int(q[at]), int(kv[at]), float(want[at]), float(got[at]))
    relative = float((error / np.maximum(np.abs(want), 1e-3)).max())
    return Check("score_mod", True, score.size, float(error.max()), relative, 1e-5, worst, "random points of the grid")


def build_example() -> Record:
    """Shape, mask and check are computed here; the numbers of the targets are made up, and the record says so."""
    source = Source("".join(line + "\n" for line, _ in GENERATED), tuple(n for _, n in GENERATED), ("score_mod", "mask_mod"))
    shape = Shape(B=4, H=16, Hkv=16, Sq=4096, Skv=4096, D=128, dtype="bf16")
    score = compared()
    mask = Check("mask_mod", True, 4096 * 4096, 0.0, 0.0, 0.0, None, "every cell of one head")
    hopper = TargetReport(
        "sm_90a", "forward", "compiled", registers=168, instructions=2072, seconds=1.5,
        mix={"tensor": 32, "fma": 521, "mufu": 260, "alu": 642, "memory": 214}, cost=7400.0,
        line_cost=(
            LineCost(5, 2, 0.003, {"fma": 1, "mufu": 1}),
            LineCost(6, 384, 0.497, {"alu": 256, "fma": 128}),
            LineCost(7, 384, 0.497, {"fma": 256, "mufu": 128}),
            LineCost(0, 1, 0.002, {"alu": 1}),
            LineCost(0, 1, 0.001, {"alu": 1}),
        ),
    )  # fmt: skip
    blackwell = TargetReport(
        "sm_100a", "forward", "compiled", registers=128, stack_bytes=16, spill_stores=4, spill_loads=4,
        instructions=4504, seconds=3.1, cost=5900.0,
        mix={"tensor": 64, "fma": 847, "mufu": 341, "alu": 1290, "memory": 388},
        line_cost=(
            LineCost(5, 2, 0.002, {"fma": 1, "mufu": 1}),
            LineCost(6, 512, 0.571, {"alu": 384, "fma": 128}),
            LineCost(7, 383, 0.427, {"fma": 255, "mufu": 128}),
        ),
    )  # fmt: skip
    advice = Note("info", "FlashAttention-4 has no block sparsity on this target.", fix="Use `sm_90a` or `sm_100a`.")
    refused = TargetReport("sm_120a", "forward", "refused", "Block-sparse attention is not built for it.", advice=(advice,))
    return Record(
        schema=SCHEMA, kind="attention", name="example_alibi_softcap", created=now(), seconds=1.9,
        cell=Cell(CELL, CELL.split("\n")[0], "example_alibi_softcap"), shape=shape,
        params=(Param("window", 1024, runtime=True), Param("S", 4096, runtime=False)),
        source=source, stages=Stages(FX, IR, None), checks=(score, mask), blocks=window_blocks(4096, 1024, 128), cells=None,
        targets=(hopper, blackwell, refused),
        notes=(
            Note("info", "Example record: mask and check are computed, the numbers of the targets are made up."),
            Note("info", "`biased / 20` is a division per element; a product is one instruction.", 7, "biased * 0.05"),
        ),
        bench=None, environment=environment(), hash=digest(source.text, shape),
    )  # fmt: skip


if __name__ == "__main__":
    build_example().save(EXAMPLE)
