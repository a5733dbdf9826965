"""The wheel: one file with package, extension and widget, installed where there is no Node, into an older JupyterLab and a Notebook 7."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser import ROOT, Seen, Server, open_notebook, picture, reach

FRONT_ENDS = ("jupyterlab==4.4.*", "notebook==7.4.*", "ipykernel")


def run(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([*map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (path,) = folder.glob("*.whl")
    return path


def test_it_carries_the_extension_the_widget_and_the_page(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for file in ("widget.js", "page.js", "page.css"):
        assert f"cute_lab/static/{file}" in names
    shared = [name for name in names if ".data/data/share/jupyter/labextensions/cute-lab/" in name]
    assert any(name.endswith("/package.json") for name in shared)
    assert any(name.endswith("/install.json") for name in shared)
    assert any("/static/remoteEntry" in name for name in shared)
    assert any("/schemas/cute-lab/plugin.json" in name for name in shared)
    assert not any("node_modules" in name or name.startswith(("labextension/", "cute_lab/labextension/")) for name in names)
    assert wheel.stat().st_size < 5_000_000


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A Python with the wheel and older front ends, on a PATH without Node; what the kernel needs is not there."""
    folder = tmp_path_factory.mktemp("older")
    venv.create(folder, with_pip=True)
    bare = {**os.environ, "PATH": f"{folder / 'bin'}:/usr/sbin"}
    assert shutil.which("node", path=bare["PATH"]) is None
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, *FRONT_ENDS, cwd=folder, env=bare)
    run(*pip, "--no-deps", wheel, cwd=folder, env=bare)
    listed = subprocess.run([folder / "bin" / "jupyter", "labextension", "list"], env=bare, capture_output=True, text=True, timeout=120)
    (line,) = [line for line in (listed.stdout + listed.stderr).splitlines() if "cute-lab v" in line]
    assert "enabled" in line and "OK" in line
    return folder / "bin" / "python"


@pytest.fixture(scope="module", params=["lab", "notebook"])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, python: Path, chromium: Any) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp(request.param)
    root = folder / "root"
    root.mkdir()
    shutil.copy(ROOT / "notebooks" / "01_first_variant.ipynb", root)
    one = Server(folder / "home", root, python=str(python), app=request.param, extension=None)
    yield one
    one.close()


def test_older_front_ends_show_the_saved_quickstart(older: Server, page: Page) -> None:
    seen = Seen(page)
    open_notebook(page, older, "01_first_variant.ipynb")
    card = page.locator(".jp-Cute-card:not(.jp-Cute-quiet)").first
    expect(card).to_be_visible(timeout=60_000)
    for name in ("Code", "Mask", "Machine code", "Environment"):
        card.get_by_role("tab", name=name, exact=True).click()
        expect(card.get_by_role("tabpanel")).to_be_visible()
    card.get_by_role("tab", name="Mask", exact=True).click()
    expect(card.locator(".jp-CuteMask canvas").first).to_be_visible()
    reach(card)
    page.wait_for_timeout(500)
    picture(page, f"older-{older.app}")
    assert not seen.of_ours
    assert not seen.outside
