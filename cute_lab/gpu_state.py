"""This machine's GPUs at this moment, by NVML, without a CUDA context: names, memory, clocks; and what cute_lab runs on them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from cute_lab import device, progress
from cute_lab.quantities import count
from cute_lab.targets import TARGETS

NO_GPU = (
    "No GPU here: code, check, mask and machine code work; only running and timing need one. "
    "A kernel on a GPU machine: pip install sshpyk, or jupyter lab --gateway-url=http://host:8888."
)
NO_NVML = "nvidia-ml-py is not installed in the kernel's environment: pip install nvidia-ml-py shows memory and clocks."
VERBS = ("measure", "retime")


def status() -> dict[str, Any]:
    gpus = list(_gpus())
    words = NO_GPU
    if gpus:
        words = f"{count(len(gpus), 'GPU')}: {', '.join(dict.fromkeys(g['name'] for g in gpus))}"
    elif importlib.util.find_spec("pynvml") is None:
        words = NO_NVML
    return {"words": words, "cuda": bool(gpus), "gpus": gpus, "targets": list(TARGETS), "running": progress.running()}


def target_of(major: int, minor: int) -> str:
    """The target that this compute capability runs; empty where there is none."""
    return next((name for name in TARGETS if name.rstrip("af") == f"sm_{major}{minor}"), "")


def _gpus() -> Iterator[dict[str, Any]]:
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # no package, no driver: nothing to tell
        return
    try:
        for i in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(i)

            def ask(name: str, *args: Any, handle: Any = handle) -> Any:
                try:
                    return getattr(nvml, name)(handle, *args)
                except nvml.NVMLError:  # a virtual GPU does not tell all
                    return None

            memory, use = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetUtilizationRates")
            name, version = ask("nvmlDeviceGetName"), ask("nvmlDeviceGetCudaComputeCapability")
            yield {
                "name": name.decode() if isinstance(name, bytes) else str(name),
                "target": target_of(*version) if version else "",
                "memory_used": memory.used if memory else None,
                "memory_total": memory.total if memory else None,
                "sm_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
                "utilization": use.gpu if use else None,
                "celsius": ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            } | {"watts": None if (power := ask("nvmlDeviceGetPowerUsage")) is None else power / 1000}
    finally:
        with contextlib.suppress(Exception):
            nvml.nvmlShutdown()


def stop() -> dict[str, bool]:
    """Ends what runs on a GPU; a benchmark keeps what it has measured."""
    stopped = [device.interrupt_all(verb) for verb in VERBS]
    return {"stopped": any(stopped)}
