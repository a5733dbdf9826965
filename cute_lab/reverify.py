"""A shared notebook run again in a fresh kernel, and its records compared: code, checks, block map, and timings on the same GPU.

What is printed is not compared: it may hold times. A record is matched by its cell and its name. A cell that only lacks a GPU here
is "not run"; its record's code is then taken from the Lab of that name, if the notebook has made one.
"""

from __future__ import annotations

import ast
import copy
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cute_lab import notebook as files
from cute_lab.compared import SAME, Comparison, Verdict, code, diff, records
from cute_lab.environment import device
from cute_lab.errors import CuteLabError
from cute_lab.notebook import Place
from cute_lab.quantities import count
from cute_lab.record import MIME, Record, from_json

CPU = "cpu: no GPU"
NO_GPU = "DeviceMissing"
PROBE = "application/vnd.cute-lab.labs+json"


@dataclass(frozen=True)
class CellResult:
    place: Place
    verdict: Verdict
    comparisons: tuple[Comparison, ...]
    said: tuple[str, ...] = ()  # about the cell itself


@dataclass(frozen=True)
class VerifyReport:
    source: Path
    device: str
    cells: tuple[CellResult, ...]
    ended: str = ""  # why the run stopped before its end

    @property
    def ok(self) -> bool:
        return not self.ended and all(cell.verdict != "differs" for cell in self.cells)

    def __repr__(self) -> str:
        return f"<VerifyReport\n{self}>"

    def __str__(self) -> str:
        parts = [f"{self.source.name}, run again in a fresh kernel on this machine ({self.device})"]
        for cell in self.cells:
            lines = [f"{cell.place}: {cell.verdict}", *(f"  {line}" for said in cell.said for line in said.split("\n"))]
            lines += [f"  {line}" for found in cell.comparisons for line in str(found).split("\n")]
            parts.append("\n".join(lines))
        return "\n\n".join([*parts, self.verdict])

    @property
    def verdict(self) -> str:
        if self.ended:
            return f"Not verified: the run ended early: {self.ended}"
        found = [comparison for cell in self.cells for comparison in cell.comparisons]
        bad = [c for c in self.cells if c.verdict == "differs"]
        skipped = [c for c in self.cells if c.verdict == "not run"]
        rest = f"; {count(len(skipped), 'cell')} could not run here, see above" if skipped else ""
        if bad:
            return (
                f"{count(len(bad), 'cell')} of {len(self.cells)} with something to compare differ{'s' * (len(bad) == 1)}: see above{rest}."
            )
        same = [c for c in found if c.verdict == SAME]
        if not found:
            return f"There is no record to compare in this notebook{rest}."
        return f"Verified: {count(len(same), 'record')} the same{rest}."


def verify(path: str | Path, *, timeout: int = 600) -> VerifyReport:
    """Runs the notebook's cells again, in its own folder, and compares. The file stays as it is."""
    path = Path(path)
    saved = files.read(path)
    made = copy.deepcopy(saved)
    for _, cell in files.code_cells(made):
        cell.outputs, cell.execution_count = [], None
    probe = _probe([record for _, cell in files.code_cells(saved) for record in _read(cell)[0]])
    made.cells.append(probe)
    ended = ""
    try:
        files.execute(made, path.resolve().parent, allow_errors=True, timeout=timeout, timing=True)
    except CuteLabError:
        raise
    except Exception as error:  # a dead kernel, a cell that takes too long: nbclient's own errors
        ended = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    here = device()
    labs = _labs(probe)
    cells: list[CellResult] = []
    missing: set[str] = set()  # names that a cell would have made, had it had a GPU
    for (place, old), (_, new) in zip(files.code_cells(saved), files.code_cells(made), strict=False):
        if ended and "shell.execute_reply" not in new.metadata.get("execution", {}):  # it was under way, or had not begun
            break
        found = _cell(place, old, new, here, labs, missing)
        if found is not None:
            cells.append(found)
    return VerifyReport(path, here, tuple(cells), ended)


