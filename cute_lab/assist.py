"""What an editor shows of a %%cute_attention cell while it is typed: every mistake at its place with its mends, and what will be slow.

The text alone is looked at always. Where the cell only computes (harmless.py) it is also run and traced, in a thread of its own and
within limits, so that what is said here is what running it would say. Nothing is compiled, nothing of the notebook is changed, and
nothing is kept.
"""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cute_lab import advice, build, diagnose, heavy, offsets, quickfix, untraced
from cute_lab.cell import from_text
from cute_lab.errors import CellSyntaxError, CuteLabError
from cute_lab.harmless import judge
from cute_lab.ir import inputs_of
from cute_lab.lab import Lab, attention
from cute_lab.limits import Exceeded, Modest, within
from cute_lab.options import AUTO, NONE, SHAPE
from cute_lab.record import Note
from cute_lab.squiggles import CellText, Diagnostic, Fix, Span

NOT_OURS = "the cell has no %%cute_attention line"
BROKEN = "the cell does not parse"
DEEP = "the cell is nested too deeply"
MODULE = "__cute_lab_typed__"  # what the cell's code is called while it is typed
TYPED = rf"<cute_lab:typed|{MODULE}"


@dataclass
class Answer:
    diagnostics: list[Diagnostic] = field(default_factory=list)
    annotations: list[tuple[int, str]] = field(default_factory=list)
    ran: bool = False
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "diagnostics": [d.to_json() for d in self.diagnostics],
            "annotations": [{"line": line, "text": text} for line, text in self.annotations],
            "ran": self.ran,
            "why": self.why,
        }


@dataclass
class Traced:
    """What running the cell has given, or what was wrong."""

    lab: Lab | None = None
    errors: list[CuteLabError] = field(default_factory=list)
    why: str = ""


def look(text: str, namespace: Mapping[str, Any]) -> Answer:
    cell = CellText.of(text)
    if cell is None:
        return Answer(why=NOT_OURS)
    given, wrong = untraced.options(cell)
    wrong = [_mended_option(d) for d in wrong]
    namespace = {**namespace, "__name__": MODULE}
    quiet()
    with cell.remembered():
        try:
            tree = untraced.tree_of(cell)
        except CellSyntaxError as broken:
            return Answer([*wrong, _diagnostic(broken, cell, None, "static")], why=BROKEN)
        except (RecursionError, MemoryError):
            return Answer(wrong, why=DEEP)
        traced = trace(cell, tree, namespace, given)
        found = [_diagnostic(error, cell, tree, "trace") for error in traced.errors]
        seen = [d.span[:2] for d in found]
        if traced.lab is None:  # else tracing has been everywhere
            for error in untraced.every(cell, tree, namespace):
                one = _diagnostic(error, cell, tree, "static")
                if one.span[:2] not in seen:
                    seen.append(one.span[:2])
                    found.append(one)
            return Answer(_sorted([*wrong, *found]), [], traced.why == "", traced.why)
        notes, annotations = _slow(traced.lab, cell, tree, given)
        return Answer(_sorted([*wrong, *found, *notes]), annotations, True)


def quiet() -> None:
    """Warnings of text that is being typed would be printed into the notebook at every key. One filter, for all threads and times: to set
    filters for a while is not safe beside a running cell."""
    if not any(f[3] is not None and getattr(f[3], "pattern", f[3]) == TYPED for f in warnings.filters):
        warnings.filterwarnings("ignore", module=TYPED)


def trace(cell: CellText, tree: ast.Module, namespace: Mapping[str, Any], given: Mapping[str, Any]) -> Traced:
    """The cell's Lab, if the cell may be run while it is typed."""
    try:
        verdict = judge(tree, namespace)
    except RecursionError:
        return Traced(why=DEEP)
    if verdict.top:
        return Traced(why=verdict.top)
    try:
        return within(lambda: _run(cell, namespace, given, verdict.body))
    except Exceeded as limit:
        return Traced(why=f"not run while typing: {limit}")


