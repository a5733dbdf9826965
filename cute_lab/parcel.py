"""Mods on their way to another process: code by value, captured tensors apart (they are put on the receiver's device), cell texts."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import pickle
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from cute_lab.capture import Mod, captured
from cute_lab.errors import DeviceError
from cute_lab.freshness import of_library
from cute_lab.tables import moved

_count = itertools.count(1)
KEPT = 64  # modules of the newest parcels; an older one is not compiled again


@dataclass(frozen=True)
class Parcel:
    code: bytes
    tensors: tuple[torch.Tensor, ...]  # on the host
    files: dict[str, str]  # texts that are on no disk: cells


def _pickler(out: io.BytesIO, tensors: list[torch.Tensor]) -> Any:
    import cloudpickle

    index: dict[int, int] = {}

    def code(obj: types.CodeType) -> Any:
        """With its file's name, which cloudpickle leaves out: the user's lines are found by it."""
        make, arguments, *rest = cloudpickle.CloudPickler.dispatch_table[types.CodeType](obj)
        return (make, tuple(obj.co_filename if a == "<dynamic-code>" else a for a in arguments), *rest)

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap({types.CodeType: code}, cloudpickle.CloudPickler.dispatch_table)

        def persistent_id(self, obj: object) -> int | None:
            if not isinstance(obj, torch.Tensor):
                return None
            if id(obj) not in index:  # pickle asks anew for each mention
                index[id(obj)] = len(tensors)
                tensors.append(obj.detach())
            return index[id(obj)]

    return Pickler(out)


@contextlib.contextmanager
def by_value() -> Iterator[None]:
    """The user's own modules travel as they are now: the other process would import them as they were written."""
    import cloudpickle

    here = __name__.partition(".")[0]  # this package is on both sides, installed or not
    named = [(name, m) for name, m in list(sys.modules.items()) if isinstance(m, types.ModuleType) and name == m.__name__]
    users = [(name, m) for name, m in named if getattr(m, "__file__", None) and name != "__main__" and not of_library(name)]
    own = [m for name, m in users if name.partition(".")[0] not in (here, "cloudpickle")]  # nor can the pickler pickle itself
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def pack(mods: Sequence[Mod | None]) -> Parcel:
    """Raises DeviceError with the reason where a captured object can't travel."""
    out, tensors = io.BytesIO(), list[torch.Tensor]()
    names = {name for mod in mods if mod is not None for name in captured(mod).files}
    try:
        with by_value():
            _pickler(out, tensors).dump(tuple(mods))
    except Exception as error:
        raise DeviceError(
            f"the mods can't be sent to the process on the GPU: {error}",
            detail="They capture something that only this process has: an open file, a lock, a generator.",
            example="capture tensors, numbers and functions",
        ) from None
    files = {name: "".join(linecache.getlines(name)) for name in names if not Path(name).is_file()}
    return Parcel(out.getvalue(), tuple(moved(x, "cpu", copy=True) for x in tensors), files)


def unpack(parcel: Parcel, device: torch.device) -> tuple[Mod | None, ...]:
    for name, text in parcel.files.items():
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    placed = [moved(x, device) for x in parcel.tensors]

    scopes: dict[int, dict[str, Any]] = {}

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, index: int) -> torch.Tensor:
            return placed[index]

        def find_class(self, module: str, name: str) -> Any:
            found = super().find_class(module, name)
            if name != "_make_function":
                return found

            def make(code: types.CodeType, scope: dict[str, Any], *rest: Any) -> Any:
                scopes[id(scope)] = scope
                return found(code, scope, *rest)

            return make

    load: Callable[[], tuple[Mod | None, ...]] = Unpickler(io.BytesIO(parcel.code)).load
    mods = load()
    for scope in scopes.values():
        _as_module(scope)
    return mods


def _as_module(scope: dict[str, Any]) -> None:
    """Dynamo looks a function's globals up in the module that they name; `__main__` is another one here."""
    name = f"cute_lab_parcel_{next(_count)}"
    scope["__name__"] = name
    module = types.ModuleType(name)
    vars(module).update(scope)
    sys.modules[name] = module
    sys.modules.pop(f"cute_lab_parcel_{int(name.rpartition('_')[2]) - KEPT}", None)
