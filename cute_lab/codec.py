"""Frozen dataclasses <-> JSON values by their type hints: nothing missing, nothing unknown, no type guessed."""

from __future__ import annotations

import dataclasses
import math
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from cute_lab.errors import OptionError


def encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return repr(float(value)) if isinstance(value, float) and not math.isfinite(value) else value


def decode(kind: Any, value: Any, where: str) -> Any:
    """`value` as the type `kind`, or an OptionError that names the place."""
    origin, args = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        hints, names = get_type_hints(kind), [f.name for f in dataclasses.fields(kind)]
        if set(value) != set(names):
            odd = [f"no field {n!r}" for n in names if n not in value]
            odd += [f"an unknown field {n!r}" for n in value if n not in names]
            raise OptionError(f"{where} has {', '.join(odd)}")
        fields = {n: decode(hints[n], value[n], f"{where}.{n}") for n in names}
        try:
            return kind(**fields)
        except ValueError as error:
            raise OptionError(f"{where}: {error}") from None
    if origin in (Union, types.UnionType):
        fits = [arm for arm in args if arm is type(value)] or [arm for arm in args if arm is not type(None)]
        return None if value is None and type(None) in args else decode(fits[-1], value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(decode(args[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {decode(args[0], k, where): decode(args[1], item, f"{where}[{k!r}]") for k, item in value.items()}
    if origin is Literal and value in args:
        return value
    if kind is float and (type(value) in (int, float) or value in ("inf", "-inf", "nan")):
        return float(value)
    if origin is None and type(value) is kind:
        return value
    want = " or ".join(map(repr, args)) if origin is Literal else getattr(kind, "__name__", str(kind))
    raise OptionError(f"{where} must be {want}, got {type(value).__name__} {str(value)[:40]!r}")
