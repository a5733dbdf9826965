"""From what went wrong while the user's function ran, to the error that names the line and what to write."""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import types
from pathlib import Path
from typing import Any

import torch

from cute_lab import usercode
from cute_lab.branches import number_asked
from cute_lab.capture import Mod, captured, slots
from cute_lab.errors import (
    CuteLabError,
    LeavesTorch,
    Loc,
    RandomInMod,
    ReturnsNone,
    SideEffect,
    UndefinedName,
    UnsupportedOp,
    UserCodeError,
    WrongArity,
    WrongResultType,
)
from cute_lab.ir import INPUTS
from cute_lab.tracer import RANDOM_HINT, Tracer
from cute_lab.usercode import definition
from cute_lab.usercode import function_of as function_of

PACKAGE = str(Path(__file__).parent)
PASS_ON = frozenset(("__torch_function__", "__torch_dispatch__", "lower_call", "run", "move", "trace"))  # call what the user called
NAMES = {kind: tuple(name for name, _ in rows) for kind, rows in INPUTS.items()}
MUTATORS = frozenset(("append", "extend", "add", "update", "insert", "write", "setdefault", "pop", "clear", "remove"))
SEEDS = frozenset(("torch.manual_seed", "torch.seed", "torch.random.manual_seed", "torch.Generator", "torch.set_rng_state"))
WORLD = frozenset(("print", "open", "input", "breakpoint"))
CLOCKS = frozenset(("time", "datetime", "os", "sys", "logging", "warnings"))  # modules whose calls read or change the world
# math.x whose torch function has another name
TORCH_NAME = {"fabs": "abs", "pow": "pow", "maximum": "maximum", "minimum": "minimum", "absolute": "abs", "power": "pow", "inf": "inf"}


def check_arity(mod: Mod, kind: str) -> None:
    names = NAMES[kind]
    try:
        parameters = list(inspect.signature(mod).parameters.values())
    except (TypeError, ValueError):
        return
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    keyword_only = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(required) <= len(names) <= len(positional) and not keyword_only:
        return
    given = [p.name for p in positional]
    lacking = [n for n in names if n not in given] if len(given) < len(names) else []
    missing = f" and {', '.join(lacking)} is missing" if len(lacking) == len(names) - len(given) and lacking else ""
    unknown = [p.name for p in required if p.name not in names]
    surplus = (unknown or [p.name for p in required])[len(names) - len(required) :] if len(required) > len(names) else []
    surplus += [p.name for p in keyword_only]
    if kind == "mask" and surplus == ["score"]:
        missing = "; a mask has no score"
    elif surplus and not missing:
        missing = f", and nobody passes {', '.join(surplus)}: capture it, give it a default, or use functools.partial"
    raise WrongArity(
        loc=definition(mod), kind=f"{kind}_mod", expected="(" + ", ".join(names) + ")", count=len(required), missing=missing, n=len(names)
    )


def _user_functions(mod: Mod) -> list[types.FunctionType]:
    """The mod and its helpers, as far as they are the user's text."""
    from cute_lab.capture import of_torch

    found: dict[int, types.FunctionType] = {}
    todo: list[Any] = [mod]
    while todo:
        item = todo.pop()
        if isinstance(item, functools.partial):
            todo.append(item.func)
        elif isinstance(item, (tuple, list)):
            todo += [i for i in item if callable(i)]
        elif (f := function_of(item) if callable(item) and not isinstance(item, type) else None) is not None and id(f) not in found:
            found[id(f)] = f
            todo += [v for _, _, v in slots(f) if isinstance(v, (types.FunctionType, functools.partial, tuple, list))]
    return [f for f in found.values() if not of_torch(f)]