def _run(cell: CellText, namespace: Mapping[str, Any], given: Mapping[str, Any], why: str) -> Traced:
    with Modest():
        try:
            mods = from_text(cell.code, namespace, cell.file, dict(given.get("--param", ())))
        except CuteLabError as error:
            return Traced(errors=[error])
        errors: list[CuteLabError] = []
        if why:  # the functions are not called: their texts may still tell
            for kind, mod in (("score", mods.score_mod), ("mask", mods.mask_mod)):
                with _kept(errors):
                    if mod is not None:
                        diagnose.check_arity(mod, kind)
                        diagnose.check_text(mod)
            return Traced(errors=errors, why=why)
        names = tuple(dict.fromkeys(name for name in given.get("--target", ()) if name not in (AUTO, NONE)))
        wanted: dict[str, Any] = {flag.strip("-"): given[flag] for flag in SHAPE if flag in given}
        wanted |= {"target": names or (NONE if NONE in given.get("--target", ()) else AUTO), "fast_math": "--fast-math" in given}
        try:
            lab = attention(mods.score_mod, mods.mask_mod, params=mods.params, **wanted)
            lab.live.hold()
            return Traced(lab)
        except CuteLabError as error:
            errors = [error]
        if mods.score_mod is not None and mods.mask_mod is not None and errors[0].loc is not None:
            with _kept(errors):  # the first mistake hides those of the mask
                attention(None, mods.mask_mod, **wanted)
        return Traced(errors=list({(e.loc, e.summary): e for e in errors}.values()))


@contextlib.contextmanager
def _kept(errors: list[CuteLabError]) -> Iterator[None]:
    try:
        yield
    except CuteLabError as error:
        errors.append(error)


# -- mistakes -----------------------------------------------------------------------------------------------------------------
def _diagnostic(error: CuteLabError, cell: CellText, tree: ast.Module | None, source: Any) -> Diagnostic:
    span = cell.span(error.loc) if error.loc is not None and error.loc.file == cell.file else _option(error.summary, cell)
    fixes = quickfix.of(error, cell, tree) if tree is not None else ()
    found = Diagnostic(*span, "error", untraced.says(error), error.hint, fixes, source)
    return _mended_option(found) if error.loc is None and span != cell.magic() else found


def _option(words: str, cell: CellText) -> Span:
    """Where on the %% line a mistake without a place stands: at the options that it names, else at the magic's name."""
    named = {flag for flag in ("B", "H", "Hkv", "Sq", "Skv", "D", "dtype", "block", "target") if re.search(rf"\b{flag}\b", words)}
    named |= {found[1].split()[0] for found in [re.match(r"--(\w+(?: \w+)?)", words)] if found}
    named |= {"H", "Hkv"} if " heads" in words else {"D"} if "head dim" in words else set()
    spans = []
    parts = cell.words()
    for i, (word, span) in enumerate(parts):
        flag, equals, _ = word.removeprefix("--").partition("=")
        if word.startswith("--") and flag in named:
            last = parts[i + 1][1] if not equals and i + 1 < len(parts) else span
            spans.append(Span(span.line, span.column, last.end_line, last.end_column))
    return Span(*spans[0][:2], *spans[-1][2:]) if spans else cell.magic()


def _mended_option(d: Diagnostic) -> Diagnostic:
    """`hint` is the flag that was meant, or the option as it may be written."""
    if not d.hint.startswith("--"):
        return d
    return replace(d, fixes=(Fix(f"Write {d.hint}", (quickfix.replace(d.span, d.hint),)),))


def _sorted(found: list[Diagnostic]) -> list[Diagnostic]:
    return sorted(found, key=lambda d: (d.span, d.severity))


# -- what is slow -------------------------------------------------------------------------------------------------------------
def _slow(lab: Lab, cell: CellText, tree: ast.Module, given: Mapping[str, Any]) -> tuple[list[Diagnostic], list[tuple[int, str]]]:
    found: list[Diagnostic] = []
    for note in advice.for_program(lab):
        fixes = (quickfix.option(cell, "--fast-math"),) if "--fast-math" in note.fix else ()
        found.append(Diagnostic(*_place(note, cell, tree), note.level, note.text, note.fix, fixes, "trace"))
    found += _offsets(lab, cell, tree)
    found += _sliders(lab, cell, tree)
    for target in lab.targets:
        for a in lab.advice(target):
            if a.level == "refused":
                found.append(Diagnostic(*_option(a.message, cell), "warning", a.message, a.fix, (), "trace"))
    return found, asides(lab)


