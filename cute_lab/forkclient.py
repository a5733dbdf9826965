"""The client's end of the compile worker: a socket to `python -m cute_lab.worker`, started on first use, gone with this process."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOREIGN_SETTINGS = ("CUTE_DSL_", "FLASH_ATTENTION_", "FA_")  # would change the kernel without being in the key
GRACE = 20.0  # seconds for the worker to report that it stopped a child


@dataclass
class Ending:
    done: threading.Event = field(default_factory=threading.Event)
    started: float | None = None
    exit: int | None = None  # None when done: the worker died
    timed_out: bool = False


class Worker:
    """The client's end of cute_lab.worker: a socket, a thread that reads it, and the jobs under way."""

    def __init__(self) -> None:
        self.lock, self.closed, self.count = threading.RLock(), False, 0
        self.jobs: dict[int, Ending] = {}
        self.output = tempfile.TemporaryFile()  # noqa: SIM115
        self.socket, theirs = socket.socketpair()
        env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_SETTINGS)}
        path = [str(Path(__file__).resolve().parents[1]), *(str(Path(entry).resolve()) for entry in sys.path if entry)]
        # No GPU for the worker: it must be able to fork, which a CUDA context forbids.
        env |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        env |= {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(path)}
        command = [sys.executable, "-m", "cute_lab.worker", str(theirs.fileno()), str(os.getpid())]
        with theirs:  # a session of its own: Ctrl-C in a terminal is ours
            self.process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=env, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
            )  # fmt: skip
        threading.Thread(target=self._read, name="cute_lab-worker", daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError), self.socket.makefile("r") as lines:
            for message in map(json.loads, lines):
                job = self.jobs.get(message["id"])
                if message["event"] == "started" and job is not None:
                    job.started = time.monotonic()
                elif message["event"] == "done" and job is not None:
                    job.exit, job.timed_out = message["exit"], message["timed_out"]
                    job.done.set()
        with self.lock:
            self.closed = True
            self.socket.close()
            for job in self.jobs.values():
                job.done.set()

    def send(self, **message: Any) -> None:
        with self.lock, contextlib.suppress(OSError):  # a dead worker: the reader sees it as well
            self.socket.sendall(json.dumps(message).encode() + b"\n")

    def submit(self, folder: Path, timeout: float) -> int:
        with self.lock:
            self.count += 1
            self.jobs[self.count] = job = Ending()
            if self.closed:
                job.done.set()
            self.send(op="compile", id=self.count, dir=str(folder), timeout=timeout)
            return self.count

    def wait(self, number: int, timeout: float) -> Ending:
        job = self.jobs[number]
        while not job.done.wait(0.5):
            if job.started is not None and time.monotonic() > job.started + timeout + GRACE:
                job.timed_out = True
                self.process.kill()
        return job

    def forget(self, number: int) -> None:
        with self.lock:
            if not self.jobs.pop(number).done.is_set():
                self.send(op="cancel", id=number)

    def close(self) -> str:
        """Ends the worker and, through it, its children; returns what it printed."""
        self.process.kill()
        self.process.wait()
        if self.output.closed:
            return ""
        with self.output as output:
            output.seek(0)
            return output.read().decode(errors="replace")[-4000:]


_lock = threading.RLock()
_worker: Worker | None = None


def current() -> Worker:
    global _worker
    with _lock:
        if _worker is None or _worker.closed:
            _at_exit()
            _worker = Worker()
        return _worker


def _at_exit() -> None:
    if _worker is not None:
        _worker.close()


def _after_fork() -> None:
    """A forked copy of this process drops its hold on the parent's worker and starts its own."""
    global _worker, _lock
    _lock = threading.RLock()
    if _worker is not None:
        if not _worker.closed:
            os.close(_worker.socket.detach())
        _worker.process.returncode = 0  # not ours to wait for
        _worker = None


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
