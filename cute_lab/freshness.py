"""What a mod's result depends on, as one comparable value: the next call looks here, in microseconds, before it trusts a kernel.

Code of the function and of every helper, numbers, strings, tensors by place and version, containers and objects by their contents.
What can't be compared this way (an array of another library, an iterator) makes the state unknown, and then nothing is reused.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

from cute_lab.capture import Mod, of_torch, slots

PLAIN = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device)
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
    version = -1 if x.is_inference() else x._version
    if version < 0:
        raise Unknown
    return (x.data_ptr(), version, tuple(x.shape), x.stride(), x.dtype, x.device, x.requires_grad, Held(x))


def _function(f: types.FunctionType, depth: int, seen: dict[int, int]) -> tuple[Any, ...]:
    if of_torch(f) and not f.__closure__:
        return (f.__code__,)
    return (f.__code__, *((place, name, _of(value, depth + 1, seen)) for place, name, value in slots(f)))


def _of(value: Any, depth: int, seen: dict[int, int]) -> Any:
    if isinstance(value, PLAIN):
        return (type(value), value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (types.ModuleType, type, types.BuiltinFunctionType, torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return id(value)
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    if depth > DEPTH:
        raise Unknown
    inner: Callable[[Any], Any] = lambda x: _of(x, depth + 1, seen)  # noqa: E731
    if isinstance(value, types.FunctionType):
        return _function(value, depth, seen)
    if isinstance(value, types.MethodType):
        return (inner(value.__func__), inner(value.__self__))
    if isinstance(value, functools.partial):
        return (inner(value.func), *map(inner, value.args), *((k, inner(v)) for k, v in value.keywords.items()))
    if isinstance(value, (tuple, list)):
        return (type(value), *map(inner, value))
    if isinstance(value, dict):
        return (dict, *((inner(k), inner(v)) for k, v in value.items()))
    if type(value).__module__.split(".")[0] in ("numpy", "builtins", "itertools", "array", "collections"):
        raise Unknown
    if hasattr(value, "__dict__"):
        call = getattr(type(value), "__call__", None)  # noqa: B004
        code = inner(call) if isinstance(call, types.FunctionType) else None
        return (type(value), code, inner(vars(value)))
    raise Unknown