def _cell(place: Place, old: Any, new: Any, here: str, labs: dict[str, dict[str, Any]], missing: set[str]) -> CellResult | None:
    was, unreadable = _read(old)
    now, _ = _read(new)
    said = [f"the saved output can't be read: {why}" for why in unreadable]
    verdict: Verdict = "differs" if said else SAME
    error, expected = _error(new), _error(old)
    if error is not None and (expected is None or expected[0] != error[0]):
        unrun = expected is None and here == CPU and (error[0] == NO_GPU or (error[0] == "NameError" and error[2] in missing))
        if unrun:
            missing |= _made(old.source)
            said.append(f"not run: it needs a GPU, and this machine has none ({error[0]}: {error[1]})")
        else:
            said.append(f"raises {error[0]}: {error[1]}" + (f"; the saved one raises {expected[0]}" if expected else ""))
        verdict = "not run" if unrun and verdict == SAME else "differs"
    elif expected is not None and error is None:
        said.append(f"raises nothing; the saved one raises {expected[0]}: {expected[1]}")
        verdict = "differs"
    comparisons: list[Comparison] = []
    unmatched = list(now)
    for record in was:
        match = next((r for r in unmatched if r.name == record.name), None)
        if match is not None:
            unmatched.remove(match)
            comparisons.append(records(record, match, here))
        elif verdict == "not run" and (lab := labs.get(_key(record))) is not None:
            comparisons.append(code(record, lab["text"]))
        else:
            comparisons.append(
                Comparison(record.name, "not run" if verdict == "not run" else "differs", ("no such record when run again",))
            )
    if verdict != "not run":
        comparisons += [Comparison(r.name, "differs", ("a record that the saved notebook does not have",)) for r in unmatched]
    shown, again = _shown_code(old), _shown_code(new)
    if shown and again and shown != again and verdict == SAME:
        said.append("the code that its outputs show is not the code that is generated:\n" + diff("\n".join(shown), "\n".join(again)))
        verdict = "differs"
    if any(c.verdict == "differs" for c in comparisons):
        verdict = "differs"
    return CellResult(place, verdict, tuple(comparisons), tuple(said)) if comparisons or said else None


def _read(cell: Any) -> tuple[list[Record], list[str]]:
    """The records of a cell's outputs, and why others can't be read."""
    found, bad = [], []
    for output in cell.outputs:
        value = output.get("data", {}).get(MIME)
        if value is None or (isinstance(value, dict) and "hash" not in value and type(value.get("schema")) is int):
            continue
        try:
            found.append(from_json(value))
        except CuteLabError as error:
            bad.append(error.summary)
    return found, bad


def _shown_code(cell: Any) -> list[str]:
    """The generated code as people without the front end read it."""
    parts = ((output.get("data", {}).get(MIME), output) for output in cell.outputs)
    return [output.data.get("text/plain", "") for part, output in parts if isinstance(part, dict) and part.get("view") == "source"]


def _error(cell: Any) -> tuple[str, str, str] | None:
    """(class, first line, the name that a NameError misses)."""
    for output in cell.outputs:
        if output.output_type == "error":
            said = (str(output.evalue).strip().splitlines() or [""])[0]
            return output.ename, said, said.split("'")[1] if said.count("'") >= 2 else ""
    return None


def _made(source: str) -> set[str]:
    """Names that a cell assigns."""
    try:
        tree = ast.parse("\n".join(line for line in source.split("\n") if not line.lstrip().startswith(("%", "!"))))
    except SyntaxError:
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


# -- the Labs that the notebook has made, for records that only a GPU makes ------------------------------------------------------
def _key(record: Record) -> str:
    s = record.shape
    return f"{record.name} {s.B} {s.H} {s.Hkv} {s.Sq} {s.Skv} {s.D} {s.dtype}"


def _probe(wanted: list[Record]) -> Any:
    import nbformat

    sizes = [(r.name, _key(r), {n: getattr(r.shape, n) for n in ("B", "H", "Hkv", "Sq", "Skv", "D")}) for r in wanted]
    call = f"__import__('cute_lab.reverify').reverify.labs(globals(), {json.dumps(sizes)!r})"
    return nbformat.v4.new_code_cell(call, id="cute-lab-probe")  # type: ignore[no-untyped-call]


def labs(scope: dict[str, Any], wanted: str) -> None:
    """Publishes the generated code of those Labs of a notebook that are wanted. Runs in the notebook's kernel."""
    from IPython.display import publish_display_data

    module = sys.modules.get("cute_lab.lab")  # a notebook that has not loaded it has made none
    made = {lab.name: lab for lab in scope.values() if isinstance(lab, module.Lab)} if module is not None else {}
    found: dict[str, dict[str, Any]] = {}
    for name, key, sizes in json.loads(wanted):
        try:
            lab = made[name]
            other = replace(lab.shape, **sizes)
            found[key] = {"text": (lab if other == lab.shape else lab._like_this(shape=other)).source}
        except (KeyError, CuteLabError):
            continue
    publish_display_data({PROBE: found, "text/plain": ""})  # type: ignore[no-untyped-call]


def _labs(probe: Any) -> dict[str, dict[str, Any]]:
    data: Iterator[Any] = (output.data[PROBE] for output in probe.outputs if PROBE in output.get("data", {}))
    return next(data, {})
