"""What a mask costs and what would make it cheaper: work issued for nothing, rows of unequal length, other blocks and orders, packing.

Shares of time are predictions from instruction counts (sass.tile_cost): good to rank, no measurement.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cute_lab import build, maps, offsets, orders, packed, reports, targets
from cute_lab.blocks import BlockMap
from cute_lab.errors import CuteLabError, GeometryError, IndexOutOfRange
from cute_lab.ir import Graph, Program, inputs_of, node
from cute_lab.quantities import number, percent
from cute_lab.runs import FULL, PARTIAL

if TYPE_CHECKING:
    from cute_lab.lab import Lab

MOST_TASKS = 1 << 18  # CTAs that are scheduled one by one
LONG = 1 << 16  # tokens from which on keys in blocks of less than NARROW are not tried: the map has a million columns then
NARROW = 64


@dataclass(frozen=True)
class Schedule:
    """CTAs of one kernel, one per row of blocks, batch entry and head, on the target's SMs; times in full blocks of one CTA."""

    ctas: int
    sms: int
    ideal: float  # all SMs busy to the end
    in_order: float
    longest_first: float

    def __str__(self) -> str:
        gain = self.in_order / self.longest_first if self.longest_first else 1.0
        return (
            f"{number(self.ctas)} CTAs on {self.sms} SMs: {self.in_order / self.ideal:.2f} times the ideal time in order, "
            f"{self.longest_first / self.ideal:.2f} longest first, {f'a gain of {percent(gain - 1)}' if gain > 1.005 else 'no gain'}"
        )


@dataclass(frozen=True)
class Option:
    """Another way to run the same mask."""

    what: str
    kept: int
    issued: int  # cells that the kernel computes
    now: int  # the same at present
    note: str = ""

    @property
    def useful(self) -> float:
        return self.kept / self.issued if self.issued else 1.0


@dataclass(frozen=True)
class Inspection:
    """`print` it. Cells are counted over all batch entries and heads."""

    name: str
    target: str
    blocks: str
    how: str
    kept: int
    issued: int
    total: int
    per_row: tuple[int, int, int]  # issued blocks of a row: least, median, most
    schedule: Schedule | None
    depends: str
    packing: str
    line: int | None
    rewrite: str
    mask_share: float | None  # of the forward's time on this target, predicted; None where nothing is compiled
    rewritten_share: float | None
    options: tuple[Option, ...]

    @property
    def useful(self) -> float:
        """Share of the issued cells that the mask keeps."""
        return self.kept / self.issued if self.issued else 1.0

    def __str__(self) -> str:
        return "\n".join([f"{self.name} on {self.target}: {self.blocks}", *(f"  {name:10} {text}" for name, text in self.rows())])

    __repr__ = __str__

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "decided", self.how
        yield "useful", f"{percent(self.useful)} of the issued cells are kept; {percent(self.issued / self.total)} of all cells are issued"
        least, median, most = self.per_row
        yield "rows", f"{number(least)} to {number(most)} issued blocks, median {number(median)}"
        if self.schedule is not None:
            yield "schedule", str(self.schedule)
        yield "maps", self.depends
        if self.packing:
            yield "packing", self.packing + (f" (line {self.line})" if self.line else "")
        if self.mask_share is not None:
            yield "time", f"the mask takes about {percent(self.mask_share)} of the forward, by instruction counts"
        if self.rewrite:
            now, then = self.mask_share, self.rewritten_share
            gain = "" if now is None or then is None else f"; the mask then takes about {percent(then)}" if then < now else "; no gain here"
            yield "rewrite", self.rewrite + gain
        for option in self.options:
            change = option.issued / option.now - 1 if option.now else 0.0
            words = option.note or f"{percent(option.useful)} useful, {'+' if change >= 0 else '-'}{percent(abs(change))} issued"
            yield option.what, words

    def _repr_markdown_(self) -> str:
        lines = [f"| {name} | {text.replace('|', '&#124;')} |" for name, text in self.rows()]
        return "\n".join([f"**{self.name}** on {self.target}: {self.blocks}", "", "| | |", "|---|---|", *lines])


def inspect(lab: Lab, target: str, compiled: bool) -> Inspection:
    """`compiled` compiles what the predictions need (seconds, then cached); else they are made from what the cache has."""
    found = lab.blocks(lab.block or maps.block_for(lab, (target,)))
    costs = Costs(lab, target, compiled)
    masked, dense = costs.of(lab.program), costs.dense()
    better, rewrite = offsets.rewritten(lab.program)
    faster = costs.of(better) if better is not None else None
    partial = masked / dense if masked and dense else 1.0
    form, mask = packed.form(lab.program), lab.program.mask
    lane = form.lanes[0] if form is not None and form.lanes else None
    return Inspection(
        lab.name,
        target,
        str(found),
        found.how,
        found.kept_cells,
        found.issued_cells,
        found.total_cells,
        _spread(_row_blocks(found)),
        schedule(found, targets.target_named(target).num_sms, partial),
        _dependence(lab, found),
        form.words(mask) if form is not None and mask is not None else "",
        mask.origin[lane].line if lane is not None and mask is not None and lane in mask.origin else None,
        rewrite,
        _share(found, masked, dense),
        _share(found, faster, dense),
        tuple(options(lab, found, target)),
    )


