"""Mistakes that a cell shows before anything of it runs: options, names that nobody defines, Python's branches on positions and scores."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import difflib
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

from IPython.core.error import UsageError

from cute_lab import usercode
from cute_lab.branches import CONTROL, branch_example, chained
from cute_lab.capture import Mod
from cute_lab.cell import KINDS, WHERE, missing, parsed
from cute_lab.diagnose import NAMES, check_arity, check_text
from cute_lab.errors import BranchOnTensor, CuteLabError, OptionError, TensorToNumber, UndefinedName
from cute_lab.options import MAGIC, OPTIONS, SWITCHES, parse
from cute_lab.squiggles import CellText, Diagnostic, Span

PLAIN = frozenset("shape dtype device ndim layout is_cuda requires_grad dim size numel item tolist __class__".split())
NUMBERS = frozenset(("float", "int", "bool", "complex"))
PYTHON = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "slider", "In", "Out", "get_ipython", "display", "_", "__", "___"}


# -- the %% line ------------------------------------------------------------------------------------------------------------
def options(cell: CellText) -> tuple[dict[str, Any], list[Diagnostic]]:
    """The options that can be read, and what is wrong with the others, each at its place."""
    given: dict[str, Any] = {}
    found: list[Diagnostic] = []
    words = cell.words()
    with contextlib.suppress(UsageError):
        try:
            parse(cell.options)
        except OptionError as error:
            if "can't be read" in error.summary and words:  # a quote is open: there are no words
                whole = Span(words[0][1].line, words[0][1].column, *words[-1][1][2:])
                return {}, [_said(error, whole, cell.options)]
    while words:
        word, span = words.pop(0)
        flag = word.partition("=")[0]
        if flag in OPTIONS and word == flag and words and not words[0][0].startswith("--"):
            value, end = words.pop(0)
            word, span = f"{word} {value}", Span(span.line, span.column, end.end_line, end.end_column)
        try:
            one = parse(word)
        except (OptionError, UsageError) as error:
            found.append(_said(error, span, word))
            if word.startswith("--") and flag not in OPTIONS and "=" not in word and words and not words[0][0].startswith("--"):
                words.pop(0)  # its value
            continue
        for name, value in one.items():
            given[name] = [*given.get(name, []), *value] if isinstance(value, list) else value
    return given, found


def _said(error: Exception, span: Span, word: str) -> Diagnostic:
    if isinstance(error, CuteLabError):
        return Diagnostic(*span, "error", says(error), error.hint)
    guess = re.search(r"\(did you mean (--[\w-]+)\?\)", str(error))
    known = f"Known: {', '.join((*OPTIONS, *SWITCHES))}."
    meant = f" (did you mean {guess[1]}?)" if guess else ""
    return Diagnostic(*span, "error", f"%%{MAGIC} has no option {word.partition('=')[0]}{meant}\n{known}", guess[1] if guess else "")


def says(error: CuteLabError) -> str:
    return "\n".join(filter(None, (error.summary, error.reason)))


# -- the functions' signatures and texts -------------------------------------------------------------------------------------
def tree_of(cell: CellText) -> ast.Module:
    """Raises CellSyntaxError."""
    return parsed(cell.code, cell.file)


def stubs(cell: CellText, tree: ast.Module, namespace: Mapping[str, Any]) -> Iterator[CuteLabError]:
    """Signatures, and what a function's text alone tells. The definitions are made, nothing else of the cell runs."""
    definitions = [_bare(s) for s in tree.body if isinstance(s, ast.FunctionDef)]
    bound = {name for s in tree.body for name in _stores(s)}
    if not bound & set(KINDS):
        yield missing(tree, cell.file)
    elif not any(s.name in KINDS for s in definitions):
        return
    scope = {"__name__": "__main__", **namespace}
    code = compile(ast.Module(list(definitions), []), cell.file, "exec", dont_inherit=True)
    exec(code, scope)
    for name in KINDS:
        mod: Mod | None = scope.get(name)
        if not isinstance(mod, types.FunctionType) or mod.__code__.co_filename != cell.file:
            continue
        try:
            check_arity(mod, name.removesuffix("_mod"))
        except CuteLabError as error:
            yield error
        try:
            check_text(mod)
        except CuteLabError as error:
            yield error


def _bare(s: ast.FunctionDef) -> ast.FunctionDef:
    """Without what runs when it is defined."""
    nothing = ast.copy_location(ast.Constant(None), s)
    a, made = s.args, copy.copy(s)
    made.decorator_list, made.returns, made.args = [], None, copy.copy(a)
    made.args.defaults, made.args.kw_defaults = [nothing for _ in a.defaults], [d and nothing for d in a.kw_defaults]
    for group in ("posonlyargs", "args", "kwonlyargs"):
        setattr(made.args, group, [_plain(x) for x in getattr(a, group)])
    made.args.vararg, made.args.kwarg = (x and _plain(x) for x in (a.vararg, a.kwarg))
    return made


def _plain(x: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(x.arg, None), x)