def check_text(mod: Mod) -> None:
    """What tracing can't see: prints, random Python numbers, writes to variables and containers outside."""
    for function in _user_functions(mod):
        node = usercode.function_node(function)
        if node is None:
            continue
        file = function.__code__.co_filename
        local = set(function.__code__.co_varnames)
        outside = {name: value for _, name, value in slots(function)}
        first = function.__code__.co_varnames[:1]
        if first in (("self",), ("cls",)):  # what a method writes to its object outlives the mod
            local, outside = local - {*first}, outside | {first[0]: None}
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Global, ast.Nonlocal)):
                loc = usercode.span(inner, file)
                raise SideEffect(loc=loc, snippet=loc.snippet, call=inner.names[0], advice="Return what you need, or compute it outside.")
        for call in usercode.calls(node):
            root = usercode.root_name(call.func)
            module = outside.get(root or "")
            loc = usercode.span(call, file)
            if isinstance(module, types.ModuleType) and module.__name__ == "torch" and ast.unparse(call.func) in SEEDS:
                raise RandomInMod(loc=loc, snippet=loc.snippet, example=RANDOM_HINT)
            if isinstance(module, (types.ModuleType, type)) and module.__name__ in CLOCKS:
                raise SideEffect(loc=loc, snippet=loc.snippet, call=ast.unparse(call.func), advice="Read it outside and capture the value.")
            if root in WORLD and isinstance(call.func, ast.Name) and root not in outside:
                advice = "Remove it, or evaluate the mod eagerly for debugging:\nmod(torch.tensor(1.0), *map(torch.tensor, (0, 0, 5, 3)))"
                raise SideEffect(loc=loc, snippet=loc.snippet, call=root, advice=advice)
            if isinstance(module, types.ModuleType) and (
                module.__name__ == "random" or ast.unparse(call.func).startswith(f"{root}.random.")
            ):
                raise RandomInMod(loc=loc, snippet=loc.snippet, example=RANDOM_HINT)
            if isinstance(call.func, ast.Attribute) and call.func.attr in MUTATORS and root in outside and root not in local:
                if isinstance(outside[root], (list, dict, set)) or (
                    root == "self" and call.func.attr in ("append", "extend", "setdefault")
                ):
                    raise SideEffect(
                        loc=loc, snippet=loc.snippet, call=call.func.attr, advice="Return what you need, or compute it outside."
                    )
        for inner in ast.walk(node):
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target] if isinstance(inner, ast.AugAssign) else []
            for target in targets:
                root = usercode.root_name(target) if isinstance(target, (ast.Subscript, ast.Attribute)) else None
                if root in outside and root not in local and not isinstance(outside[root], torch.Tensor):
                    loc = usercode.span(inner, file)
                    raise SideEffect(
                        loc=loc,
                        snippet=loc.snippet,
                        call=f"the assignment to {root}",
                        advice="Return what you need, or compute it outside.",
                    )


def _call_at(loc: Loc) -> ast.Call | None:
    return next((n for n in reversed(usercode.enclosing(loc)) if isinstance(n, ast.Call)), None)


def leaves_torch(t: Tracer, loc: Loc | None = None) -> CuteLabError:
    """numpy, math or another library was given a tensor of the mod."""
    frame = usercode.user_frame(t.seen.files)
    at = loc or t.here()
    call = _call_at(at) if at else None
    inner = usercode.enclosing(at)[-1] if at and usercode.enclosing(at) else None
    if at is not None and isinstance(inner, (ast.Subscript, ast.BinOp)):  # an array of numpy, indexed by a position or added to the score
        names = [n.id for n in ast.walk(inner) if isinstance(n, ast.Name)]
        arrays = [n for n in names if frame is not None and type(usercode.lookup(frame, n)).__module__ == "numpy"]
        if arrays:
            replacement = f"torch.from_numpy({arrays[0]})"
            return LeavesTorch(loc=at, snippet=at.snippet, library=f"the numpy array `{arrays[0]}`", replacement=replacement)
    if call is None or at is None or not isinstance(call.func, (ast.Attribute, ast.Name)):
        return UserCodeError("a tensor of the mod left torch", loc=at, error="TypeError", function="the mod")
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    root = usercode.root_name(call.func)
    value = usercode.lookup(frame, root) if frame is not None and root else None
    library = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or root
    target = TORCH_NAME.get(name, name)
    where = usercode.span(call, at.file)
    arguments = ", ".join(ast.unparse(a) for a in call.args)
    replacement = f"torch.{target}({arguments})" if hasattr(torch, target) else "the torch function of that meaning"
    numbers = [isinstance(a, ast.Constant) for a in call.args]
    if isinstance(getattr(torch, target, None), torch.dtype) and call.args:
        replacement = f"({arguments}).to(torch.{target})"
    elif target == "log" and len(call.args) == 2:
        replacement = f"torch.log({ast.unparse(call.args[0])}) / math.log({ast.unparse(call.args[1])})"
    elif any(numbers) and target in ("maximum", "minimum", "fmax", "fmin", "copysign"):
        made = [f"torch.tensor({ast.unparse(a)})" if n else ast.unparse(a) for a, n in zip(call.args, numbers, strict=True)]
        replacement = f"torch.{target}({', '.join(made)})"
    elif isinstance(call.func, ast.Attribute) and name in ("tolist", "numpy"):
        library, replacement = f"what {name}() gives", f"{ast.unparse(call.func.value)}    # as it is, without {name}()"
    return LeavesTorch(loc=where, snippet=where.snippet, library=library, replacement=replacement)


