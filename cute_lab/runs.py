"""A block map in a few bytes per row: the rows' runs of one kind, and what is made of them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

EMPTY, PARTIAL, FULL = 0, 1, 2
LARGE = 1 << 22  # bytes


@dataclass(frozen=True)
class Boxes:
    """Squares of side x side blocks of one kind that cover maps of nq x nkv blocks exactly; what reaches beyond a map does not count."""

    group: NDArray[np.int32]  # which map
    i: NDArray[np.int32]  # first row and column, in blocks
    j: NDArray[np.int32]
    side: NDArray[np.int32]
    kind: NDArray[np.uint8]

    @staticmethod
    def joined(parts: list[Boxes]) -> Boxes:
        return Boxes(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("group", "i", "j", "side", "kind")))

    @property
    def transposed(self) -> Boxes:
        return Boxes(self.group, self.j, self.i, self.side, self.kind)

    def where(self, chosen: NDArray[np.bool_]) -> Boxes:
        return Boxes(self.group[chosen], self.i[chosen], self.j[chosen], self.side[chosen], self.kind[chosen])


@dataclass(frozen=True)
class Runs:
    """Rows of `width` blocks, `groups` maps of `rows` rows each: row r has the runs offsets[r] to offsets[r + 1] - 1.

    Run n starts at column start[n] and reaches to the row's next run, or to its end.
    """

    groups: int
    rows: int
    width: int
    offsets: NDArray[np.int64]  # [groups * rows + 1]
    start: NDArray[np.int32]
    kind: NDArray[np.uint8]

    @staticmethod
    def of(boxes: Boxes, groups: int, rows: int, width: int, ragged: tuple[bool, bool] = (False, False)) -> Runs:
        """`ragged`: do the last row and column reach beyond the tokens? torch calls no such block full."""
        tall = np.minimum(boxes.side, rows - boxes.i)
        row = boxes.group.astype(np.int64) * rows + boxes.i
        which: NDArray[np.int32] | slice = slice(None)  # the box of every row; of single blocks there may be tens of millions
        if (tall > 1).any():
            which = np.repeat(np.arange(len(boxes.i), dtype=np.int32), tall)
            row = (row - (np.cumsum(tall, dtype=np.int64) - tall))[which] + np.arange(len(which), dtype=np.int64)
        start, kind = boxes.j[which], boxes.kind[which]
        if ragged[0]:
            kind = np.where((row % rows == rows - 1) & (kind == FULL), np.uint8(PARTIAL), kind)
        if ragged[1]:
            last = (boxes.j + boxes.side >= width)[which] & (kind == FULL)
            alone = last & (start == width - 1)
            split = last & ~alone
            kind = np.where(alone, np.uint8(PARTIAL), kind)
            if split.any():
                more = int(split.sum())
                row, start = np.concatenate([row, row[split]]), np.concatenate([start, np.full(more, width - 1, np.int32)])
                kind = np.concatenate([kind, np.full(more, PARTIAL, np.uint8)])
        place = row * width + start
        if (place[1:] < place[:-1]).any():  # rows of single blocks come in order
            order = np.argsort(place)
            row, start, kind = row[order], start[order], kind[order]
        first = np.ones(len(row), bool)
        first[1:] = (row[1:] != row[:-1]) | (kind[1:] != kind[:-1])
        row, start, kind = row[first], start[first], kind[first]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=groups * rows))])
        return Runs(groups, rows, width, offsets, start, kind)

    @staticmethod
    def of_dense(kinds: NDArray[np.uint8]) -> Runs:
        """kinds [groups, rows, width]."""
        groups, rows, width = kinds.shape
        first = np.ones((groups * rows, width), bool)
        flat = kinds.reshape(groups * rows, width)
        first[:, 1:] = flat[:, 1:] != flat[:, :-1]
        offsets = np.concatenate([[0], np.cumsum(first.sum(1))])
        return Runs(groups, rows, width, offsets, np.nonzero(first)[1].astype(np.int32), flat[first])

    def chosen(self, maps: Sequence[int]) -> Runs:
        """Some of the maps."""
        if len(maps) == self.groups:
            return self
        spans = [(self.offsets[m * self.rows], self.offsets[(m + 1) * self.rows]) for m in maps]
        counts = np.concatenate([np.diff(self.offsets[m * self.rows : (m + 1) * self.rows + 1]) for m in maps])
        start, kind = (np.concatenate([x[a:z] for a, z in spans]) for x in (self.start, self.kind))
        return Runs(len(maps), self.rows, self.width, np.concatenate([[0], np.cumsum(counts)]), start, kind)

    def length(self) -> NDArray[np.int64]:
        """Blocks of every run."""
        end = np.empty(len(self.start), np.int64)
        if not len(end):
            return end
        end[:-1] = self.start[1:]
        end[self.offsets[1:] - 1] = self.width
        return end - self.start

    def row(self) -> NDArray[np.int64]:
        """The row of every run."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def counts(self) -> tuple[int, int, int]:
        """Blocks that are empty, partial, full."""
        found = np.bincount(self.kind, weights=self.length(), minlength=3)
        return int(found[0]), int(found[1]), int(found[2])

    def per_row(self, kind: int) -> NDArray[np.int64]:
        """Blocks of the kind in every row, [groups, rows]."""
        chosen = self.kind == kind
        found = np.bincount(self.row()[chosen], weights=self.length()[chosen], minlength=len(self.offsets) - 1)
        return found.astype(np.int64).reshape(self.groups, self.rows)

    def dense(self) -> NDArray[np.uint8]:
        """[groups, rows, width]."""
        return np.repeat(self.kind, self.length()).reshape(self.groups, self.rows, self.width)

    def pack(self) -> bytes:
        """zlib of int32 runs per row, then start[n] minus that of the same run in the row above (of its own where there is none), kinds.

        Rows of a mask are alike, so most differences are 0 or 1.
        """
        counts = np.diff(self.offsets).astype(np.int32)
        _, above, has = self._above(counts)
        start = self.start - np.where(has, self.start[above], 0)
        raw = counts.astype("<i4").tobytes() + start.astype("<i4").tobytes() + self.kind.tobytes()
        return zlib.compress(raw, 9 if len(raw) < LARGE else 1)  # noise gets no smaller, and takes 20 s at 9 for 28 MB

    @staticmethod
    def unpack(data: bytes, groups: int, rows: int, width: int) -> Runs:
        """ValueError where the bytes are no such map."""
        lines, most = groups * rows, groups * rows * width
        raw = zlib.decompressobj().decompress(data, 4 * lines + 5 * most + 1)
        if len(raw) < 4 * lines:
            raise ValueError("the block map's rows are missing")
        counts = np.frombuffer(raw, "<i4", lines).astype(np.int64)
        total = int(counts.sum())
        if (counts < 1).any() or total > most or len(raw) != 4 * lines + 5 * total:
            raise ValueError("the block map's runs are not as many as its rows say")
        found = Runs(groups, rows, width, np.concatenate([[0], np.cumsum(counts)]), np.zeros(total, np.int32), np.zeros(0, np.uint8))
        difference = np.frombuffer(raw, "<i4", total, 4 * lines).astype(np.int64)
        at, _, has = found._above(counts)
        order = np.lexsort((found.row(), at))  # the same run of all rows, one below the other: sums, anew where a row has none above
        sums = np.cumsum(difference[order])
        fresh = ~has[order]
        start = np.empty(total, np.int64)
        start[order] = sums - (sums - difference[order])[fresh][np.cumsum(fresh) - 1]
        kind = np.frombuffer(raw, np.uint8, total, 4 * lines + 4 * total)
        first = at == 0
        if (start[first] != 0).any() or (start >= width).any() or (np.diff(start)[~first[1:]] <= 0).any() or (kind > FULL).any():
            raise ValueError("the block map's runs do not cover its rows")
        return Runs(groups, rows, width, found.offsets, start.astype(np.int32), kind)

    def _above(self, counts: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Of every run: its number in its row, the same run of the row above, and whether there is one."""
        row = self.row()
        at = np.arange(len(row)) - self.offsets[row]
        has = (row > 0) & (at < np.asarray(counts)[np.maximum(row - 1, 0)])
        return at, np.where(has, self.offsets[np.maximum(row - 1, 0)] + at, 0), has

    def lists(self, kind: int, device: torch.device | str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        """(blocks per row int32 [groups, rows], their columns int32 [groups, rows, most]), made on the device; the rest is 0."""
        import torch

        chosen = self.kind == kind
        row, start, length = (torch.from_numpy(x[chosen]).to(device).long() for x in (self.row(), self.start, self.length()))
        counts = torch.zeros(len(self.offsets) - 1, dtype=torch.long, device=device).index_add_(0, row, length)
        most = max(1, int(counts.max()))
        total = int(length.sum())
        before = length.cumsum(0) - length  # blocks of the kind in front of a run, of its whole map and of its row
        ahead = before - (counts.cumsum(0) - counts)[row]
        indices = torch.zeros(len(counts) * most, dtype=torch.int32, device=device)
        within = torch.arange(total, device=device) - torch.repeat_interleave(before, length, output_size=total)
        place = torch.repeat_interleave(row * most + ahead, length, output_size=total) + within
        indices[place] = (torch.repeat_interleave(start, length, output_size=total) + within).to(torch.int32)
        return counts.view(self.groups, self.rows).to(torch.int32), indices.view(self.groups, self.rows, most)

    def tiles(self, rows: int, columns: int) -> NDArray[np.int64]:
        """Blocks of each kind in tiles of rows x columns blocks: [3, groups, ceil, ceil]."""
        down, across = -(-self.rows // rows), -(-self.width // columns)
        row, length = self.row(), self.length()
        line = row // self.rows * down + row % self.rows // rows
        out = np.empty((3, self.groups * down, across), np.int64)
        for kind in (EMPTY, PARTIAL, FULL):
            chosen = self.kind == kind
            at = line[chosen] * (across + 2)
            step = np.zeros(self.groups * down * (across + 2))  # from one tile's count to the next one's
            for edge, sign in ((self.start[chosen].astype(np.int64), 1), ((self.start + length)[chosen], -1)):
                tile, rest = edge // columns, edge % columns
                for shift, blocks in ((0, columns - rest), (1, rest)):
                    step += np.bincount(at + tile + shift, weights=sign * blocks, minlength=len(step))
            out[kind] = np.cumsum(step.reshape(-1, across + 2), 1)[:, :across]
        return out.reshape(3, self.groups, down, across)
