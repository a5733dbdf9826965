"""The block map of a mask, exact: intervals decide what the positions decide, the generated mask_mod is run on every other block.

Never a whole S x S matrix in memory: a square of SUPER x SUPER blocks is bounded first, then its blocks, then cells are counted.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import cutlass
import numpy as np
import torch
from numpy.typing import NDArray

from cute_lab import host, host_kernels
from cute_lab.capture import Mod
from cute_lab.evaluate import Ranges, bounds
from cute_lab.ir import Node, Program
from cute_lab.ops.interval import Interval
from cute_lab.record import BlockSummary, Shape

EMPTY, PARTIAL, FULL = 0, 1, 2
SUPER = 32  # blocks per side of a square that is bounded as one


@dataclass(frozen=True, repr=False)
class BlockMap:
    """`kinds` is uint8 [Bm, Hm, nq, nkv]: 0 empty, 1 partial, 2 full; Bm and Hm are 1 where the mask does not depend on them.

    `full`, `partial`, `empty` count blocks of `kinds`; `kept_cells` counts score cells that the mask keeps, of `total_cells`.
    A block that reaches beyond the end of the queries or keys is never full, as in torch.
    """

    block: tuple[int, int]
    shape: Shape
    kinds: NDArray[np.uint8]
    kept_cells: int
    total_cells: int
    seconds: float
    mask_mod: Mod

    @property
    def full(self) -> int:
        return int((self.kinds == FULL).sum())

    @property
    def partial(self) -> int:
        return int((self.kinds == PARTIAL).sum())

    @property
    def empty(self) -> int:
        return int((self.kinds == EMPTY).sum())

    @property
    def sparsity(self) -> float:
        """Share of blocks that the kernel skips, 0 to 1."""
        return self.empty / self.kinds.size if self.kinds.size else 0.0

    def summary(self) -> BlockSummary:
        return BlockSummary.from_kinds(
            self.kinds,
            block_q=self.block[0],
            block_kv=self.block[1],
            kept_cells=self.kept_cells,
            total_cells=self.total_cells,
            seconds=self.seconds,
        )

    def to_block_mask(self, device: str | torch.device = "cpu", compact: bool = False) -> Any:
        """torch's BlockMask, equal to create_block_mask(mask_mod, B, H, Sq, Skv, BLOCK_SIZE=block) in every tensor.

        `compact` keeps a batch or head dimension of 1 where the mask does not depend on it.
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

    def __repr__(self) -> str:
        return f"<BlockMap {self}>"

    def __str__(self) -> str:
        Bm, Hm, nq, nkv = self.kinds.shape
        return (
            f"{nq} x {nkv} blocks of {self.block[0]} x {self.block[1]}"
            + (f", {Bm} batch entries, {Hm} heads" if Bm * Hm > 1 else "")
            + f": {self.full} full, {self.partial} partial, {self.empty} empty ({100 * self.sparsity:.1f} % skipped)"
        )


