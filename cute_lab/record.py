"""A run as frozen dataclasses <-> JSON. Strict at the border, free of torch: views and the front end need nothing else.

record  = schema kind name created seconds cell shape params source stages checks blocks? cells? targets notes bench?
          environment hash
source  = text user_lines functions    line i+1 of text comes from the cell's line user_lines[i]; 0: from no line
blocks  = block sizes, counts, data    kinds [Bm, Hm, nq, nkv], 0 empty, 1 partial, 2 full, in base64 of zlib:
          blocks four in a byte from the low bits up, or the runs of their rows (Runs.pack), whichever is smaller
cells   = the mask as a graph that a browser computes cell by cell; none where the tables that it reads are large
target  = target direction status, what the compiler said, cost per line of the cell, the listings' lines that matter

A line of a cell is counted as the editor shows it: the first line of `cell.text` has the number `cell.first_line`.
JSON has no inf and nan: these floats are the strings "inf", "-inf" and "nan".
A new field is a new SCHEMA number and a row in MIGRATIONS.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cute_lab.block_summary import BlockSummary as BlockSummary
from cute_lab.cell_code import CellCode
from cute_lab.codec import decode, encode
from cute_lab.environment import environment as environment
from cute_lab.environment import now as now
from cute_lab.environment import version as version
from cute_lab.errors import OptionError
from cute_lab.excerpt import Listing
from cute_lab.measurement import Bench
from cute_lab.measurement import Shape as Shape

SCHEMA = 3
MIME = "application/vnd.cute-lab.v1+json"
SLIDERS = "application/vnd.cute-lab.sliders.v1+json"  # what stands where sliders were, {"words": ...}
Migration = Callable[[dict[str, Any]], dict[str, Any]]


def _each(rows: object, **new: object) -> object:
    """New fields for each object of a list; what is no such list is left to the decoder, which says so."""
    return [{**row, **new} if isinstance(row, dict) else row for row in rows] if isinstance(rows, list) else rows


MIGRATIONS: dict[int, Migration] = {  # n -> turns an object of schema n into one of schema n + 1
    1: lambda old: {**{name: value for name, value in old.items() if name != "timings"}, "bench": None},  # `timings` was reserved
    2: lambda old: {**old, "cells": None, "targets": _each(old.get("targets"), listing=None)},
}


@dataclass(frozen=True)
class Cell:
    text: str
    magic: str  # the %% line as typed; empty for the function API
    name: str
    first_line: int = 1


@dataclass(frozen=True)
class Source:
    text: str
    user_lines: tuple[int, ...]
    functions: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        return self.text.removesuffix("\n").split("\n")

    def __post_init__(self) -> None:
        if len(self.user_lines) != len(self.lines):
            raise ValueError(f"user_lines has {len(self.user_lines)} entries, the source has {len(self.lines)} lines")


@dataclass(frozen=True)
class Stages:
    fx: str
    ir: str
    inductor: str | None


@dataclass(frozen=True)
class Param:
    name: str
    value: bool | int | float
    runtime: bool  # False: part of the shape, a new value recompiles


@dataclass(frozen=True)
class Note:
    level: Literal["info", "warning"]
    text: str  # one sentence, `code` in backticks; one that begins with ⚙ stands for machine code that is not there yet
    line: int | None = None
    fix: str = ""  # what to write instead: code, or a sentence with `code` in backticks


@dataclass(frozen=True)
class Worst:
    b: int
    h: int
    q: int
    kv: int
    expected: float
    got: float


@dataclass(frozen=True)
class Check:
    name: Literal["score_mod", "mask_mod", "score_mod_bwd", "mask_mod_packed"]
    ok: bool
    points: int
    max_abs_error: float
    max_rel_error: float
    tolerance: float
    worst: Worst | None
    grid: str  # in words: which points


@dataclass(frozen=True)
class LineCost:
    line: int  # the cell's line; 0 = code that no line asked for
    instructions: int  # per tile
    share: float  # of the mod's cycles in the main loop, 0 to 1
    by_pipe: dict[str, int]


@dataclass(frozen=True)
class TargetReport:
    target: str
    direction: Literal["forward", "backward"]
    status: Literal["compiled", "refused", "failed"]  # refused: by the target's rules; failed: the compiler crashed or hung
    reason: str = ""  # why it was refused; the numbers below are 0 then
    registers: int = 0
    stack_bytes: int = 0
    spill_loads: int = 0
    spill_stores: int = 0
    instructions: int = 0
    seconds: float = 0.0
    cached: bool = False
    mix: dict[str, int] = dataclasses.field(default_factory=dict)  # instructions of the main loop by pipe
    cost: float | None = None  # estimated cycles of a tile: ranks variants of one target, good to +-10 %, no speed
    line_cost: tuple[LineCost, ...] = ()
    advice: tuple[Note, ...] = ()
    listing: Listing | None = None


@dataclass(frozen=True)
class Record:
    schema: int
    kind: Literal["attention"]
    name: str
    created: str  # UTC, ISO 8601
    seconds: float  # how long the cell took
    cell: Cell
    shape: Shape
    params: tuple[Param, ...]
    source: Source
    stages: Stages
    checks: tuple[Check, ...]
    blocks: BlockSummary | None
    cells: CellCode | None
    targets: tuple[TargetReport, ...]
    notes: tuple[Note, ...]
    bench: Bench | None
    environment: dict[str, str]
    hash: str  # digest(source.text, shape)

    @property
    def key(self) -> str:
        """Names this run: outputs that show a part of the record refer to it."""
        return f"{self.hash} {self.created}"

    def save(self, path: str | Path) -> None:
        text = json.dumps(to_json(self), ensure_ascii=False, allow_nan=False, indent=1)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def show(self, *views: str) -> None:
        """Displays the named views (summary, mask and source without a name); prints them outside of a notebook."""
        from cute_lab import display

        display.show(self, views or None)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        from cute_lab.display import bundles  # a record is below its display; only IPython's protocol looks up

        return bundles(self, ("summary",))[0]


def digest(source: str, shape: Shape) -> str:
    return hashlib.sha256(f"{source}\0{json.dumps(encode(shape))}".encode()).hexdigest()


def to_json(record: Record) -> dict[str, Any]:
    """What is written can be read: a value of a wrong type fails here and not on the reader's machine."""
    obj: dict[str, Any] = encode(record)
    decode(Record, obj, "record")
    return obj


