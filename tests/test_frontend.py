"""The front end's source: it agrees with Python, its own tests pass, nothing of a record can become markup or code, the bundle is small."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cute_lab
from cute_lab.record import MIME, SCHEMA
from cute_lab.targets import TARGETS

ROOT = Path(__file__).parent.parent
FRONT = ROOT / "labextension"
SOURCES = sorted((FRONT / "src").rglob("*.ts"))
BUNDLE, STATIC = ROOT / "cute_lab" / "labextension", ROOT / "cute_lab" / "static"
# What could turn text of a record into markup, a handler, a style or a program.
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|createContextualFragment|DOMParser|javascript:"
    r"|set(Timeout|Interval)\(['\"]"
)


def npm(*words: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    tool = shutil.which("npm", path=path)
    assert tool, "npm is missing: `make front` brings it"
    done = subprocess.run([tool, *words], cwd=FRONT, capture_output=True, text=True, timeout=300, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


def test_the_types_hold() -> None:
    npm("run", "--silent", "check")


def test_its_own_tests_pass() -> None:
    npm("test", "--silent")


def test_both_sides_agree_on_version_type_and_schema() -> None:
    assert json.loads((FRONT / "package.json").read_text())["version"] == cute_lab.__version__
    record = (FRONT / "src" / "core" / "record.ts").read_text()
    assert f"export const MIME = '{MIME}';" in record
    assert f"export const SCHEMA = {SCHEMA};" in record
    assert sum(MIME in file.read_text() for file in SOURCES) == 1  # spelt once
    machine = (FRONT / "src" / "card" / "words" / "machine.ts").read_text()
    calibrated = ", ".join(f"'{target.name}'" for target in TARGETS.values() if target.calibrated)
    assert f"export const CALIBRATED: readonly string[] = [{calibrated}];" in machine


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(FRONT / "src")))
def test_a_source_is_short_says_what_it_is_and_makes_no_markup(file: Path) -> None:
    text = file.read_text()
    assert len(text.splitlines()) <= 300
    assert re.match(r"/\*\*\s", text), "its first line says what it is"
    assert not DANGEROUS.search(text)
    assert not re.search(r"[:<|] *any\b *[;,)=>|\[]|\bas any\b|@ts-ignore|\bTODO\b|\bFIXME\b|console\.", text)


def test_the_styles_touch_nothing_else() -> None:
    for file in (FRONT / "style").glob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
        for selectors in re.findall(r"([^{};]+)\{", text):
            for one in re.split(r",(?![^()]*\))", selectors):  # a comma in :is() parts no selectors
                bare = one.strip()
                if bare and not bare.startswith("@") and not re.fullmatch(r"from|to|[\d.]+%", bare):
                    assert re.search("jp-Cute|data-command='cute-lab:", bare), f"{file.name}: {bare}"


def test_the_bundle_is_small() -> None:
    scripts = list((BUNDLE / "static").rglob("*.js"))
    total = sum(file.stat().st_size for file in scripts)
    assert 50_000 < total < 300_000, {file.name: file.stat().st_size for file in scripts}
    assert (STATIC / "widget.js").stat().st_size < 50_000
    assert len(gzip.compress((STATIC / "page.js").read_bytes())) < 100_000


def test_nothing_in_it_loads_from_elsewhere() -> None:
    for file in [*(BUNDLE / "static").rglob("*.js"), *STATIC.glob("*")]:
        text = file.read_text()
        assert not re.search(r"(import\(|fetch\(|src ?= ?|importScripts\()['\"]https?:", text), file.name
