"""From a mistake to edits that mend it: each is a rewrite that is known to give what the person meant."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator

from cute_lab import usercode
from cute_lab.branches import chained
from cute_lab.capture import Number
from cute_lab.errors import (
    BranchOnTensor,
    CuteLabError,
    LeavesTorch,
    MissingMod,
    ReturnsNone,
    SideEffect,
    TensorToNumber,
    UndefinedName,
    UserCodeError,
    WritesTensor,
    WrongArity,
    WrongResultType,
)
from cute_lab.sliders import shown
from cute_lab.squiggles import CellText, Edit, Fix, Span

IMPORTS = {"torch": "import torch", "math": "import math", "np": "import numpy as np", "F": "import torch.nn.functional as F"}
IMPORTS |= {name: f"from torch.nn.attention.flex_attention import {name}" for name in ("and_masks", "or_masks")}
IMPORTS |= {"partial": "from functools import partial", "functools": "import functools", "numpy": "import numpy"}


def of(error: CuteLabError, cell: CellText, tree: ast.Module) -> tuple[Fix, ...]:
    if error.loc is None:
        return ()
    for kind, make in FIXES.items():
        if isinstance(error, kind):
            return tuple(make(error, cell, tree))
    return ()


def replace(span: Span, text: str) -> Edit:
    return Edit(*span, text)


def _change(title: str, cell: CellText, node: ast.AST, text: str) -> Fix:
    return Fix(title, (replace(cell.node(node), text),))


def _at(error: CuteLabError, cell: CellText, kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> ast.AST | None:
    """The innermost such node that holds the error's place."""
    return next((n for n in reversed(usercode.enclosing(error.loc)) if isinstance(n, kind)), None) if error.loc else None


def _exactly(error: CuteLabError, cell: CellText, tree: ast.Module) -> ast.expr | None:
    return next((n for n in ast.walk(tree) if isinstance(n, ast.expr) and usercode.span(n, cell.file) == error.loc), None)


# -- conditions ---------------------------------------------------------------------------------------------------------------
def elementwise(e: ast.expr, cell: CellText) -> str:
    """A condition without and, or, not and chains."""
    if isinstance(e, ast.BoolOp):
        return (" & " if isinstance(e.op, ast.And) else " | ").join(f"({elementwise(v, cell)})" for v in e.values)
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
        return f"~({elementwise(e.operand, cell)})"
    if chained(e) and isinstance(e, ast.Compare):
        parts = [e.left, *e.comparators]
        return " & ".join(f"({ast.unparse(ast.Compare(a, [o], [b]))})" for a, o, b in zip(parts, e.ops, parts[1:], strict=False))
    return cell.segment(e)