def _place(note: Note, cell: CellText, tree: ast.Module) -> Span:
    if note.line:
        return cell.whole(note.line)
    name = re.search(r"`(\w+)`", note.text)
    for node in ast.walk(tree) if name else ():
        if isinstance(node, ast.Name) and name and node.id == name[1]:
            return cell.node(node)
    return cell.magic()


def _offsets(lab: Lab, cell: CellText, tree: ast.Module) -> Iterator[Diagnostic]:
    """ids[q_idx] == ids[kv_idx] over a sorted table -> where each row's document starts and ends."""
    better, words = offsets.rewritten(lab.program)
    table = re.search(r"instead of `(\w+)`", words)
    if better is None or table is None:
        return
    name = table[1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            sides = [node.left, node.comparators[0]]
            reads = {ast.unparse(side) for side in sides}
            if reads == {f"{name}[q_idx]", f"{name}[kv_idx]"}:
                function = next(s for s in tree.body if s.lineno <= node.lineno <= (s.end_lineno or 0))
                line = function.lineno
                made = (
                    f"{name}_first = torch.searchsorted({name}, {name}).to(torch.int32)\n"
                    f"{name}_end = torch.searchsorted({name}, {name}, right=True).to(torch.int32)\n\n"
                )
                inside = f"((kv_idx >= {name}_first[q_idx]) & (kv_idx < {name}_end[q_idx]))"
                edits = (quickfix.replace(Span(line, 0, line, 0), made), quickfix.replace(cell.node(node), inside))
                message = f"documents by offsets instead of ids: {words}"
                yield Diagnostic(*cell.node(node), "info", message, inside, (Fix("Compare with offsets", edits),), "trace")


def _sliders(lab: Lab, cell: CellText, tree: ast.Module) -> Iterator[Diagnostic]:
    """Numbers of the cell that are passed at run time: a person may want to move them."""
    from cute_lab.steps import ranges_of

    moving = ranges_of(lab)
    for s in tree.body:
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) and isinstance(s.value, ast.Constant):
            name = s.targets[0].id
            value = lab.params.get(name)
            if name in lab.runtime and name not in moving and isinstance(value, (int, float)):
                fix = quickfix.slider(name, s.value.value, cell, s.value)  # type: ignore[arg-type]
                hint = f"{name} = {fix.edits[0].text}"
                words = f"`{name}` is passed at run time: a slider moves it and recompiles nothing"
                yield Diagnostic(*cell.node(s.value), "info", words, hint, (fix,), "trace")


def asides(lab: Lab) -> list[tuple[int, str]]:
    """A few words at the end of a line; those on machine code only where it has been compiled before."""
    found: dict[int, dict[str, None]] = {}
    program = lab.program
    for graph in (g for g in (program.score, program.mask) if g is not None):
        for n in graph.nodes():
            loc = graph.origin.get(n)
            if loc is not None and n.op == "gather" and "kv_idx" in {x for a in n.args for x in inputs_of(a)}:
                found.setdefault(loc.line, {})["gather per element"] = None
            elif loc is not None and n.dtype in advice.WIDE_TYPES and n.op not in ("const", "size", "gather", "cast"):
                found.setdefault(loc.line, {})[f"{n.dtype} arithmetic"] = None
    for target, artifact in known(lab):
        if artifact.spill_loads or artifact.spill_stores:
            found.setdefault(1, {})[f"the kernel spills on {target}"] = None  # FlashAttention-4's own too: no line is to blame
        for line, words in heavy.asides(artifact.line_cost, target):
            found.setdefault(line, {})[words] = None
    return [(line, ", ".join(said)) for line, said in sorted(found.items())]


def known(lab: Lab) -> Iterator[tuple[str, build.Artifact]]:
    """Machine code of this very text that lies in the cache."""
    for target in lab.targets:
        with contextlib.suppress(CuteLabError):
            spec = lab.spec(target)
            if build.is_known(spec, target):
                yield target, build.compile_kernel(spec, target)
