"""A new kernel runs in another process first: one that hangs, crashes or computes something else never enters this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from cute_lab import bench, parcel
from cute_lab.errors import DeviceError, GeometryError
from cute_lab.fa4 import Kernel

if TYPE_CHECKING:
    from cute_lab.lab import Lab

_passed: set[tuple[str, ...]] = set()


def key(kernel: Kernel) -> tuple[str, ...]:
    """What is compiled: the texts of both directions, the geometry and the card."""
    backward = "" if isinstance(kernel.backward, GeometryError) else kernel.backward.text
    return (kernel.forward.text, backward, str(kernel.shape), kernel.note, str(kernel.device))


def once(lab: Lab, kernel: Kernel, where: torch.device) -> None:
    """Runs and checks this text at this shape, unless it has passed before. Raises DeviceError where it failed."""
    if key(kernel) in _passed:
        return
    name = f"cuda:{where.index or 0}"
    way = ("forward",) if isinstance(kernel.backward, GeometryError) else ("forward", "forward+backward")
    request = bench.request_of(lab, lab.shape, parcel.pack((lab.score_mod, lab.mask_mod)), ("cute_lab",), bench.directions(way), 0, 0, name)
    found = bench.measure([request], "lab.run")  # says what it does: the first run of a text takes seconds
    bad = [t for t in found.timings if t.status in ("wrong", "failed")]
    if bad:
        raise DeviceError(
            f"the kernel did not pass its trial: {bad[0].status}: {bad[0].reason}",
            detail="It was compiled and run in another process, on random inputs of this shape, and compared with torch in float32.",
            example="lab.run(q, k, v, tried=False)    # runs it here all the same",
        )
    _passed.add(key(kernel))
