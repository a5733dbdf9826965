"""The stamp of a record: what ran it, with nothing that names the person, the host or a folder."""

from __future__ import annotations

import importlib
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import cute_lab


def now() -> str:
    """UTC to the millisecond: two runs of one variant are two records."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def environment() -> dict[str, str]:
    packages = ("torch", "nvidia-cutlass-dsl", "flash-attn-4")
    here = {"python": platform.python_version(), "machine": platform.machine(), "device": device()}
    return {"cute_lab": cute_lab.__version__, **{package: version(package) for package in packages}, **here}


def device() -> str:
    """The first GPU's name, or words that say why there is none."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        seen = Path("/dev/nvidia0").exists()
        return "GPU of unknown name: nvidia-ml-py is not installed" if seen else "cpu: no GPU"
    try:
        nvml.nvmlInit()
        return str(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(0)))
    except nvml.NVMLError:
        return "cpu: no GPU"
