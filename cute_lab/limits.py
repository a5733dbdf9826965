"""What code that runs while a person types may take: two seconds, 64 MB of new tensors, and no draw of the notebook's random numbers.

The work runs in a thread of its own. Dispatch modes are of a thread, so a cell that runs beside it sees nothing of them, and an
exception set from outside ends Python code there that does not end by itself.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SECONDS = 2.0
PATIENCE = 0.5  # seconds for the thread to end once it is told to
BYTES = 64 << 20
SMALL = 1 << 11  # elements: what two inputs below it make is small enough not to be measured before it is made
T = TypeVar("T")


class Exceeded(BaseException):
    """No Exception: the user's `except Exception` does not hold it up."""


class Modest(TorchDispatchMode):
    """Lets no tensor be made that is too large, and draws random numbers from a generator of its own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made = 0
        self.generator = torch.Generator().manual_seed(0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if torch.Tag.nondeterministic_seeded in func.tags:
            func, kwargs = self._seeded(func, kwargs)
        if max((t.numel() for t in tensors), default=SMALL) >= SMALL and not func.is_view:
            self._measure(func, args, kwargs)
        return func(*args, **kwargs)

    def _seeded(self, func: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if kwargs.get("generator") is not None:
            return func, kwargs
        packet = func.overloadpacket
        for name in (func._overloadname, f"{func._overloadname}_generator", "generator"):
            found = getattr(packet, name, None) if name in packet.overloads() else None
            if found is not None and any(a.name == "generator" for a in found._schema.arguments):
                return found, {**kwargs, "generator": self.generator}
        raise Exceeded(f"torch.{func._schema.name.split('::')[1]} draws from the notebook's random numbers")

    def _measure(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Its size on torch's meta device, where nothing is allocated."""
        given = {**kwargs, **({"device": "meta"} if "device" in kwargs or not any(isinstance(a, torch.Tensor) for a in args) else {})}
        given.pop("generator", None)
        given.pop("pin_memory", None)
        meta = [a.to("meta") if isinstance(a, torch.Tensor) else a for a in args]
        try:
            out = func(*meta, **given)
        except Exception:  # its size depends on values, or its real call fails too; such results are no larger than what went in
            return
        for t in out if isinstance(out, (list, tuple)) else [out]:
            if isinstance(t, torch.Tensor) and not any(t is m for m in meta):
                self.made += t.numel() * t.element_size()
        if self.made > BYTES:
            raise Exceeded(f"its tensors take more than {BYTES >> 20} MB")


_lost: set[threading.Thread] = set()


def within(work: Callable[[], T], seconds: float = SECONDS) -> T:
    """work()'s result or exception; Exceeded where it takes too long. What can't be ended (a long call of C) keeps later work out."""
    _lost.difference_update([t for t in _lost if not t.is_alive()])
    if _lost:
        raise Exceeded("an earlier version of the cell is still at work")
    done: list[Any] = [None, None]

    def run() -> None:
        try:
            done[0] = work()
        except BaseException as error:
            done[1] = error

    thread = threading.Thread(target=run, name="cute_lab-typing", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        until = time.monotonic() + PATIENCE
        while thread.is_alive() and time.monotonic() < until:
            _interrupt(thread)
            thread.join(0.05)
        if thread.is_alive():
            _lost.add(thread)
        raise Exceeded(f"it takes more than {seconds:g} s")
    if done[1] is not None:
        raise done[1]
    result: T = done[0]
    return result


def _interrupt(thread: threading.Thread) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Exceeded))
