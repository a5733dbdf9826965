"""What is running and how long is left, as one line that changes in place: in a notebook's output, or on a terminal."""

from __future__ import annotations

import sys
import time
import weakref
from typing import Any, TextIO

from IPython.core.getipython import get_ipython

EVERY = 0.2  # seconds between two changes: an output area redraws for each


def clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


_current: weakref.ref[Progress] | None = None  # the last one that has stepped


def running() -> dict[str, Any] | None:
    """What is under way in this process, and how many seconds are left: None where that can't be told yet."""
    found = _current() if _current is not None else None
    if found is None or not found.at[1]:
        return None
    done, text = found.at
    passed = time.perf_counter() - found.started
    return {"what": text, "left_seconds": passed / done * (found.parts - done) if done > 0 else None}


class Progress:
    """`parts` of about equal length; `step(done, text)` says which is under way. Silent when `quiet`."""

    def __init__(self, parts: int, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.parts, self.quiet, self.started, self.shown = parts, quiet, time.perf_counter(), 0.0
        self.stream = stream or sys.stderr
        self.handle: Any = None
        self.line = ""
        self.at: tuple[float, str] = (0.0, "")

    def step(self, done: float, text: str) -> None:
        global _current
        _current, self.at = weakref.ref(self), (done, text)
        if self.quiet:
            return
        passed = time.perf_counter() - self.started
        left = f", about {clock(passed / done * (self.parts - done))} left" if done > 0 else ""
        line = f"{int(done) + 1} of {self.parts} · {text} · {clock(passed)}{left}"
        if passed - self.shown >= EVERY or not self.line:
            self.shown, self.line = passed, line
            self._write(line)

    def _write(self, line: str) -> None:
        shell = get_ipython()
        if shell is not None and hasattr(shell, "kernel"):
            from IPython.display import display

            data = {"text/plain": line}
            if self.handle is None:
                self.handle = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                self.handle.update(data, raw=True)
        elif self.stream.isatty():
            print(f"\r\x1b[K{line[:110]}", end="", file=self.stream, flush=True)
        else:
            print(line, file=self.stream, flush=True)

    def end(self) -> None:
        """Nothing is under way any more."""
        self.at = (0.0, "")

    def close(self, text: str) -> None:
        """The last line: what was done."""
        self.end()
        if self.quiet:
            return
        self._write(text)
        if self.handle is None and self.stream.isatty():
            print(file=self.stream)
