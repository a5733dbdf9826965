"""Cell text -> the two mods. The cell is plain Python that sees the notebook's variables and leaves the notebook as it is.

Line numbers are the editor's: a cell that starts with its `%%` line has its code from line 2 on. The text is found by
`inspect`, tracebacks and CuTeDSL under the file name that it is compiled with.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import hashlib
import linecache
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from cute_lab import usercode
from cute_lab.capture import Mod, Number, captured, is_number
from cute_lab.errors import CellError, CellSyntaxError, CuteLabError, Loc, MissingMod, OptionError, UndefinedName, UserCodeError
from cute_lab.sliders import Asked, Slider, plain, shown, slider

KINDS = ("score_mod", "mask_mod")
Given = Number | Asked
HOOK = "__cute_lab_param__"  # the cell calls it after each assignment to a parameter
WHERE = "the cell"
AT_TOP_LEVEL = "The cell itself fails, before its functions are looked at."


@dataclass(frozen=True)
class Mods:
    """What a cell defines. `params` are those given values that a mod captures: they stay run-time values of the kernel."""

    score_mod: Mod | None
    mask_mod: Mod | None
    params: Mapping[str, Number]
    namespace: dict[str, Any]
    text: str
    filename: str

    def forget_unused(self) -> None:
        """Lets go of the notebook's variables that the cell does not mention: a Lab must not keep their tensors alive."""
        mentioned = {node.id for node in ast.walk(usercode.parse(self.text)) if isinstance(node, ast.Name)}
        for name in self.namespace.keys() - mentioned:
            if not name.startswith("__"):
                del self.namespace[name]


def from_text(
    text: str, namespace: Mapping[str, Any] | None = None, filename: str | None = None, params: Mapping[str, Given] | None = None
) -> Mods:
    """Runs the text with `namespace` and `slider` in sight. `params` override numbers of the cell or the notebook, before a mod
    captures them; a range makes a slider of such a number."""
    filename = filename or remember(text)
    scope = {"__name__": "__main__", "slider": slider, **(namespace or {})}
    tree = parsed(text, filename)
    own = _own_names(text, filename)
    values = Params(params or {}, own)
    values.override(scope, tree)
    for name in KINDS:
        scope.pop(name, None)  # a mod of an earlier cell is not this cell's
    scope[HOOK] = values.assigned
    try:
        exec(compile(values.hooked(tree), filename, "exec", dont_inherit=True), scope)
    except CuteLabError as error:
        error.loc = error.loc or _place(error.__traceback__, filename)[0]
        raise
    except Exception as error:
        raise _failed(error, filename, scope) from error
    finally:
        scope.pop(HOOK, None)
    mods = {name: _mod(name, scope, tree, filename) for name in KINDS}
    if not any(mods.values()):
        raise missing(tree, filename)
    params = values.captured_by(mods, scope)
    _check_sliders(mods, {name: scope.get(name) for name in own}, tree, filename)
    return Mods(mods["score_mod"], mods["mask_mod"], params, scope, text, filename)


def remember(text: str) -> str:
    """A file name under which Python finds the text; for text that no notebook holds."""
    name = f"<cute_lab:{hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


