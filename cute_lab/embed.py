"""A person's functions as text that stands alone: each is made by a function whose parameters are what it captured.

    def make_mask_mod(window, docs):
        def mask_mod(b, h, q_idx, kv_idx):
            return (q_idx - kv_idx < window) & (docs[q_idx] == docs[kv_idx])
        return mask_mod

Numbers that a person may move are read from `n`, tensors from `t`, everything else is written as it is.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import importlib
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Callable, Collection
from typing import Any

import torch

from cute_lab import usercode
from cute_lab.capture import is_number, of_torch, slots
from cute_lab.errors import OptionError
from cute_lab.sliders import plain

LIBRARIES = frozenset(("torch", "builtins", *sys.stdlib_module_names)) - {"__main__"}
DEEPEST = 12


class Embedder:
    """Collects the definitions that the expressions of `value` need, in order. `tensor` gives a captured tensor its name."""

    def __init__(self, movable: Collection[str], tensor: Callable[[str, torch.Tensor], str]) -> None:
        self.movable, self.tensor = movable, tensor
        self.definitions: list[str] = []
        self.names: dict[int, str] = {}  # of factories, by the function's id
        self.taken: set[str] = set()
        self.kept: list[Any] = []  # so that no id is used twice
        self.depth = 0
        self.rebuilds = False  # objects of the person's own classes

    def value(self, name: str, value: Any) -> str:
        """An expression that gives `value`, which the code calls `name`."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.cannot(name, value, "functions that refer to each other")
        try:
            return self._value(name, value)
        finally:
            self.depth -= 1

    def _value(self, name: str, value: Any) -> str:
        if is_number(value):
            number = plain(value)
            return f"n[{name!r}]" if name in self.movable else f"float({str(number)!r})" if number - number else repr(number)
        if value is None or isinstance(value, (bool, str, bytes, range)):
            return repr(value)
        if isinstance(value, torch.Tensor):
            return f"t[{self.tensor(name, value)!r}]"
        if isinstance(value, (torch.dtype, torch.finfo)):
            return str(value) if isinstance(value, torch.dtype) else f"torch.finfo(torch.{value.dtype})"
        if type(value) in (tuple, list, set, frozenset):
            items = ", ".join(self._inside(f"{name}_{i}", item) for i, item in enumerate(value))
            text = f"({items},)" if type(value) is tuple and value else f"({items})" if type(value) is tuple else f"[{items}]"
            return text if type(value) in (tuple, list) else f"{type(value).__name__}({text})"
        if type(value) is dict:
            return "{" + ", ".join(f"{self._inside(name, k)}: {self._inside(f'{name}_{k}', v)}" for k, v in value.items()) + "}"
        if isinstance(value, types.ModuleType):
            return self._module(name, value)
        if isinstance(value, functools.partial):
            code = getattr(value.func, "__code__", None)
            names = code.co_varnames if code else ()
            given = [self.value(names[i] if i < len(names) else f"{name}_{i}", a) for i, a in enumerate(value.args)]
            given += [f"{key}={self.value(key, a)}" for key, a in value.keywords.items()]
            return f"functools.partial({', '.join([self.value(name, value.func), *given])})"
        if isinstance(value, types.MethodType):
            return f"{self.value(name, value.__self__)}.{value.__name__}"
        known = self._importable(value)
        if known is not None:
            return known
        if isinstance(value, types.FunctionType):
            return self._function(name, value)
        if isinstance(value, type):
            return self._class(name, value)
        if hasattr(value, "__dict__") and type(value).__module__.partition(".")[0] not in LIBRARIES:
            self.rebuilds = True
            fields = ", ".join(f"{key!r}: {self._inside(key, item)}" for key, item in vars(value).items())
            return f"rebuilt({self.value(type(value).__name__, type(value))}, {{{fields}}})"
        raise self.cannot(name, value)

    def _inside(self, name: str, value: Any) -> str:
        """An element: no number of its own name, as when it is traced."""
        if is_number(value):
            number = plain(value)
            return f"float({str(number)!r})" if number - number else repr(number)
        return self.value(name, value)

    def _module(self, name: str, value: types.ModuleType) -> str:
        if value.__name__.partition(".")[0] not in LIBRARIES:
            raise self.cannot(name, value, "a module that is neither torch's nor Python's own")
        return f"importlib.import_module({value.__name__!r})"

    def _importable(self, value: Any) -> str | None:
        """A name of torch or of Python's own library; torch's `and_masks(...)` is called again."""
        module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", getattr(value, "__name__", ""))
        if isinstance(value, types.FunctionType) and of_torch(value) and value.__closure__:
            maker, _, inner = name.partition(".<locals>.")
            found = {n: v for kind, n, v in slots(value) if kind == "cell"}
            if inner and set(found) == {"mask_mods"}:
                masks = ", ".join(self.value(getattr(m, "__name__", "mask"), m) for m in found["mask_mods"])
                return f"importlib.import_module({module!r}).{maker}({masks})"
            return None
        for home in (module, "torch", "math", "operator", "builtins"):
            if home.partition(".")[0] in LIBRARIES and name and "<" not in name:
                try:
                    target = functools.reduce(getattr, name.split("."), importlib.import_module(home))
                except (ImportError, AttributeError):
                    continue
                if target is value:
                    return name if home == "builtins" else f"importlib.import_module({home!r}).{name}"
        return None

    # -- what has a text --------------------------------------------------------------------------------------------------
    def _function(self, name: str, function: types.FunctionType) -> str:
        node = _node(function)
        if node is None:
            raise self.cannot(name, function, "its text is not found")
        captured = {n: v for kind, n, v in slots(function) if kind in ("cell", "global") and v is not function}
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        captured = {n: v for n, v in captured.items() if n in used}
        own = node.name if isinstance(node, ast.FunctionDef) else _identifier(name)
        given = {n: self.value(n, v) for n, v in captured.items()}
        lines = _text(node, function).split("\n") if isinstance(node, ast.FunctionDef) else [f"{own} = {ast.unparse(_bare(node))}"]
        if function.__defaults__:
            names = function.__code__.co_varnames[: function.__code__.co_argcount][-len(function.__defaults__) :]
            values = [self.value(n, v) for n, v in zip(names, function.__defaults__, strict=True)]
            given |= {f"{n}_default": v for n, v in zip(names, values, strict=True)}
            lines.append(f"{own}.__defaults__ = ({', '.join(f'{n}_default' for n in names)},)")
        if function.__kwdefaults__:
            given |= {f"{n}_default": self.value(n, v) for n, v in function.__kwdefaults__.items()}
            lines.append(f"{own}.__kwdefaults__ = {{{', '.join(f'{n!r}: {n}_default' for n in function.__kwdefaults__)}}}")
        return self._made(function, own, lines, given)

    def _class(self, name: str, kind: type) -> str:
        try:
            text = textwrap.dedent(inspect.getsource(kind))
        except (OSError, TypeError):
            raise self.cannot(name, kind, "its text is not found") from None
        used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)} - {kind.__name__, *dir(builtins)}
        scope = vars(sys.modules.get(kind.__module__, types.ModuleType("none")))
        methods = [f for f in vars(kind).values() if isinstance(f, types.FunctionType)]
        for method in methods:
            scope = scope | {n: v for where, n, v in slots(method) if where in ("cell", "global") and v is not kind}
        given = {n: self.value(n, scope[n]) for n in sorted(used) if n in scope}
        return self._made(kind, kind.__name__, text.rstrip("\n").split("\n"), given)

    def _made(self, made: Any, own: str, lines: list[str], given: dict[str, str]) -> str:
        """The call of the factory, which is defined once."""
        if id(made) not in self.names:
            maker = next(m for i in range(1, 999) if (m := f"make_{own}" + (f"_{i}" if i > 1 else "")) not in self.taken)
            self.taken.add(maker)
            self.names[id(made)] = maker
            self.kept.append(made)
            body = "\n".join(f"    {line}".rstrip() for line in [*lines, "", f"return {own}"])
            self.definitions.append(f"def {maker}({', '.join(given)}):\n{body}\n")
        return f"{self.names[id(made)]}({', '.join(f'{n}={text}' for n, text in given.items())})"

    def cannot(self, name: str, value: Any, why: str = "") -> OptionError:
        what = f"`{name}`, {why or 'a ' + type(value).__name__},"
        return OptionError(
            f"{what} can't be written into a file of its own", example="capture tensors, numbers and functions of this notebook"
        )


