"""Fork server (`python -m cute_lab.worker FD PARENT`): imports torch, CuTeDSL and FA4 once, forks to compile.

Protocol, JSON lines over the inherited socket FD (never stdout, which compilers write to); jobs and results are files:
    in   {"op": "compile", "id": n, "dir": path, "timeout": s}      {"op": "cancel", "id": n}
    out  {"event": "started", "id": n}     {"event": "done", "id": n, "exit": code or -signal, "timed_out": bool}
A job's folder holds job.json (from the client); the child adds log.txt and either result.json.gz or error.json.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gzip
import hashlib
import json
import os
import re
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cute_lab import ptx, sass
from cute_lab.brisk import rewritten_early
from cute_lab.crosscompile import compile_cubin, folded_places, preload, tile_of
from cute_lab.targets import TARGETS

MAX_RUNNING = 2
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PR_SET_PDEATHSIG = 1
DONE = object()


def short_message(error: BaseException) -> str:
    """The cause in a sentence: DSL errors are pages of coloured text with notes and suggestions around it."""
    text = ANSI.sub("", str(error)).strip()
    if not text or isinstance(error, (LookupError, AttributeError, NameError)):
        return f"{type(error).__name__}: {text}"
    backend = re.search(r"extra log:\s*(.*)", text)
    if backend is not None:
        return "libNVVM: " + re.sub(r"^<.*?>\(\d+\)\s*(Error: )?", "", backend.group(1))
    # The cause is an indented `error:` item, wrapped over deeper lines; without items the first line says it.
    item = re.search(r"^ +error: (.*(?:\n {4,}\S.*)*)", text, re.MULTILINE)
    cause = re.sub(r"\s+", " ", item.group(1)) if item is not None else text.splitlines()[0]
    cause = re.sub(r'^IR verification failed: error: .*?\("[^"]*":\d+:\d+\): ', "invalid IR: ", cause)
    return re.sub(r"^error: | \(<cute_lab:.*?>, line \d+\)$", "", cause)[:400]


def generated_line(error: BaseException, filename: str) -> int:
    """The line of the generated text that the error is about, 0 where it has none."""
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    place = re.search(re.escape(filename) + r'"?[:(](\d+)', str(error))
    if isinstance(error, SyntaxError) and error.filename == filename:
        return error.lineno or 0
    return (frames[-1] or 0) if frames else int(place.group(1)) if place is not None else 0


def child(folder: Path) -> int:
    """The forked process: one job, one target, its output in the job's log."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable(2)
    job = json.loads((folder / "job.json").read_text())
    filename = f"<cute_lab:{hashlib.sha256(job['spec']['source'].encode()).hexdigest()[:12]}>"
    spec, target, direction, start = job["spec"], TARGETS[job["target"]], job["direction"], time.perf_counter()
    try:
        kernel, made = compile_cubin(spec, target, direction, filename, folder)
        moved = sass.moved_lines(spec, folded_places())
        result = sass.analyse(made.__cubin__, filename, target, direction, spec, tile_of(kernel), moved)
        result["ptx_map"] = ptx.line_map(made.__ptx__, filename, moved)
    except BaseException as error:
        report = {"message": short_message(error), "line": generated_line(error, filename)}
        report["traceback"] = ANSI.sub("", traceback.format_exc())
        (folder / "error.json").write_text(json.dumps(report))
        return 1
    result.update(ptx=made.__ptx__, target=target.name, direction=direction, seconds=time.perf_counter() - start)
    (folder / "result.json.gz").write_bytes(gzip.compress(json.dumps(result).encode(), 6))
    return 0


@dataclass
class Running:
    pid: int
    deadline: float
    timed_out: bool = False

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # the group: nvdisasm too


class Server:
    """One thread: reads jobs, forks at most MAX_RUNNING at once, reports their ends, and ends with its client."""

    def __init__(self, client: socket.socket, parent: int) -> None:
        self.client, self.parent, self.buffer = client, parent, b""
        self.waiting: deque[dict[str, Any]] = deque()
        self.running: dict[int, Running] = {}

    def send(self, **message: Any) -> None:
        self.client.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> bool:
        """False when the client is gone."""
        data = self.client.recv(1 << 16)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for message in map(json.loads, lines):
            if message["op"] == "compile":
                self.waiting.append(message)
            else:
                self.waiting = deque(job for job in self.waiting if job["id"] != message["id"])
                if message["id"] in self.running:
                    self.running[message["id"]].kill()
        return bool(data)

    def start(self, job: dict[str, Any]) -> None:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self.client.close()
                code = child(Path(job["dir"]))
            finally:
                os._exit(code)
        with contextlib.suppress(OSError):  # it may have ended already
            os.setpgid(pid, pid)
        self.running[job["id"]] = Running(pid, time.monotonic() + job["timeout"])
        self.send(event="started", id=job["id"])

    def reap(self) -> None:
        for number, run in list(self.running.items()):
            pid, status = os.waitpid(run.pid, os.WNOHANG)
            if pid != 0:
                del self.running[number]
                self.send(event="done", id=number, exit=os.waitstatus_to_exitcode(status), timed_out=run.timed_out)
            elif time.monotonic() > run.deadline and not run.timed_out:
                run.timed_out = True
                run.kill()

    def serve(self) -> None:
        ahead: Iterator[None] | None = rewritten_early()
        while os.getppid() == self.parent:  # the socket alone is no sign of life: a fork of the client keeps it open
            while self.waiting and len(self.running) < MAX_RUNNING:
                self.start(self.waiting.popleft())
            idle = ahead is not None and not self.running
            if select.select([self.client], [], [], 0 if idle else 0.03 if self.running else 0.5)[0]:
                if not self.receive():
                    return
            elif idle and ahead is not None and next(ahead, DONE) is DONE:
                ahead = None
            self.reap()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's; it cancels
    server = Server(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    try:
        preload()
        server.serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the client is gone
    finally:
        for run in server.running.values():
            run.kill()


if __name__ == "__main__":
    main()
