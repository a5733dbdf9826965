"""The block map of a panel as a widget: the card's own picture, moved by sliders. Its module is labextension/src/widget.ts, built."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from cute_lab import applied
from cute_lab.browser_mask import cell_code
from cute_lab.codec import encode
from cute_lab.lab import Lab
from cute_lab.record import BlockSummary

FILE = Path(__file__).parent / "static" / "widget.js"
STATE = 49_000  # characters: a saved notebook may hold the state of every panel that its cells have made
TABLES = 16_384  # bytes of a captured tensor that may be packed at every move of a slider
MOST_CELLS = 1 << 20
REQUEST = ("b", "h", "q", "kv", "rows", "columns", "step")


@cache
def module() -> str | None:
    """None in a checkout whose front end has not been built: there the picture is a PNG."""
    return FILE.read_text(encoding="utf-8") if FILE.exists() else None


class MaskWidget(anywidget.AnyWidget):
    """`mask` is {blocks, Sq, Skv, cells}, {} before there is one, {large} for one that the browser asks for: saved state is to be small."""

    _esm = traitlets.Unicode().tag(sync=True)
    mask = traitlets.Dict().tag(sync=True)


class MaskPicture:
    """Shows the block map of a Lab, and answers what its browser can't compute: single cells, by the generated code."""

    def __init__(self, esm: str, heard: Callable[[Any], None]) -> None:
        self.widget = MaskWidget(_esm=esm)
        self._room = STATE - len(esm)
        self._heard = heard
        self._lab: Lab | None = None
        self._full: dict[str, Any] = {}
        self._turn = 0
        self._one = threading.Lock()
        self.widget.on_msg(self._asked)

    def show(self, lab: Lab, blocks: BlockSummary) -> None:
        self._lab = lab
        code = cell_code(lab.program, max(0, self._room), TABLES)
        full = {"blocks": encode(blocks), "Sq": lab.shape.Sq, "Skv": lab.shape.Skv, "cells": encode(code)}
        small = full if len(json.dumps(full)) <= self._room else {**full, "cells": None}
        self._full = full
        self._turn += 1
        self.widget.mask = small if len(json.dumps(small)) <= self._room else {"large": self._turn}

    def _asked(self, widget: MaskWidget, content: object, buffers: object) -> None:
        """On a thread of its own: this one is the kernel's, and has messages to handle."""
        self._heard(widget)
        if isinstance(content, dict) and type(content.get("id")) is int:
            threading.Thread(target=self._answer, args=(content,), name="cute_lab-cells", daemon=True).start()

    def _answer(self, asked: dict[str, Any]) -> None:
        with self._one:
            if asked.get("whole"):
                self.widget.send({"id": asked["id"], "mask": self._full})
                return
            try:
                found = cells(self._lab, *(asked.get(name) for name in REQUEST))
            except Exception:  # torch's or the mod's: the picture shows the block then, as it is hatched
                found = None
            self.widget.send({"id": asked["id"]}, [] if found is None else [found])


def cells(lab: Lab | None, *asked: Any) -> bytes | None:
    """A byte a cell, row by row; None for what is no request."""
    if lab is None or any(type(x) is not int or x < 0 for x in asked):
        return None
    b, h, q, kv, rows, columns, step = asked
    s = lab.shape
    inside = b < s.B and h < s.H and 0 < rows * columns <= MOST_CELLS and step > 0
    if not inside or q + (rows - 1) * step >= s.Sq or kv + (columns - 1) * step >= s.Skv:
        return None
    found = applied.cells(lab, b, h, range(q, q + rows * step, step), range(kv, kv + columns * step, step))
    return bytes(found.numpy().tobytes())
