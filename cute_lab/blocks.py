"""The block map of a mask: full, partial and empty blocks, exact, per batch entry and head where the mask depends on them.

Kept as squares and as runs of a row: a causal mask of a million tokens takes some MB, its dense map 67 MB per head.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cute_lab.capture import Mod
from cute_lab.classify import Classifier
from cute_lab.ir import Program
from cute_lab.record import BlockSummary, Shape
from cute_lab.runs import EMPTY, FULL, PARTIAL, Boxes, Runs
from cute_lab.tables import moved

SNAPSHOT = 16 << 20  # bytes of captured tensors that are copied, so that cells can be counted later on


@dataclass(frozen=True, repr=False)
class BlockMap:
    """`kinds` is uint8 [Bm, Hm, nq, nkv]: 0 empty, 1 partial, 2 full; Bm and Hm are 1 where the blocks do not depend on them.

    `full`, `partial`, `empty` count blocks of `kinds`; `kept_cells` counts score cells that the mask keeps, of `total_cells`.
    A block that reaches beyond the end of the queries or keys is never full, as in torch.
    """

    block: tuple[int, int]
    shape: Shape
    Bm: int
    Hm: int
    runs: Runs  # of the rows of all maps
    boxes: Boxes  # of all batch entries and heads that the mask depends on
    maps: tuple[int, ...]  # those of `runs` among them
    seconds: float
    mask_mod: Mod
    classifier: Classifier | None  # None without a mask

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Empty, partial and full blocks."""
        return self.runs.counts()

    @property
    def empty(self) -> int:
        return self.counts[EMPTY]

    @property
    def partial(self) -> int:
        return self.counts[PARTIAL]

    @property
    def full(self) -> int:
        return self.counts[FULL]

    @property
    def size(self) -> int:
        """Blocks of all maps."""
        return self.runs.groups * self.runs.rows * self.runs.width

    @property
    def sparsity(self) -> float:
        """Share of blocks that the kernel skips, 0 to 1."""
        return self.empty / self.size if self.size else 0.0

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """Written out anew each time: a byte per block."""
        return self.runs.dense().reshape(self.Bm, self.Hm, self.runs.rows, self.runs.width)

    @cached_property
    def columns(self) -> Runs:
        """The runs of the columns: what the backward kernel walks."""
        rows, columns = _ragged(self.shape, self.block)
        groups = self.classifier.maps if self.classifier is not None else 1
        return Runs.of(self.boxes.transposed, groups, self.runs.width, self.runs.rows, (columns, rows)).chosen(self.maps)

    @property
    def total_cells(self) -> int:
        s = self.shape
        return s.B * s.H * s.Sq * s.Skv

    @cached_property
    def kept_cells(self) -> int:
        """Counted when it is first asked for, with what the captured tensors held when the map was made."""
        if self.classifier is None:
            return self.total_cells
        counter, s = self.classifier, self.shape
        return counter.kept(self.boxes) * s.B * s.H // counter.maps

    @property
    def issued_cells(self) -> int:
        """Cells of the blocks that are computed; what reaches beyond the tokens counts too, the kernel's tiles do not end there."""
        each = self.shape.B * self.shape.H // (self.Bm * self.Hm)
        return (self.full + self.partial) * self.block[0] * self.block[1] * each

    @property
    def how(self) -> str:
        """In words: what decided the blocks."""
        if self.classifier is None:
            return "no mask: every block is full"
        c = self.classifier
        total = c.maps * self.runs.rows * self.runs.width
        if c.asked == total:
            return f"intervals decide nothing: all {total:,} blocks were run"
        return f"{total - c.asked:,} of {total:,} blocks were decided by intervals, {c.asked:,} were run"

    def summary(self) -> BlockSummary:
        return BlockSummary.from_runs(self.runs, self.Hm, self.block, self.kept_cells, self.total_cells, self.seconds)

    def to_block_mask(self, device: str | torch.device = "cpu", compact: bool = False) -> Any:
        """torch's BlockMask, equal to create_block_mask(mask_mod, B, H, Sq, Skv, BLOCK_SIZE=block) in every tensor.

        `compact` keeps a batch or head dimension of 1 where the blocks do not depend on it.
        """
        from torch.nn.attention.flex_attention import BlockMask

        kinds = torch.from_numpy(self.kinds)
        if not compact:
            kinds = kinds.expand(self.shape.B, self.shape.H, *kinds.shape[2:])
        counts, indices = (x.to(device) for x in _ordered(kinds == PARTIAL))
        full_counts, full_indices = (x.to(device) for x in _ordered(kinds == FULL))
        return BlockMask.from_kv_blocks(
            counts,
            indices,
            full_counts,
            full_indices,
            BLOCK_SIZE=self.block,
            mask_mod=self.mask_mod,
            seq_lengths=(self.shape.Sq, self.shape.Skv),
        )

    def lists(self, kind: int, device: str | torch.device = "cpu", transposed: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """(counts int32 [Bm, Hm, rows], indices int32 [Bm, Hm, rows, longest row]) of the blocks of a kind, made on the device.

        What FlashAttention-4 reads: `transposed` for its backward, which walks the keys' blocks.
        """
        runs = self.columns if transposed else self.runs
        counts, indices = runs.lists(kind, device)
        return counts.view(self.Bm, self.Hm, -1), indices.view(self.Bm, self.Hm, *indices.shape[1:])

    def __repr__(self) -> str:
        return f"<BlockMap {self}>"

    def __str__(self) -> str:
        return (
            f"{self.runs.rows:,} x {self.runs.width:,} blocks of {self.block[0]} x {self.block[1]}"
            + (f", {self.Bm} batch entries, {self.Hm} heads" if self.Bm * self.Hm > 1 else "")
            + f": {self.full:,} full, {self.partial:,} partial, {self.empty:,} empty ({100 * self.sparsity:.1f} % skipped)"
        )


def unmasked(shape: Shape, block: tuple[int, int], mask_mod: Mod) -> BlockMap:
    """Without a mask every block is full but the ragged ones at the ends."""
    nq, nkv = -(-shape.Sq // block[0]), -(-shape.Skv // block[1])
    zero, side = np.zeros(1, np.int32), np.full(1, max(nq, nkv), np.int32)
    boxes = Boxes(zero, zero, zero, side, np.full(1, FULL, np.uint8))
    runs = Runs.of(boxes, 1, nq, nkv, _ragged(shape, block))
    return BlockMap(block, shape, 1, 1, runs, boxes, (0,), 0.0, mask_mod, None)


def _ragged(shape: Shape, block: tuple[int, int]) -> tuple[bool, bool]:
    """Does the last row of blocks, the last column, reach beyond the tokens?"""
    return shape.Sq % block[0] != 0, shape.Skv % block[1] != 0


def _ordered(dense: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Per row the number of blocks, and all block indices with the present ones first (torch's own order)."""
    column = torch.arange(dense.shape[-1]).expand(dense.shape)
    present = dense.cumsum(-1)
    place = torch.where(dense, present - 1, present[..., -1:] + column - present)
    indices = torch.empty(dense.shape, dtype=torch.int32).scatter_(-1, place, column.to(torch.int32))
    return present[..., -1].to(torch.int32), indices


def classify(program: Program, text: str, shape: Shape, block: tuple[int, int], mask_mod: Mod) -> BlockMap:
    """Every block: by intervals where the positions decide it, else by running its cells with the generated code."""
    assert program.mask is not None
    start = time.perf_counter()
    classifier = Classifier(program, text, shape, block)
    batches, heads = classifier.batches, classifier.heads
    boxes = classifier.boxes()
    nq, nkv = classifier.extent
    runs = Runs.of(boxes, classifier.maps, nq, nkv, _ragged(shape, block))
    Bm, Hm = _needed(runs, batches, heads)
    maps = tuple(np.arange(classifier.maps).reshape(batches, heads)[:Bm, :Hm].reshape(-1).tolist())
    seconds = time.perf_counter() - start
    held = sum(t.tensor.untyped_storage().nbytes() for t in program.tables)
    if held <= SNAPSHOT:  # cells are counted when they are asked for; what the tables hold then may be something else
        kept = tuple(replace(t, tensor=moved(t.tensor, "cpu", copy=True)) for t in program.tables)
        classifier.program = Program(None, None, program.mask, kept, program.scalars)
    found = BlockMap(block, shape, Bm, Hm, runs.chosen(maps), boxes, maps, seconds, mask_mod, classifier)
    if held > SNAPSHOT:
        _ = found.kept_cells
    return found


def _needed(runs: Runs, batches: int, heads: int) -> tuple[int, int]:
    """How many batch entries and heads have blocks of their own: a mask may read them, and its blocks be the same for all."""
    lengths = np.diff(runs.offsets)
    maps = []
    for m in range(batches * heads):
        rows, part = slice(m * runs.rows, (m + 1) * runs.rows), slice(*(int(runs.offsets[r * runs.rows]) for r in (m, m + 1)))
        maps.append((lengths[rows].tobytes(), runs.start[part].tobytes(), runs.kind[part].tobytes()))
    same_b = all(maps[m] == maps[m % heads] for m in range(len(maps)))
    same_h = all(maps[m] == maps[m - m % heads] for m in range(len(maps)))
    return (1 if same_b else batches), (1 if same_h else heads)
