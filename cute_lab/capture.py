"""What a mod captures: its numbers (which become run-time scalars), its tensors' names, and a copy with other numbers.

A mod is any callable: a function, a closure over helpers, `functools.partial`, `and_masks(...)`, a callable object. Numbers are
found in closure cells, in the globals that the code uses, in defaults and in partial arguments, through helper functions too.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cute_lab.sliders import FloatSlider, IntSlider, Range, Slider, plain
from cute_lab.sliders import Number as Number

Mod = Callable[..., Any]
TORCH_ROOT = str(Path(torch.__file__).parent)


@dataclass(frozen=True)
class Captured:
    """Numbers and tensors by the user's own names; `files` are those that hold the user's code."""

    numbers: dict[str, Number]
    tensors: tuple[tuple[str, torch.Tensor], ...]
    files: frozenset[str]


def is_number(value: object) -> bool:
    return type(value) in (int, float, IntSlider, FloatSlider)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _global_names(function: types.FunctionType) -> list[str]:
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    return sorted(names & function.__globals__.keys())


def of_torch(function: types.FunctionType) -> bool:
    return function.__code__.co_filename.startswith(TORCH_ROOT)


def slots(function: types.FunctionType) -> Iterator[tuple[str, str, Any]]:
    """(place, name, value) of everything a function reads from outside: "cell", "global" or "default"."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield "cell", name, cell.cell_contents
        except ValueError:  # a cell that is not filled yet
            continue
    if not of_torch(function):
        for name in _global_names(function):
            yield "global", name, function.__globals__[name]
    defaults = function.__defaults__ or ()
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    for name, value in zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True):
        yield "default", name, value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield "kwdefault", name, value


def _target(value: object) -> object:
    """The function behind a bound method or a callable object, as far as numbers are concerned."""
    return value.__func__ if isinstance(value, types.MethodType) else value


def captured(mod: Mod) -> Captured:
    numbers: dict[str, Number] = {}
    tensors: list[tuple[str, torch.Tensor]] = []
    files: set[str] = set()
    seen: set[int] = set()

    def visit(name: str, value: Any, depth: int) -> None:
        value = _target(value)
        if is_number(value):
            numbers.setdefault(name, value)
        elif isinstance(value, torch.Tensor):
            tensors.append((name, value))
        elif id(value) in seen or depth > 12:
            return
        elif isinstance(value, types.FunctionType):
            seen.add(id(value))
            if not of_torch(value):
                files.add(value.__code__.co_filename)
            for _, inner, content in slots(value):
                if not (
                    isinstance(content, types.ModuleType)
                    or (isinstance(content, types.FunctionType) and of_torch(content) and not content.__closure__)
                ):
                    visit(inner, content, depth + 1)
        elif isinstance(value, functools.partial):
            seen.add(id(value))
            visit(name, value.func, depth + 1)
            code = getattr(value.func, "__code__", None)
            for position, argument in enumerate(value.args):
                visit(code.co_varnames[position] if code else f"{name}_{position}", argument, depth + 1)
            for key, argument in value.keywords.items():
                visit(key, argument, depth + 1)
        elif isinstance(value, (tuple, list)):
            seen.add(id(value))
            for i, item in enumerate(value):
                if not is_number(item):
                    visit(f"{name}_{i}", item, depth + 1)
        elif isinstance(value, dict):
            seen.add(id(value))
            for key, item in value.items():
                if not is_number(item):
                    visit(f"{name}_{key}", item, depth + 1)
        elif not isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
            seen.add(id(value))
            call = getattr(type(value), "__call__", None)  # noqa: B004  (the function itself, inherited or not)
            if isinstance(call, types.FunctionType):
                visit("__call__", call, depth + 1)
            for key, item in getattr(value, "__dict__", {}).items():
                if not is_number(item):
                    visit(key, item, depth + 1)

    visit(getattr(mod, "__name__", "mod"), mod, 0)
    return Captured(numbers, tuple(tensors), frozenset(files))


def ranges(*mods: Mod | None) -> dict[str, Range]:
    """The captured numbers that are sliders, and how far they go."""
    numbers: dict[str, Number] = {}
    for mod in mods:
        numbers = (captured(mod).numbers if mod is not None else {}) | numbers
    return {n: v.range for n, v in numbers.items() if isinstance(v, Slider)}


def with_numbers(mod: Mod, values: Mapping[str, Number]) -> Mod:
    """The same mod with other captured numbers; sliders become plain numbers. The original, its cells and its globals stay as they are."""
    done: dict[int, Any] = {}

    def swap(name: str, value: Any) -> Any:
        if is_number(value):
            return plain(values.get(name, value))
        return rebuild(value)

    def rebuild(value: Any) -> Any:
        if id(value) in done:
            return done[id(value)]
        if isinstance(value, types.FunctionType):
            if of_torch(value) and not value.__closure__:
                return value
            return _function(value)
        if isinstance(value, types.MethodType):
            return types.MethodType(rebuild(value.__func__), value.__self__)
        if isinstance(value, functools.partial):
            code = getattr(value.func, "__code__", None)
            names = code.co_varnames if code else [""] * len(value.args)
            args = [swap(n, a) for n, a in zip(names, value.args, strict=False)]
            return functools.partial(rebuild(value.func), *args, **{k: swap(k, v) for k, v in value.keywords.items()})
        if type(value) in (tuple, list) and any(callable(item) for item in value):
            return type(value)(rebuild(item) for item in value)
        return value

    def _function(f: types.FunctionType) -> types.FunctionType:
        # The copy is registered before its cells are filled: a function may refer to itself.
        scope = f.__globals__ if of_torch(f) else dict(f.__globals__)
        cells = tuple(types.CellType() for _ in f.__code__.co_freevars)
        copy = types.FunctionType(f.__code__, scope, f.__name__, None, cells)
        done[id(f)] = copy
        defaults = dict(zip(f.__code__.co_varnames[: f.__code__.co_argcount][::-1], (f.__defaults__ or ())[::-1], strict=False))
        copy.__defaults__ = tuple(swap(n, v) for n, v in reversed(defaults.items())) or None
        copy.__kwdefaults__ = {k: swap(k, v) for k, v in (f.__kwdefaults__ or {}).items()} or None
        copy.__dict__.update(f.__dict__)
        for cell, (name, old) in zip(cells, zip(f.__code__.co_freevars, f.__closure__ or (), strict=True), strict=True):
            try:
                cell.cell_contents = swap(name, old.cell_contents)
            except ValueError:
                continue
        if not of_torch(f):
            for name in _global_names(f):
                if not isinstance(scope[name], types.ModuleType):
                    scope[name] = swap(name, scope[name])
        return copy

    return rebuild(mod)  # type: ignore[no-any-return]
