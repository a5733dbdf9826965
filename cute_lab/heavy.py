"""Which lines of a mod cost most, as far as the estimate can tell: one rule for the card, the saved outputs and the editor's notes.

labextension/src/card/words/heavy.ts has the same rule; tests/heavy.json holds both to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from cute_lab.quantities import percent

HEAVY = 0.25  # share of a mod's cycles from which a line is worth a word
BAND = 0.10  # the estimate's error, up and down: shares whose bands overlap are no difference


class Cost(Protocol):
    @property
    def line(self) -> int: ...
    @property
    def share(self) -> float: ...


def heaviest(costs: Iterable[Cost]) -> tuple[tuple[int, ...], float]:
    """The dearest line and its share; lines that cost about as much stand beside it, and the share is theirs together."""
    own = {cost.line: cost.share for cost in costs if cost.line}
    most = max(own.values(), default=0.0)
    if not most >= HEAVY:
        return (), 0.0
    lines = sorted(line for line, share in own.items() if share * (1 + BAND) >= most * (1 - BAND))
    return tuple(lines), sum(own[line] for line in lines)


def together(lines: tuple[int, ...], share: float) -> str:
    """Of a tie."""
    names = f"{', '.join(map(str, lines[:-1]))} and {lines[-1]}"
    return f"lines {names} cost about the same, together {percent(round(share, 2))}"


def alone(line: int, share: float) -> str:
    return f"line {line} costs {percent(round(share, 2))} of the mod"


def summary(costs: Iterable[Cost]) -> str:
    lines, share = heaviest(costs)
    return "" if not lines else alone(lines[0], share) if len(lines) == 1 else together(lines, share)


def asides(costs: Iterable[Cost], target: str) -> list[tuple[int, str]]:
    """The notes at the ends of the dearest lines; none where the mod has only one line that costs."""
    costs = list(costs)
    own = {cost.line: cost.share for cost in costs}
    return [(line, f"{percent(round(own[line], 2))} of the cost on {target}") for line in heaviest(costs)[0]] if len(own) > 1 else []
