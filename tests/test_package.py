"""The shape of the project: what an import costs, who imports whom, what is public, and that prose and notebooks are true."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

import cute_lab
from cute_lab.__main__ import execute, records
from cute_lab.record import MIME, SLIDERS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "cute_lab"
FILES = sorted(PACKAGE.rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LIST = re.findall(r"^    (\w+)  +\S", cute_lab.__doc__ or "", re.MULTILINE)
# An import inside of a function that looks down the list, and why.
LATE = {
    ("record", "display"): "IPython's protocol asks the record itself",
    ("lab", "panel"): "widgets are for who moves them",
    ("lab", "bench"): "measuring needs a lab",
    ("lab", "running"): "a GPU's first run is measured, and measuring needs a lab",
    ("device_worker", "measure"): "the process starts before it knows its job",
    ("device_worker", "retime"): "the process starts before it knows its job",
    ("tracer", "lower"): "torch calls the mode back for each operator",
    ("functions", "diagnose"): "where a mod leaves torch",
    ("branches", "diagnose"): "where a mod leaves torch by asking for a number",
    ("rules", "indexing"): "an operator on a captured row keeps it lazy",
    **{("lower", rules): "these files fill lower's table" for rules in ("rules", "rows", "order", "indexing")},
}


# -- what an import costs -------------------------------------------------------------------------------------------------
def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_quick_and_loads_no_torch() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import cute_lab; took = time.perf_counter() - start\n"
        "print(took, [m for m in ('torch', 'cutlass', 'flash_attn', 'plotly', 'IPython', 'numpy') if m in sys.modules])"
    )
    best = min((python(code).split(" ", 1) for _ in range(3)), key=lambda words: float(words[0]))
    assert float(best[0]) < 0.3
    assert best[1] == "[]"


def test_records_views_and_options_need_no_torch() -> None:
    heavy = "[m for m in ('torch', 'cutlass', 'flash_attn', 'plotly', 'matplotlib') if m in sys.modules]"
    parts = "cute_lab.record, cute_lab.display, cute_lab.magic, cute_lab.build, cute_lab.targets, cute_lab.__main__"
    code = f"import sys, {parts}\nfrom cute_lab.views import views\nviews()\nprint({heavy})"
    assert python(code) == "[]"


def test_the_public_names_are_exact() -> None:
    names = "CuteLabError Lab __version__ attention documents load load_ipython_extension slider unload_ipython_extension"
    assert cute_lab.__all__ == names.split()
    assert all(getattr(cute_lab, name) is not None for name in cute_lab.__all__)
    assert set(cute_lab.__all__) <= set(dir(cute_lab))
    missing = "attentoin"
    with pytest.raises(AttributeError, match="has no attribute 'attentoin'"):
        getattr(cute_lab, missing)


# -- who imports whom -----------------------------------------------------------------------------------------------------
def unit(file: Path) -> str:
    """`views` for views/mask.py: a folder counts as one file."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(node: ast.AST, late: bool = False) -> Iterator[tuple[str, bool]]:
    """(file of ours, inside of a function?) for each import that runs."""
    for child in ast.iter_child_nodes(node):
        names: list[str] = []
        if isinstance(child, ast.ImportFrom):
            module = ".".join(filter(None, ["cute_lab" if child.level else "", child.module]))
            names = [f"{module}.{alias.name}" for alias in child.names] if module == "cute_lab" else [module]
        elif isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        yield from ((name.split(".")[1], late) for name in names if name.startswith("cute_lab."))
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from imports(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_file_has_its_line_in_the_architecture() -> None:
    assert len(LIST) == len(set(LIST))
    assert set(LIST) == {unit(file) for file in FILES} - {"__init__"}


def test_imports_look_up_the_list_only() -> None:
    rank = {name: i for i, name in enumerate(LIST)}
    down: set[tuple[str, str]] = set()
    for file in FILES:
        for name, late in imports(ast.parse(file.read_text())):
            here = unit(file)
            if {here, name} <= rank.keys() and rank[name] > rank[here]:
                assert late, f"{here} imports {name}, which stands below it"
                down.add((here, name))
    assert down == set(LATE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_file_is_short_says_what_it_is_and_names_no_architecture(file: Path) -> None:
    text = file.read_text()
    assert len(text.splitlines()) <= 300
    assert ast.get_docstring(ast.parse(text))
    assert not re.search(r"\b(if|elif|and|or)\b[^\n:]*\b(arch|target|name|cute_arch|fa_arch)\w* *(==|!=|in) *[\[({]?[\"']?(sm_)?\d", text)
    assert not re.search(r"\bTODO\b|\bFIXME\b|\bXXX\b", text)


# -- prose ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_links_of_a_page_exist(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    assert all((ROOT / link).exists() for link in links if "://" not in link), links


def test_the_readme_is_true() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 100
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make (\w+)", text)) <= targets
    for name in re.findall(r"`(?:local)?\.(\w+)", text):
        assert hasattr(cute_lab.Lab, name) or name in ("to_block_mask", "py"), name


def test_version_changelog_and_constraints_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert f"## {cute_lab.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
    pins = [line for line in project["project"]["dependencies"] if "==" in line]
    assert [re.split(r"[\[=]", pin)[0] for pin in pins] == [
        "nvidia-cutlass-dsl",
        "flash-attn-4",
        "quack-kernels",
        "nvidia-cutlass-operators",
    ]
    assert MIME == "application/vnd.cute-lab.v1+json"  # the front end's; what is in it is numbered by SCHEMA


# -- notebooks ------------------------------------------------------------------------------------------------------------
def shape(notebook: Any) -> list[list[tuple[str, ...]]]:
    """The forms of the outputs of each cell."""
    return [
        [
            (output.output_type, *(sorted(output.data) if "data" in output else (output.get("ename") or output.name,)))
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(path.stem for path in (ROOT / "tools" / "notebooks").glob("*.md"))
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_saved_notebook_has_outputs_and_no_widgets(path: Path) -> None:
    notebook = read(path)
    assert path.stat().st_size < 1_000_000
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert not any("widget-view" in form for cell in shape(notebook) for output in cell for form in output)
    still = {("display_data", SLIDERS, mime, "text/plain") for mime in ("image/png", "text/markdown")}  # sliders that were closed
    still.add(("execute_result", "text/markdown", "text/plain"))  # a suite's table
    assert all(MIME in form or form[0] in ("stream", "error") or form in still for cell in shape(notebook) for form in cell)
    assert all(("image/png" in form or "text/markdown" in form) for cell in shape(notebook) for form in cell if MIME in form)
    assert [c.source for c in notebook.cells if c.cell_type == "code"][-1].startswith(("assert", "cost = "))
    text = path.read_text()
    assert "/tmp/" not in text
    assert str(Path.home()) not in text
    found = records(notebook)
    assert found
    assert all(check.ok for record in found for check in record.checks)
    assert all(report.status == "compiled" for record in found for report in record.targets)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_saved_notebook_is_what_its_text_says(path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from build_notebooks import unexecuted
    finally:
        sys.path.remove(str(ROOT / "tools"))
    saved, made = read(path), unexecuted(path.stem)
    assert [(c.cell_type, c.source, c.id, c.metadata) for c in saved.cells] == [
        (c.cell_type, c.source, c.id, c.metadata) for c in made.cells
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_gives_the_outputs_that_are_saved(path: Path) -> None:
    notebook = read(path)
    saved, forms, before = shape(notebook), [(r.name, r.source.text) for r in records(notebook)], records(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    execute(notebook, path.parent)
    assert shape(notebook) == saved
    assert [(r.name, r.source.text) for r in records(notebook)] == forms, "the saved notebook is out of date: make notebooks"
    assert [figures(r) for r in records(notebook)] == [figures(r) for r in before]


def figures(record: Any) -> tuple[Any, ...]:
    """What does not depend on the machine or the moment."""
    blocks = record.blocks and (record.blocks.full, record.blocks.partial, record.blocks.empty)
    return blocks, [(t.target, t.direction, t.registers, t.spill_stores, t.spill_loads, t.instructions) for t in record.targets]
