"""The attention zoo: a file per variant, each with TITLE, WORDS and a CELL that runs as it stands."""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MAPS = Path(__file__).parent / "maps.json"  # name -> its block map, for a thumbnail; tools/build_gallery.py writes it


@dataclass(frozen=True)
class Variant:
    name: str
    title: str
    words: str
    cell: str


@cache
def variants() -> tuple[Variant, ...]:
    """The folder is the list; files stand in the order in which they are shown."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return tuple(Variant(name.partition("_")[2], m.TITLE, m.WORDS, m.CELL) for name, m in modules.items())


@cache
def maps() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MAPS.read_text(encoding="utf-8")) if MAPS.exists() else {}
    return found


def as_json() -> list[dict[str, Any]]:
    """For a front end. A variant without a mask has no map."""
    return [{"name": v.name, "title": v.title, "words": v.words, "cell": v.cell, "blocks": maps().get(v.name)} for v in variants()]
