"""Saved notebooks in JupyterLab, untrusted, with no kernel: complete in both themes, at a million tokens, and deaf to hostile data."""

from __future__ import annotations

import base64
import copy
import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

import cute_lab
from browser import FRAMES, PAINTED, ROOT, THEMES, Seen, Server, open_notebook, picture, reach
from cute_lab.record import MIME

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TABS = ("Summary", "Code", "Mask", "Check", "Machine code", "Throughput", "Environment")
PICTURED = ("01_first_variant", "03_run_and_compare")  # the others have the same tabs
MILLION = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("saved")
    root = folder / "root"
    root.mkdir()
    for path in NOTEBOOKS:
        shutil.copy(path, root)
    shutil.copy(ROOT / "tests" / "records" / "example.cute.json", root)
    shutil.copy(ROOT / "tests" / "records" / "h200_gqa_d128.json", root / "suite.cute.json")
    lab = cute_lab.attention(mask_mod=lambda b, h, q, kv: (q >= kv) & (q - kv < 4096), Sq=MILLION)
    (root / "million.ipynb").write_text(nbformat.writes(notebook_of([bundle(lab)])))
    write_hostile(root)
    one = Server(folder / "home", root)
    one.set("@jupyterlab/notebook-extension:tracker", autoStartDefaultKernel=False, kernelShutdown=True)
    yield one
    one.close()


def bundle(lab: Any) -> dict[str, Any]:
    from cute_lab.display import bundles

    return dict(bundles(lab.record(()), ("summary",))[0])


def notebook_of(outputs: list[dict[str, Any]]) -> Any:
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}})
    notebook.cells = [nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("display_data", data)]) for data in outputs]
    return notebook


def cards(page: Page) -> Locator:
    return page.locator(".jp-Cute-card:not(.jp-Cute-quiet)")


def tab(card: Locator, name: str) -> None:
    card.get_by_role("tab", name=name, exact=True).click()


