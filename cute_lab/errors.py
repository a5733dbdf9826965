"""Every mistake a user can make, one class each: what is wrong, why, and what to write instead.

CuteLabError
├── CellError             the text of the cell or the function's signature
│   ├── CellSyntaxError   ├── MissingMod      ├── WrongArity    ├── UndefinedName
│   ├── ReturnsNone       ├── WrongResultType └── UserCodeError
├── TraceError            what the function does
│   ├── BranchOnTensor    ├── TensorToNumber  ├── WritesTensor  ├── RandomInMod
│   ├── SideEffect        ├── LeavesTorch     ├── UnsupportedOp ├── CaptureDevice
│   └── CaptureTooLarge
├── IndexOutOfRange       a captured tensor is read outside its bounds
├── OptionError           a shape, dtype, parameter or magic option
├── GeometryError         what an architecture or FlashAttention-4 does not allow
├── CompileError          the compiler said no, crashed or hung; the generated text is attached
│   ├── CompilerCrashed   └── CompilerTimeout
└── DeviceError           the GPU, or the process that uses it
    ├── DeviceMissing     ├── DeviceCrashed  └── DeviceHung

A message is three class attributes with ``{fields}``: `what` (one sentence), `why` (the reason) and
`write` (code to type instead). A user's mistake shows these and the line, and no Python stack.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class Loc:
    """A place in the user's code. Lines count from 1 as the editor shows them, columns from 1, `end_column` inclusive."""

    file: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def snippet(self) -> str:
        """The marked characters of the first line."""
        end = self.end_column if self.end_line in (0, self.line) and self.end_column else len(self.text)
        return self.text[self.column - 1 : end]

    @property
    def in_cell(self) -> bool:
        return not Path(self.file).is_file()  # ipykernel calls cells /tmp/ipykernel_1/2.py; no such file exists

    def __str__(self) -> str:
        place = "cell" if self.in_cell else Path(self.file).name
        columns = f", columns {self.column}-{self.end_column}" if self.end_column > self.column else ""
        return f"{place} line {self.line}{columns}"


def _again(cls: type[CuteLabError], args: tuple[object, ...], state: dict[str, object]) -> CuteLabError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class CuteLabError(Exception):
    """Base of every error that a user can cause. `line`, `column` (from 1, or None) and `hint` say where and what to write."""

    what: ClassVar[str] = "{message}"
    why: ClassVar[str] = ""
    write: ClassVar[str] = ""

    def __reduce__(self) -> tuple[object, ...]:
        """A mistake may come from another process; it arrives as it is."""
        return _again, (type(self), self.args, self.__dict__)

    def __init__(self, message: str = "", *, loc: Loc | None = None, **fields: object) -> None:
        self.loc = loc
        self.fields = {"message": message, **fields}
        self.summary = self.what.format(**self.fields)
        self.reason = self.why.format(**self.fields)
        self.hint = self.write.format(**self.fields)
        super().__init__(self.summary)

    @property
    def line(self) -> int | None:
        return self.loc.line if self.loc else None

    @property
    def column(self) -> int | None:
        return self.loc.column if self.loc else None

    @property
    def end_column(self) -> int | None:
        return (self.loc.end_column or None) if self.loc else None

    def lines(self) -> list[str]:
        """The message as the user sees it."""
        head = f"CuteLabError: {self.summary}"
        if self.loc is None:
            out = [head]
        else:
            place = str(self.loc)
            gap = max(4, 100 - len(head) - len(place))
            out = [head + " " * gap + place] if len(head) + len(place) < 130 else [head, f"  at {place}"]
            text = self.loc.text
            if text:
                number = f"{self.loc.line:>5} | "
                width = max(1, len(self.loc.snippet.rstrip()))
                out += [number + text, "      | " + " " * (self.loc.column - 1) + "^" * width]
        body = [self.reason] if self.reason else []
        body += [] if not self.hint else ["Write", *("    " + line for line in self.hint.split("\n"))]
        return out + ["  " + line for block in body for line in block.split("\n")]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _render_traceback_(self) -> list[str]:
        """IPython shows exactly these lines: a user's mistake needs no Python stack."""
        return self.lines()


class CellError(CuteLabError):
    pass


class CellSyntaxError(CellError):
    what = "{message}"
    why = "The cell is plain Python; it does not parse."


class MissingMod(CellError):
    what = "no score_mod and no mask_mod is defined"
    why = "The cell must define at least one of the two functions, at its top level."
    write = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score"


class WrongArity(CellError):
    what = "{kind} takes {expected}, this function takes {count} parameters{missing}"
    why = "FlexAttention calls a {kind} with {n} values."
    write = "def {kind}{expected}:"


