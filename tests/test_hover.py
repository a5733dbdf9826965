"""What a place of a cell shows: generated code, cost, completions; single cells of a mask; the machine."""

from __future__ import annotations

import base64
import gc
import itertools
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cute_lab import cells, gpu_state, heavy, hover, known_labs, progress, squiggles
from cute_lab.errors import OptionError
from cute_lab.lab import attention
from cute_lab.record import LineCost
from typed import HEAD, LIBRARIES, MASK, SCORE, errors, look, run


# -- asides, hover, completion ------------------------------------------------------------------------------------------------
def test_asides_stand_at_their_lines() -> None:
    body = "    x = slopes[h]\n    y = table[kv_idx]\n    return score + x * y\n"
    text = f"{HEAD}table, slopes = torch.ones(64), torch.ones(8)\ndef score_mod(score, b, h, q_idx, kv_idx):\n{body}"
    assert look(text).annotations == [(5, "gather per element")]


@pytest.mark.parametrize("case", json.loads((Path(__file__).parent / "heavy.json").read_text()), ids=lambda case: case["summary"][:24])
def test_the_dearest_lines_are_told_and_a_tie_as_a_tie(case: Any) -> None:
    costs = [LineCost(line, 1, share, {}) for line, share in case["costs"]]
    assert heavy.summary(costs) == case["summary"]
    assert heavy.asides(costs, "sm_90a") == [tuple(aside) for aside in case["asides"]]


@pytest.mark.cross
def test_hover_shows_the_generated_code_and_its_cost_once_it_is_compiled() -> None:
    head = "%%cute_attention --Sq 320 --D 64 --target sm_90a\ndef score_mod(score, b, h, q_idx, kv_idx):\n"
    text = f"{head}    d = q_idx - kv_idx\n    return score * 0.37 - d * 0.0123\n"
    found = hover.at(text, {}, 4)
    assert found is not None
    assert found["line"] == 4
    assert any("0.37" in line for line in found["generated"])
    assert not any("#" in line for line in found["generated"])
    assert hover.at(text, {}, 1) is None
    assert hover.at("x = 3", {}, 1) is None
    lab = attention(run(text, {}).score_mod, Sq=320, D=64, target="sm_90a")
    lab.compile("sm_90a")
    (cost,) = (hover.at(text, {}, 4) or {})["costs"]
    assert cost["target"] == "sm_90a"
    assert 0 < cost["share"] <= 1
    assert cost["instructions"] > 0


def completed(text: str, **notebook: Any) -> tuple[list[str], dict[str, Any]]:
    """With the cursor at the bar."""
    before = text.partition("|")[0]
    line = before.count("\n") + 1
    found = hover.complete(text.replace("|", ""), {**LIBRARIES, **notebook}, line, squiggles.units(before.rpartition("\n")[2]))
    return [m["text"] for m in found["matches"]], found


def test_completion() -> None:
    assert completed("%%cute_attention --ta|")[0] == ["--target"]
    names, found = completed("%%cute_attention --target sm_10|\n")
    assert names == ["sm_100a", "sm_103a"]
    assert (found["start"], found["end"]) == ({"line": 1, "column": 26}, {"line": 1, "column": 31})
    assert completed(f"{SCORE}    return sc|")[0] == ["score"]
    assert completed(f"{MASK}    return q|")[0] == ["q_idx"]
    assert completed(f"{HEAD}window = 3\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx < win|", wind=3.0, wint="text")[0] == [
        "window",
        "wind",
    ]
    functions = completed(f"{SCORE}    return torch.t|")[0]
    assert {"tanh", "take", "tril", "tan"} & set(functions) >= {"tanh", "tan"}
    assert all(hasattr(torch, name) for name in functions)
    assert "tanh" in completed(f"{SCORE}    return score.ta|")[0]
    names, found = completed(f"{SCORE}    é😀 = tab|", table=torch.ones(3, 4))
    assert names == ["table"]
    assert found["matches"][0]["detail"] == "float32 [3, 4]"
    assert found["start"]["column"] == len("    é😀 = ") + 1  # two units for the face
    assert completed("x = torch.ta|")[0] == []


