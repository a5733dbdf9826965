"""A block map as data: counts, and the blocks themselves packed into a string. No torch."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cute_lab.runs import FULL, Runs

BY_BLOCK = 1 << 20  # blocks; schema 2 and older keep every map up to here by block


@dataclass(frozen=True)
class BlockSummary:
    block_q: int
    block_kv: int
    Bm: int
    Hm: int
    nq: int
    nkv: int
    full: int
    partial: int
    empty: int
    kept_cells: int
    total_cells: int
    encoding: Literal["zlib-2bit-b64", "zlib-runs-b64"]
    data: str
    seconds: float

    def __post_init__(self) -> None:
        if self.full + self.partial + self.empty != self.blocks:
            raise ValueError(f"full + partial + empty is not Bm * Hm * nq * nkv = {self.blocks}")

    @property
    def blocks(self) -> int:
        return self.Bm * self.Hm * self.nq * self.nkv

    @property
    def sparsity(self) -> float:
        """Share of blocks that the kernel skips, 0 to 1."""
        return self.empty / self.blocks if self.blocks else 0.0

    @property
    def kept(self) -> float:
        """Share of the score matrix's cells that the mask keeps, 0 to 1."""
        return self.kept_cells / self.total_cells if self.total_cells else 0.0

    @classmethod
    def from_kinds(
        cls, kinds: NDArray[np.uint8], *, block_q: int, block_kv: int, kept_cells: int, total_cells: int, seconds: float
    ) -> BlockSummary:
        """`kinds` is uint8 [Bm, Hm, nq, nkv]: 0 empty, 1 partial, 2 full."""
        runs = Runs.of_dense(kinds.reshape(kinds.shape[0] * kinds.shape[1], *kinds.shape[2:]))
        return cls.from_runs(runs, kinds.shape[1], (block_q, block_kv), kept_cells, total_cells, seconds)

    @classmethod
    def from_runs(cls, runs: Runs, Hm: int, block: tuple[int, int], kept_cells: int, total_cells: int, seconds: float) -> BlockSummary:
        """By block, four in a byte, where that is smaller before it is packed; else by the runs of their rows, see Runs.pack."""
        empty, partial, full = runs.counts()
        encoding: Literal["zlib-2bit-b64", "zlib-runs-b64"] = "zlib-runs-b64"
        blocks = runs.groups * runs.rows * runs.width
        if blocks <= BY_BLOCK and blocks // 4 <= 4 * runs.groups * runs.rows + 5 * len(runs.start):
            kinds = runs.dense().reshape(-1)
            quads = np.pad(kinds, (0, -kinds.size % 4)).reshape(-1, 4) << np.array([0, 2, 4, 6], np.uint8)
            packed, encoding = zlib.compress(np.bitwise_or.reduce(quads, axis=1).astype(np.uint8).tobytes(), 9), "zlib-2bit-b64"
        else:
            packed = runs.pack()
        data = base64.b64encode(packed).decode()
        sizes = {"block_q": block[0], "block_kv": block[1], "Bm": runs.groups // Hm, "Hm": Hm, "nq": runs.rows, "nkv": runs.width}
        counts = {"full": full, "partial": partial, "empty": empty}
        cells = {"kept_cells": kept_cells, "total_cells": total_cells}
        return cls(**sizes, **counts, **cells, encoding=encoding, data=data, seconds=seconds)

    @property
    def runs(self) -> Runs:
        """ValueError where the data is not such a map."""
        try:
            packed = base64.b64decode(self.data, validate=True)
            if self.encoding == "zlib-runs-b64":
                found = Runs.unpack(packed, self.Bm * self.Hm, self.nq, self.nkv)
            else:
                found = Runs.of_dense(self._by_block(packed).reshape(self.Bm * self.Hm, self.nq, self.nkv))
        except (ValueError, zlib.error) as error:
            raise ValueError(f"the block map can't be unpacked: {error}") from None
        if found.counts() != (self.empty, self.partial, self.full):
            raise ValueError("the block map does not agree with its counts")
        return found

    def kinds(self) -> NDArray[np.uint8]:
        return self.runs.dense().reshape(self.Bm, self.Hm, self.nq, self.nkv)

    def _by_block(self, packed: bytes) -> NDArray[np.uint8]:
        size = -(-self.blocks // 4)
        found = zlib.decompressobj().decompress(packed, size + 1)
        if len(found) != size:
            raise ValueError(f"it does not hold {self.blocks} blocks")
        quads = np.frombuffer(found, np.uint8)[:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3
        flat = quads.reshape(-1)[: self.blocks].astype(np.uint8)
        if (flat > FULL).any():
            raise ValueError("it has a kind that there is not")
        return flat
