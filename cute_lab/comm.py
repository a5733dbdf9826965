"""The comm "cute_lab": what a front end asks of the kernel while a person types, looks and waits.

{id, method, params} -> {id, result} or {id, error: {message}}; nothing that goes wrong ends it. JupyterLab sends it over a subshell, so a
cell that runs does not hold it up; a kernel without subshells answers when the cell is over. It reads the notebook's variables and
changes none.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import cute_lab
from cute_lab.record import SCHEMA

TARGET = "cute_lab"
PROTOCOL = 1
ERROR_CAP = 2000  # characters of one message
Params = Mapping[str, Any]
Method = Callable[[Params, Mapping[str, Any]], Any]


# Each imports what it needs: opening a notebook loads no torch.
def diagnose(params: Params, namespace: Mapping[str, Any]) -> Any:
    from cute_lab import assist

    return assist.look(str(params["text"]), namespace).to_json()


def hover(params: Params, namespace: Mapping[str, Any]) -> Any:
    from cute_lab import hover

    return hover.at(str(params["text"]), namespace, int(params["line"]))


def complete(params: Params, namespace: Mapping[str, Any]) -> Any:
    from cute_lab import hover

    return hover.complete(str(params["text"]), namespace, int(params["line"]), int(params["column"]))


def cells(params: Params, namespace: Mapping[str, Any]) -> Any:
    from cute_lab import cells

    sizes = {name: int(params[name]) for name in ("b", "h", "q", "kv", "rows", "columns")}
    return cells.bits(str(params["of"]), **sizes, step=int(params.get("step", 1)))


def status(params: Params, namespace: Mapping[str, Any]) -> Any:
    from cute_lab import gpu_state

    return gpu_state.status()


def gallery(params: Params, namespace: Mapping[str, Any]) -> Any:
    from cute_lab import gallery

    return gallery.as_json()


def stop(params: Params, namespace: Mapping[str, Any]) -> Any:
    from cute_lab import gpu_state

    return gpu_state.stop()


METHODS: dict[str, Method] = {f.__name__: f for f in (diagnose, hover, complete, cells, status, gallery, stop)}


def answer(data: Any, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to one message, whatever it holds."""
    asked = data if isinstance(data, dict) else {}
    name, params = asked.get("method"), asked.get("params")
    try:
        if name not in METHODS:
            raise LookupError(f"cute_lab {cute_lab.__version__} knows no method {name!r}; it knows {', '.join(METHODS)}")
        return {"id": asked.get("id"), "result": METHODS[name](params if isinstance(params, dict) else {}, namespace)}
    except BaseException as error:  # a KeyboardInterrupt too: the front end waits for an answer
        return {"id": asked.get("id"), "error": {"message": _message(error)}}


def _message(error: BaseException) -> str:
    from cute_lab.errors import CuteLabError

    if isinstance(error, CuteLabError):
        return str(error)[:ERROR_CAP]
    if isinstance(error, KeyError):
        return f"the message has no {error}"
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({last[0].name}, line {last[0].lineno})" if last else ""
    return f"{type(error).__name__}: {error}{where}"[:ERROR_CAP]


def register(shell: Any) -> None:
    manager = _manager(shell)
    if manager is not None:
        manager.register_target(TARGET, lambda comm, _: _opened(comm, shell))


def unregister(shell: Any) -> None:
    """Open comms are closed: their front ends fall back on what works without a kernel."""
    manager = _manager(shell)
    if manager is not None:
        manager.targets.pop(TARGET, None)
        for comm in [c for c in list(manager.comms.values()) if c.target_name == TARGET]:
            with contextlib.suppress(Exception):
                comm.close()


def _manager(shell: Any) -> Any:
    return getattr(getattr(shell, "kernel", None), "comm_manager", None)


def _opened(comm: Any, shell: Any) -> None:
    one = threading.Lock()  # messages that came by several shells are answered one after the other

    def send(data: dict[str, Any]) -> None:
        comm.send(data)
        # ipykernel 7.4 hands a comm's next message to the shell that last sent with it, and not to the one that the front end names
        vars(comm).pop("_reply_subshell_id", None)

    def asked(message: dict[str, Any]) -> None:
        with one:
            send(answer(message["content"].get("data"), shell.user_ns))

    comm.on_msg(asked)
    send({"hello": {"protocol": PROTOCOL, "cute_lab": cute_lab.__version__, "schema": SCHEMA}})
