"""What can be told of a cell before it runs: what a name of it means, what a number is, how many steps a loop takes at most."""

from __future__ import annotations

import ast
import builtins
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

MANY = 100_000  # steps of loops that stand inside of each other, items of a repeated list
UNKNOWN = MANY // 100  # steps of a loop over what the cell makes: the loops that make it were counted

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], int | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: lambda a, b: float(a) ** float(b),  # the true result may have a million digits
}


class Foreseen:
    """`own` grows with the statements that were looked at: a name's latest value, as text."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.own: dict[str, ast.AST] = {}
        self.modules: dict[str, Any] = {}  # what the cell imports
        self.inside: list[frozenset[str]] = []  # names of the functions that we are in

    def meant(self, name: str, look: Callable[[ast.AST], Any]) -> Any:
        """`look` at the expression that the cell gives a name."""
        own = self.own.pop(name)  # `n = n * 2` speaks of the n before
        try:
            return look(own)
        finally:
            self.own[name] = own

    def local(self, name: str | None) -> bool:
        return any(name in names for names in self.inside)

    def value(self, e: ast.AST) -> Any:
        """What a name or an attribute of a library is; None where only running tells."""
        if isinstance(e, ast.Name):
            if self.local(e.id):
                return None
            if e.id in self.modules:
                return self.modules[e.id]
            if e.id in self.own:
                return self.meant(e.id, self.value)
            return self.namespace.get(e.id, getattr(builtins, e.id, None))
        if isinstance(e, ast.Attribute) and isinstance(owner := self.value(e.value), (types.ModuleType, type)):
            return getattr(owner, e.attr, None)
        return None

    def number(self, e: ast.AST) -> int | float | None:
        if isinstance(e, ast.Constant):
            return e.value if isinstance(e.value, (int, float)) and not isinstance(e.value, bool) else None
        if isinstance(e, ast.Name):
            if self.local(e.id):
                return None
            if e.id in self.own:
                found: int | float | None = self.meant(e.id, self.number)
                return found
            value = self.namespace.get(e.id)
            return value if isinstance(value, (int, float)) else None
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            value = self.number(e.operand)
            return None if value is None else -value
        if isinstance(e, ast.BinOp):
            a, b = self.number(e.left), self.number(e.right)
            if a is None or b is None:
                return None
            try:
                return OPERATORS[type(e.op)](a, b)
            except (KeyError, ArithmeticError):
                return None
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "slider" and len(e.args) > 2:
            return self.number(e.args[2])
        return None

    def count(self, iterable: ast.expr) -> int:
        """At most so many items."""
        if isinstance(iterable, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            return len(iterable.values if isinstance(iterable, ast.Dict) else iterable.elts)
        if isinstance(iterable, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return UNKNOWN  # its own loops are counted where it stands
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.args:
            if iterable.func.id == "range":
                numbers = [self.number(a) for a in iterable.args]
                if any(n is None for n in numbers):
                    return UNKNOWN
                return len(range(*(int(n) for n in numbers if n is not None)))
            if iterable.func.id in ("enumerate", "reversed", "sorted", "list", "tuple", "set"):
                return self.count(iterable.args[0])
            if iterable.func.id == "zip":
                return min(map(self.count, iterable.args))
        value = self.value(iterable)
        if isinstance(value, (list, tuple, dict, set, str, range, torch.Tensor)):
            return int(value.shape[0]) if isinstance(value, torch.Tensor) and value.dim() else len(value)
        return UNKNOWN

    def large(self, e: ast.BinOp) -> bool:
        """A repeated list, or a whole number of many digits."""
        left, right = self.number(e.left), self.number(e.right)
        if isinstance(e.op, ast.Mult):
            for a, n in ((e.left, right), (e.right, left)):
                items = isinstance(a, (ast.List, ast.Tuple, ast.JoinedStr)) or (
                    isinstance(a, ast.Constant) and isinstance(a.value, (str, bytes))
                )
                if (items and (n is None or n > MANY)) or (n is not None and n > MANY and isinstance(self.value(a), (list, tuple, str))):
                    return True
        elif isinstance(e.op, (ast.Pow, ast.LShift)):
            return right is not None and right > 1000 and not isinstance(left, float)
        return False
