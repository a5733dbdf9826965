"""The Labs behind this notebook's records, as long as the notebook holds them: a saved picture asks for more of itself here."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from cute_lab.errors import OptionError

if TYPE_CHECKING:
    from cute_lab.lab import Lab
    from cute_lab.record import Record

_labs: WeakValueDictionary[str, Lab] = WeakValueDictionary()


def remember(record: Record, lab: Lab) -> Record:
    _labs[record.key] = lab
    return record


def find(key: str) -> Lab:
    lab = _labs.get(key)
    if lab is None:
        detail = "A saved notebook's runs are not in the kernel, and a name that was given to another Lab holds that one."
        raise OptionError("this run is not in the kernel any more: run its cell again", detail=detail)
    return lab
