"""A notebook made fit to be shared: no widget state, nothing private, sizes and static forms checked, what each viewer shows.

What is left out is counted in the report, cell by cell; the code and the words of the notebook's author stay as they are.
"""

from __future__ import annotations

import copy
import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cute_lab import notebook as files
from cute_lab import private as privacy
from cute_lab import viewers
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.quantities import count, number
from cute_lab.record import MIME, from_json
from cute_lab.viewers import PLAIN, STILL, WIDGET

NOTEBOOK_CAP = 1_000_000  # bytes
OUTPUT_CAP = 256_000
CONTROLS = "interactive controls: run this cell again with a kernel"
WIDGET_REPR = re.compile(r"\s*\w+\(.*\)\s*", re.DOTALL)  # `VBox(children=(IntSlider(...` says nothing to a reader
SUFFIX = ".shared.ipynb"
OUT = re.compile(r"%%cute_.*?\s--out[ =](\w+)")


@dataclass(frozen=True)
class Output:
    place: str  # "[2] alibi, output 1"
    size: int  # bytes, as JSON
    forms: tuple[str, ...]  # its MIME types
    shown: tuple[str, ...]  # what each of viewers.VIEWERS shows


@dataclass(frozen=True)
class ShareReport:
    """What sharing a notebook changed, what is still wrong with it, and what people will see. `written` is None for a mere check."""

    source: Path
    written: Path | None
    saved: str  # when the shared file was saved, UTC
    size: int  # bytes of the result
    before: int
    changes: tuple[str, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    outputs: tuple[Output, ...]
    checked: bool  # only checked: what would have to be changed is a problem too

    @property
    def ok(self) -> bool:
        return not self.problems and not (self.checked and self.changes)

    def __str__(self) -> str:
        head = f"{self.source.name}, as it was saved at {self.saved}: {number(self.before)} bytes"
        if self.written:
            head += f" -> {self.written.name}: {number(self.size)} bytes"
        blocks = [head, *(f"{title}\n" + "\n".join(f"  - {line}" for line in lines) for title, lines in self.sections)]
        if self.outputs:
            blocks.append("What each viewer shows\n" + "\n".join(f"  {line}" for line in self.seen.split("\n")))
        blocks.append(self.verdict)
        return "\n\n".join(blocks)

    @property
    def sections(self) -> list[tuple[str, tuple[str, ...]]]:
        words = "To be changed" if self.checked else "Changed"
        parts = [(words, self.changes), ("Problems", self.problems), ("Worth knowing", self.notes)]
        return [(title, lines) for title, lines in parts if lines]

    @property
    def seen(self) -> str:
        return viewers.table([(output.place, output.shown) for output in self.outputs])

    def to_json(self) -> dict[str, Any]:
        """For a front end, which draws the sections itself. `copy` is the file that has the changes, or would have them."""
        sections = [{"title": title, "lines": list(lines)} for title, lines in self.sections]
        copy = self.written or (copy_of(self.source) if self.changes else None)
        said = {"ok": self.ok, "verdict": self.verdict, "sections": sections, "seen": self.seen if self.outputs else ""}
        return {**said, "copy": copy.name if copy else "", "written": self.written is not None}

    @property
    def verdict(self) -> str:
        if self.problems:
            return f"{count(len(self.problems), 'problem')} left: see above."
        if not self.ok:
            name = shlex.quote(self.source.name)
            return f"Not fit to be shared as it is; python -m cute_lab share {name} makes these changes in {copy_of(self.source).name}."
        return "Fit to be shared."

    def __repr__(self) -> str:
        return f"<ShareReport\n{self}>"


def copy_of(path: Path) -> Path:
    """Where the shared notebook is written, if no other place is named."""
    return path.with_name(path.name.removesuffix(".ipynb") + SUFFIX)


def share(
    path: str | Path,
    out: str | Path | None = None,
    *,
    check: bool = False,
    in_place: bool = False,
    keep_environment: bool = False,
    private: str | Iterable[str] = privacy.DEFAULT,
) -> ShareReport:
    """Writes `path`'s notebook, fit to be shared, to `out` (NAME.shared.ipynb beside it) and reports.

    `check` writes nothing; `in_place` writes over the notebook. `private` are names out of hostname, user, path and of the
    environment's fields; `keep_environment` leaves all of them in.
    """
    path = Path(path)
    if in_place and out is not None:
        raise OptionError("--in-place and --out are two places", example="python -m cute_lab share NOTEBOOK.ipynb --in-place")
    target = path if in_place else Path(out) if out is not None else copy_of(path)
    before = files.read(path)
    saved = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(path.stat().st_mtime))
    names = () if keep_environment else privacy.listed(private)
    work = _Work(names)
    made = work.notebook(before)
    text = files.text_of(made)
    size = len(text.encode())
    if size > NOTEBOOK_CAP:
        largest = max(work.outputs, key=lambda o: o.size, default=None)
        most = f"; the largest output, {largest.place}, has {number(largest.size)}" if largest else ""
        work.problems.append(f"the notebook has {number(size)} bytes, more than {number(NOTEBOOK_CAP)}{most}")
    if not check:
        if target.suffix != ".ipynb":
            raise OptionError(f"{target.name} is no name of a notebook", example=f"--out {target.stem}.ipynb")
        files.write(text, target, like=path)
    parts = tuple(work.changes), tuple(work.problems), tuple(work.notes), tuple(work.outputs)
    return ShareReport(path, None if check else target, saved, size, path.stat().st_size if check else _size(before), *parts, check)


