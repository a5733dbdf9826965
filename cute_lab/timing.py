"""How a call is timed: device events around single calls, cold L2, launches hidden; the card's clocks; its own library's peak."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from cute_lab.environment import version

SAMPLE_MS, MOST = 20.0, 32  # a sample is the median of so many calls that they take about 20 ms, at most 32
HEAT_SECONDS = 1.0  # of dense products before the first round: the clock falls while a cold card warms up to its power limit
FLUSH_SHARE = 2.0  # the buffer that is written before each call, in sizes of the L2 cache
CLOCK_HZ = 2.0e9  # at most, of any card: torch.cuda._sleep counts cycles
PEAK = 8192  # rows, columns and inner length of the product that gives the card's own peak


@dataclass
class Clock:
    """Times calls on one device. On a CPU: the wall clock, and nothing is flushed."""

    device: torch.device
    buffer: torch.Tensor | None = None
    events: list[tuple[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.device.type == "cuda":
            size = int(FLUSH_SHARE * torch.cuda.get_device_properties(self.device).L2_cache_size)
            self.buffer = torch.empty(size, dtype=torch.int8, device=self.device)
            self.events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(MOST)]

    def calls(self, step: Callable[[], Any]) -> int:
        """How many calls make a sample; it also warms up."""
        return max(1, min(MOST, round(SAMPLE_MS * 1000 / max(self.sample(step, 2), 1.0))))

    def heat(self, step: Callable[[], Any]) -> None:
        """Brings the card to the power and temperature that it has under load."""
        end = time.perf_counter() + (HEAT_SECONDS if self.device.type == "cuda" else 0.0)
        while time.perf_counter() < end:
            for _ in range(20):
                step()
            torch.cuda.synchronize(self.device)

    def sample(self, step: Callable[[], Any], calls: int) -> float:
        """Microseconds of one call: the median over `calls`."""
        if self.device.type != "cuda":
            return 1e6 * _seconds(step)
        assert self.buffer is not None
        started = time.perf_counter()
        step()  # untimed: warms up, and tells how long the launch takes on the CPU
        launch = time.perf_counter() - started
        torch.cuda.synchronize(self.device)
        # The card waits while all calls are queued, so that no gap between launches is measured as the kernel's time.
        torch.cuda._sleep(int(min(launch * calls * 1.3, 0.05) * CLOCK_HZ))
        for start, end in self.events[:calls]:
            self.buffer.zero_()
            start.record()
            step()
            end.record()
        torch.cuda.synchronize(self.device)
        return float(statistics.median(1000 * start.elapsed_time(end) for start, end in self.events[:calls]))


def _seconds(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def words(device: torch.device) -> tuple[str, ...]:
    """The protocol, as it is written into the record."""
    if device.type != "cuda":
        return ("CPU: the wall clock around one call. It says nothing about a GPU.",)
    l2 = torch.cuda.get_device_properties(device).L2_cache_size / 2**20
    return (
        f"Device events around single calls; before each, {FLUSH_SHARE:g} x {l2:.0f} MiB are written, so L2 is cold.",
        f"Before the first round the card is heated by {HEAT_SECONDS:g} s of dense products.",
        f"A sample is the median of up to {MOST} calls (about {SAMPLE_MS:g} ms); the launches are queued behind a waiting card.",
    )


@dataclass
class Sensors:
    """Clocks, power and temperature by NVML; zeros where it does not answer."""

    device: torch.device
    nvml: Any = None
    handle: Any = None

    def __post_init__(self) -> None:
        if self.device.type != "cuda":
            return
        try:
            self.nvml = importlib.import_module("pynvml")
            self.nvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(self.device).uuid}"
            self.handle = self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        except Exception:  # no NVML, or one that hides this card: the zeros say so
            self.nvml = None

    def read(self) -> tuple[float, float, float, float]:
        """SM MHz, memory MHz, watts, degrees Celsius."""
        if self.nvml is None:
            return 0.0, 0.0, 0.0, 0.0
        n, h = self.nvml, self.handle
        questions: tuple[Callable[[], float], ...] = (
            lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
            lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM),
            lambda: n.nvmlDeviceGetPowerUsage(h) / 1000,
            lambda: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
        )
        return tuple(self._ask(q) for q in questions)  # type: ignore[return-value]

    def _ask(self, question: Callable[[], float]) -> float:
        try:
            return float(question())
        except self.nvml.NVMLError:
            return 0.0


def driver() -> str:
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        return str(nvml.nvmlSystemGetDriverVersion())
    except Exception:  # no NVML: the version is not known
        return "unknown"


@dataclass(frozen=True)
class Product:
    """A dense product by the card's own library: its ceiling. `flop` operations a step."""

    step: Callable[[], Any]
    flop: float
    what: str


def peak_product(device: torch.device) -> Product | None:
    """bf16, with normal inputs. None on a CPU: nothing there is compared with it."""
    if device.type != "cuda":
        return None
    g = torch.Generator(device).manual_seed(1)
    a = torch.randn(PEAK, PEAK, device=device, dtype=torch.bfloat16, generator=g)
    b = torch.randn(PEAK, PEAK, device=device, dtype=torch.bfloat16, generator=g) / PEAK**0.5
    out = torch.empty_like(a)
    return Product(lambda: torch.mm(a, b, out=out), 2.0 * PEAK**3, f"cuBLAS {PEAK}³ bf16, A ~ N(0, 1), B ~ N(0, 1/{PEAK})")


def described(device: torch.device) -> dict[str, Any]:
    """What a benchmark says of where and how it was measured."""
    versions = {name: version(name) for name in ("torch", "triton", "nvidia-cutlass-dsl", "flash-attn-4")}
    if device.type == "cuda":
        versions |= {"CUDA": str(torch.version.cuda), "driver": driver()}
        return {"name": torch.cuda.get_device_name(device), "versions": versions, "protocol": words(device)}
    return {"name": "CPU: no GPU was used", "versions": versions, "protocol": words(device)}