def from_exception(error: Exception, mod: Mod, t: Tracer) -> CuteLabError:
    """An exception of the user's function, at the user's innermost line."""
    if _is_ours(error):
        raise error
    loc, frame = _user_place(error, t)
    function = getattr(frame.f_code, "co_name", "the mod") if frame is not None else getattr(mod, "__name__", "the mod")
    if isinstance(error, NameError):
        name = error.name or str(error).split("'")[1]
        known = list(captured(mod).numbers) + [n for n, _ in captured(mod).tensors]
        known += [*frame.f_locals, *frame.f_globals] if frame is not None else []
        for f in _user_functions(mod):
            known += [*f.__code__.co_varnames, *f.__code__.co_freevars]
        known += usercode.enclosing_names(loc)
        close = difflib.get_close_matches(name, [k for k in dict.fromkeys(known) if k != name], n=1, cutoff=0.6)
        return UndefinedName(
            loc=usercode.name_place(loc, name), name=name, function=function, guess=f" (did you mean '{close[0]}'?)" if close else ""
        )
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], torch.Tensor) and loc is not None:
        return number_asked(loc, frame)
    call = _call_at(loc) if loc else None
    if isinstance(error, NotImplementedError) and "HigherOrderOperator" in str(error) and call is not None:
        detail = "It runs one of two functions by a value that differs per position. Compute both and choose."
        return UnsupportedOp(
            loc=loc, op=ast.unparse(call.func), detail=detail, example="torch.where(condition, value_if_true, value_if_false)"
        )
    root = usercode.root_name(call.func) if call else None
    value = usercode.lookup(frame, root) if frame is not None and root else None
    if (
        isinstance(value, types.ModuleType)
        and not value.__name__.startswith("torch")
        and isinstance(error, (TypeError, RuntimeError, ValueError))
    ):
        return leaves_torch(t, loc)
    return UserCodeError(usercode.words_of(error), loc=loc, error=type(error).__name__, function=function)


def _is_ours(error: Exception) -> bool:
    """A defect of cute_lab, raised by its own code and not by a call of torch's that it passes on: shown as it is."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code if trace is not None else None
    ours = code is not None and code.co_filename.startswith(PACKAGE) and code.co_name not in PASS_ON
    return ours and isinstance(error, (AttributeError, TypeError, KeyError, AssertionError, NameError, StopIteration, ZeroDivisionError))


def _user_place(error: BaseException, t: Tracer) -> tuple[Loc | None, types.FrameType | None]:
    found: tuple[Loc | None, types.FrameType | None] = (None, None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in t.seen.files:
            found = usercode.frame_loc(trace.tb_frame, trace.tb_lasti), trace.tb_frame
        trace = trace.tb_next
    return found


def result_error(out: object, mod: Mod, kind: str) -> CuteLabError:
    """The mod returned something that is no score, or no keep/drop."""
    function = function_of(mod)
    node = usercode.function_node(function) if function else None
    place = usercode.returned(node, out)
    loc = usercode.span(place, function.__code__.co_filename) if place is not None and function else definition(mod)
    value = place.value if isinstance(place, ast.Return) else place
    text = ast.unparse(value) if isinstance(value, ast.expr) else "..."
    score = kind == "score"
    if out is None:
        what = "the new score" if score else "a bool tensor (True = attend)"
        last = [n for n in ast.walk(node) if isinstance(n, ast.Assign)] if node else []
        named = ast.unparse(last[-1].targets[0]) if last else ("score" if score else "q_idx >= kv_idx")
        return ReturnsNone(loc=definition(mod), kind=f"{kind}_mod", result=what, example=named)
    if isinstance(out, torch.Tensor) and out.dim() > 0:
        shape = list(out.shape)
        return WrongResultType(
            loc=loc,
            kind=f"{kind}_mod",
            expected="one value per score",
            got=f"a tensor of shape {shape}",
            guess="",
            detail="A row of values has to be reduced to one.",
            example=f"return ({text}).sum()" if score else f"return ({text}).any()",
        )
    if isinstance(out, (tuple, list)):
        first = value.elts[0] if isinstance(value, (ast.Tuple, ast.List)) and value.elts else None
        return WrongResultType(
            loc=loc,
            kind=f"{kind}_mod",
            expected="one tensor" if score else "one bool tensor",
            got=f"a {type(out).__name__} of {len(out)}",
            guess="",
            detail="Each score becomes one value.",
            example=f"return {ast.unparse(first)}" if first is not None else "return score" if score else "return q_idx >= kv_idx",
        )
    got = str(out.dtype).removeprefix("torch.") if isinstance(out, torch.Tensor) else f"the Python {type(out).__name__} {out!r}"
    if score:
        guess = "; did you mean mask_mod=?" if got == "bool" else ""
        example = f"def mask_mod({', '.join(NAMES['mask'])}):\n    return {text}" if got == "bool" else f"return score + ({text})"
        example = f"return torch.full_like(score, {text})" if isinstance(out, (int, float)) else example
        detail = "torch would take 0 and 1 as scores, without a word." if got == "bool" else "The softmax needs floating-point scores."
        return WrongResultType(
            loc=loc, kind="score_mod", expected="a floating-point score", got=got, guess=guess, detail=detail, example=example
        )
    condition = usercode.condition(value) if isinstance(value, ast.expr) else None
    example = f"return {condition}" if condition else f"return ({text}) != 0"
    if isinstance(out, (bool, int, float)):
        example = "return q_idx >= 0    # all positions" if out else "return q_idx < 0    # no position"
        detail = "A Python value is no tensor: write a condition that holds everywhere, or nowhere."
        return WrongResultType(loc=loc, kind="mask_mod", expected="bool (True = attend)", got=got, guess="", detail=detail, example=example)
    detail = "An additive mask (0 or -inf) belongs into score_mod; here return the condition itself."
    return WrongResultType(loc=loc, kind="mask_mod", expected="bool (True = attend)", got=got, guess="", detail=detail, example=example)