class Params:
    """`--param name=value`: which numbers a cell reads, and their new values in the type that the code gave them."""

    def __init__(self, given: Mapping[str, Given], own: frozenset[str]) -> None:
        self.given, self.own = given, own
        self.values: dict[str, Number] = {}  # what the code uses
        self.seen: dict[str, Number] = {}  # the numbers that it would have used

    def override(self, scope: dict[str, Any], tree: ast.Module) -> None:
        """The notebook's variables, in the cell's view of them."""
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for name in self.given:
            if name in scope and name in read and name not in self.own:
                scope[name] = self.assigned(name, scope[name])

    def assigned(self, name: str, value: object) -> Number:
        given = self.given[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise OptionError(f"--param {name}: `{name}` is a {type(value).__name__} in the code, only numbers can be set")
        self.seen[name] = plain(value)
        if isinstance(given, Asked):
            self.values[name] = given.slider(f"--param {name}", f"--param {name}", plain(value))
            return self.values[name]
        if isinstance(value, int) and isinstance(given, float):
            if not given.is_integer():
                example = f"--param {name}={value}"
                raise OptionError(f"--param {name}: `{name}` is an integer in the code, {given!r} is not", example=example)
            given = int(given)
        given = float(given) if isinstance(value, float) else given
        if isinstance(value, Slider) and given not in value.range:
            example = f"--param {name}={shown(min(max(given, value.low), value.high))}"
            raise OptionError(f"--param {name}: {shown(given)} is outside of the slider's {value.range}", example=example)
        self.values[name] = value.range.at(given) if isinstance(value, Slider) else given
        return self.values[name]

    def hooked(self, tree: ast.Module) -> ast.Module:
        """`window = 512` is followed by `window = HOOK("window", window)`, with no line of its own."""
        body: list[ast.stmt] = []
        for statement in tree.body:
            body.append(statement)
            for name in sorted(self.given.keys() & set(_bound(statement))):
                call = ast.Call(ast.Name(HOOK, ast.Load()), [ast.Constant(name), ast.Name(name, ast.Load())], [])
                set_again = ast.Assign([ast.Name(name, ast.Store())], call)
                body.append(ast.fix_missing_locations(ast.copy_location(set_again, statement)))
        return ast.Module(body, tree.type_ignores)

    def captured_by(self, mods: Mapping[str, Mod | None], scope: Mapping[str, Any]) -> dict[str, Number]:
        numbers: dict[str, Number] = {}
        for mod in mods.values():
            numbers |= captured(mod).numbers if mod is not None else {}
        known = [*numbers, *(name for name in sorted(self.own) if is_number(scope.get(name)))]
        for name in self.given:
            if name in numbers and name not in self.seen:
                self.assigned(name, numbers[name])
            elif name not in self.seen:
                raise _no_number(name, known, self.given[name])
        return {name: value for name, value in self.values.items() if name in numbers}


def _no_number(name: str, known: list[str], value: Given) -> OptionError:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f" (did you mean '{close[0]}'?)" if close else ""
    detail = f"The cell uses the numbers {', '.join(dict.fromkeys(known))}." if known else "The cell uses no number that has a name."
    number = f"slider({shown(value.low)}, {shown(value.high)}, {shown(value.low)})" if isinstance(value, Asked) else value
    example = f"--param {close[0]}={value}" if close else f"{name} = {number}"
    return OptionError(f"--param {name}: no number is called '{name}'{guess}", detail=detail, example=example)


def _check_sliders(mods: Mapping[str, Mod | None], made: Mapping[str, object], tree: ast.Module, filename: str) -> None:
    """Each slider of the cell moves something."""
    used = [number for mod in mods.values() if mod is not None for number in captured(mod).numbers.values()]
    for name, value in made.items():
        if isinstance(value, Slider) and not any(number is value for number in used):
            at = next((s for s in reversed(tree.body) if name in _bound(s)), None)
            kind = next(kind for kind, mod in mods.items() if mod is not None)
            detail = "What the cell computes from it outside of the functions is a plain number that does not move. Compute it inside."
            example = f"{_signature(kind).splitlines()[0]}    # use `{name}` in here"
            loc = usercode.span(at, filename) if at else None
            raise OptionError(f"the slider `{name}` moves nothing: no mod reads it", detail=detail, example=example, loc=loc)


def parsed(text: str, filename: str) -> ast.Module:
    try:
        tree = usercode.parse(text, filename)
        compile(tree, filename, "exec", dont_inherit=True)  # `return` outside of a function is found here
        return tree
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), max(1, len(text.splitlines())))
        start = max(error.offset or 1, 1)
        same_line = error.end_lineno in (None, line)
        end = (error.end_offset or 0) - 1 if same_line else len(linecache.getline(filename, line).rstrip("\n"))
        loc = Loc(filename, line, start, line, max(start, end))
        raise CellSyntaxError(error.msg, loc=loc) from None
    except ValueError as error:  # a NUL character
        line = text[: text.find("\0")].count("\n") + 1
        raise CellSyntaxError(str(error), loc=Loc(filename, line)) from None