@pytest.mark.parametrize(
    ("text", "offered", "words"),
    [
        ("%%cute_attention --ben|", ["--bench"], "GPU"),
        ("%%cute_attention --bench --ba|", ["--backward"], "backward"),
        ("%%cute_attention --bench --ben|", [], ""),
        ("%%cute_attention --target sm_10|", ["sm_100a", "sm_103a"], "Blackwell"),
        ("%%cute_attention --dtype b|", ["bf16"], "q, k and v"),
        ("%%cute_attention --H| --Hkv 2", ["--H"], "heads"),
    ],
)
def test_an_option_is_offered_once_with_its_help(text: str, offered: list[str], words: str) -> None:
    names, found = completed(text)
    assert names == offered
    assert all(words in m["detail"] for m in found["matches"])


def test_what_completion_offers_can_be_lowered() -> None:
    """Each of torch's functions of one value that is offered becomes code."""
    failed = []
    for name in hover.lowered():
        if name in ("neg", "exp2", "tanh", "sigmoid", "floor", "erf", "log1p", "square", "sign", "rsqrt", "relu", "trunc"):
            failed += [name for d in errors(look(f"{SCORE}    return torch.{name}(score)\n")) if d]
    assert failed == []


# -- cells of a mask ----------------------------------------------------------------------------------------------------------------
def test_cells_are_the_mask_s() -> None:
    lab = run(f"{MASK}    return (q_idx - kv_idx) % 5 <= h\n", LIBRARIES)
    key = lab.record(()).key
    whole = lab.apply_mask()
    for h, q, kv, rows, columns, step in (
        (0, 0, 0, 64, 64, 1),
        (3, 10, 7, 9, 13, 1),
        (2, 3, 1, 16, 16, 4),
        (1, 60, 0, 9, 70, 1),
        (0, 64, 64, 2, 2, 1),
    ):
        found = cells.bits(key, 0, h, q, kv, rows, columns, step)
        flat = np.unpackbits(np.frombuffer(zlib.decompress(base64.b64decode(found["bits"])), np.uint8), bitorder="little")[: rows * columns]
        for i, j in itertools.product(range(rows), range(columns)):
            at, key_at = q + i * step, kv + j * step
            inside = at < 64 and key_at < 64
            assert bool(flat[i * columns + j]) == (inside and bool(whole[0, h, at, key_at])), (h, at, key_at)
    for wrong in ({"h": 8}, {"rows": 1 << 11, "columns": 1 << 11}, {"step": 0}, {"q": -1}):
        with pytest.raises(OptionError):
            cells.bits(key, **{"b": 0, "h": 0, "q": 0, "kv": 0, "rows": 4, "columns": 4, **wrong})


def test_a_lab_is_known_as_long_as_the_notebook_holds_it() -> None:
    lab = run(f"{MASK}    return q_idx >= kv_idx\n", LIBRARIES)
    key = lab.record(()).key
    assert known_labs.find(key) is lab
    del lab
    gc.collect()
    with pytest.raises(OptionError, match="run its cell again"):
        known_labs.find(key)


# -- the machine ------------------------------------------------------------------------------------------------------------------
def test_status_says_what_works_here() -> None:
    found = gpu_state.status()
    assert found["cuda"] == bool(found["gpus"])
    assert found["running"] is None
    assert "sm_90a" in found["targets"]
    assert found["gpus"] or all(word in found["words"] for word in ("sshpyk", "--gateway-url=", "mask"))
    assert gpu_state.target_of(9, 0) == "sm_90a"
    assert gpu_state.target_of(7, 5) == ""


def test_what_is_running_is_said_and_how_long_is_left() -> None:
    one = progress.Progress(4, quiet=True)
    one.step(1, "alibi S8192: cute_lab")
    one.started -= 10
    found = progress.running()
    assert found is not None
    assert found["what"] == "alibi S8192: cute_lab"
    assert 29 < found["left_seconds"] < 32
    one.close("done")
    assert progress.running() is None
    one.step(0, "again")
    del one
    assert progress.running() is None
