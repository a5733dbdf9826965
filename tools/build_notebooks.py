"""tools/notebooks/*.md -> notebooks/*.ipynb, executed. Edit the .md files: prose is prose, a ```python fence is a code cell.

    python tools/build_notebooks.py [NAME ...] [--no-run]

Words after ```python are tags of the cell: `raises-exception` marks a mistake that is made on purpose.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

FOLDER, TEXTS = ROOT / "notebooks", ROOT / "tools" / "notebooks"
FENCE = re.compile(r"^```python *([\w\- ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python", "pygments_lexer": "ipython3"},
}


def cells(text: str) -> list[tuple[str, str, list[str]]]:
    """(type, source, tags) of each cell."""
    out: list[tuple[str, str, list[str]]] = []
    at = 0
    for fence in FENCE.finditer(text):
        out += [("markdown", text[at : fence.start()].strip(), []), ("code", fence[2].rstrip("\n"), fence[1].split())]
        at = fence.end()
    out.append(("markdown", text[at:].strip(), []))
    return [cell for cell in out if cell[1]]


def unexecuted(name: str) -> Any:
    notebook = nbformat.v4.new_notebook(metadata=METADATA)
    for i, (kind, source, tags) in enumerate(cells((TEXTS / f"{name}.md").read_text(encoding="utf-8"))):
        make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
        notebook.cells.append(make(source, id=f"{name[:2]}-{i:02}", metadata={"tags": tags} if tags else {}))
    return notebook


def build(name: str, run: bool = True) -> Path:
    from cute_lab.__main__ import execute

    notebook = unexecuted(name)
    if run:
        execute(notebook, FOLDER)
        notebook.metadata = METADATA  # what the kernel adds names its Python, and nothing else
    path = FOLDER / f"{name}.ipynb"
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="build the notebooks from their texts")
    parser.add_argument("names", nargs="*", default=sorted(path.stem for path in TEXTS.glob("*.md")))
    parser.add_argument("--no-run", action="store_true", help="without outputs")
    given = parser.parse_args()
    for name in given.names:
        path = build(name, not given.no_run)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
