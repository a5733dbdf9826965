"""The panel's block map as a widget: small in a saved notebook, right, and it answers what the browser can't compute."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import cute_lab
from cute_lab import mask_widget
from cute_lab.browser_mask import cell_code
from cute_lab.codec import decode, encode
from cute_lab.lab import Lab, attention
from cute_lab.mask_widget import MaskPicture
from cute_lab.record import BlockSummary

SIZE = 1024
NOISE = torch.randint(0, 40, (8, SIZE), dtype=torch.int32, generator=torch.Generator().manual_seed(5))


def window(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (q_idx >= kv_idx) & (q_idx - kv_idx < 200)


def noisy(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return NOISE[h, q_idx // 8] == NOISE[h, kv_idx // 8] + h


def lab_of(mask: Any, block: int = 128) -> Lab:
    return attention(None, mask, H=8, Sq=SIZE, target="none", block=(block, block))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, list[bytes]]]]:
    found: list[tuple[Any, list[bytes]]] = []
    monkeypatch.setattr(mask_widget.MaskWidget, "send", lambda self, content, buffers=None: found.append((content, buffers or [])))
    yield found
    assert not [t for t in threading.enumerate() if t.name == "cute_lab-cells"]


def esm() -> str:
    """As long as the module may be."""
    return mask_widget.module() or "x" * 45_000


def shown(lab: Lab, heard: Any = lambda widget: None) -> MaskPicture:
    picture = MaskPicture(esm(), heard)
    picture.show(lab, lab.blocks().summary())
    return picture


def asked(picture: MaskPicture, **content: Any) -> None:
    picture._asked(picture.widget, content, [])
    for thread in threading.enumerate():
        if thread.name == "cute_lab-cells":
            thread.join(60)


def test_what_a_saved_notebook_holds_is_small_and_whole() -> None:
    assert len(esm().encode()) <= 48_000  # the rest is for a map of usual size; a larger one is asked for
    lab = lab_of(window)
    picture = shown(lab)
    assert len(str(picture.widget.get_state())) < 50_000
    mask = picture.widget.mask
    blocks = decode(BlockSummary, mask["blocks"], "blocks")
    assert (blocks.kinds() == lab.blocks().kinds).all()
    assert (mask["Sq"], mask["Skv"]) == (SIZE, SIZE)
    assert mask["cells"] == encode(cell_code(lab.program))


def test_a_large_map_is_not_in_the_state_but_asked_for(sent: list[tuple[Any, list[bytes]]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_widget, "STATE", len(esm()) + 1000)
    lab = lab_of(noisy, 8)
    picture = shown(lab)
    assert picture.widget.mask == {"large": 1}
    asked(picture, id=4, whole=True)
    ((content, buffers),) = sent
    assert (content["id"], buffers) == (4, [])
    assert (decode(BlockSummary, content["mask"]["blocks"], "blocks").kinds() == lab.blocks().kinds).all()
    picture.show(lab, lab.blocks().summary())
    assert picture.widget.mask == {"large": 2}  # another value, so that the browser asks again


def test_cells_are_the_mods_own(sent: list[tuple[Any, list[bytes]]]) -> None:
    heard: list[Any] = []
    picture = shown(lab_of(noisy), heard.append)
    place = {"b": 0, "h": 5, "q": 129, "kv": 250, "rows": 40, "columns": 30, "step": 3}
    asked(picture, id=1, **place)
    ((content, (cells,)),) = sent
    q, kv = torch.arange(40)[:, None] * 3 + 129, torch.arange(30)[None, :] * 3 + 250
    expected = noisy(0, torch.tensor(5), q, kv)
    assert content == {"id": 1}
    assert torch.equal(torch.frombuffer(bytearray(cells), dtype=torch.uint8).view(40, 30).bool(), expected)
    assert expected.any() and not expected.all()
    assert heard == [picture.widget]


@pytest.mark.parametrize(
    "wrong",
    [{"h": 8}, {"q": SIZE}, {"rows": 0}, {"rows": 1 << 30}, {"step": 0}, {"kv": -1}, {"b": "0"}, {"columns": None}, {"step": 1e9}],
)
def test_what_is_no_request_has_no_answer(sent: list[tuple[Any, list[bytes]]], wrong: dict[str, Any]) -> None:
    asked(shown(lab_of(window)), id=1, **{"b": 0, "h": 0, "q": 0, "kv": 0, "rows": 4, "columns": 4, "step": 1, **wrong})
    assert sent == [({"id": 1}, [])]


def test_a_message_of_somebody_else_is_none(sent: list[tuple[Any, list[bytes]]]) -> None:
    picture = shown(lab_of(window))
    for content in ({}, {"id": "1"}, {"id": True}, "hello", None):
        picture._asked(picture.widget, content, [])
    assert sent == []


def test_a_panel_gives_its_widget_alone() -> None:
    """As marimo takes it: no ipywidgets around it, and it follows `set`."""
    size = cute_lab.slider(64, SIZE, 256, step=64)
    panel = attention(None, lambda b, h, q, k: (q >= k) & (q - k < size), H=1, Sq=SIZE, target="none", params={"size": size}).panel()
    try:
        panel.settled()
        assert isinstance(panel.mask_widget, mask_widget.MaskWidget)
        before = panel.mask_widget.mask
        panel.set(size=512)
        panel.settled()
        assert panel.mask_widget.mask["blocks"]["kept_cells"] > before["blocks"]["kept_cells"]
    finally:
        panel.close()
    scored = attention(lambda score, b, h, q, k: score + size, Sq=64, target="none", params={"size": size}).panel()
    assert scored.mask_widget is None
    scored.close()
