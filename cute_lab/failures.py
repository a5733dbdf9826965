"""What an exception of torch's or of a kernel says, in a sentence; and whether its process is lost with it."""

from __future__ import annotations

import re

import torch

from cute_lab.errors import CuteLabError

COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def reason(error: BaseException) -> str:
    """An exception in a sentence."""
    if isinstance(error, torch.OutOfMemoryError):
        return "out of memory"
    if isinstance(error, CuteLabError):
        return error.summary
    lines = [line.strip() for line in COLOUR.sub("", str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def is_fatal(error: BaseException) -> bool:
    """After this error the CUDA context is unusable: the process must end."""
    text = str(error)
    return (
        isinstance(error, RuntimeError) and not isinstance(error, torch.OutOfMemoryError) and ("CUDA error" in text or "cudaError" in text)
    )
