"""The process that owns a GPU (`python -m cute_lab.device_worker FD`): runs, checks and times; may crash or hang, costs no kernel.

Messages are pickles with their length before them. In: (verb, payload). Out: (event, value); a job ends with "done", "stopped"
(after SIGINT) or "error". Whatever compilers and kernels print goes to this process's output, which the client keeps.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from typing import Any

HEADER = struct.Struct("!Q")


def send(out: socket.socket, message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    out.sendall(HEADER.pack(len(data)) + data)


def receive(source: socket.socket) -> Any:
    """None when the other end is gone."""
    head = _exactly(source, HEADER.size)
    data = _exactly(source, HEADER.unpack(head)[0]) if head is not None else None
    return None if data is None else pickle.loads(data)


def _exactly(source: socket.socket, size: int) -> bytes | None:
    parts, left = [], size
    while left:
        part = source.recv(min(left, 1 << 20))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def work(verb: str, payload: Any, emit: Any) -> Any:
    if verb == "measure":
        from cute_lab import measure

        return measure.run(payload, emit)
    if verb == "retime":
        from cute_lab import retime

        return retime.run(payload)
    if verb == "ping":  # for tests: what a job can do to its process
        jobs: dict[str, Any] = {"echo": str, "die": os.abort, "hang": lambda: time.sleep(3600), "raise": lambda: 1 / 0}
        return jobs[payload]()
    raise ValueError(verb)


def follow_parent(parent: int) -> None:
    """Ends this process when the client is gone, also in the middle of a kernel that never ends."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=follow_parent, args=(os.getppid(),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (message := receive(channel)) is not None:
        verb, payload = message
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            result = work(verb, payload, lambda event, value: send(channel, (event, value)))
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            send(channel, ("done", result))
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            send(channel, ("stopped", None))
        except BaseException as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            from cute_lab.failures import is_fatal, reason

            text = "".join(traceback.format_exception(error))
            sys.stderr.write(text)
            fatal = is_fatal(error)
            send(channel, ("error", {"reason": reason(error), "traceback": text, "fatal": fatal, "error": _picklable(error)}))
            if fatal:
                os._exit(2)


def _picklable(error: BaseException) -> BaseException | None:
    """A user's mistake arrives as itself; its place in the cell is part of it."""
    from cute_lab.errors import CuteLabError

    if not isinstance(error, CuteLabError):
        return None
    try:
        pickle.loads(pickle.dumps(error))
    except (pickle.PicklingError, TypeError, AttributeError):  # it holds something of this process: its words go instead
        return None
    return error


if __name__ == "__main__":
    main()