def _node(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda | None:
    """Its definition; of several lambdas on a line, the one that the code's positions lie in. None where the text is not this code's."""
    node, code = usercode.function_node(function), function.__code__
    if isinstance(node, ast.Lambda):
        module = usercode.tree(code.co_filename) or ast.Module([], [])
        spots = [(line, column) for line, _, column, end in code.co_positions() if line and column is not None and end]
        lambdas = [n for n in ast.walk(module) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
        fits = [n for n in lambdas if all(_start(n) <= spot <= (n.end_lineno or 0, n.end_col_offset or 0) for spot in spots)]
        node = max(fits, key=_start, default=None)  # the innermost
    arguments = node.args if node is not None else None
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)] if arguments is not None else []
    return node if names == list(code.co_varnames[: code.co_argcount]) else None


def _start(node: ast.Lambda) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "mod"


def _bare(node: Any) -> Any:
    """Without defaults, annotations and decorators: they are evaluated where the function is defined, and were."""
    node = copy.deepcopy(node)
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
        if arg is not None:
            arg.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.returns, node.decorator_list = None, []
    return node


def _text(node: ast.FunctionDef, function: types.FunctionType) -> str:
    """As it was written, with its comments, but for what `_bare` drops."""
    bare = _bare(node)
    first = node.body[0]
    if first.lineno == node.lineno or any(
        isinstance(n, ast.Constant) and isinstance(n.value, str) and "\n" in n.value for n in ast.walk(node)
    ):
        return ast.unparse(bare)
    head = ast.unparse(ast.FunctionDef(bare.name, bare.args, [ast.Pass()], [], lineno=1)).split("\n")[0]
    lines = linecache.getlines(function.__code__.co_filename)[first.lineno - 1 : node.end_lineno]
    body = textwrap.indent(textwrap.dedent("".join(lines)).rstrip("\n"), "    ")
    return f"{head}\n{body}"
