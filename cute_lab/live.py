"""What a variant is at this moment: its program and block maps, made again only when something that the mods read has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cute_lab import freshness
from cute_lab.capture import Mod, Number
from cute_lab.record import Shape
from cute_lab.trace import Traced, build

KEPT = 8  # results of one state


class Live:
    """Follows the captures of two mods. `now` traces (milliseconds) if they changed since, and else returns what it has."""

    def __init__(self, score_mod: Mod | None, mask_mod: Mod | None, shape: Shape, given: Mapping[str, Number], fast: bool) -> None:
        self.mods, self.shape, self.given, self.fast = (score_mod, mask_mod), shape, given, fast
        self.state: Any = None
        self.traced: Traced | None = None
        self.made: dict[Any, Any] = {}
        self.held = False

    def hold(self) -> None:
        """It stays as it is: for a look of a moment."""
        self.held = True

    def now(self) -> Traced:
        if self.held and self.traced is not None:
            return self.traced
        state = freshness.state(*self.mods)
        if self.traced is None or state is None or state != self.state:
            self.state, self.traced = None, None  # a mod that fails now has no earlier result
            self.traced = build(*self.mods, self.shape, self.given, fast=self.fast)
            self.state, self.made = state, {}
        return self.traced

    def remember(self, key: Any, make: Callable[[], Any]) -> Any:
        """make()'s result, kept as long as nothing changes."""
        self.now()
        if self.state is None:
            return make()
        if key not in self.made:
            if len(self.made) >= KEPT:
                self.made.clear()
            self.made[key] = make()
        return self.made[key]
