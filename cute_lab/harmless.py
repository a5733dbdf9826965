"""May a cell run while it is typed? Its top level: pure values only. Its functions: nothing but computing.

What is known to be pure passes, everything else does not: a wrong "no" costs a check that comes when the cell is run, a wrong "yes"
does what nobody has asked for. Sizes and time are limited besides (limits.py).
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from cute_lab import usercode
from cute_lab.capture import slots
from cute_lab.foreseen import MANY, Foreseen
from cute_lab.pure import FRESH, FUNCTIONS, computes, pure
from cute_lab.sliders import slider

MUTATORS = frozenset("append extend insert add update setdefault pop popitem clear remove discard sort reverse".split())
METHODS_NOT = frozenset("backward share_memory pin_memory cuda record_stream register_hook tofile dump load save retain_grad".split())
VALUES = (int, float, complex, str, bytes, bool, type(None), torch.Tensor, torch.dtype, torch.Size, torch.Generator, tuple, list, dict, set)
SIZED = frozenset("arange linspace zeros ones".split())  # of numpy
COSTLY = frozenset(("math.factorial", "math.comb", "math.perm"))
STATEMENTS = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.For),
    *(ast.If, ast.Pass, ast.Assert, ast.Raise, ast.Return, ast.Break, ast.Continue, ast.Delete),
)
CONTAINERS = (list, tuple, dict)


@dataclass(frozen=True)
class Verdict:
    """Empty words mean yes. `top`: why the cell is not run; `body`: why its functions are not."""

    top: str = ""
    body: str = ""


class _No(Exception):
    pass


def judge(tree: ast.Module, namespace: Mapping[str, Any]) -> Verdict:
    cell = _Cell(tree, namespace)
    try:
        for statement in tree.body:
            cell.statement(statement, 1)
    except _No as no:
        return Verdict(str(no), str(no))
    try:
        for function in cell.functions:
            cell.function(function)
    except _No as no:
        return Verdict("", str(no))
    return Verdict()


class _Cell(Foreseen):
    def __init__(self, tree: ast.Module, namespace: Mapping[str, Any]) -> None:
        super().__init__({"slider": slider, **namespace})
        self.functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))]
        self.defined = {n.name: n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        self.seen: set[int] = set()

    # -- statements -------------------------------------------------------------------------------------------------------
    def statement(self, s: ast.stmt, steps: int) -> None:
        if not isinstance(s, STATEMENTS):
            raise _No(f"line {s.lineno}: a `{type(s).__name__.lower()}` runs only with the cell")
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            self.imports(s)
        elif isinstance(s, ast.FunctionDef):
            if s.decorator_list:
                raise _No(f"line {s.lineno}: a decorator runs only with the cell")
            for default in [*s.args.defaults, *(d for d in s.args.kw_defaults if d is not None)]:
                self.expression(default, steps)
            self.own[s.name] = s
        elif isinstance(s, ast.ClassDef):
            if s.decorator_list or s.keywords:
                raise _No(f"line {s.lineno}: a decorator runs only with the cell")
            self.own[s.name] = s
            for part in [*s.bases, *s.body]:
                self.statement(part, steps) if isinstance(part, ast.stmt) else self.expression(part, steps)
        elif isinstance(s, ast.For):
            count = self.count(s.iter)
            self.expression(s.iter, steps)
            self.target(s.target, s.iter)
            for part in [*s.body, *s.orelse]:
                self.statement(part, _times(steps, count, s))
        else:
            for part in ast.iter_child_nodes(s):
                if isinstance(part, ast.stmt):
                    self.statement(part, steps)
                elif isinstance(part, ast.expr) and not isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del)):
                    self.expression(part, steps)
            if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None:
                for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
                    self.target(target, s.value)
            elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
                self.may_change(s.target.id, s.target, number=True)
                self.own[s.target.id] = ast.BinOp(ast.Name(s.target.id, ast.Load()), s.op, s.value)
            elif isinstance(s, ast.AugAssign):
                self.target(s.target, s.value)

    def imports(self, s: ast.Import | ast.ImportFrom) -> None:
        for alias in s.names:
            name = alias.name if isinstance(s, ast.Import) else s.module or ""
            module = sys.modules.get(name)
            if module is None or alias.name == "*" or (isinstance(s, ast.ImportFrom) and s.level):
                raise _No(f"line {s.lineno}: `{name}` is imported when the cell runs")
            if isinstance(s, ast.Import):
                self.modules[alias.asname or name.split(".")[0]] = module if alias.asname else sys.modules[name.split(".")[0]]
            else:
                self.modules[alias.asname or alias.name] = getattr(module, alias.name, None)

    def target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.own[target.id] = value
            self.modules.pop(target.id, None)
        elif isinstance(target, (ast.Tuple, ast.List, ast.Starred)):
            for part in target.elts if not isinstance(target, ast.Starred) else [target.value]:
                self.target(part, value)
        else:
            for inner in ast.iter_child_nodes(target):
                self.expression(inner, 1)
            self.may_change(usercode.root_name(target), target)

    def may_change(self, name: str | None, at: ast.AST, number: bool = False) -> None:
        """Only what the cell itself has made: a notebook's tensor or list stays as it is."""
        value = self.own.get(name or "")
        if isinstance(value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.BinOp, ast.Constant)):
            return
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in FRESH:
            return
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("list", "dict", "set", "slider"):
            return
        if number and name not in self.own and isinstance(self.namespace.get(name or ""), (int, float, str, tuple)):
            return
        raise _No(f"line {getattr(at, 'lineno', 0)}: `{ast.unparse(at)}` is changed when the cell runs")

    # -- expressions ------------------------------------------------------------------------------------------------------
    def expression(self, e: ast.AST, steps: int) -> None:
        if isinstance(e, ast.Lambda):
            return  # its body is a function's
        if isinstance(e, (ast.Await, ast.Yield, ast.YieldFrom)):
            raise _No(f"line {e.lineno}: `{ast.unparse(e)}` runs only with the cell")
        if isinstance(e, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for generator in e.generators:
                steps = _times(steps, self.count(generator.iter), e)
                self.target(generator.target, generator.iter)
        if isinstance(e, ast.BinOp) and self.large(e):
            raise _No(f"line {e.lineno}: `{ast.unparse(e)}` may be large")
        if isinstance(e, ast.Call):
            self.call(e)
        if isinstance(e, (ast.Name, ast.Attribute)):
            self.load(e)
        if isinstance(e, ast.NamedExpr):
            self.target(e.target, e.value)
        for part in ast.iter_child_nodes(e):
            self.expression(part, steps)

    def call(self, call: ast.Call) -> None:
        function, words = call.func, ast.unparse(call.func)
        no = _No(f"line {call.lineno}: `{words}(…)` runs only with the cell")
        if any(k.arg == "out" for k in call.keywords):
            raise no
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            if isinstance(argument, ast.Constant) and str(argument.value).startswith(("cuda", "mps", "xpu")):
                raise no
        value = self.value(function)
        if value is range and self.count(call) > MANY:
            raise no
        if words in COSTLY or (getattr(value, "__name__", "") in SIZED and not words.startswith("torch")):
            if not all(n is not None and n < (1000 if words in COSTLY else MANY) for n in map(self.number, call.args)):
                raise no
        if isinstance(function, ast.Name) and function.id in self.defined:
            self.function(self.defined[function.id])
        elif value is not None and not self.known(value, words):
            raise no
        elif isinstance(function, ast.Attribute) and value is None:
            self.method(function, no)
        elif isinstance(function, ast.Subscript) and isinstance(self.namespace.get(usercode.root_name(function) or ""), CONTAINERS):
            raise no

    def load(self, e: ast.Name | ast.Attribute) -> None:
        """A function under another name, or as an argument, is that function."""
        value = None if isinstance(e.ctx, ast.Store) else self.value(e)
        if isinstance(value, (*FUNCTIONS, type)) and not self.known(value, ast.unparse(e)):
            raise _No(f"line {e.lineno}: `{ast.unparse(e)}` runs only with the cell")

    def method(self, function: ast.Attribute, no: _No) -> None:
        root, name = usercode.root_name(function), function.attr
        value = self.value(ast.Name(root or "", ast.Load()))
        if isinstance(value, types.ModuleType):
            if not pure(value.__name__):
                raise no
        elif value is not None and not isinstance(value, VALUES) and not self.known(value, root or ""):
            raise no
        if name in METHODS_NOT:
            raise no
        if (name.endswith("_") and not name.endswith("__")) or name in MUTATORS:
            made = function.value.func if isinstance(function.value, ast.Call) else None
            if not self.local(root) and not (isinstance(made, ast.Attribute) and made.attr in FRESH):
                self.may_change(root, function)

    def known(self, value: Any, words: str) -> bool:
        return computes(value, words, self.of_notebook)

    def of_notebook(self, function: types.FunctionType) -> bool:
        """A function that an earlier cell defines, by its text."""
        node = usercode.function_node(function)
        if node is None:
            return False
        if id(function) not in self.seen:
            self.seen.add(id(function))
            other = _Cell(ast.Module([], []), {**function.__globals__, **{name: value for _, name, value in slots(function)}})
            other.seen = self.seen
            try:
                other.function(node)
            except _No as no:
                raise _No(f"`{function.__name__}` of the notebook, {no}") from None
        return True

    def function(self, node: ast.AST) -> None:
        """Its body may loop as it likes: a loop that does not end is ended."""
        if id(node) in self.seen:
            return
        self.seen.update(id(inner) for inner in ast.walk(node) if isinstance(inner, (ast.FunctionDef, ast.Lambda)))
        self.seen.add(id(node))
        local = frozenset(_locals(node))
        self.inside.append(local)
        try:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call):
                    self.call(inner)
                elif isinstance(inner, (ast.Name, ast.Attribute)):
                    self.load(inner)
                elif isinstance(inner, (ast.Import, ast.ImportFrom)):
                    self.imports(inner)
                elif isinstance(inner, ast.Try) and (inner.finalbody or any(_all(h.type) for h in inner.handlers)):
                    raise _No(f"line {inner.lineno}: a `try` that catches everything runs only with the cell: nothing could end it")
                elif isinstance(inner, ast.BinOp) and self.large(inner):
                    raise _No(f"line {inner.lineno}: `{ast.unparse(inner)}` may be large")
                elif isinstance(inner, (ast.Assign, ast.AugAssign, ast.Delete)):
                    self.writes(inner)
        finally:
            self.inside.pop()

    def writes(self, s: ast.Assign | ast.AugAssign | ast.Delete) -> None:
        for target in [s.target] if isinstance(s, ast.AugAssign) else s.targets:
            root = usercode.root_name(target) if isinstance(target, (ast.Attribute, ast.Subscript)) else None
            value = self.value(ast.Name(root, ast.Load())) if root and not self.local(root) else None
            if root and not self.local(root) and not isinstance(value, torch.Tensor):  # a tensor's writes are refused as they come
                self.may_change(root, target)


def _all(caught: ast.expr | None) -> bool:
    return caught is None or "BaseException" in ast.unparse(caught)


def _times(steps: int, count: int, at: ast.AST) -> int:
    if steps * count > MANY:
        raise _No(f"line {getattr(at, 'lineno', 0)}: the loop takes many steps")
    return max(1, steps * count)


def _locals(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            yield inner.arg
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)) and inner is not node:
            yield inner.name
