"""What a panel shows of the GPU: the kernel run again with the numbers of this moment, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cute_lab import bench, device, parcel
from cute_lab.errors import DeviceError
from cute_lab.quantities import count
from cute_lab.retime import Retimed

if TYPE_CHECKING:
    from cute_lab.lab import Lab

DEVICE = "cuda:0"


def words(lab: Lab, found: Retimed) -> str:
    flop = 4.0 * lab.shape.D * lab.blocks().kept_cells
    built = f"{count(found.compiled, 'kernel')} compiled" if found.compiled else "nothing was compiled"
    speed = f"{found.us / 1000:.3g} ms, {flop / found.us / 1e6:.0f} TFLOP/s over kept cells"
    return f"{speed} on {found.device} (one call, {found.note}); {built}"


def on_gpu(lab: Lab) -> str:
    """Times one forward call at the lab's shape and numbers in the process on the GPU; random inputs. Raises DeviceError."""
    packed = parcel.pack((lab.score_mod, lab.mask_mod))
    request = bench.request_of(lab, lab.shape, packed, ("cute_lab",), ("forward",), 0, 0, DEVICE)
    for event, value in device.current(DEVICE).run("retime", request):
        if event == "done":
            return words(lab, value)
        if event == "error":
            raise value["error"] or DeviceError(f"the kernel did not run: {value['reason']}")
    return "stopped"


def stop() -> None:
    """Ends what the process on the GPU is doing for a panel."""
    device.interrupt(DEVICE, "retime")


def default() -> tuple[Callable[[Lab], str] | None, Callable[[], None] | None]:
    """How a panel times and stops on this machine; None where there is no GPU."""
    return (on_gpu, stop) if device.available() else (None, None)