def _size(notebook: Any) -> int:
    return len(files.text_of(notebook).encode())


def _places(cells: list[Any]) -> list[str]:
    """Each cell as a person finds it: by its prompt and its variable, else by its number and its first words."""
    prompts = Counter(cell.get("execution_count") for cell in cells)
    return [_place(number, cell, prompts) for number, cell in enumerate(cells, 1)]


def _place(number: int, cell: Any, prompts: Counter[Any]) -> str:
    prompt = cell.get("execution_count")
    if cell.cell_type != "code":
        words = " ".join(cell.source.split()).lstrip("# ")
        return f'cell {number} "{words if len(words) <= 32 else words[:31] + "…"}"'
    found = OUT.match(cell.source)
    place = (f"[{prompt}]" if prompt else f"cell {number}") + (f" {found[1]}" if found else "")
    return f"{place} (cell {number})" if prompt and prompts[prompt] > 1 else place  # after a restart a prompt may be there twice


class _Work:
    """One pass over a notebook."""

    def __init__(self, private: tuple[str, ...]) -> None:
        self.private = private
        self.changes: list[str] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.outputs: list[Output] = []
        self.values: list[str] = []  # of the environment fields that are left out

    def notebook(self, before: Any) -> Any:
        made = copy.deepcopy(before)
        for _, cell in files.code_cells(made):
            for value in (output.data[MIME] for output in cell.outputs if MIME in output.get("data", {})):
                probe = self._scrubber()
                probe.record(value)
                self.values += [found for found in probe.values if found not in self.values]
        state = made.metadata.pop("widgets", None)
        if state is not None:
            self.changes.append(f"the notebook's widget state is left out: {number(len(json.dumps(state).encode()))} bytes")
        made.metadata = self._clean(made.metadata, "the notebook's metadata")
        for place, cell in zip(_places(made.cells), made.cells, strict=True):
            cell.metadata = self._clean(cell.metadata, f"{place}'s metadata")
            self._own_text(cell.source, place)
            if cell.cell_type == "code":
                cell.outputs = [self._output(output, f"{place}, output {i}") for i, output in enumerate(cell.outputs, 1)]
        return made

    def _scrubber(self) -> privacy.Scrubber:
        return privacy.Scrubber(self.private)

    def _clean(self, value: Any, where: str) -> Any:
        import nbformat

        scrubber = self._scrubber()
        kept = scrubber.tree(value)
        self._say(scrubber, where)
        return nbformat.from_dict(kept)  # type: ignore[no-untyped-call]

    def _say(self, scrubber: privacy.Scrubber, where: str) -> None:
        for what, times in scrubber.found.items():
            self.changes.append(f"{where}: {what} is left out" + (f", {times} times" if times > 1 else ""))

    def _own_text(self, text: str, place: str) -> None:
        for found in self._scrubber().names(text):
            self.problems.append(f"{place} itself names {found}; what you wrote stays as it is: change it, or allow it with --private")

    def _output(self, output: Any, where: str) -> Any:
        import nbformat

        scrubber = self._scrubber()
        data = output.get("data", {})
        had_widget = WIDGET in data
        if had_widget:
            self._without_widget(data, where)
        if MIME in data:
            scrubber.values = list(self.values)
            data[MIME] = self._record(data[MIME], scrubber, where)
        for name in ("data", "text", "traceback", "evalue", "metadata"):
            if name in output:
                rest = output[name]
                if name == "data":
                    rest = {k: v if k == MIME or k.startswith("image/p") else scrubber.tree(v) for k, v in rest.items()}
                    output[name] = {**{k: rest[k] for k in output[name]}}
                else:
                    output[name] = scrubber.tree(rest)
        self._say(scrubber, where)
        output = nbformat.from_dict(output)  # type: ignore[no-untyped-call]
        self._sizes(output, where)
        self._forms(output, where, had_widget)
        if MIME in data and self.values and "image/png" in output.get("data", {}):
            self.notes.append(f"{where}: its picture may show a value that was left out of the record; look at it")
        return output

    def _without_widget(self, data: dict[str, Any], where: str) -> None:
        del data[WIDGET]
        plain = data.get(PLAIN, "")
        still = next((words for mime, words in STILL.items() if mime in data and mime != PLAIN), "")
        if not still and (not plain or WIDGET_REPR.fullmatch(plain)):
            data[PLAIN] = CONTROLS
            self.changes.append(f"{where}: the widget is left out and has no static form; the output says: {CONTROLS}")
        else:  # no reader misses anything
            self.notes.append(f"{where} is live with its kernel only; without one it shows its {still or STILL[PLAIN]}")

    def _record(self, value: Any, scrubber: privacy.Scrubber, where: str) -> Any:
        whole = isinstance(value, dict) and "hash" in value
        try:
            if whole:
                from_json(value)
            elif not (isinstance(value, dict) and type(value.get("schema")) is int and isinstance(value.get("of"), str)):
                raise OptionError("it is neither a record nor a part of one")
        except CuteLabError as error:
            self.problems.append(f"{where}: the cute_lab output can't be read: {error.summary}; run the cell again")
            return scrubber.record(value)
        if whole:
            for found in self._scrubber().names(value["cell"].get("text", "") if isinstance(value["cell"], dict) else ""):
                self.problems.append(f"{where}: the record's cell names {found}; change the cell and run it again")
        return scrubber.record(value)

    def _sizes(self, output: Any, where: str) -> None:
        size = len(json.dumps(output, ensure_ascii=False).encode())
        if size > OUTPUT_CAP:
            fix = "`record.save(path)` keeps a record whole in a file" if MIME in output.get("data", {}) else "show less of it"
            self.problems.append(f"{where} has {number(size)} bytes, more than {number(OUTPUT_CAP)}: {fix}")
        data = output.get("data", {})
        if data:
            self.outputs.append(Output(where, size, tuple(data), viewers.shown(data)))

    def _forms(self, output: Any, where: str, had_widget: bool) -> None:
        data = output.get("data", {})
        still = [mime for mime in STILL if isinstance(data.get(mime), str) and data[mime].strip()]
        if MIME in data and not still:
            self.problems.append(f"{where} has no static form (png, markdown or plain text): only JupyterLab with cute_lab shows it")
        elif data and not still and not had_widget:
            blank = [viewer.name for viewer in viewers.VIEWERS if viewer.of(data) == viewers.NOTHING]
            if blank:
                self.notes.append(f"{where} has no static form: nothing is seen in {', '.join(blank)}")
        if "text/html" in data and MIME in data:
            self.notes.append(f"{where}: text/html hides its other forms outside of JupyterLab")
