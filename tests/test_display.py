"""Outputs: each stays useful alone, within its size, in an exported page and in a live kernel."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from cute_lab.display import CAP, as_browsers_write, bundles, plain, size
from cute_lab.errors import OptionError
from cute_lab.record import MIME, SCHEMA, BlockSummary, Record, Source, Stages, from_json, load
from cute_lab.views import views
from example_record import EXAMPLE, Seen

NAMES = [v.name for v in views()]
ROOT = Path(__file__).parent.parent


@pytest.fixture
def example() -> Record:
    return load(EXAMPLE)


def test_the_first_bundle_carries_the_record_and_the_others_refer_to_it(example: Record) -> None:
    made = bundles(example)
    assert [bundle[MIME].get("view") for bundle in made] == [None, "mask", "source"]
    assert from_json(json.loads(json.dumps(made[0][MIME]))) == example
    assert made[1][MIME] == {"schema": SCHEMA, "view": "mask", "of": f"{example.hash} {example.created}"}
    assert [set(bundle) - {MIME, "text/plain"} for bundle in made] == [
        {"text/markdown"},
        {"image/png"},
        {"text/markdown"},
    ]
    assert [b[MIME].get("view") for b in bundles(dataclasses.replace(example, blocks=None))] == [None, "source"]


def test_numbers_are_as_a_browser_saves_them(example: Record) -> None:
    round_trip = "JSON.parse(require('fs').readFileSync(0))"
    text = json.dumps(bundles(example))
    code = f"process.stdout.write(JSON.stringify({round_trip}))"
    browser = json.loads(subprocess.run(["node", "-e", code], input=text, capture_output=True, text=True, check=True).stdout)
    assert json.dumps(browser) == text
    odd = {"a": (4140.0, -0.0, 0.5, 1e22, 2**60), "b": [True, None, "1.0", {"c": 3.0}]}
    assert repr(as_browsers_write(odd)) == "{'a': [4140, 0, 0.5, 1e+22, 1152921504606846976], 'b': [True, None, '1.0', {'c': 3}]}"


def test_an_unknown_view_is_named(example: Record) -> None:
    with pytest.raises(OptionError, match="there is no view 'speed'") as caught:
        bundles(example, ["speed"])
    assert "summary, source, graph, mask" in caught.value.reason


def test_no_output_passes_its_cap_and_each_says_what_it_cut(example: Record) -> None:
    draw = np.random.default_rng(0)
    kinds = draw.integers(0, 3, (1, 8, 512, 512)).astype(np.uint8)
    sizes = {"block_q": 128, "block_kv": 128, "kept_cells": 1, "total_cells": 2}
    code = "".join(f"    t{i} = t{i - 1} + {i}  # `|`\n" for i in range(9000))
    huge = dataclasses.replace(
        example,
        source=Source(code, tuple(range(9000)), ("score_mod",)),
        stages=Stages(code, code, code),
        blocks=BlockSummary.from_kinds(kinds, **sizes, seconds=1.0),
    )
    made = bundles(huge, NAMES)
    assert max(size(bundle) for bundle in made) <= CAP
    assert MIME in made[0]
    assert made[0][MIME]["view"] == "summary"  # not even the source fits
    assert "leaves out the record" in made[0][MIME]["left_out"]
    source = made[NAMES.index("source")]
    for mime in ("text/markdown", "text/plain"):
        assert source[mime].endswith("The record holds all of them.")
    assert Seen(markdown2html_mistune(source["text/markdown"])).prose.strip().endswith("The record holds all of them.")

    smaller = dataclasses.replace(huge, source=example.source, stages=example.stages)
    kept = from_json(bundles(smaller)[0][MIME])
    assert kept.blocks is None
    assert "leaves out the FX graph and the IR, the block map" in kept.notes[-1].text
    assert kept.source == example.source


def test_a_record_shows_itself(example: Record) -> None:
    bundle = example._repr_mimebundle_()
    assert bundle == bundles(example, ["summary"])[0]
    assert plain(example) == bundle["text/plain"]
    assert "▒▒██" in plain(example, ["summary", "mask"])


def notebook_of(*cells: tuple[str, list[dict[str, Any]]]) -> nbformat.NotebookNode:
    made: list[dict[str, Any]] = []
    for i, (source, bundle) in enumerate(cells):
        outputs = [{"output_type": "display_data", "data": data, "metadata": {}} for data in bundle]
        cell = {"cell_type": "code", "id": f"cell{i}", "source": source, "outputs": outputs}
        made.append({**cell, "metadata": {}, "execution_count": None})
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made})
    notebook: nbformat.NotebookNode = nbformat.reads(text, 4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


@pytest.mark.parametrize("sanitize", [False, True])
def test_an_exported_page_keeps_everything(example: Record, sanitize: bool) -> None:
    notebook = notebook_of(("show(record)", bundles(example, NAMES)))
    exporter = HTMLExporter(sanitize_html=sanitize, template_name="basic")  # type: ignore[no-untyped-call]
    html, _ = exporter.from_notebook_node(notebook)
    text = Seen(html).text
    assert html.count("data:image/png;base64,") == 1
    for words in ("The generated CuTeDSL equals", "cute.math.tanh(t3 * 0.05", "✔ compiled", "Which line made which"):
        assert words in text
    assert MIME not in html


TWICE = """
from cute_lab.display import show
from cute_lab.record import load
record = load({path!r})
show(record)
ids = show(record)
"""


def test_show_in_a_kernel_replaces_and_does_not_append() -> None:
    cells = (
        TWICE.format(path=str(EXAMPLE)),
        "other = show(record, ['check'])",
        "show(record, ['summary'], replace=other);",
        "record",
    )
    notebook = notebook_of(*((cell, []) for cell in cells))
    resources = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    first, second, third, last = (cell.outputs for cell in notebook.cells)
    assert [set(output.data) - {MIME} for output in first] == [
        {"text/markdown", "text/plain"},
        {"image/png", "text/plain"},
        {"text/markdown", "text/plain"},
    ]
    assert third == []  # its output went to the second cell
    assert "equals your functions" in second[0].data["text/plain"]
    assert last[0].output_type == "execute_result"
    assert last[0].data[MIME]["schema"] == SCHEMA
