"""At a place of a cell: the CuTeDSL that its line became and what that costs; on the way there, what may be written next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from cute_lab import assist, build, formulas, lower, options, special, untraced
from cute_lab.diagnose import NAMES
from cute_lab.errors import CuteLabError
from cute_lab.lab import Lab
from cute_lab.ops import ATEN
from cute_lab.quantities import count
from cute_lab.squiggles import CellText, characters, units
from cute_lab.views._words import FAMILY

ARGUMENTS = {"b": "batch entry", "h": "query head", "q_idx": "query's position", "kv_idx": "key's position", "score": "q · k * scale"}
MOST = 200  # completions
ORIGIN = re.compile(r"\s*# \d+\| .*$")  # the line of the cell, which the editor shows anyway


# -- hover -------------------------------------------------------------------------------------------------------------------
def at(text: str, namespace: Mapping[str, Any], line: int) -> dict[str, Any] | None:
    cell = CellText.of(text)
    if cell is None or line <= cell.magic_line:
        return None
    lab, shift = _ran(cell, namespace), cell.magic_line - 1
    if lab is None:
        shift = 0
        with cell.remembered():
            try:
                lab = assist.trace(cell, untraced.tree_of(cell), dict(namespace), untraced.options(cell)[0]).lab
            except CuteLabError:
                return None
            return None if lab is None else _said(lab, line, shift)
    return _said(lab, line, shift)


def _ran(cell: CellText, namespace: Mapping[str, Any]) -> Lab | None:
    """The notebook's Lab of this very text."""
    text = cell.text.strip()
    return next((v for v in list(namespace.values()) if isinstance(v, Lab) and v.cell and v.cell.text.strip() == text), None)


def _said(lab: Lab, line: int, shift: int) -> dict[str, Any] | None:
    emitted = lab.emitted
    lines = zip(emitted.text.removesuffix("\n").split("\n"), emitted.user_lines, strict=True)
    generated = [ORIGIN.sub("", g) for g, n in lines if n == line - shift]
    if not generated:
        return None
    costs = [cost for target, artifact in assist.known(lab) for cost in _costs(artifact, target, line - shift)]
    shares = [f"{c['share']:.0%} of the mod's time on {c['target']}" for c in costs]
    words = f"This line is {count(len(generated), 'line')} of CuTeDSL"
    words += f": {', '.join(shares)} by instruction counts." if shares else "; its cost shows once it is compiled."
    return {"line": line, "generated": generated, "costs": costs, "words": words}


def _costs(artifact: build.Artifact, target: str, line: int) -> Iterator[dict[str, Any]]:
    for c in artifact.line_cost:
        if c.line == line:
            yield {"target": target, "share": c.share, "instructions": c.instructions}


# -- completion --------------------------------------------------------------------------------------------------------------
def complete(text: str, namespace: Mapping[str, Any], line: int, column: int) -> dict[str, Any]:
    cell = CellText.of(text)
    before = ""
    matches: list[dict[str, str]] = []
    if cell is not None and 1 <= line <= len(cell.lines):
        written = cell.lines[line - 1]
        until = written[: characters(written, column)]
        if line == cell.magic_line:
            before, matches = _options(cell, until)
        elif line > cell.magic_line:
            before, matches = _names(cell, until, line, namespace)
    place = {"line": line, "column": column}
    return {"start": {"line": line, "column": column - units(before)}, "end": place, "matches": matches[:MOST]}


def _options(cell: CellText, until: str) -> tuple[str, list[dict[str, str]]]:
    if len(until) < cell.options_column:
        return "", []
    help = {name: option.help for name, option in options.OPTIONS.items()} | options.SWITCHES
    found = options.complete(until, "\n".join(cell.lines[cell.magic_line - 1 :]))
    flag = next((w for w in reversed(re.split(r"[\s=]+", until)) if w in options.OPTIONS), "")
    details = {m: FAMILY.get(m.rstrip("af"), help.get(flag, "")) for m in found} | help
    return options.fragment(until), [{"text": m, "type": "param" if m in help else "value", "detail": details[m]} for m in found]


def _names(cell: CellText, until: str, line: int, namespace: Mapping[str, Any]) -> tuple[str, list[dict[str, str]]]:
    found = re.search(r"(?:([A-Za-z_][\w.]*|\))\.)?([A-Za-z_]\w*)?$", until)
    owner, start = (found[1], found[2] or "") if found else (None, "")
    if owner in ("torch", "F", "torch.nn.functional"):
        module: Any = torch if owner == "torch" else torch.nn.functional
        names = [n for n in lowered() if hasattr(module, n)]
        return start, [{"text": n, "type": "function", "detail": "becomes CuTeDSL"} for n in names if n.startswith(start)]
    if owner is not None:
        if isinstance(namespace.get(owner.split(".")[0]), type(torch)):
            return start, []  # another module: Python's completion knows it
        names = [n for n in (*lowered(), "to") if hasattr(torch.Tensor, n)]
        return start, [{"text": n, "type": "function", "detail": "becomes CuTeDSL"} for n in names if n.startswith(start)]
    rows = {**_arguments(cell, line), **_own(cell), **_notebook(namespace)}
    return start, [{"text": n, "type": t, "detail": d} for n, (t, d) in rows.items() if n.startswith(start)]


def _arguments(cell: CellText, line: int) -> dict[str, tuple[str, str]]:
    """Those of the mod that the line is in, by its `def` line: the text around the cursor rarely parses."""
    for above in reversed(cell.lines[cell.magic_line : line]):
        found = re.match(r"def (score|mask)_mod\(", above)
        if found:
            return {name: ("variable", ARGUMENTS[name]) for name in NAMES[found[1]]}
        if above[:1].strip():
            break
    return {}


def _own(cell: CellText) -> dict[str, tuple[str, str]]:
    """Names that the cell gives at its top level."""
    found = re.findall(r"^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=(?!=)\s*(.*)$", cell.code, re.MULTILINE)
    defined = re.findall(r"^def ([A-Za-z_]\w*)\(", cell.code, re.MULTILINE)
    rows = {name: ("variable", value[:40]) for name, value in found}
    return rows | {name: ("function", "of this cell") for name in defined if name not in ("score_mod", "mask_mod")}


def _notebook(namespace: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    rows: dict[str, tuple[str, str]] = {}
    for name, value in list(namespace.items()):
        if name.startswith("_"):
            continue
        if isinstance(value, torch.Tensor):
            rows[name] = ("variable", f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}")
        elif type(value) in (int, float):
            rows[name] = ("variable", f"{value}")
        elif value is torch or value is torch.nn.functional:
            rows[name] = ("module", "")
    return rows


_lowered: list[str] = []


def lowered() -> list[str]:
    """torch's names that can become part of a kernel, from the tables of operators and rules."""
    if not _lowered:
        from cute_lab import indexing, order, rows, rules  # noqa: F401  (they fill RULES)

        names = {n.split(".")[0].split("::")[-1] for n in (*ATEN, *lower.FORMULAS, *lower.RULES, *formulas.FORMULAS, *special.SPECIAL)}
        names |= lower.MOVES | {"any", "all", "sum", "mean", "prod", "isin", "logical_and", "logical_or", "tensor", "stack"}
        _lowered.extend(sorted(n for n in names if not n.startswith("_") and not n.endswith("_") and ast.parse(n)))
    return _lowered