class UndefinedName(CellError):
    what = "name '{name}' is not defined in {function}{guess}"
    why = "It is neither a variable of the function, nor captured, nor in the notebook."


class ReturnsNone(CellError):
    what = "{kind} returned None; it must return {result}"
    why = "There is no return statement on the path that was taken."
    write = "return {example}"


class WrongResultType(CellError):
    what = "{kind} must return {expected}, this one returns {got}{guess}"
    why = "{detail}"
    write = "{example}"


class UserCodeError(CellError):
    what = "{error} in {function}: {message}"
    why = "The function itself fails when it is evaluated on the scalars score, b, h, q_idx, kv_idx."


class TraceError(CuteLabError):
    pass


class BranchOnTensor(TraceError):
    what = "a Python `{construct}` on {subject} can't be lowered"
    why = (
        "A mod is traced once for all positions, so Python cannot branch on {subject}: "
        "the condition has a different value in every cell of the score matrix."
    )
    write = "{example}"


class TensorToNumber(TraceError):
    what = "`{snippet}` turns a tensor into a Python number"
    why = "The value differs per position and is not known while tracing. The tensor itself can be used in its place."
    write = "{example}"


class WritesTensor(TraceError):
    what = "`{snippet}` writes to {subject}"
    why = "Mods must be free of side effects: captured buffers are read only. Compute what you need outside."
    write = "{example}"


class RandomInMod(TraceError):
    what = "`{snippet}` draws random numbers inside a mod"
    why = (
        "Mods are evaluated again in the backward pass and must be deterministic; forward and backward would draw "
        "different values. Draw the numbers outside and capture them, or hash the indices."
    )
    write = "{example}"


class SideEffect(TraceError):
    what = "`{snippet}` is a side effect inside a mod"
    why = "The mod runs once, on symbols, and not per score: `{call}` shows or changes no values of the kernel. {advice}"


class LeavesTorch(TraceError):
    what = "`{snippet}` leaves torch: {library} cannot be traced into the kernel"
    why = "Only torch functions and Python operators on tensors become part of the kernel. Use {replacement}."
    write = "{replacement}"


class UnsupportedOp(TraceError):
    what = "the operator {op} can't be lowered"
    why = "{detail}"
    write = "{example}"


class CaptureDevice(TraceError):
    what = "captured tensor `{name}` lives on device {device}, the others and q/k/v on {expected}"
    why = "A kernel reads the memory of its own device only."
    write = "{name} = {name}.to({expected!r})"


class CaptureTooLarge(TraceError):
    what = "captured row of {size} values can't be unrolled into the kernel (at most {limit})"
    why = "Each score would read and combine {size} numbers. Reduce the row outside of the mod and capture the result."
    write = "reduced = table.sum(-1)    # outside of the mod; inside: reduced[kv_idx]"


class IndexOutOfRange(CuteLabError):
    what = "index out of range: `{snippet}` reads {name}[{index}] at b={b}, h={h}, q_idx={q}, kv_idx={kv}"
    why = (
        "The index range {lo}..{hi} exceeds the size {size} of captured tensor `{name}` in dimension {dim}; "
        "a GPU kernel would read foreign memory."
    )
    write = "{example}"


class OptionError(CuteLabError):
    what = "{message}"
    why = "{detail}"
    write = "{example}"

    def __init__(self, message: str, *, detail: str = "", example: str = "", loc: Loc | None = None) -> None:
        super().__init__(message, loc=loc, detail=detail, example=example)


class GeometryError(OptionError):
    """Shapes, block sizes and features that a target's kernel refuses, said before anything is compiled."""


class CompileError(CuteLabError):
    """The compiler refused the kernel. `source` is the generated text, `log` what the compiler said."""

    what = "{target} {direction}: {message}"
    why = "{detail}"

    def __init__(self, message: str, *, target: str, direction: str, source: str = "", log: str = "", detail: str = "") -> None:
        self.source, self.log = source, log
        super().__init__(message, target=target, direction=direction, detail=detail)


class CompilerCrashed(CompileError):
    pass


class CompilerTimeout(CompileError):
    write = "lab.compile({target!r}, {direction!r}, timeout=600)    # seconds"


class DeviceError(OptionError):
    """The GPU, or the process that uses it, can't do what was asked."""


class DeviceMissing(DeviceError):
    """This machine has no GPU that can do it."""


class DeviceCrashed(DeviceError):
    """The process on the GPU died: a CUDA error, or memory; the notebook's kernel is untouched."""


class DeviceHung(DeviceError):
    """The process on the GPU said nothing for too long and was ended."""
