"""slider(64, 4096, 1024, step=64): a number that a person may move. It is that number, and its range goes with it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, overload

from cute_lab.errors import OptionError

Number = int | float
LIMIT = 2**31  # a run-time integer of the kernel has 32 bits
EXAMPLE = "window = slider(64, 4096, 1024, step=64)"
STEPS = 50  # a range of floats without a step gets at least so many, of a round size
FORM = re.compile(r"(?P<low>.+?)\.\.(?P<high>[^:]+)(?::(?P<step>.+))?")


@dataclass(frozen=True)
class Range:
    low: Number
    high: Number
    step: Number

    @property
    def whole(self) -> bool:
        return all(isinstance(x, int) for x in (self.low, self.high, self.step))

    def __contains__(self, value: Number) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{shown(self.low)}..{shown(self.high)} step {shown(self.step)}"

    def at(self, value: Number) -> Slider:
        """A slider of this range that stands at `value`."""
        if self.whole and isinstance(value, int):
            return IntSlider(value, int(self.low), int(self.high), int(self.step))
        return FloatSlider(value, self.low, self.high, self.step)


class Asked(NamedTuple):
    """A range as `--param` gives it; its kind is that of the number which it is for."""

    low: Number
    high: Number
    step: Number | None

    def slider(self, who: str, flag: str, value: Number) -> Slider:
        """The slider for a number that the code sets to `value`; `flag` is what to write but for the range."""
        low, high = min(self.low, value), max(self.high, value)
        if isinstance(value, int) and not all(isinstance(x, int) for x in self if x is not None):
            example = f"{flag}={math.floor(low)}..{math.ceil(high)}"
            raise OptionError(f"{who}: it is an integer in the code, {self} is no range of integers", example=example)
        found = checked(who, *self, whole=isinstance(value, int), example=f"{flag}={shown(low)}..{shown(high)}")
        if value not in found:
            raise OptionError(f"{who}: it is {shown(value)} in the code, outside of {self}", example=f"{flag}={shown(low)}..{shown(high)}")
        return found.at(value)

    def __str__(self) -> str:
        return f"{shown(self.low)}..{shown(self.high)}{'' if self.step is None else f':{shown(self.step)}'}"


class _Ranged:
    range: Range

    @property
    def low(self) -> Number:
        return self.range.low

    @property
    def high(self) -> Number:
        return self.range.high

    @property
    def step(self) -> Number:
        return self.range.step


class IntSlider(_Ranged, int):
    """An integer; what is computed from it is a plain one."""

    def __new__(cls, value: int, low: int, high: int, step: int) -> Self:
        made = int.__new__(cls, value)
        made.range = Range(low, high, step)
        return made

    def __getnewargs__(self) -> Any:  # for copy and pickle
        return int(self), self.low, self.high, self.step


class FloatSlider(_Ranged, float):
    """A float; what is computed from it is a plain one."""

    def __new__(cls, value: Number, low: Number, high: Number, step: Number) -> Self:
        made = float.__new__(cls, value)
        made.range = Range(float(low), float(high), float(step))
        return made

    def __getnewargs__(self) -> Any:
        return float(self), self.low, self.high, self.step


Slider = IntSlider | FloatSlider


@overload
def slider(low: int, high: int, value: int, step: int | None = None) -> IntSlider: ...
@overload
def slider(low: float, high: float, value: float, step: float | None = None) -> FloatSlider: ...
def slider(low: Number, high: Number, value: Number, step: Number | None = None) -> Slider:
    """A number for a mod, from `low` to `high`, that starts at `value`: `window = slider(64, 4096, 1024, step=64)`.

    Integers give an integer, else it is a float. It is a run-time parameter of the kernel: moving it recompiles nothing.
    """
    for name, x in (("low", low), ("high", high), ("value", value), ("step", step)):
        if x is not None and not (isinstance(x, (int, float)) and not isinstance(x, bool)):
            raise OptionError(f"slider: {name} must be a number, not {x!r}", example=EXAMPLE)
    found = checked("slider", low, high, step, whole=isinstance(value, int), example=EXAMPLE)
    if value not in found:
        inside = f"slider({shown(min(low, value))}, {shown(max(high, value))}, {shown(value)})" if math.isfinite(value) else EXAMPLE
        raise OptionError(f"slider: {shown(value)} is outside of {shown(low)}..{shown(high)}", example=inside)
    return found.at(value)


def checked(who: str, low: Number, high: Number, step: Number | None, *, whole: bool, example: str) -> Range:
    """The range; `whole` asks for integers, which all of its numbers must be to get them."""
    if not all(map(math.isfinite, (low, high, 0 if step is None else step))):
        raise OptionError(f"{who}: a range must be finite", example=example)
    if low >= high:
        raise OptionError(f"{who}: the range {shown(low)}..{shown(high)} is empty", detail="Low comes first.", example=example)
    ints = whole and all(isinstance(x, int) for x in (low, high, step) if x is not None)
    if step is None:
        step = 1 if ints else 10.0 ** math.floor(math.log10((high - low) / STEPS))
    if not 0 < step <= high - low:
        raise OptionError(f"{who}: no step of {shown(step)} fits into {shown(low)}..{shown(high)}", example=example)
    if ints and not (low >= -LIMIT and high < LIMIT):
        raise OptionError(
            f"{who}: {shown(low)}..{shown(high)} is beyond 32 bits", detail="The kernel takes 32-bit integers.", example=example
        )
    return Range(low, high, step) if ints else Range(float(low), float(high), float(step))


def read(who: str, text: str, example: str) -> Asked:
    """`64..4096:64`, whose step is optional."""
    found = FORM.fullmatch(text)
    try:
        low, high, step = (_number(part) for part in found.group("low", "high", "step")) if found else (None, None, None)
    except ValueError:
        low = high = step = None
    if low is None or high is None:
        raise OptionError(f"{who}: {text!r} is not low..high:step", detail="Three numbers; the step may be left out.", example=example)
    checked(who, low, high, step, whole=True, example=example)
    return Asked(low, high, step)


def _number(text: str | None) -> Number | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)


def plain(value: Number) -> Number:
    """The number without its range."""
    return int(value) if isinstance(value, int) else float(value)


def shown(value: Number) -> str:
    return str(int(value)) if isinstance(value, int) else f"{value:g}"
