"""From raw samples to numbers that can be compared: one FLOP formula, medians with 95 % intervals, ratios round by round."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cute_lab.measurement import Bench, Direction, Timing, Work

PASSES: dict[Direction, float] = {"forward": 1.0, "backward": 2.5, "forward+backward": 3.5}
"""Matrix products relative to the forward's two (Q K^T, P V); the backward has five. As FlashAttention's benchmarks count."""
CONFIDENCE = 0.95
OURS = "cute_lab"


@dataclass(frozen=True)
class Estimate:
    """A median and the interval that holds it with 95 % confidence."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the interval over the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0

    def overlaps(self, other: Estimate) -> bool:
        return self.low <= other.high and other.low <= self.high


def estimate(samples: Sequence[float]) -> Estimate:
    """The sign-test interval of the median: order statistics, no assumption on the distribution.

    For n samples the k-th smallest and k-th largest enclose the median with probability 1 - 2 P(Binomial(n, 1/2) < k); k is the
    largest with at least 95 %. Fewer than six samples can't reach 95 %: then smallest and largest (94 % at five).
    """
    ordered = sorted(samples)
    n, k = len(ordered), 1
    while k < n // 2 and 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n >= CONFIDENCE:
        k += 1
    return Estimate(statistics.median(ordered), ordered[k - 1], ordered[n - k])


def flops(work: Work, direction: Direction, cells: int | None = None) -> float:
    """4 D FLOP per kept cell forward (two products of D multiply-adds), 2.5 times that backward."""
    return 4.0 * work.shape.D * (work.kept_cells if cells is None else cells) * PASSES[direction]


def work_of(bench: Bench, timing: Timing) -> Work:
    return next(w for w in bench.work if w.shape == timing.shape)


def tflops(bench: Bench, timing: Timing) -> Estimate | None:
    """TFLOP/s over the cells that the mask keeps; None without samples."""
    if not timing.samples_us:
        return None
    count = flops(work_of(bench, timing), timing.direction)
    return estimate([count / us / 1e6 for us in timing.samples_us])


def ratio(fast: Timing, base: Timing) -> Estimate | None:
    """How many times faster `fast` is, from the quotients of the same rounds (the card's clock drifts, the round shares it)."""
    pairs = list(zip(base.samples_us, fast.samples_us, strict=False))
    return estimate([b / f for b, f in pairs]) if pairs else None


def verdict(found: Estimate | None) -> str:
    """`1.31x [1.29, 1.33]`, or that there is no difference."""
    if found is None:
        return ""
    shown = f"{found.median:.2f}× [{found.low:.2f}, {found.high:.2f}]"
    return f"no difference {shown}" if found.low <= 1.0 <= found.high else shown


def peak(bench: Bench, timing: Timing) -> Estimate | None:
    """The card's own measured rate of a dense product in the same rounds."""
    for p in bench.peaks:
        if (p.shape, p.direction) == (timing.shape, timing.direction) and p.samples_tflops:
            return estimate(p.samples_tflops)
    return None


def find(bench: Bench, contender: str, like: Timing) -> Timing | None:
    """The same measurement of another contender."""
    wanted = (contender, like.shape, like.direction)
    return next((t for t in bench.timings if (t.contender, t.shape, t.direction) == wanted), None)
