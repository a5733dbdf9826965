"""Single cells of a record's mask, by the generated code, for a picture that is looked at closely."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import torch

from cute_lab import host, known_labs
from cute_lab.errors import OptionError

MOST = 1 << 20


def bits(of: str, b: int, h: int, q: int, kv: int, rows: int, columns: int, step: int = 1) -> dict[str, Any]:
    """The cells (q + i step, kv + j step), a bit each, row by row; outside of the score matrix they are 0."""
    if min(b, h, q, kv, rows, columns) < 0 or step < 1 or rows * columns > MOST:
        raise OptionError(f"{rows} x {columns} cells from ({q}, {kv}): at most {MOST:,} can be asked for, from 0 on")
    lab = known_labs.find(of)
    s = lab.shape
    if b >= s.B or h >= s.H:
        raise OptionError(f"there is no batch entry {b} with a head {h}: the run has B={s.B}, H={s.H}")
    qs, kvs = (range(first, min(first + n * step, size), step) for first, n, size in ((q, rows, s.Sq), (kv, columns, s.Skv)))
    found = torch.zeros(rows, columns, dtype=torch.bool)
    if len(qs) and len(kvs):
        code = lab.generated()
        keys = torch.tensor(list(kvs), dtype=torch.int32)
        inside = code.program.mask is None or code.mask(host.grid_rows([b], [h], qs), keys)
        found[: len(qs), : len(kvs)] = inside
    return {"bits": base64.b64encode(zlib.compress(packed(found))).decode()}


def packed(found: torch.Tensor) -> bytes:
    """Eight cells a byte, the first in the lowest bit; rows follow each other without a gap."""
    import numpy as np

    return np.packbits(found.reshape(-1).numpy(), bitorder="little").tobytes()