# -- names ------------------------------------------------------------------------------------------------------------------
def _stores(node: ast.AST) -> Iterator[str]:
    """Names that a scope binds: those of inner functions are their own."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    for child in ast.iter_child_nodes(node):
        yield from _stores(child)


def undefined(cell: CellText, tree: ast.Module, namespace: Mapping[str, Any]) -> Iterator[UndefinedName]:
    own = [name for s in tree.body for name in _stores(s)]
    if "*" in own:
        return
    known = dict.fromkeys([*own, *namespace])

    def look(node: ast.AST, names: frozenset[str], where: str) -> Iterator[UndefinedName]:
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.AsyncFunctionDef)):
            a = node.args
            body = node.body if isinstance(node.body, list) else [node.body]
            outside = [*a.defaults, *(d for d in a.kw_defaults if d), *getattr(node, "decorator_list", [])]
            for part in outside:
                yield from look(part, names, where)
            arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)]
            names = names | {x.arg for x in arguments} | {n for part in body for n in _stores(part)}
            for part in body:
                yield from look(part, names, getattr(node, "name", where))
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in names and node.id not in known:
            if node.id not in PYTHON:
                near = [n for n in dict.fromkeys([*names, *known]) if not n.startswith("_") and n not in PYTHON]
                close = difflib.get_close_matches(node.id, near, n=1, cutoff=0.6)
                guess = f" (did you mean '{close[0]}'?)" if close else ""
                yield UndefinedName(loc=usercode.span(node, cell.file), name=node.id, function=where, guess=guess)
        if isinstance(node, ast.ClassDef):
            names = names | {n for part in node.body for n in _stores(part)}
        for child in ast.iter_child_nodes(node):
            yield from look(child, names, where)

    for statement in tree.body:
        yield from look(statement, frozenset(), WHERE)


# -- branches on what differs per position ----------------------------------------------------------------------------------------
def branches(cell: CellText, tree: ast.Module) -> Iterator[CuteLabError]:
    """As far as a mod's own text tells; only tracing knows what helpers return."""
    for s in tree.body:
        if isinstance(s, ast.FunctionDef) and s.name in KINDS:
            given = frozenset(NAMES[s.name.removesuffix("_mod")])
            derived = given & {a.arg for a in s.args.args}
            before: frozenset[str] | None = None
            while derived != before:  # a name is derived if one of its values is
                before, derived = derived, derived | {n for a in ast.walk(s) for n in _assigned(a, derived)}
            yield from _branches_in(cell, s, [], derived)


def _assigned(node: ast.AST, derived: frozenset[str]) -> Iterator[str]:
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None and _is(node.value, derived):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _is(e: ast.AST, derived: frozenset[str]) -> bool:
    """Does the expression's value depend on a position or the score?"""
    if isinstance(e, ast.Name):
        return e.id in derived
    if isinstance(e, ast.Attribute) and e.attr in PLAIN:
        return False
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in ("isinstance", "len", "type", "id", "callable"):
        return False
    if isinstance(e, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in e.ops):
        return False
    if isinstance(e, ast.Lambda):
        return False
    return any(_is(child, derived) for child in ast.iter_child_nodes(e))


def _branches_in(cell: CellText, node: ast.AST, around: list[ast.AST], derived: frozenset[str]) -> Iterator[CuteLabError]:
    error = _branch(cell, node, [*around, node], derived)
    if error is not None:
        yield error
    for child in ast.iter_child_nodes(node):
        yield from _branches_in(cell, child, [*around, node], derived)


def _branch(cell: CellText, node: ast.AST, around: list[ast.AST], derived: frozenset[str]) -> CuteLabError | None:
    test = getattr(node, "test", None)
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)) and test is not None:
        if not _is(test, derived) or isinstance(test, ast.BoolOp) or chained(test):
            return None  # what is inside of the condition comes first
        shown: ast.AST = test
    elif isinstance(node, ast.BoolOp):
        if not any(_is(v, derived) for v in node.values[:-1]):
            return None
        shown = node
    elif chained(node) and _is(node, derived):
        shown = node
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and _is(node.operand, derived):
        loc = usercode.span(node, cell.file)
        return BranchOnTensor(loc=loc, construct="not", subject="a value of the mod", example=f"~({ast.unparse(node.operand)})")
    elif isinstance(node, ast.Call):
        return _number(cell, node, derived)
    else:
        return None
    loc = usercode.span(shown, cell.file)
    index = "idx" in loc.snippet or loc.snippet.strip() in ("b", "h")
    example = branch_example(node, around, loc)
    subject = "an index" if index else "a value of the mod"
    return BranchOnTensor(loc=loc, construct=CONTROL[type(node)], subject=subject, example=example)


def _number(cell: CellText, call: ast.Call, derived: frozenset[str]) -> CuteLabError | None:
    loc = usercode.span(call, cell.file)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and _is(call.func.value, derived):
        return TensorToNumber(loc=loc, snippet=loc.snippet, example=f"{ast.unparse(call.func.value)}    # as it is, without item()")
    if isinstance(call.func, ast.Name) and call.func.id in NUMBERS and call.args and _is(call.args[0], derived):
        return TensorToNumber(loc=loc, snippet=loc.snippet, example=f"{ast.unparse(call.args[0])}    # as it is, without {call.func.id}()")
    return None


def every(cell: CellText, tree: ast.Module, namespace: Mapping[str, Any]) -> list[CuteLabError]:
    found: list[CuteLabError] = []
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        found += stubs(cell, tree, namespace)
    with contextlib.suppress(RecursionError):
        found += undefined(cell, tree, namespace)
        found += branches(cell, tree)
    return found
