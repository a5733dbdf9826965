"""The user's text: which expression stands at a place, what it is assigned to, and what a name there means."""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import linecache
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from cute_lab.errors import Loc

T = TypeVar("T")


def words_of(error: BaseException) -> str:
    """The first line of its message; with a guess where an attribute does not exist, as Python adds only to what it prints itself."""
    words = str(error).split("\n")[0]
    if isinstance(error, AttributeError) and error.name and error.obj is not None:
        known = [name for name in dir(error.obj) if not name.startswith("_")]
        swapped = [name for name in known if sorted(name) == sorted(error.name)]  # tahn: rather tanh than tan
        close = swapped or difflib.get_close_matches(error.name, known, n=1, cutoff=0.6)
        words += f" (did you mean '{close[0]}'?)" if close else ""
    return words


def parse(text: str, file: str = "<unknown>") -> ast.Module:
    return unclashed(lambda: ast.parse(text, file))


def unclashed(parses: Callable[[], T]) -> T:
    """CPython up to 3.12 counts depth for all threads together, and says SystemError where two parse at once: try again."""
    for _ in range(5):
        try:
            return parses()
        except Exception as error:
            if not _is_clash(error):
                raise
    return parses()


def _is_clash(error: BaseException | None) -> bool:
    """What the DSL makes of it counts too."""
    return error is not None and ("recursion depth mismatch" in str(error) or _is_clash(error.__cause__ or error.__context__))


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return parse(text)
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
    return _assigned_name(tree(loc.file), loc)


@functools.lru_cache(maxsize=4096)
def _assigned_name(text: ast.Module | None, loc: Loc) -> str | None:
    """Remembered as long as the text is the same one: a slider's step asks for the same places again."""
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


def out_of_place(loc: Loc) -> str:
    """`score = score * 2` for `score *= 2`, `x = x.add(y)` for `x.add_(y)`."""
    for node in reversed(enclosing(loc)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return f"{node.target.id} = {ast.unparse(ast.BinOp(node.target, node.op, node.value))}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            target = ast.unparse(node.func.value)
            return f"{target} = {target}.{node.func.attr.rstrip('_')}({', '.join(map(ast.unparse, [*node.args]))})"
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Assign) and len(targets) == 1 and isinstance(targets[0], ast.Subscript):
            target, where = ast.unparse(targets[0].value), ast.unparse(targets[0].slice)
            return f"{target} = torch.where({where}, {ast.unparse(node.value)}, {target})"
    return "new = score * 2    # a new value"


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


def enclosing_names(loc: Loc | None) -> list[str]:
    """Names of the functions around: a misspelt name is no free variable of the closure."""
    names: list[str] = []
    for node in enclosing(loc) if loc else ():
        if isinstance(node, ast.FunctionDef):
            names += [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return names


def name_place(loc: Loc | None, name: str) -> Loc | None:
    for node in ast.walk(tree(loc.file) or ast.Module([], [])) if loc else ():
        if isinstance(node, ast.Name) and node.id == name and loc is not None and node.lineno == loc.line:
            return span(node, loc.file)
    return loc


def returned(node: ast.AST | None, out: object) -> ast.Return | ast.expr | None:
    """What gave the result: a lambda's body, the `return` of that very constant, else the last `return` of the function itself."""
    if isinstance(node, ast.Lambda):
        return node.body
    found: list[ast.Return] = []
    todo: list[ast.AST] = list(node.body) if isinstance(node, ast.FunctionDef) else []
    while todo:
        inner = todo.pop()
        if isinstance(inner, ast.Return):
            found.append(inner)
        if not isinstance(inner, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += [n for n in ast.iter_child_nodes(inner) if isinstance(n, (ast.stmt, ast.excepthandler, ast.match_case))]
    found.sort(key=lambda r: r.lineno)
    constant = [r for r in found if isinstance(r.value, ast.Constant) and type(r.value.value) is type(out) and r.value.value == out]
    return next(reversed(constant or found), None)


def condition(value: ast.expr) -> str | None:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "torch.where" and value.args:
        return ast.unparse(value.args[0])
    return None


def function_of(mod: object) -> types.FunctionType | None:
    """The Python function that runs first: behind partials, methods and callable objects."""
    target: Any = mod
    while isinstance(target, functools.partial):
        target = target.func
    if isinstance(target, types.MethodType):
        target = target.__func__
    if not isinstance(target, types.FunctionType):
        target = getattr(type(target), "__call__", None)  # noqa: B004  (the function itself, inherited or not)
    return target if isinstance(target, types.FunctionType) else None


def definition(mod: object) -> Loc | None:
    function = function_of(mod)
    if function is None:
        return None
    node = function_node(function)
    file = function.__code__.co_filename
    if node is None:
        return Loc(file, function.__code__.co_firstlineno)
    at = span(node, file)
    text = Loc(file, at.line).text
    return Loc(file, at.line, at.column, at.line, len(text))