def _branch(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    construct = error.fields["construct"]
    node = _exactly(error, cell, tree)
    owner = next((n for n in ast.walk(tree) if node is not None and getattr(n, "test", None) is node), None)
    if isinstance(owner, ast.If):
        yield from _if(owner, cell, tree)
    elif isinstance(owner, ast.IfExp):
        words = f"torch.where({elementwise(owner.test, cell)}, {cell.segment(owner.body)}, {cell.segment(owner.orelse)})"
        yield _change("Choose with torch.where", cell, owner, words)
    elif isinstance(owner, ast.Assert):
        yield Fix("Remove the assert", (_without(owner, cell),))
    elif isinstance(node, (ast.UnaryOp, ast.BoolOp)) or (node is not None and chained(node)):
        signs = {"and/or": "Write & and |", "not": "Write ~", "chained comparison": "Write two comparisons"}
        yield _change(signs[str(construct)], cell, node, elementwise(node, cell))
    elif construct in ("max", "min", "any", "all", "sorted") and node is not None:
        yield _change(f"Write {error.hint}", cell, node, error.hint)
    elif construct == "in" and isinstance(node, ast.Compare):
        yield _change("Write torch.isin", cell, node, error.hint)
    elif construct == "bool()" and isinstance(node, ast.Call):
        yield _change("Leave bool() out", cell, node, cell.segment(node.args[0]))


def _if(node: ast.If, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    """Both ways return, or both give the same name a value."""
    body = next(
        (b for n in ast.walk(tree) for b in (getattr(n, "body", []), getattr(n, "orelse", [])) if isinstance(b, list) and node in b), []
    )
    after = body[body.index(node) + 1 :]
    result, used = _returned([node, *after], cell)
    if result is not None:
        last = [node, *after][used - 1]
        yield _whole("Choose with torch.where", cell, node, last, f"return {result}")
        return
    name = _named(node)
    if name is not None:
        yield _whole("Choose with torch.where", cell, node, node, f"{name} = {_assigned(node, name, cell)}")


def _whole(title: str, cell: CellText, first: ast.stmt, last: ast.stmt, text: str) -> Fix:
    start, end = cell.node(first), cell.node(last)
    return Fix(title, (replace(Span(start.line, start.column, end.end_line, end.end_column), text),))


def _returned(body: list[ast.stmt], cell: CellText) -> tuple[str | None, int]:
    """What a list of statements returns as one expression, and how many of them that takes."""
    first = body[0] if body else None
    if isinstance(first, ast.Return) and first.value is not None:
        return cell.segment(first.value), 1
    if not isinstance(first, ast.If):
        return None, 0
    yes, in_yes = _returned([*first.body, *body[1:]], cell)
    no, in_no = _returned([*first.orelse, *body[1:]], cell)
    if yes is None or no is None:
        return None, 0
    after = max(in_yes - len(first.body), in_no - len(first.orelse), 0)  # what both ways go on with
    return f"torch.where({elementwise(first.test, cell)}, {yes}, {no})", 1 + after


def _named(node: ast.If) -> str | None:
    """The one name that every branch sets, in one statement each."""
    names: set[str | None] = set()
    for body in (node.body, node.orelse):
        one = body[0] if len(body) == 1 else None
        if isinstance(one, ast.If):
            names.add(_named(one))
        elif isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            names.add(one.targets[0].id)
        elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            names.add(one.target.id)
        elif body:
            return None
    return names.pop() if len(names) == 1 else None


def _assigned(node: ast.If, name: str, cell: CellText) -> str:
    ways = []
    for body in (node.body, node.orelse):
        one = body[0] if body else None
        if isinstance(one, ast.If):
            ways.append(_assigned(one, name, cell))
        elif isinstance(one, ast.AugAssign):
            ways.append(ast.unparse(ast.BinOp(ast.Name(name, ast.Load()), one.op, one.value)))
        else:
            ways.append(cell.segment(one.value) if isinstance(one, ast.Assign) else name)
    return f"torch.where({elementwise(node.test, cell)}, {ways[0]}, {ways[1]})"


def _without(statement: ast.stmt, cell: CellText) -> Edit:
    """Its lines go; where it stands alone in a function, `pass` stays."""
    span = cell.node(statement)
    lines = cell.lines
    alone = lines[span.line - 1].strip() != cell.segment(statement).split("\n")[0].strip()
    if alone or span.end_line >= len(lines):
        return replace(span, "pass")
    return replace(Span(span.line, 0, span.end_line + 1, 0), "")


# -- the other mistakes -------------------------------------------------------------------------------------------------------------
def _number(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    call = _exactly(error, cell, tree)
    if not isinstance(call, ast.Call):
        return
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item":
        yield _change("Leave item() out", cell, call, cell.segment(call.func.value))
    elif isinstance(call.func, ast.Name) and call.func.id in ("float", "int") and call.args:
        dtype = {"float": "torch.float32", "int": "torch.int32"}[call.func.id]
        yield _change(f"Convert with .to({dtype})", cell, call, f"({cell.segment(call.args[0])}).to({dtype})")


def _print(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    statement = _at(error, cell, ast.Expr)
    if error.fields.get("call") == "print" and isinstance(statement, ast.Expr):
        yield Fix("Remove the print", (_without(statement, cell),))


def _library(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    call = _exactly(error, cell, tree)
    if call is not None and re.match(r"torch\.\w+\(|\(", error.hint):
        yield _change(f"Write {error.hint}", cell, call, error.hint)


def _write(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    statement = _at(error, cell, ast.AugAssign)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name) and not error.hint.startswith("#"):
        yield _change(f"Write {error.hint}", cell, statement, error.hint)


def _name(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    name, guess = str(error.fields["name"]), re.search(r"did you mean '(\w+)'", str(error.fields.get("guess", "")))
    if name in IMPORTS and IMPORTS[name].split()[1] in sys.modules:
        line = cell.magic_line + 1
        yield Fix(f"Add {IMPORTS[name]}", (replace(Span(line, 0, line, 0), IMPORTS[name] + "\n"),))
    elif guess and error.loc is not None:
        yield Fix(f"Write {guess[1]}", (replace(cell.span(error.loc), guess[1]),))


def _attribute(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    """`torch.tahn`: what exists and reads like it."""
    found = re.search(r"has no attribute '(\w+)' \(did you mean '(\w+)'", str(error.fields["message"]))
    at = [n for n in ast.walk(tree) if found and isinstance(n, ast.Attribute) and n.attr == found[1]]
    at = [n for n in at if error.loc is not None and n.lineno <= error.loc.line <= (n.end_lineno or n.lineno)]
    if found and at:
        yield _change(f"Write {found[2]}", cell, at[0], f"{cell.segment(at[0].value)}.{found[2]}")


def _result(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    at = _at(error, cell, ast.Return)
    function = _at(error, cell, ast.FunctionDef)
    if isinstance(at, ast.Return) and error.hint.startswith("return ") and "\n" not in error.hint:
        yield _change(f"Write {error.hint}", cell, at, error.hint)
    elif isinstance(function, ast.FunctionDef) and error.hint.startswith("def mask_mod"):
        others = {s.name for s in tree.body if isinstance(s, ast.FunctionDef)}
        if "mask_mod" not in others and (head := _head(function, cell)) is not None:
            yield Fix("Make it a mask_mod", (replace(head, error.hint.split("\n")[0]),))


def _head(function: ast.FunctionDef, cell: CellText) -> Span | None:
    """`def name(arguments):` where it is one line."""
    line = cell.lines[function.lineno - 1]
    found = re.match(r"\s*(def\s+\w+\s*\([^()]*\)\s*(?:->[^:]*)?:)", line)
    return cell.at(function.lineno, found.start(1), function.lineno, found.end(1)) if found else None


def _none(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    function = _at(error, cell, ast.FunctionDef)
    if isinstance(function, ast.FunctionDef):
        last = cell.node(function.body[-1])
        indent = " " * function.body[-1].col_offset
        yield Fix(
            f"Add {error.hint}", (replace(Span(last.end_line, last.end_column, last.end_line, last.end_column), f"\n{indent}{error.hint}"),)
        )


def _arity(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    function = _at(error, cell, ast.FunctionDef)
    if isinstance(function, ast.FunctionDef) and (head := _head(function, cell)) is not None:
        yield Fix(f"Write {error.hint}", (replace(head, error.hint),))


def _misnamed(error: CuteLabError, cell: CellText, tree: ast.Module) -> Iterator[Fix]:
    meant = re.match(r"def (\w+)\(", error.hint)
    if meant and error.loc is not None:
        yield Fix(f"Call it {meant[1]}", (replace(cell.span(error.loc), meant[1]),))


FIXES: dict[type[CuteLabError], Callable[[CuteLabError, CellText, ast.Module], Iterator[Fix]]] = {
    BranchOnTensor: _branch,
    TensorToNumber: _number,
    SideEffect: _print,
    LeavesTorch: _library,
    WritesTensor: _write,
    UndefinedName: _name,
    UserCodeError: _attribute,
    WrongResultType: _result,
    ReturnsNone: _none,
    WrongArity: _arity,
    MissingMod: _misnamed,
}


# -- what is no mistake -----------------------------------------------------------------------------------------------------------
def slider(name: str, value: Number, cell: CellText, constant: ast.expr) -> Fix:
    """A number of the cell -> one that moves: up to four times what it is."""
    if isinstance(value, int):
        low, high = (float(min(1, value)), float(max(4 * value, 4))) if value >= 0 else (4.0 * value, 0.0)
    else:
        low, high = (0.0, 4.0 * value or 1.0) if value >= 0 else (4.0 * value, 0.0)
    texts = [shown(int(x)) if isinstance(value, int) else f"{x:g}" if x % 1 else f"{x:.1f}" for x in (low, high)]
    return _change(f"Make `{name}` a slider", cell, constant, f"slider({texts[0]}, {texts[1]}, {cell.segment(constant)})")


def option(cell: CellText, text: str) -> Fix:
    """One more option at the end of the %% line."""
    end = cell.magic() if not cell.words() else cell.words()[-1][1]
    return Fix(f"Add {text}", (replace(Span(end.end_line, end.end_column, end.end_line, end.end_column), f" {text}"),))
