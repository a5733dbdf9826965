"""A notebook's file: read it, run it in a fresh kernel, find the records in its outputs. Neither torch nor a compiler."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cute_lab.errors import OptionError
from cute_lab.record import MIME, Record, from_json

HERE = Path(__file__).parent
DRAWN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}")  # an id that nobody has chosen
STILL = """\
import sys
for panel in list(getattr(sys.modules.get("cute_lab.panel"), "_open", ())):
    panel.close()"""


@dataclass(frozen=True)
class Place:
    """A code cell as people count and JupyterLab names it: the first cell is 1."""

    number: int
    name: str

    def __str__(self) -> str:
        given = self.name and not DRAWN.fullmatch(self.name)
        return f"cell {self.number}" + (f" [{self.name}]" if given else "")


def read(path: str | Path) -> Any:
    """OptionError where it is no notebook."""
    import nbformat

    path = Path(path)
    if not path.is_file():
        raise OptionError(f"there is no file {str(path)!r}", example="python -m cute_lab share NOTEBOOK.ipynb")
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(notebook)
    except UnicodeDecodeError:
        raise OptionError(f"{path.name} is no notebook: it is not UTF-8 text") from None
    except Exception as error:  # nbformat raises a dozen kinds, by where it stumbles
        said = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise OptionError(f"{path.name} is no notebook: {said[:200]}") from None
    return notebook


def text_of(notebook: Any) -> str:
    import nbformat

    return f"{nbformat.writes(notebook)}\n"  # type: ignore[no-untyped-call]


def write(text: str, path: Path, like: Path | None = None) -> None:
    """Whole or not at all; with the permissions of `like`."""
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mode = (like or path).stat().st_mode if (like or path).exists() else 0o666 & ~_umask()
        os.chmod(part, mode & 0o777)
        os.replace(part, path)
    finally:
        Path(part).unlink(missing_ok=True)  # it is there only where something went wrong


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def code_cells(notebook: Any) -> Iterator[tuple[Place, Any]]:
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type == "code":
            yield Place(number, str(cell.get("id", ""))), cell


def execute(
    notebook: Any, folder: Path, *, allow_errors: bool = False, timeout: int = 600, timing: bool = False, still: bool = True
) -> None:
    """Runs all cells in a fresh kernel of this very Python, whatever kernels are installed. The outputs are in `notebook` then.

    `still`: sliders are left as their last picture, for the kernel that moves them is gone. `timing` notes in a cell's metadata when it
    began and ended."""
    try:
        import nbformat
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient
    except ImportError as error:
        raise OptionError(
            f"{error.name} is not installed", detail="Running a notebook needs it.", example="pip install 'cute-lab[lab]'"
        ) from None
    options = {"timeout": timeout, "allow_errors": allow_errors, "record_timing": timing, "coalesce_streams": True}
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]  # this very cute_lab
    with TemporaryDirectory() as sockets:
        kernels = KernelSpecManager(kernel_dirs=[])
        manager = AsyncKernelManager(kernel_spec_manager=kernels, transport="ipc", ip=str(Path(sockets) / "kernel"))
        client = NotebookClient(notebook, km=manager, resources={"metadata": {"path": str(folder)}}, **options)
        notebook.cells.append(nbformat.v4.new_code_cell(STILL if still else ""))  # type: ignore[no-untyped-call]
        try:
            client.execute(cleanup_kc=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})  # nbclient keeps a kernel it is given
        finally:
            notebook.cells.pop()


def records(notebook: Any) -> list[Record]:
    """What the cells' outputs carry under the custom MIME type."""
    outputs = (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    found = (output.data[MIME] for output in outputs if MIME in output.get("data", {}))
    return [from_json(obj) for obj in found if "hash" in obj]