def from_json(obj: object) -> Record:
    if not isinstance(obj, dict) or type(obj.get("schema")) is not int:
        raise OptionError("this is not a cute_lab record: it has no schema number")
    schema, reader = obj["schema"], f"this cute_lab {environment()['cute_lab']} reads schema {SCHEMA}"
    if schema > SCHEMA:
        stamp = obj.get("environment")
        writer = stamp.get("cute_lab", "?") if isinstance(stamp, dict) else "?"
        raise OptionError(
            f"this record has schema {schema} (cute_lab {writer}), {reader}",
            detail="The record was written by a newer cute_lab than the one that reads it.",
            example="pip install -U cute_lab",
        )
    while schema < SCHEMA:
        if schema not in MIGRATIONS:
            raise OptionError(f"this record has schema {schema}, {reader}")
        schema, obj = schema + 1, {**MIGRATIONS[schema](obj), "schema": schema + 1}
    record: Record = decode(Record, obj, "record")
    if record.blocks:
        try:
            _ = record.blocks.runs
        except ValueError as error:
            raise OptionError(f"record.blocks: {error}") from None
    return record


def load(path: str | Path) -> Record:
    try:
        return from_json(json.loads(Path(path).read_text(encoding="utf-8")))
    except json.JSONDecodeError as error:
        raise OptionError(f"{Path(path).name} is not JSON: {error}") from None
