"""Suites of variants for a GPU machine without a notebook: TOML in, records out.

about, variants = names in variants.toml, or [variant.NAME] tables with `about` and `cell` in the file itself
[shapes] B or tokens (B = tokens / S), H, Hkv, Sq, D: numbers or lists; every combination is measured
dtype, directions, rounds, against: as in Lab.bench
"""

from __future__ import annotations

import itertools
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cute_lab import bench, parcel
from cute_lab import device as devices
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.measure import Request
from cute_lab.measurement import Shape
from cute_lab.record import SCHEMA, Record
from cute_lab.suite_record import AXES, FOLDER, SuiteRecord, names


@dataclass(frozen=True)
class Variant:
    name: str
    about: str
    cell: str

    def lab(self, shape: Shape, dtype: str, **options: Any) -> Any:
        """The variant at a shape: its cell is run with the sizes in sight."""
        import torch

        from cute_lab.cell import from_text
        from cute_lab.lab import attention
        from cute_lab.record import Cell

        sizes = {name: getattr(shape, name) for name in ("B", "H", "Hkv", "Sq", "Skv", "D")}
        mods = from_text(self.cell.lstrip("\n"), {**sizes, "torch": torch, "device": "cpu"})
        mods.forget_unused()
        cell = Cell(self.cell.strip("\n"), "", self.name)
        return attention(mods.score_mod, mods.mask_mod, **sizes, dtype=dtype, params=mods.params, name=self.name, cell=cell, **options)


@dataclass(frozen=True)
class Suite:
    name: str
    about: str
    variants: tuple[Variant, ...]
    shapes: tuple[Shape, ...]
    directions: tuple[str, ...]
    rounds: int
    against: tuple[str, ...]


def read(which: str, overrides: Mapping[str, Any] | None = None) -> Suite:
    """A suite by name or by file; `overrides` replace keys of the file or of its [shapes]."""
    path = FOLDER / f"{which}.toml"
    if not path.exists():
        path = Path(which)
    if not path.exists():
        raise OptionError(f"there is no suite {which!r}", detail=f"Known: {', '.join(names())}, or a .toml file.", example="hopper")
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        known = tomllib.loads((FOLDER / "variants.toml").read_text(encoding="utf-8")) | given.get("variant", {})
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path.name} is not TOML: {error}") from None
    _known_keys(path.name, given)
    changed = {name: value for name, value in (overrides or {}).items() if value is not None}
    sizes = given.get("shapes", {}) | {name: value for name, value in changed.items() if name in (*AXES, "B")}
    keys = given | changed
    wanted = keys.get("variants", list(given.get("variant", {})))
    if not wanted:
        raise OptionError(f"{path.name} names no variants", detail=f"Known: {', '.join(known)}.", example='variants = ["causal", "alibi"]')
    for name in wanted:
        if name not in known:
            raise OptionError(f"there is no variant {name!r} in {path.name}", detail=f"Known: {', '.join(known)}.")
    for name in wanted:
        if not isinstance(known[name], dict) or not isinstance(known[name].get("cell"), str):
            raise OptionError(f"the variant {name!r} of {path.name} has no cell", example=f'[variant.{name}]\ncell = """..."""')
    variants = tuple(Variant(name, known[name].get("about", ""), known[name]["cell"]) for name in wanted)
    shapes = tuple(_shapes(sizes, keys.get("tokens"), keys.get("dtype", "bf16")))
    rounds = bench.rounds_(keys.get("rounds", bench.ROUNDS))
    against = bench.contenders(keys.get("against"))
    return Suite(
        path.stem, keys.get("about", ""), variants, shapes, bench.directions(keys.get("directions", ("forward",))), rounds, against
    )


KEYS = ("about", "variants", "variant", "shapes", "dtype", "tokens", "directions", "rounds", "against")


def _known_keys(file: str, given: Mapping[str, Any]) -> None:
    for keys, where, allowed in ((given, "", KEYS), (given.get("shapes", {}), " in [shapes]", (*AXES, "B"))):
        for key in keys:
            if key not in allowed:
                raise OptionError(f"{file} has an unknown key {key!r}{where}", detail=f"Known{where}: {', '.join(allowed)}.")


def _shapes(sizes: Mapping[str, Any], tokens: int | None, dtype: str) -> Iterator[Shape]:
    from cute_lab.shapes import checked

    def listed(name: str, default: Sequence[int | None]) -> Sequence[Any]:
        value = sizes.get(name, default)
        return value if isinstance(value, (list, tuple)) else [value]

    for D, H, Hkv, Sq in itertools.product(listed("D", [128]), listed("H", [16]), listed("Hkv", [None]), listed("Sq", [8192])):
        for B in listed("B", [max(1, tokens // Sq) if tokens else 1]):
            yield checked(B, H, Hkv, Sq, None, D, dtype)


def run(suite: Suite, device: str | None, seed: int, command: str, quiet: bool = False, save: str | Path | None = None) -> SuiteRecord:
    """Every variant at every shape; the file is written after each variant, so that a stopped run keeps what it has.

    A variant that fails at all its shapes is named and left out; the run ends with its error only if nothing else was measured.
    """
    where = devices.chosen(device)
    records: list[Record] = []
    failed: list[CuteLabError] = []
    result = SuiteRecord(SCHEMA, "suite", suite.name, suite.about, ())
    for i, variant in enumerate(suite.variants):
        requests, labs, refused = [], [], []
        for shape in suite.shapes:
            try:
                lab = variant.lab(shape, shape.dtype)
            except CuteLabError as error:
                refused.append((shape, error))
                continue
            labs.append(lab)
            packed = parcel.pack((lab.score_mod, lab.mask_mod))
            requests.append(
                bench.request_of(lab, shape, packed, suite.against, bench.directions(suite.directions), suite.rounds, seed, where)
            )
        if not quiet:
            print(f"{i + 1} of {len(suite.variants)}: {variant.name}, {variant.about}", flush=True)
        try:
            if not requests:
                raise refused[0][1]
            found = bench.measure(requests, command, quiet)
        except CuteLabError as error:
            print(f"{variant.name} was not measured: {error}", file=sys.stderr, flush=True)
            failed.append(error)
            continue
        rows = tuple(row for shape, error in refused for row in _refused(requests[0], shape, error))
        found = replace(found, timings=(*found.timings, *rows))
        records.append(replace(labs[-1].record(targets=()), bench=found))
        result = replace(result, records=tuple(records))
        if save is not None:
            result.save(save)
        if found.stopped:
            break
    if failed and not records:
        raise failed[0]
    return result


def _refused(like: Request, shape: Shape, error: CuteLabError) -> list[Any]:
    request = replace(like, shape=shape)
    return [row for name in request.contenders for row in bench.lost(request, name, error.summary)]
