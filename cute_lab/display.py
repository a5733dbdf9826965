"""Record + views -> MIME bundles, and out to the notebook. Each output stays useful in every front end, within 256 kB.

The first bundle carries the whole record under the custom MIME type; the others carry {schema, view, of: record.key},
so that the front end, which draws all of them in one card, can fold them away.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import publish_display_data

from cute_lab.quantities import number
from cute_lab.record import MIME, SCHEMA, Note, Record, Stages, to_json
from cute_lab.views import view

CAP = 256_000  # bytes of one output
TEXT_CAP = 60_000  # bytes of one text in it, so that a record of usual size fits beside it
DEFAULT = ("summary", "mask", "source")
_shown: dict[str, int] = {}  # display id -> the execution that published it last


def bundles(record: Record, views: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """One MIME bundle per view. By default the summary, the mask where there is one, and the code."""
    found = [view(name) for name in (DEFAULT if views is None else views)]
    if views is None:
        found = [v for v in found if v.ready(record)]
    out: list[dict[str, Any]] = []
    for v in found:
        texts = {mime: _cut(mime, text) for mime, text in v.render(record).items()}
        used = size(texts)
        part = _payload(record, CAP - used) if not out else {"schema": SCHEMA, "view": v.name, "of": record.key}
        out.append({mime: as_browsers_write(text) for mime, text in {MIME: part, **texts}.items()})
    return out


def as_browsers_write(value: Any) -> Any:
    """JSON with 4140 for 4140.0: JavaScript has one kind of number, and a notebook that a browser saves untouched should not differ."""
    if isinstance(value, dict):
        return {key: as_browsers_write(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_browsers_write(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def show(record: Record, views: Iterable[str] | None = None, *, replace: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Publish the views and return their display ids. `replace` takes the ids of an earlier call: these outputs change
    in place, from another thread or cell too. A second call in the same execution of a cell replaces by itself."""
    shell = get_ipython()
    if shell is None:
        print(plain(record, DEFAULT if views is None else views))
        return ()
    views = None if views is None else tuple(views)
    made = bundles(record, views)
    names = [bundle[MIME].get("view", "first") for bundle in made]
    ids = replace or tuple(_display_id(shell, record.name, name) for name in names)
    for i, (display_id, bundle) in enumerate(zip(ids, made, strict=True)):
        first = {MIME: {"view": views[0]}} if views and not i else {}  # which of the card's tabs is open
        update = bool(replace) or _shown.get(display_id) == shell.execution_count
        where = {"display_id": display_id}
        publish_display_data(data=bundle, metadata=first, transient=where, update=update)  # type: ignore[no-untyped-call]
        _shown[display_id] = shell.execution_count
    return ids


def plain(record: Record, views: Iterable[str] = ("summary",)) -> str:
    """The views as text, for a terminal."""
    return "\n\n".join(view(name).render(record)["text/plain"] for name in views)


def size(obj: object) -> int:
    return len(json.dumps(obj, ensure_ascii=False).encode())


def _display_id(shell: Any, name: str, view_name: str) -> str:
    """The same for every run of one cell, different between cells. Front ends send the cell's id with the request."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell = parent.get("metadata", {}).get("cellId") or shell.execution_count
    return "cute-lab-" + hashlib.sha256(f"{cell}\0{name}\0{view_name}".encode()).hexdigest()[:16]


def _payload(record: Record, room: int) -> dict[str, Any]:
    """The record, without its largest parts where it would not fit; a note in it says what is gone."""
    stages = record.stages
    bare = tuple(dataclasses.replace(target, listing=None) for target in record.targets)
    smaller = (
        ("the machine code's listings", {"targets": bare}),
        ("the mask's graph", {"cells": None}),
        ("Inductor's code", {"stages": Stages(stages.fx, stages.ir, None)}),
        ("the FX graph and the IR", {"stages": Stages("", "", None)}),
        ("the block map", {"blocks": None}),
    )
    gone: list[str] = []
    kept, obj = record, to_json(record)
    for name, change in smaller:
        if size(obj) <= room:
            return obj
        if all(getattr(kept, field) == value for field, value in change.items()):
            continue
        gone.append(name)
        kept = dataclasses.replace(kept, **change)
        obj = to_json(dataclasses.replace(kept, notes=(*record.notes, Note("warning", _left_out(", ".join(gone))))))
    if size(obj) <= room:
        return obj
    return {"schema": SCHEMA, "view": "summary", "of": record.key, "left_out": _left_out("the record")}


def _left_out(what: str) -> str:
    return f"This output leaves out {what} to stay under {number(CAP // 1000)} kB; `record.save(path)` keeps all."


def _cut(mime: str, text: Any) -> Any:
    """`text`, or its first lines and a sentence that says so. An open Markdown fence is closed. Pictures and figures stay whole."""
    if not mime.startswith("text/") or len(text.encode()) <= TEXT_CAP:
        return text
    lines, kept, used, fence = text.split("\n"), [], 0, ""
    for line in lines:
        used += len(line.encode()) + 1
        if used > TEXT_CAP:
            break
        kept.append(line)
        if mime == "text/markdown" and line.startswith("```"):
            ticks = line[: len(line) - len(line.lstrip("`"))]
            fence = "" if fence and line == fence else fence or ticks
    said = f"Cut here: {number(len(kept))} of {number(len(lines))} lines are shown. The record holds all of them."
    return "\n".join([*kept, *([fence] if fence else []), "", said])
