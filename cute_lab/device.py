"""The client's end of the process on a GPU: one per device, started on first use, ended by Stop, a crash or a hang."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cute_lab.device_worker import receive, send
from cute_lab.errors import DeviceCrashed, DeviceHung, DeviceMissing, OptionError
from cute_lab.forkclient import FOREIGN_SETTINGS

STOP_SECONDS = 0.7  # for the process to end its round after Stop; then it is killed
SILENCE = 600.0  # seconds without a word: tuning a Triton kernel may take minutes
Event = tuple[str, Any]


class Process:
    """`jobs` run one at a time; `lock` keeps two threads of a notebook (a panel and a cell) from mixing theirs."""

    def __init__(self, device: str) -> None:
        self.device, self.lock, self.dead = device, threading.Lock(), False
        self.job = ""  # the verb under way
        self.output = tempfile.TemporaryFile()  # noqa: SIM115
        self.socket, theirs = socket.socketpair()
        env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_SETTINGS)}
        path = [str(Path(__file__).resolve().parents[1]), *(str(Path(entry).resolve()) for entry in sys.path if entry)]
        env |= {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)), "PYTHONFAULTHANDLER": "1"}
        with theirs:  # a session of its own: Ctrl-C in a terminal is ours, and it passes Stop on
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cute_lab.device_worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], env=env, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
            )  # fmt: skip

    def run(self, verb: str, payload: Any, silence: float = SILENCE) -> Iterator[Event]:
        """The job's events; the last is ("done", result), ("stopped", None) or ("error", report).

        Raises DeviceCrashed or DeviceHung. A KeyboardInterrupt in the consumer becomes the event "stopped".
        """
        ended = False
        with self.lock:
            try:
                self.socket.settimeout(silence)
                self.job = verb
                send(self.socket, (verb, payload))
                while True:
                    message = receive(self.socket)
                    if message is None:
                        raise self.crash()
                    ended = message[0] in ("done", "stopped", "error")
                    if ended:
                        self.job = ""
                        self.dead = bool(message[0] == "error" and message[1]["fatal"])
                    yield message
                    if ended:
                        return
            except KeyboardInterrupt:
                yield from self.stop()
            except TimeoutError:
                self.close()
                raise DeviceHung(
                    f"the process on {self.device} said nothing for {silence:g} s and was ended", detail="A kernel or a compiler hangs."
                ) from None
            except (BrokenPipeError, ConnectionResetError):
                raise self.crash() from None
            except GeneratorExit:  # the consumer went away; if it did so in the middle of a job, nobody will read the rest
                if not ended:
                    self.close()
                raise

    def stop(self) -> Iterator[Event]:
        """Lets the running round end; what does not end in time is killed. The rows that arrive meanwhile are passed on."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + STOP_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                message = receive(self.socket)
            except (TimeoutError, OSError):
                break
            if message is None:
                break
            if message[0] in ("done", "stopped", "error"):  # whatever its last word: the person has stopped what would follow
                yield "stopped", None
                return
            yield message
        self.close()
        yield "stopped", None

    def crash(self) -> DeviceCrashed:
        log = self.close()
        code = self.process.returncode
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        last = next((line for line in reversed(lines) if "error" in line.lower()), lines[-1] if lines else "")
        return DeviceCrashed(f"the process on {self.device} died ({how})", detail=f"Its last words: {last[:300]}" if last else "")

    def close(self) -> str:
        """Kills it with all that it started; returns the end of what it printed."""
        self.dead = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.socket.close()
        if self.output.closed:
            return ""
        with self.output as output:
            output.seek(0)
            return output.read().decode(errors="replace")[-8000:]


_lock = threading.RLock()
_processes: dict[str, Process] = {}


def current(device: str = "cuda:0") -> Process:
    """The process of this device, started if there is none."""
    with _lock:
        found = _processes.get(device)
        if found is None or found.dead or found.process.poll() is not None:
            if found is not None:
                found.close()
            _processes[device] = found = Process(device)
        return found


def interrupt(device: str, verb: str) -> None:
    """Stops this device's job if it is of that kind: what another cell runs there is not ours to end."""
    found = _processes.get(device)
    if found is not None and found.job == verb:
        with contextlib.suppress(ProcessLookupError):
            found.process.send_signal(signal.SIGINT)


def interrupt_all(verb: str) -> bool:
    """The same on every device; was there such a job?"""
    busy = [name for name, process in list(_processes.items()) if process.job == verb]
    for name in busy:
        interrupt(name, verb)
    return bool(busy)


def available() -> bool:
    """Is there an NVIDIA GPU that torch can use? Asked without a CUDA context in this process."""
    import torch

    return torch.cuda.is_available()


def chosen(device: str | None) -> str:
    """The device's full name, or DeviceMissing with what works here."""
    name = device or "cuda:0"
    name = "cuda:0" if name == "cuda" else name
    if not re.fullmatch(r"cpu|cuda:\d+", name):
        raise OptionError(
            f"there is no device {device!r}", detail="It is cuda:0, another card's number, or cpu.", example="device='cuda:0'"
        )
    if name.startswith("cuda") and not available():
        raise DeviceMissing(
            "there is no NVIDIA GPU here that torch can use: nothing was run or timed",
            detail="Without a GPU the lab generates, verifies, maps and compiles; only running FlashAttention-4 and timing need one.",
            example="lab.bench().save('record.json')    # on the GPU machine; then cute_lab.load('record.json') here",
        )
    return name


def close_all() -> None:
    with _lock:
        for process in _processes.values():
            process.close()
        _processes.clear()


def _after_fork() -> None:
    """A forked copy of this process has no claim on the parent's GPU processes."""
    global _lock
    _lock = threading.RLock()
    for process in _processes.values():
        with contextlib.suppress(OSError):
            os.close(process.socket.detach())
        process.process.returncode = 0
    _processes.clear()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all)
