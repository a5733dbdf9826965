"""lab.export: the variant as a module of its own, its record, its picture, its measured rows."""

from __future__ import annotations

import csv
import difflib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cute_lab import module_export, throughput
from cute_lab.chart_png import chart_png
from cute_lab.errors import OptionError
from cute_lab.picture import block_png
from cute_lab.record import Record, to_json

if TYPE_CHECKING:
    from cute_lab.lab import Lab

COLUMNS = "contender direction B H Hkv Sq Skv D dtype status note median_us low_us high_us tflops rounds samples_us device".split()


def export(lab: Lab, what: str = "module", path: str | Path | None = None, record: Record | None = None) -> str | Path:
    """The text of "module" (a torch module in a .py of its own, with its test), "json" (the record) or "csv" (measured rows).

    With a path it is written there; "png" needs one: the chart of a measured record, else the block map. `record` is one of this
    lab's; without it a new one is made, and measured on this machine's GPU for "csv".
    """
    if what not in MAKERS:
        close = difflib.get_close_matches(str(what), MAKERS, n=1)
        example = f"lab.export({close[0] if close else 'module'!r})"
        raise OptionError(f"there is no export {what!r}", detail=f"Known: {', '.join(MAKERS)}.", example=example)
    if what == "png" and path is None:
        raise OptionError("a picture is no text: it needs a path", example='lab.export("png", "mask.png")')
    made = MAKERS[what](lab, record)
    if path is None:
        assert isinstance(made, str)
        return made
    path = Path(path)
    if isinstance(made, str):
        path.write_text(made, encoding="utf-8", newline="")
    else:
        path.write_bytes(made)
    return path


def _module(lab: Lab, record: Record | None) -> str:
    return module_export.module(lab)


def _json(lab: Lab, record: Record | None) -> str:
    return json.dumps(to_json(record or lab.record()), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _png(lab: Lab, record: Record | None) -> bytes:
    if record is not None and record.bench is not None:
        return chart_png(record.bench)
    if lab.mask_mod is None if record is None else record.blocks is None:
        raise OptionError("there is no picture: the variant has no mask_mod, and nothing was measured", example='lab.export("json", path)')
    blocks = record.blocks if record is not None and record.blocks is not None else lab.blocks().summary()
    return block_png(blocks, Sq=lab.shape.Sq, Skv=lab.shape.Skv, title=lab.name)


def _csv(lab: Lab, record: Record | None) -> str:
    bench = (record or lab.bench()).bench
    if bench is None:
        raise OptionError("nothing was measured in this record", example='lab.export("csv", path, record=lab.bench())')
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for t in bench.timings:
        s, took, speed = t.shape, throughput.estimate(t.samples_us) if t.samples_us else None, throughput.tflops(bench, t)
        figures = [f"{x:.3f}" for x in (took.median, took.low, took.high)] if took else ["", "", ""]
        words = [t.status, t.note or t.reason, *figures, f"{speed.median:.2f}" if speed else "", len(t.samples_us)]
        samples = " ".join(f"{x:.3f}" for x in t.samples_us)
        rows.writerow(
            [_word(x) for x in (t.contender, t.direction, s.B, s.H, s.Hkv, s.Sq, s.Skv, s.D, s.dtype, *words, samples, bench.device)]
        )
    return out.getvalue()


def _word(value: object) -> object:
    """A text that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


MAKERS: dict[str, Callable[[Any, Record | None], str | bytes]] = {"module": _module, "json": _json, "csv": _csv, "png": _png}
