"""How much of one shape's measurement is over, from the times that its own contenders and rounds have taken."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cute_lab.measurement import Direction

# A round beside one of forward calls: forward has two matrix products, backward five (arXiv 2205.14135, algorithms 1 and 4).
COST: dict[Direction, float] = {"forward": 1.0, "backward": 2.5, "forward+backward": 3.5}


class Forecast:
    def __init__(self, contenders: int, directions: Sequence[Direction], rounds: int) -> None:
        self.contenders, self.directions, self.rounds = contenders, list(directions), rounds
        self.begun = self.since = self.at = time.perf_counter()
        self.left: float | None = None  # seconds, told at `at`

    def contender(self, done: int) -> None:
        """So many are compiled and checked. Rounds are short beside that."""
        self.at = time.perf_counter()
        self.left = (self.at - self.begun) / done * (self.contenders - done) if done else None

    def round(self, direction: Direction, done: int) -> None:
        """So many rounds of this direction are over; before the first, nothing new is known."""
        self.at, before = time.perf_counter(), self.at
        if not done:
            self.since, self.at = self.at, before
            return
        each = (self.at - self.since) / done
        later = self.directions[self.directions.index(direction) + 1 :]
        self.left = each * (self.rounds - done + self.rounds * sum(COST[d] for d in later) / COST[direction])

    @property
    def part(self) -> float:
        """Of the shape's time, what has passed: 0 while nothing is known, below 1 until it is over."""
        if self.left is None:
            return 0.0
        passed = time.perf_counter() - self.begun
        left = max(self.left - (passed - (self.at - self.begun)), 0.01 * passed + 1e-3)
        return passed / (passed + left)
