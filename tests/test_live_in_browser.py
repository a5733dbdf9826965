"""JupyterLab with a kernel, as a person uses it: cells run, a slider dragged, a mistake underlined and mended, two runs compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Page, expect

from browser import THEMES, Seen, Server, open_notebook, picture, reach

CELL = """\
%%cute_attention --H 2 --Sq 4096 --target none --out local
window = slider(64, 4096, 512, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
"""
OTHER = CELL.replace("--out local", "--out wide").replace("512", "2048")
PRINT = "print('/home/alice/x')"
KERNEL = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("live")
    root = folder / "root"
    root.mkdir()
    files = {"live": ["%load_ext cute_lab", CELL, OTHER], "typing": ["%load_ext cute_lab", CELL], "empty": [""], "fresh": [PRINT, CELL]}
    for name, cells in files.items():
        notebook = nbformat.v4.new_notebook(metadata=KERNEL)
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        (root / f"{name}.ipynb").write_text(nbformat.writes(notebook))
    one = Server(folder / "home", root)
    yield one
    one.close()


def command(page: Page, name: str, **args: Any) -> None:
    page.evaluate("([name, args]) => window.jupyterapp.commands.execute(name, args)", [name, args])


def run(page: Page, index: int) -> None:
    """Runs a cell and waits for its end: its prompt has a number then."""
    page.evaluate("i => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = i; }", index)
    command(page, "notebook:run-cell")
    expect(page.locator(".jp-CodeCell").nth(index).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]:"), timeout=120_000)


def kernel_is_there(page: Page) -> None:
    page.wait_for_function("window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'", timeout=60_000)


def opened(server: Server, page: Page, name: str, theme: str = "light") -> Seen:
    """A notebook with its kernel."""
    server.theme(theme)
    seen = Seen(page)
    open_notebook(page, server, f"{name}.ipynb")
    kernel_is_there(page)
    return seen


def painted(page: Page) -> str:
    """What the panel's mask shows: all of its canvas in one string."""
    return str(page.evaluate("[...document.querySelectorAll('.jp-CuteMask canvas')].map(c => c.toDataURL()).join()"))


def test_a_cell_is_run_its_slider_moves_the_mask_and_two_runs_are_compared(server: Server, page: Page) -> None:
    seen = opened(server, page, "live")
    for index in range(3):
        run(page, index)
    cell = page.locator(".jp-CodeCell").nth(1)
    card = cell.locator(".jp-Cute-card:not(.jp-Cute-quiet)")
    expect(card.locator(".jp-Cute-name")).to_have_text("local")
    expect(card.locator(".jp-Cute-chip").first).to_contain_text("verified")

    mask = cell.locator(".jp-CuteMask").first  # the panel's, above the card
    expect(mask).to_contain_text("% of cells kept", timeout=30_000)
    before, words = painted(page), mask.inner_text()
    handle = cell.locator(".widget-slider .noUi-handle").first
    reach(handle)
    box = handle.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(1, 13):
        page.mouse.move(box["x"] + 10 * step, box["y"] + box["height"] / 2)
    page.mouse.up()
    expect(mask).not_to_have_text(words, timeout=20_000)
    page.wait_for_function(
        "before => [...document.querySelectorAll('.jp-CuteMask canvas')].map(c => c.toDataURL()).join() !== before", arg=before
    )
    expect(cell).to_contain_text(re.compile("✔ The generated CuTeDSL equals your function"), timeout=30_000)
    picture(page, "live-slider")

    command(page, "cute-lab:open-panel")
    runs = page.locator(".jp-CuteLab-run")
    expect(runs).to_have_count(2)
    for i in range(2):
        runs.nth(i).locator(".jp-CuteLab-pin").click()
    page.wait_for_timeout(300)
    picture(page, "live-panel-light")
    page.locator(".jp-CuteLab-pinned").get_by_role("button", name="Compare").click()
    compare = page.locator(".jp-CuteLab-compare-host")
    expect(compare).to_contain_text("wide", timeout=20_000)
    expect(compare).to_contain_text("local")
    expect(compare).to_contain_text("blocks")
    for theme in THEMES:
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", THEMES[theme])
        page.wait_for_timeout(500)
        picture(page, f"live-compare-{theme}")
    assert not seen.of_ours
    assert not seen.outside


def test_a_mistake_is_underlined_mended_and_gone(server: Server, page: Page) -> None:
    seen = opened(server, page, "typing")
    run(page, 0)
    editor = page.locator(".jp-CodeCell").nth(1).locator(".cm-content")
    editor.get_by_text("def mask_mod").click()
    page.keyboard.press("End")
    page.wait_for_timeout(6000)  # the kernel's first look imports torch
    marks = page.locator(".cm-lintRange-error")
    expect(marks).to_have_count(0)
    page.keyboard.press("Enter")
    page.keyboard.type("if q_idx > 3: pass")
    expect(marks.first).to_be_visible(timeout=20_000)
    expect(page.locator(".cm-gutter-lint .cm-lint-marker-error").first).to_be_visible()
    marks.first.hover()
    expect(page.locator(".cm-tooltip-lint")).to_contain_text("if")
    picture(page, "live-squiggle")
    page.mouse.move(2, 2)
    for _ in "if q_idx > 3: pass":
        page.keyboard.press("Backspace")
    for key in ("Shift+Home", "Backspace", "Backspace"):  # the indentation, and the line
        page.keyboard.press(key)
    expect(editor).to_contain_text(re.compile(r"kv_idx\):\s+return"))
    expect(marks).to_have_count(0, timeout=20_000)

    page.keyboard.press("Control+Home")
    page.keyboard.press("End")
    page.keyboard.type(" --Hk 3")
    expect(marks.first).to_be_visible(timeout=20_000)
    marks.first.hover()
    page.locator(".cm-tooltip-lint").get_by_role("button").first.click()  # the fix
    expect(editor).to_contain_text("--Hkv 3")
    assert not seen.of_ours


def gone(page: Page) -> None:
    """Sliders outlast a reload, and not their kernel: a line stands for them, in the notebook and in its file opened anew."""
    sliders, line = page.locator(".widget-slider"), page.locator(".jp-Cute-sliders")
    expect(sliders.first).to_be_visible(timeout=20_000)
    expect(line).to_have_count(0)
    command(page, "docmanager:save")  # the file holds the widget
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(sliders).to_have_count(0, timeout=30_000)
    expect(line).to_contain_text("now 512; run the cell for live sliders")
    picture(page, "live-sliders-gone")
    page.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty = false")  # leave without saving
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.reload()
    page.wait_for_function("window.jupyterapp?.shell")
    kernel_is_there(page)
    expect(line).to_contain_text("now 512; run the cell for live sliders", timeout=20_000)
    expect(page.get_by_text("Error displaying widget")).to_have_count(0)
    assert "image/png" not in page.evaluate("JSON.stringify(window.jupyterapp.shell.currentWidget.model.cells.get(2).outputs.get(0).data)")


def test_a_notebook_without_runs_is_given_a_variant(server: Server, page: Page) -> None:
    server.set("cute-lab:plugin", defaultTarget="none")  # what is compiled is another test's
    opened(server, page, "empty", "dark")
    command(page, "cute-lab:open-panel")
    panel = page.locator(".jp-CuteLab-panel")
    expect(panel).to_contain_text("This notebook has no runs yet")
    page.wait_for_timeout(500)
    picture(page, "live-panel-empty-dark")
    variants = panel.locator(".jp-CuteLab-variant")
    assert variants.count() >= 14
    variants.nth(1).click()
    cells = page.locator(".jp-CodeCell")
    expect(cells).to_have_count(2)
    expect(cells.nth(0)).to_contain_text("%load_ext cute_lab")
    expect(cells.nth(1)).to_contain_text("%%cute_attention")
    expect(cells.nth(0).locator(".jp-InputPrompt")).to_have_text("[1]:", timeout=60_000)  # it has run
    expect(cells.nth(1).locator(".cm-content")).to_be_focused()
    page.keyboard.press("Shift+Enter")  # what everybody does next
    expect(cells.nth(1).locator(".jp-InputPrompt")).to_have_text("[2]:", timeout=60_000)
    assert page.locator(".jp-CodeCell").filter(has_text="%%cute_attention").count() == 1
    expect(cells.nth(1).locator(".jp-Cute-chip").first).to_contain_text("verified", timeout=60_000)
    expect(panel.locator(".jp-CuteLab-run")).to_have_count(1)
    picture(page, "live-gallery-dark")


def test_a_kernel_without_cute_lab_is_helped_and_pins_outlast_a_reload(server: Server, page: Page) -> None:
    seen = opened(server, page, "fresh")
    run(page, 0)
    cells = page.locator(".jp-CodeCell")
    cells.nth(1).locator(".cm-content").get_by_text("def mask_mod").click()
    mark = page.locator(".cm-lintRange-error")
    expect(mark.first).to_be_visible(timeout=20_000)
    mark.first.hover()
    tooltip = page.locator(".cm-tooltip-lint")
    expect(tooltip).to_contain_text("this kernel has not loaded cute_lab")
    picture(page, "live-not-loaded")
    tooltip.get_by_role("button").click()
    expect(cells).to_have_count(3)
    expect(cells.nth(1)).to_contain_text("%load_ext cute_lab")
    expect(mark).to_have_count(0, timeout=30_000)

    cells.nth(2).locator(".cm-content").get_by_text("%%").click()
    page.keyboard.press("End")
    page.keyboard.type(" --")
    page.keyboard.press("Tab")
    offered = page.locator(".jp-Completer .jp-Completer-item")
    expect(offered.filter(has_text="--dtype").first).to_contain_text("of q, k and v", timeout=10_000)
    texts = [text.strip() for text in offered.all_text_contents()]
    assert all("--" in text and len(text) > 10 for text in texts), texts
    assert not any("--Sq" in text or "--out" in text for text in texts), texts  # they are given
    picture(page, "live-completion")
    page.keyboard.press("Escape")
    for _ in range(3):
        page.keyboard.press("Backspace")

    run(page, 2)
    pin = cells.nth(2).locator(".jp-Cute-actions [aria-pressed]")
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "true")
    command(page, "cute-lab:open-panel")
    expect(page.locator(".jp-CuteLab-pin")).to_have_attribute("aria-pressed", "true")
    command(page, "docmanager:save")
    page.wait_for_timeout(1500)  # the state is stored a moment later
    page.reload()
    page.wait_for_function("window.jupyterapp?.shell")
    kernel_is_there(page)
    pin = page.locator(".jp-CodeCell").nth(2).locator(".jp-Cute-actions [aria-pressed]")
    expect(pin).to_have_attribute("aria-pressed", "true", timeout=20_000)
    command(page, "cute-lab:open-panel")
    panel = page.locator(".jp-CuteLab-pin")
    expect(panel).to_have_attribute("aria-pressed", "true")
    panel.click()
    expect(pin).to_have_attribute("aria-pressed", "false")

    gone(page)

    page.evaluate("void window.jupyterapp.commands.execute('cute-lab:check-sharing')")
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("is not ready to be shared", timeout=30_000)
    expect(dialog.locator("h3").first).to_have_text("To be changed")
    expect(dialog.locator("li").first).to_contain_text("[1]")
    expect(dialog).not_to_contain_text("Error")
    expect(dialog).not_to_contain_text("save first")
    picture(page, "live-sharing")
    assert not seen.of_ours
