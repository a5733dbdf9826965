"""The user's text: which expression stands at a place, what it is assigned to, and what a name there means."""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import sys
import types
from collections.abc import Iterable, Iterator

from cute_lab.errors import Loc


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def tree(file: str) -> ast.Module | None:
    return _parsed("".join(linecache.getlines(file)))


def _characters(file: str, line: int, offset: int) -> int:
    """CPython's columns are UTF-8 byte offsets; an editor counts characters."""
    text = linecache.getline(file, line)
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def loc_at(file: str, line: int, offset: int, end_line: int, end_offset: int) -> Loc:
    return Loc(file, line, _characters(file, line, offset) + 1, end_line, _characters(file, end_line, end_offset))


def frame_loc(frame: types.FrameType, lasti: int | None = None) -> Loc:
    """Where a frame is now (or was at instruction `lasti`), to the column."""
    line, end_line, column, end = list(frame.f_code.co_positions())[(frame.f_lasti if lasti is None else lasti) // 2]
    first = line or frame.f_lineno
    return loc_at(frame.f_code.co_filename, first, column or 0, end_line or first, end or 0)


def user_frame(files: Iterable[str]) -> types.FrameType | None:
    """The innermost running frame of the mod's code, not of the user's code that called the lab."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename not in files:
        frame = None if frame.f_globals.get("__name__") == "cute_lab.trace" else frame.f_back
    return frame


def span(node: ast.AST, file: str) -> Loc:
    at: ast.expr = node  # type: ignore[assignment]  # every node that we ask for has a position
    return loc_at(file, at.lineno, at.col_offset, at.end_lineno or at.lineno, at.end_col_offset or 0)


def _inside(node: ast.AST, loc: Loc) -> bool:
    if not isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
        return False
    at = span(node, loc.file)
    first, last = (loc.line, loc.column), (loc.end_line or loc.line, loc.end_column or loc.column)
    return (at.line, at.column) <= first and last <= (at.end_line, at.end_column)


def enclosing(loc: Loc) -> list[ast.AST]:
    """The nodes that hold a place, outermost first."""
    out: list[ast.AST] = []
    todo: list[ast.AST] = [tree(loc.file) or ast.Module([], [])]
    while todo:
        node = todo.pop()
        inner = [child for child in ast.iter_child_nodes(node) if not hasattr(child, "lineno") or _inside(child, loc)]
        if _inside(node, loc):
            out.append(node)
        todo += inner
    return out


def assigned_name(loc: Loc) -> str | None:
    """`d` for the place of `q_idx - kv_idx` in `d = q_idx - kv_idx`."""
    for node in reversed(enclosing(loc)):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value, target = node.value, targets[0]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = list(zip(target.elts, value.elts, strict=True))
            else:
                pairs = [(target, value)]
            for name, expression in pairs:
                if isinstance(name, ast.Name) and span(expression, loc.file) == loc:
                    return name.id
            return None
    return None


def root_name(node: ast.AST) -> str | None:
    """`np` in `np.linalg.norm(x)`."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def lookup(frame: types.FrameType, name: str) -> object:
    for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
        if name in scope:
            return scope[name]
    return None


def function_node(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda | None:
    """The definition in the user's text."""
    module = tree(function.__code__.co_filename)
    best: ast.FunctionDef | ast.Lambda | None = None
    for node in ast.walk(module) if module else ():
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            if first == function.__code__.co_firstlineno and getattr(node, "name", "<lambda>") == function.__code__.co_name:
                best = node
    return best


def calls(node: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Call))
