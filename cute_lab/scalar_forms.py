"""Run-time numbers as expressions of the numbers that a person gave: `neg_window` is `-n["window"]`. Proved by tracing with others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

from cute_lab.capture import with_numbers
from cute_lab.errors import CuteLabError
from cute_lab.runtime import Number, other_values

if TYPE_CHECKING:
    from cute_lab.ir import Scalar
    from cute_lab.lab import Lab

# As runtime names them.
ONE = {
    "{0}": "{0}",
    "neg_{0}": "-{0}",
    "inv_{0}": "1 / {0}",
    "{0}_minus_1": "{0} - 1",
    "{0}_plus_1": "{0} + 1",
    "half_{0}": "{0} // 2",
    "twice_{0}": "2 * {0}",
    "{0}_squared": "{0} * {0}",
}
TWO = {"{0}_minus_{1}": "{0} - {1}", "{0}_plus_{1}": "{0} + {1}", "{0}_times_{1}": "{0} * {1}"}


@dataclass(frozen=True)
class Movable:
    """`names` may be changed at run time; `scalars` are (name, dtype, expression of `n`) in the kernels' order."""

    names: tuple[str, ...]
    scalars: tuple[tuple[str, str, str], ...]


def expressions(scalar: Scalar, numbers: Mapping[str, Number]) -> Iterator[str]:
    """Those that the scalar's name may mean; a second one of a name ends in its number."""
    name = scalar.name
    for forms, count in ((ONE, 1), (TWO, 2)):
        for names in permutations(numbers, count):
            for form, text in forms.items():
                made = form.format(*names)
                if name == made or re.fullmatch(rf"{re.escape(made)}_\d+", name):
                    yield text.format(*(f"n[{n!r}]" for n in names))


def value(text: str, numbers: Mapping[str, Number]) -> Number | None:
    try:
        found: Number = eval(text, {"__builtins__": {}}, {"n": dict(numbers)})  # noqa: S307  (a text of this file's own)
        return found
    except ZeroDivisionError:
        return None


def movable(lab: Lab) -> Movable:
    """The numbers that only move run-time numbers whose expressions are known."""
    scalars, numbers = lab.graph.scalars, {n: v for n, v in lab.params.items() if n not in lab.traced.fixed}
    chosen: dict[str, str] = {}
    for s in scalars:
        fits = (text for text in expressions(s, numbers) if value(text, numbers) == s.value)
        chosen[s.name] = next(fits, repr(s.value))
    names = tuple(n for n in numbers if any(f"n[{n!r}]" in text for text in chosen.values()) and _proved(lab, n, numbers, chosen))
    kept = {name: text if all(f"n[{n!r}]" not in text or n in names for n in numbers) else None for name, text in chosen.items()}
    rows = tuple((s.name, s.dtype, kept[s.name] or repr(s.value)) for s in scalars)
    return Movable(names, rows)


def _proved(lab: Lab, name: str, numbers: Mapping[str, Number], chosen: Mapping[str, str]) -> bool:
    """Other values give the same code, and the run-time numbers that the expressions say."""
    return all(_holds(lab, {**numbers, name: v}, name, chosen) for v in {other_values({name: numbers[name]})[name], *_more(numbers[name])})


def _more(number: Number) -> tuple[Number, ...]:
    """What a graph might have been shaped for: one more, twice as much, no power of two."""
    return (number + 1, 2 * number, 3 * number + 1)


def _holds(lab: Lab, numbers: Mapping[str, Number], name: str, chosen: Mapping[str, str]) -> bool:
    try:
        if lab.given:
            moved = lab.with_params(**{name: numbers[name]})
        else:  # traced like the lab itself, for the numbers that stand in its functions
            mods = {kind: with_numbers(mod, {name: numbers[name]}) for kind, mod in lab.mods.items()}
            rest: Any = (lab.shape, lab.targets, {}, lab.block, lab.fast_math, lab.name, lab.cell)
            moved = type(lab)(mods.get("score"), mods.get("mask"), *rest)
        now = {s.name: s.value for s in moved.graph.scalars}
        return moved.source == lab.source and all(now.get(n) == value(text, numbers) for n, text in chosen.items())
    except CuteLabError:
        return False