def _own_names(text: str, filename: str) -> frozenset[str]:
    symbols = symtable.symtable(text, filename, "exec").get_symbols()
    return frozenset(s.get_name() for s in symbols if s.is_assigned() or s.is_imported() or s.is_namespace())


def _bound(node: ast.AST) -> Iterator[str]:
    """Names that a statement binds at the top level: not those inside of functions, classes and comprehensions."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    if not isinstance(node, inner):
        for child in ast.iter_child_nodes(node):
            yield from _bound(child)


def _mod(name: str, scope: Mapping[str, Any], tree: ast.Module, filename: str) -> Mod | None:
    value = scope.get(name)
    if value is None or callable(value):
        return value
    at = next((s for s in reversed(tree.body) if name in _bound(s)), None)
    loc = usercode.span(at, filename) if at else None
    raise OptionError(f"{name} must be a function, not the {type(value).__name__} {value!r}", example=_signature(name), loc=loc)


def _signature(kind: str) -> str:
    score = kind == "score_mod"
    return f"def {kind}({'score, ' if score else ''}b, h, q_idx, kv_idx):\n    return {'score' if score else 'q_idx >= kv_idx'}"


def missing(tree: ast.Module, filename: str) -> MissingMod:
    """A function of a similar name is shown, with the name that it should have."""
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    likeness = {s.name: _likely(s) for s in functions}
    best = max(functions, key=lambda s: likeness[s.name][0], default=None)
    if best is None or likeness[best.name][0] < 0.5:
        return MissingMod()
    kind = likeness[best.name][1]
    line = linecache.getline(filename, best.lineno)
    start = line.find(best.name, best.col_offset) + 1
    error = MissingMod(loc=Loc(filename, best.lineno, start, best.lineno, start + len(best.name) - 1))
    error.reason += f" Did you mean `{kind}` where the cell defines `{best.name}`?"
    error.hint = f"def {kind}({ast.unparse(best.args)}):"
    return error


def _likely(function: ast.FunctionDef) -> tuple[float, str]:
    """How much a function looks like a mod (0 to 1) and like which: by its name, or by taking 4 or 5 values."""
    likeness, kind = max((difflib.SequenceMatcher(None, function.name.lower(), kind).ratio(), kind) for kind in KINDS)
    if likeness >= 0.7:
        return likeness, kind
    return {5: (0.6, "score_mod"), 4: (0.6, "mask_mod")}.get(len(function.args.args), (0.0, kind))


def _failed(error: Exception, filename: str, scope: Mapping[str, Any]) -> CellError:
    """An exception of the cell's own code, at its innermost line in the cell."""
    loc, frame_name = _place(error.__traceback__, filename)
    function = WHERE if frame_name in ("<module>", "") else frame_name
    if isinstance(error, NameError) and error.name:
        known = [name for name in (*scope, *vars(builtins)) if not name.startswith("_")]
        close = difflib.get_close_matches(error.name, known, n=1, cutoff=0.6)
        guess = f" (did you mean '{close[0]}'?)" if close else ""
        return UndefinedName(loc=loc, name=error.name, function=function, guess=guess)
    message = usercode.words_of(error) or "no message"
    failed = UserCodeError(message, loc=loc, error=type(error).__name__, function=function)
    failed.reason = AT_TOP_LEVEL
    return failed


def _place(trace: TracebackType | None, filename: str) -> tuple[Loc | None, str]:
    found: tuple[Loc | None, str] = (None, "")
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            found = usercode.frame_loc(trace.tb_frame, trace.tb_lasti), trace.tb_frame.f_code.co_name
        trace = trace.tb_next
    return found
