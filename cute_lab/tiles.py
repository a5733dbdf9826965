"""Tiles of FlashAttention-4's kernels: which sparse blocks fit them, and which rows share one."""

from __future__ import annotations

import math
from dataclasses import dataclass

ANY_SIZE = 1 << 30


@dataclass(frozen=True)
class BlockRule:
    """Sparse blocks (q, kv) that fit: q divisible by one of `q`, kv a multiple of `kv` and at most `kv_max`."""

    q: tuple[int, ...]
    kv: int
    kv_max: int = ANY_SIZE

    def accepts(self, block: tuple[int, int]) -> bool:
        return any(block[0] % q == 0 for q in self.q) and block[1] % self.kv == 0 and 0 < block[1] <= self.kv_max

    def __str__(self) -> str:
        q = " or ".join(map(str, self.q))
        kv = f"exactly {self.kv}" if self.kv == self.kv_max else f"a multiple of {self.kv}"
        return f"q a multiple of {q}, kv {kv}" + (f" up to {self.kv_max}" if self.kv < self.kv_max < ANY_SIZE else "")


@dataclass(frozen=True)
class TileRule:
    """The kernel for head dims in the given (inclusive) ranges: its dense `tile` and the sparse `block` to use."""

    D: tuple[int, int]
    Dv: tuple[int, int]
    tile: tuple[int, int]
    block: tuple[int, int]
    legal: tuple[BlockRule, ...]
    stages: int = 1  # q tiles per CTA; one when all rows fit in one tile, and then a block needs only tile[0] rows
    without: frozenset[str] = frozenset()  # features of the target that this kernel lacks

    @property
    def cover(self) -> tuple[int, int]:
        """Lengths that are multiples of these are covered by whole tiles, whichever tile the kernel takes, dense or block-sparse."""
        return math.lcm(self.tile[0] * self.stages, self.block[0]), math.lcm(self.tile[1], self.block[1])

    def covers(self, D: int, Dv: int) -> bool:
        return self.D[0] <= D <= self.D[1] and self.Dv[0] <= Dv <= self.Dv[1]

    def rows(self, rows: int) -> TileRule:
        """The rule for a sequence of `rows` query rows (heads that share a kv head are packed into rows)."""
        if self.stages == 1 or rows > self.tile[0]:
            return self
        legal = tuple(BlockRule((self.tile[0],), rule.kv, rule.kv_max) for rule in self.legal)
        return TileRule(self.D, self.Dv, self.tile, (self.tile[0], self.block[1]), legal, 1, self.without)


def packs_heads(rule: TileRule, Sq: int, group: int) -> bool:
    """Shall the `group` query heads of a kv head share forward tiles where mods run? Only if one head does not fill a tile.

    Packed rows cost a mod a division per row for its head and position, and a table's rows per head lie apart: on an H200 causal
    documents by id reach 326 TFLOP/s packed and 359 apart, T5's bias per head 359 and 475 (4 heads on one, S 8k, D 128).
    """
    return group > 1 and Sq < rule.tile[0]
