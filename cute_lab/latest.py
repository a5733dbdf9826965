"""Work that only the newest request deserves: one place for what waits, a thread while there is work, none while there is none."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outdated = Callable[[], bool]
AT_EXIT = 5.0  # seconds for a step under way: torch must not run while the interpreter goes away


class Latest(Generic[Item]):
    """`work(item, outdated)` on a thread of its own. A newer item takes the place of a waiting one; between its steps `work` asks
    `outdated()` and returns where that is so. What it raises goes to `failed`, and the next item is worked on as ever."""

    def __init__(self, name: str, work: Callable[[Item, Outdated], None], failed: Callable[[BaseException], None]) -> None:
        self._name, self._work, self._failed = name, work, failed
        self._change = threading.Condition()
        self._waiting: list[Item] = []  # one at most
        self._thread: threading.Thread | None = None
        self._turn = 0  # counts what makes older work outdated
        self._closed = False
        self.done = 0  # items whose work was begun
        _living.add(self)

    def put(self, item: Item) -> None:
        with self._change:
            if self._closed:
                return
            self._turn += 1
            self._waiting[:] = [item]
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Forgets what waits; work under way is outdated."""
        with self._change:
            self._turn += 1
            self._waiting.clear()

    def idle(self, timeout: float | None = None) -> bool:
        """Waits until there is no work; False where it took longer."""
        with self._change:
            return self._change.wait_for(lambda: self._thread is None, timeout)

    def close(self, timeout: float | None = None) -> bool:
        """No work any more. From its own thread this does not wait."""
        with self._change:
            self._closed = True
            self._turn += 1
            self._waiting.clear()
            if self._thread is threading.current_thread():
                return True
        return self.idle(timeout)

    def _run(self) -> None:
        while True:
            with self._change:
                if not self._waiting:
                    self._thread = None
                    self._change.notify_all()
                    return
                item, turn = self._waiting.pop(), self._turn
                self.done += 1
            try:
                self._work(item, lambda turn=turn: self._turn != turn)  # type: ignore[misc]
            except BaseException as error:  # shown to the person, whatever it is: nobody else would see it
                with contextlib.suppress(Exception):  # a panel that was closed in between
                    self._failed(error)
            del item  # while nothing is to do, nothing is kept alive


class Brisk:
    """While a thread is inside, all threads take turns ten times as often as Python's own 5 ms: where two have short things to do one
    after the other, as a kernel's messages and a picture that follows a hand, each waits for the other's turn to end."""

    TURN = 0.0005  # seconds; from a slider to its mask at S = 64k it took 86 ms instead of 99, two cores, benchmarks/frontend.py

    def __init__(self) -> None:
        self._lock, self._inside, self._before = threading.Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, self.TURN))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._before)


brisk = Brisk()
_living: weakref.WeakSet[Latest] = weakref.WeakSet()  # type: ignore[type-arg]


@atexit.register
def _at_exit() -> None:
    end = time.monotonic() + AT_EXIT
    for latest in list(_living):
        latest.close(max(0.0, end - time.monotonic()))