# -- what is saved is shown -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_saved_notebook_is_whole_without_trust_and_kernel(server: Server, page: Page, path: Path) -> None:
    server.theme("light")
    seen = Seen(page)
    page.route("**/api/sessions*", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    open_notebook(page, server, path.name)
    dialog = page.locator(".jp-Dialog")  # JupyterLab's words on the missing kernel: an error, and a choice
    dialog.get_by_role("button", name="Ok").click(timeout=60_000)
    dialog.get_by_role("button", name="No Kernel").click(timeout=60_000)
    expect(dialog).to_have_count(0)
    outputs = [o for c in json.loads(path.read_text())["cells"] for o in c.get("outputs", []) if MIME in o.get("data", {})]
    whole = [o["data"][MIME] for o in outputs if "hash" in o["data"][MIME]]
    for i, record in enumerate(whole):
        card = cards(page).nth(i)
        reach(card)
        expect(card.locator(".jp-Cute-name")).to_have_text(record["name"])
    card = cards(page).first
    for theme in THEMES if path.stem in PICTURED else ("light",):
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", THEMES[theme])
        page.wait_for_timeout(500)
        for name in TABS:
            tab(card, name)
            panel = card.get_by_role("tabpanel")
            expect(panel).to_be_visible()
            assert len(panel.inner_text()) > 40, name
            if path.stem not in PICTURED:
                continue
            reach(card)
            page.wait_for_timeout(150)
            picture(page, f"saved-{path.stem}-{theme}-{name.lower().replace(' ', '-')}")
    assert not seen.of_ours
    assert not seen.outside
    assert page.request.get(f"{server.url}/api/kernels").json() == []


def test_a_line_is_followed_from_the_cell_to_the_machine_code(server: Server, page: Page) -> None:
    server.theme("light")
    open_notebook(page, server, "01_first_variant.ipynb")
    card = cards(page).first
    tab(card, "Code")
    panes = card.locator(".jp-Cute-pane")
    line = panes.nth(0).get_by_text("return score - slopes[h] * distance")
    line.hover()
    lit = panes.nth(1).locator(".jp-Cute-hot")
    expect(lit.first).to_be_visible()
    assert any("slopes" in text for text in lit.all_inner_texts())
    panes.nth(1).locator("select").select_option(label=panes.nth(1).locator("option", has_text="SASS").first.inner_text())
    line.hover()
    expect(panes.nth(1).locator(".jp-Cute-hot").first).to_be_visible()
    assert any("FFMA" in text or "FADD" in text or "FMUL" in text for text in panes.nth(1).locator(".jp-Cute-hot").all_inner_texts())
    picture(page, "line-to-sass")


def test_a_file_of_one_record_and_one_of_many_open(server: Server, page: Page) -> None:
    seen = Seen(page)
    for name in ("example.cute.json", "suite.cute.json"):
        page.goto(f"{server.url}/lab/tree/{name}?reset", wait_until="domcontentloaded")
        expect(cards(page).first).to_be_visible(timeout=30_000)
    choice = page.locator(".jp-Cute-suite-choice")
    names = choice.locator("option").all_inner_texts()
    assert len(names) >= 16
    choice.select_option(index=3)
    expect(cards(page).first.locator(".jp-Cute-name")).to_have_text(names[3].split(" · ")[0])
    tab(cards(page).first, "Throughput")
    expect(cards(page).first.locator("svg").first).to_be_visible()
    picture(page, "suite")
    assert not seen.of_ours


# -- a million tokens -----------------------------------------------------------------------------------------------------


def test_the_mask_of_a_million_tokens_is_there_and_follows_the_hand(server: Server, page: Page) -> None:
    server.theme("light")
    open_notebook(page, server, "million.ipynb")
    expect(cards(page).first).to_be_visible()
    assert page.evaluate(PAINTED) > 0  # how fast: benchmarks/frontend.py
    assert len(page.evaluate(FRAMES, 10)) == 10
    words = cards(page).first.get_by_role("tabpanel").inner_text()
    assert "0.4\u00a0% of cells kept" in words
    picture(page, "million")


# -- hostile data ---------------------------------------------------------------------------------------------------------
EVIL = '<img src=x onerror="window.cuteHacked=1"><script>window.cuteHacked=1</script><style>*{display:none}</style>'
HOSTILE = {  # record -> what its card has to say
    "markup": "",
    "huge": "",
    "long": "",
    "bomb": "damaged",
    "future": "schema 99",
    "fields": "damaged",
    "types": "damaged",
    "junk": "no schema number",
    "prototype": "damaged",
}
WHOLE = ("markup", "huge", "long", "bomb")  # they have all tabs


def write_hostile(root: Path) -> None:
    example = json.loads((ROOT / "tests" / "records" / "example.cute.json").read_text())

    def changed(**new: Any) -> dict[str, Any]:
        return {**copy.deepcopy(example), **new}

    markup = changed(name=EVIL, environment={EVIL: EVIL, "url": "javascript:window.cuteHacked=1"})
    markup["cell"]["text"] = EVIL + "\n" + markup["cell"]["text"]
    markup["notes"] = [{"level": "warning", "text": EVIL, "line": 3, "fix": EVIL}]
    markup["checks"][0]["grid"] = EVIL
    markup["targets"][0]["target"] = EVIL
    lines = markup["source"]["text"].split("\n")
    markup["source"]["text"] = "\n".join([lines[0] + EVIL, *lines[1:]])
    huge = changed(shape={**example["shape"], "Sq": 2**40, "B": 2**50})
    blocks = {**example["blocks"], "nq": 2**24, "nkv": 2**24, "encoding": "zlib-runs-b64"}
    blocks |= {"data": base64.b64encode(zlib.compress(bytes(200_000_000), 9)).decode()}
    records: dict[str, Any] = {
        "markup": markup,
        "huge": huge,
        "long": changed(name="x" * 2_000_000),
        "bomb": changed(blocks=blocks),
        "future": changed(schema=99),
        "fields": {"schema": 3, "kind": "attention"},
        "types": changed(checks="none", targets=7),
        "junk": {"hello": EVIL},
        "prototype": {**example, "shape": {"__proto__": {"B": 1}, "constructor": 3}},
    }
    found = [{MIME: records[name], "text/plain": "the fallback"} for name in HOSTILE]
    (root / "hostile.ipynb").write_text(nbformat.writes(notebook_of(found)))


def test_nothing_of_a_record_is_ever_run_and_damage_is_a_sentence(server: Server, page: Page) -> None:
    server.theme("light")
    seen = Seen(page)
    open_notebook(page, server, "hostile.ipynb")
    for i, (name, sentence) in enumerate(HOSTILE.items()):
        cell = page.locator(".jp-CodeCell").nth(i)
        reach(cell)
        card = cell.locator(".jp-Cute-card")
        expect(card).to_be_visible(timeout=20_000)
        if name in WHOLE:
            for title in TABS:
                tab(card, title)
                page.wait_for_timeout(50)
            if sentence:
                tab(card, "Mask")
        if sentence:
            expect(card).to_contain_text(sentence)
        if name == "markup":
            expect(card.locator(".jp-Cute-name")).to_contain_text("<img src=x")
        assert card.locator("img, script, style, iframe, a[href]").count() == 0
        picture(page, f"hostile-{name}")
    assert page.evaluate("window.cuteHacked") is None
    assert page.evaluate("({}).B") is None
    assert not seen.of_ours
    assert not seen.outside
