"""Record -> what a person reads. One file per view exports VIEW; the folder is the list, `order` sorts it.

A view is text/markdown + text/plain, or image/png + text/plain (markdown would hide the picture in nbconvert and on
GitHub), and a figure's JSON beside its picture. Never text/html: it outranks both and is what other front ends mangle.
A view whose data are missing says what to run.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cute_lab.errors import OptionError
from cute_lab.record import Record

Bundle = dict[str, Any]  # text; JSON's MIME types hold an object


@dataclass(frozen=True)
class View:
    name: str
    title: str
    order: int
    needs: tuple[str, ...]  # fields of the record without which there is nothing to show
    render: Callable[[Record], Bundle]

    def ready(self, record: Record) -> bool:
        return all(getattr(record, field) for field in self.needs)


@cache
def views() -> tuple[View, ...]:
    files = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    found = (importlib.import_module(f"{__name__}.{file}").VIEW for file in files)
    return tuple(sorted(found, key=lambda view: view.order))


def view(name: str) -> View:
    known = {v.name: v for v in views()}
    if name not in known:
        raise OptionError(f"there is no view {name!r}", detail=f"The views are {', '.join(known)}.")
    return known[name]
