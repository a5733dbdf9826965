"""The records of a suite's variants in one file, and reading any record. Needs neither torch nor a compiler."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cute_lab import suite_table
from cute_lab.codec import decode, encode
from cute_lab.errors import OptionError
from cute_lab.record import SCHEMA, Record, from_json, to_json

FOLDER = Path(__file__).parent / "suites"
AXES = ("Sq", "D", "H", "Hkv")  # what a suite sweeps


def names() -> list[str]:
    """The suites that come with cute_lab."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != "variants")


@dataclass(frozen=True, repr=False)
class SuiteRecord:
    """`records` in the order of the suite, each with its Bench; `suite["alibi"]` is one of them."""

    schema: int
    kind: str
    name: str
    about: str
    records: tuple[Record, ...]

    def __getitem__(self, variant: str) -> Record:
        for record in self.records:
            if record.name == variant:
                return record
        raise OptionError(f"there is no variant {variant!r} in this record", detail=f"It holds {', '.join(r.name for r in self.records)}.")

    def save(self, path: str | Path) -> None:
        obj = encode(replace(self, records=())) | {"records": [to_json(r) for r in self.records]}
        Path(path).write_text(json.dumps(obj, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        return suite_table.plain(self.records)

    def _repr_markdown_(self) -> str:
        return suite_table.markdown(self.records)


def read(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise OptionError(f"{Path(path).name} is not JSON: {error}") from None


# In a wheel the records lie in the package, in a checkout among the tests.
PLACES = (Path(__file__).parent / "records", Path(__file__).parent.parent / "tests" / "records")


def stored(name: str) -> Path | None:
    """A record that comes with cute_lab, by its name."""
    return next((path for folder in PLACES if (path := folder / f"{name}.json").exists()), None)


def suites() -> list[str]:
    """The suites' records among them; a file's first characters say what it is."""
    return sorted(p.stem for folder in PLACES for p in folder.glob("*.json") if '"kind":"suite"' in p.read_text(encoding="utf-8")[:40])


def load(path: str | Path) -> Record | SuiteRecord:
    """A record from its file, or one of those that come with cute_lab by its name ("h200_mha_d128"): of one variant, or of a suite.

    Raises OptionError for what is no record.
    """
    known = stored(str(path)) if not Path(path).exists() else None
    if known is None and not Path(path).exists():
        raise OptionError(f"there is no file {str(path)!r}", detail=f"Records that come with cute_lab: {', '.join(suites())}.")
    obj = read(known or path)
    if not isinstance(obj, dict) or obj.get("kind") != "suite":
        return from_json(obj)
    records = tuple(from_json(r) for r in obj.get("records", ()))
    head: SuiteRecord = decode(SuiteRecord, {**obj, "schema": SCHEMA, "records": []}, "suite")
    return replace(head, records=records)