def unmasked(shape: Shape, block: tuple[int, int], mask_mod: Mod) -> BlockMap:
    """Without a mask every block is full but the ragged ones at the ends."""
    nq, nkv = -(-shape.Sq // block[0]), -(-shape.Skv // block[1])
    kinds = np.full((1, 1, nq, nkv), FULL, np.uint8)
    if shape.Sq % block[0]:
        kinds[..., -1, :] = PARTIAL
    if shape.Skv % block[1]:
        kinds[..., :, -1] = PARTIAL
    cells = shape.B * shape.H * shape.Sq * shape.Skv
    return BlockMap(block, shape, kinds, cells, cells, 0.0, mask_mod)


def _ordered(dense: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Per row the number of blocks, and all block indices with the present ones first (torch's own order)."""
    ones = dense.to(torch.int32)
    return ones.sum(-1).to(torch.int32), torch.argsort(ones, dim=-1, descending=True, stable=True).to(torch.int32)


def classify(program: Program, text: str, shape: Shape, block: tuple[int, int], mask_mod: Mod) -> BlockMap:
    """Every block: by intervals where the positions decide it, else by counting its cells with the generated code."""
    graph = program.mask
    assert graph is not None
    start = time.perf_counter()
    used = {str(n.attr) for n in graph.nodes() if n.op == "input"}
    nq, nkv = -(-shape.Sq // block[0]), -(-shape.Skv // block[1])
    batches = range(shape.B if "b" in used else 1)
    heads = range(shape.H if "h" in used else 1)
    kinds = np.empty((len(batches), len(heads), nq, nkv), np.uint8)
    kept = 0
    for b, h in itertools.product(batches, heads):
        grid = Grid(program, graph.output, shape, block, b, h)
        kinds[b, h], cells = grid.classify(text)
        kept += cells
    kept *= shape.B * shape.H // (len(batches) * len(heads))
    return BlockMap(block, shape, kinds, kept, shape.B * shape.H * shape.Sq * shape.Skv, time.perf_counter() - start, mask_mod)


@dataclass(frozen=True)
class Grid:
    """The blocks of one batch entry and head."""

    program: Program
    mask: Node
    shape: Shape
    block: tuple[int, int]
    b: int
    h: int

    def classify(self, text: str) -> tuple[NDArray[np.uint8], int]:
        """(kinds [nq, nkv], kept cells)."""
        nq, nkv = -(-self.shape.Sq // self.block[0]), -(-self.shape.Skv // self.block[1])
        kinds = np.empty((nq, nkv), np.uint8)
        side = SUPER if max(nq, nkv) > SUPER else 1
        rows, columns = (x.reshape(-1) for x in np.indices((-(-nq // side), -(-nkv // side))))
        decided = self.decide(rows, columns, side)
        if side > 1:
            for known, i, j in zip(decided, rows * side, columns * side, strict=True):
                kinds[i : i + side, j : j + side] = known
            inner = np.indices((side, side)).reshape(2, 1, -1)  # the blocks of each square that is not decided as a whole
            open_ = decided == PARTIAL
            rows = (rows[open_, None] * side + inner[0]).reshape(-1)
            columns = (columns[open_, None] * side + inner[1]).reshape(-1)
            exists = (rows < nq) & (columns < nkv)
            rows, columns = rows[exists], columns[exists]
            decided = self.decide(rows, columns, 1)
        kinds[rows, columns] = decided
        ask = decided == PARTIAL
        counts = self.count(text, rows[ask], columns[ask])
        kinds[rows[ask], columns[ask]] = np.where(counts == 0, EMPTY, np.where(counts == self.block[0] * self.block[1], FULL, PARTIAL))
        answered = np.zeros((nq, nkv), bool)
        answered[rows[ask], columns[ask]] = True
        full = (kinds == FULL) & ~answered
        self.mark_ragged(kinds, full)
        return kinds, int(counts.sum(dtype=np.int64)) + self.cells(full)

    def decide(self, rows: NDArray[Any], columns: NDArray[Any], side: int) -> NDArray[np.uint8]:
        """EMPTY and FULL where intervals decide squares of side x side blocks, PARTIAL where they do not."""
        step_q, step_kv = self.block[0] * side, self.block[1] * side
        q0, kv0 = rows * float(step_q), columns * float(step_kv)
        spans = {
            "b": Interval(float(self.b), float(self.b)),
            "h": Interval(float(self.h), float(self.h)),
            "q_idx": Interval(q0, np.minimum(q0 + step_q, self.shape.Sq) - 1),
            "kv_idx": Interval(kv0, np.minimum(kv0 + step_kv, self.shape.Skv) - 1),
        }
        found = bounds(self.mask, Ranges(spans, self.program.tables, self.program.scalars))[self.mask]
        lo, hi = (np.broadcast_to(x, rows.shape) for x in (found.lo, found.hi))
        return np.where(lo >= 1, FULL, np.where(hi <= 0, EMPTY, PARTIAL)).astype(np.uint8)

    def count(self, text: str, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.int32]:
        """Kept cells of the given blocks, by running the generated mask_mod on all threads."""
        counts = torch.zeros(len(rows), dtype=torch.int32)
        if not len(rows):
            return counts.numpy()
        at = torch.from_numpy(np.stack([rows, columns], 1).astype(np.int32).reshape(-1))
        i32 = cutlass.Int32
        tables, values = self.program.tables, self.program.scalars
        fixed = (i32(self.b), i32(self.h), i32(self.shape.Sq), i32(self.shape.Skv), i32(self.block[0]), i32(self.block[1]))
        data = [host.dynamic(counts), host.dynamic(at), host.captures(tables, values), *fixed]
        run = host.compiled(
            host_kernels.count_blocks, text, "mask_mod", [*data, i32(0), i32(0)], host.layout_key(tables, values), host.MASK_LANES
        )
        host.spread_even(lambda a, z: run(*data, i32(a), i32(z)), len(rows))
        return counts.numpy()

    def cells(self, chosen: NDArray[np.bool_]) -> int:
        tall = np.minimum(np.arange(1, chosen.shape[0] + 1) * self.block[0], self.shape.Sq) - np.arange(chosen.shape[0]) * self.block[0]
        wide = np.minimum(np.arange(1, chosen.shape[1] + 1) * self.block[1], self.shape.Skv) - np.arange(chosen.shape[1]) * self.block[1]
        return int(tall @ (chosen @ wide.astype(np.int64)))

    def mark_ragged(self, kinds: NDArray[np.uint8], full: NDArray[np.bool_]) -> None:
        """torch pads a mask with False: a block beyond the end of queries or keys is not full."""
        if self.shape.Sq % self.block[0]:
            kinds[-1][full[-1]] = PARTIAL
        if self.shape.Skv % self.block[1]:
            kinds[:, -1][full[:, -1]] = PARTIAL
