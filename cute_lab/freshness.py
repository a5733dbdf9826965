"""What a mod's result depends on, as one comparable value: the next call looks here, in microseconds, before it trusts a kernel.

Code of the function and of every helper, numbers, strings, tensors by place, version and contents, containers, objects and their
classes. What can't be compared this way (a module of the user's, an array of another library, an iterator) makes the state unknown, and
then nothing is reused. One edit is not seen: that of a CUDA tensor through `.data`, which torch does not count.
"""

from __future__ import annotations

import functools
import os
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cute_lab.capture import Mod, of_torch, slots
from cute_lab.sliders import Range

PLAIN = (int, bool, complex, str, bytes, type(None), torch.dtype, torch.device)
CONTAINERS = (tuple, list, dict)
CONTENTS = 16 << 20  # bytes: a larger tensor on the host is not compared by its contents, and its state is unknown
DEPTH = 12


class Unknown(Exception):
    """A value whose contents can't be told from an earlier state's."""


class Held:
    """Keeps a tensor's memory: as long as a state is remembered, no other tensor can come to lie at the same address."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.storage = tensor.untyped_storage()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    __hash__ = None  # type: ignore[assignment]


def state(*mods: Mod | None) -> tuple[Any, ...] | None:
    """Equal for two moments between which nothing that the mods read has changed; None if that can't be known."""
    try:
        return tuple(_of(mod, 0, {}) for mod in mods)
    except Unknown:
        return None


def _tensor(x: torch.Tensor) -> tuple[Any, ...]:
    if x.is_inference() or x.layout != torch.strided or x.is_meta:
        raise Unknown
    return (x.data_ptr(), x._version, tuple(x.shape), x.stride(), x.dtype, x.device, x.requires_grad, _contents(x), Held(x))


def _contents(x: torch.Tensor) -> int:
    """A checksum of what lies there: numpy and `.data` write without torch's notice."""
    if x.device.type != "cpu" or x.numel() == 0:
        return 0
    if x.numel() * x.element_size() > CONTENTS:
        raise Unknown
    return zlib.crc32(x.detach().resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8).numpy().data)


@functools.lru_cache(4)
def libraries(path: tuple[str, ...]) -> tuple[str, ...]:
    """Folders of installed packages: Python's own, torch's, and those of `path` where pip has left its records.

    pip's `--target` makes such a folder anywhere; an editable install leaves its record elsewhere, so its modules are the user's.
    """
    placed = [Path(entry) for entry in path if entry and next(Path(entry).glob("*.dist-info"), None)]
    folders = (Path(functools.__file__).parent, Path(torch.__file__).parents[1], *placed)
    return tuple({f"{way}{os.sep}" for folder in folders for way in (folder, folder.resolve())})  # a folder may be reached by a link


def of_library(module: str) -> bool:
    """Is it Python's or an installed package's, by its name? What is imported from nowhere is the user's."""
    if module in sys.builtin_module_names or module == "__main__":
        return module != "__main__"
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and file.startswith(libraries(tuple(sys.path)))


def _function(f: types.FunctionType, depth: int, seen: dict[int, int]) -> tuple[Any, ...]:
    if of_torch(f) and not f.__closure__:
        return (f.__code__,)
    attributes = _of(f.__dict__, depth + 1, seen) if f.__dict__ else None
    return (f.__code__, attributes, *((place, name, _of(value, depth + 1, seen)) for place, name, value in slots(f)))


def _class(cls: type, depth: int, seen: dict[int, int]) -> tuple[Any, ...]:
    """The user's classes by what they define; a library's by itself."""
    own = [c for c in cls.__mro__ if not of_library(c.__module__)]
    skipped = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")
    if any("__slots__" in vars(c) for c in own):
        raise Unknown
    return (id(cls), *((k, _of(v, depth + 1, seen)) for c in own for k, v in vars(c).items() if k not in skipped))


def _of(value: Any, depth: int, seen: dict[int, int]) -> Any:
    if type(value) is float:
        return value.hex()  # 0.0 and -0.0 are two numbers
    if isinstance(value, float):
        return (type(value), value.hex(), _of(vars(value), depth + 1, seen) if hasattr(value, "__dict__") else None)
    if isinstance(value, Range):  # of a slider; it is no more than its numbers
        return (Range, value.low, value.high, value.step)
    if isinstance(value, PLAIN):
        return (type(value), value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return id(value)
    if isinstance(value, types.ModuleType):
        if not of_library(value.__name__):
            raise Unknown
        return id(value)
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    if depth > DEPTH:
        raise Unknown
    inner: Callable[[Any], Any] = lambda x: _of(x, depth + 1, seen)  # noqa: E731
    if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):  # `table.get` is bound to a table
        return (value.__name__, inner(value.__self__) if value.__self__ is not None else None)
    if isinstance(value, type):
        return _class(value, depth, seen)
    if isinstance(value, types.FunctionType):
        return _function(value, depth, seen)
    if isinstance(value, types.MethodType):
        return (inner(value.__func__), inner(value.__self__))
    if isinstance(value, (staticmethod, classmethod)):
        return inner(value.__func__)
    if isinstance(value, property):
        return (property, inner(value.fget))
    if isinstance(value, functools.partial):
        return (inner(value.func), *map(inner, value.args), *((k, inner(v)) for k, v in value.keywords.items()))
    if type(value) in (tuple, list):
        return (type(value), *map(inner, value))
    if type(value) is dict:
        return (dict, *((inner(k), inner(v)) for k, v in value.items()))
    if isinstance(value, CONTAINERS) or type(value).__module__.split(".")[0] in ("numpy", "builtins", "itertools", "array", "collections"):
        raise Unknown
    if hasattr(value, "__dict__"):
        return (_class(type(value), depth, seen), inner(vars(value)))
    raise Unknown