def _row_blocks(found: BlockMap) -> NDArray[np.int64]:
    return found.runs.per_row(FULL) + found.runs.per_row(PARTIAL)


def _spread(rows: NDArray[np.int64]) -> tuple[int, int, int]:
    return int(rows.min()), int(np.median(rows)), int(rows.max())


def schedule(found: BlockMap, sms: int, partial: float) -> Schedule | None:
    """A CTA per row of blocks takes the next free SM; `partial` is what a partial block costs, in full ones."""
    s = found.shape
    rows = (found.runs.per_row(FULL) + partial * found.runs.per_row(PARTIAL)).reshape(found.Bm, found.Hm, -1)
    if s.B * s.H * rows.shape[-1] > MOST_TASKS:
        return None
    costs = np.broadcast_to(rows, (s.B, s.H, rows.shape[-1])).reshape(-1)
    ideal = float(costs.sum()) / sms
    if not ideal:
        return None  # nothing is issued
    return Schedule(len(costs), sms, ideal, _makespan(costs, sms), _makespan(np.sort(costs)[::-1], sms))


def _makespan(costs: NDArray[np.float64], sms: int) -> float:
    ends = [0.0] * sms
    for cost in costs.tolist():
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


def _dependence(lab: Lab, found: BlockMap) -> str:
    mask = lab.program.mask
    seen = inputs_of(mask.output) if mask is not None else set()
    read = [what for what, name in (("batch entry", "b"), ("head", "h")) if name in seen]
    if not read:
        return "one for all batch entries and heads: the mask reads neither"
    maps = found.Bm * found.Hm
    where = f"{number(maps)}: the mask reads the {' and the '.join(read)}"
    return f"{where}, and no block depends on it" if maps == 1 else where


# -- predictions --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Costs:
    lab: Lab
    target: str
    compiled: bool

    def dense(self) -> float | None:
        """Of the variant without its mask."""
        p = self.lab.program
        return self.of(Program(p.score or Graph("score", node("input", "f32", (), "score")), None, None, p.tables, p.scalars))

    def of(self, program: Program) -> float | None:
        """Cycles of a forward tile; None where nothing is compiled or the target refuses."""
        row = targets.target_named(self.target)
        try:
            spec = reports.spec(program, self.lab.shape, row, "forward", self.lab.block, self.lab.fast_math)
            if not self.compiled and not build.is_known(spec, self.target):
                return None
            return build.compile_kernel(spec, self.target, "forward").cost
        except CuteLabError:
            return None


def _share(found: BlockMap, masked: float | None, dense: float | None) -> float | None:
    """Of the time of all issued tiles, what partial ones take beyond full ones."""
    if not masked or not dense or not found.full + found.partial:
        return None
    return max(0.0, found.partial * (masked - dense) / (found.full * dense + found.partial * masked))


# -- what else there is ---------------------------------------------------------------------------------------------------
def options(lab: Lab, found: BlockMap, target: str) -> Iterator[Option]:
    """One more token, the other legal blocks of this target, and, for a mask over an image, other orders of its tokens."""
    now, s = found.issued_cells, lab.shape
    try:
        more = lab.with_shape(Sq=s.Sq + 1).blocks(found.block)
        extra = more.full + more.partial - found.full - found.partial
        yield Option("+1 token", more.kept_cells, more.issued_cells, now, f"{number(extra)} more blocks are issued")
    except CuteLabError as error:
        ends = "a captured tensor ends there: " if isinstance(error, IndexOutOfRange) else ""
        yield Option("+1 token", 0, 0, 0, ends + error.summary)
    for block in other_blocks(lab, target, found.block):
        other = lab.blocks(block)
        yield Option(f"{block[0]}×{block[1]}", other.kept_cells, other.issued_cells, now)
    for name, order in orders.of(lab):
        other = orders.reordered(lab, order).blocks(found.block)
        yield Option(name, other.kept_cells, other.issued_cells, now)


def other_blocks(lab: Lab, target: str, used: tuple[int, int]) -> list[tuple[int, int]]:
    s = lab.shape
    try:
        rule = targets.tile_rule(targets.target_named(target), s.D, s.Sq, None, "forward", s.H // s.Hkv)
    except GeometryError:
        return []  # no kernel, so no blocks either
    found = dict[tuple[int, int], None]()
    for legal in rule.legal:
        widest = min(legal.kv_max, 2 * rule.block[1]) // legal.kv * legal.kv
        for q in (legal.q[0], 2 * legal.q[0]):
            for kv in (max(legal.kv, widest // 4 // legal.kv * legal.kv), widest):
                if kv >= NARROW or max(s.Sq, s.Skv) < LONG:
                    found[q, kv] = None
    return [block for block in found if block != used]
