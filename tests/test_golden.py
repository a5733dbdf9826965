"""Ten named mods, as a user writes them: the typed IR and the CuTeDSL that they become. Read the difference before it is committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cute_lab.cell import from_text
from cute_lab.lab import Lab, attention

HERE = Path(__file__).parent / "goldens" / "mods"
SCORE = "def score_mod(score, b, h, q_idx, kv_idx):\n"
MASK = "def mask_mod(b, h, q_idx, kv_idx):\n"
MODS = {
    "causal": MASK + "    return q_idx >= kv_idx\n",
    # the number is a run-time scalar; the packed form is two runs of lanes
    "window": "window = 64\n\n" + MASK + "    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)\n",
    # one condition is a row's own
    "prefix": "prefix = torch.tensor([16, 40], dtype=torch.int32)\n\n" + MASK + "    return (kv_idx < prefix[b]) | (q_idx >= kv_idx)\n",
    # a table read at kv: per lane
    "document": (
        "document = torch.arange(128) // 48\n\n"
        + MASK
        + "    same = document[q_idx] == document[kv_idx]\n    return same & (q_idx >= kv_idx)\n"
    ),
    "alibi": (
        "slopes = torch.exp2(-torch.arange(1, 5).float())\n\n"
        + SCORE
        + "    distance = kv_idx - q_idx\n    return score + slopes[h] * distance\n"
    ),
    "softcap": "cap = 20.0\n\n" + SCORE + "    return cap * torch.tanh(score / cap)\n",
    "relative_bias": (
        "table = torch.linspace(-1, 1, 4 * 255).reshape(4, 255)\n\n"
        + SCORE
        + "    distance = (q_idx - kv_idx).clamp(-127, 127)\n    return score + table[h, distance + 127]\n"
    ),
    # both branches are numbers: they must be vectors of the right type
    "two_constants": SCORE + "    near = torch.where((q_idx - kv_idx).abs() < 8, 1.0, -2.0)\n    return score + near\n",
    # q - kv - 1 may be negative: it counts from the end
    "negative_index": "ring = torch.arange(128.0)\n\n" + SCORE + "    return score + ring[q_idx - kv_idx - 1]\n",
    # floor mod, as Python's; no run of lanes
    "dilated": MASK + "    near = (q_idx - kv_idx).abs() <= 32\n    return near & ((q_idx - kv_idx) % 4 == 0)\n",
}


def lab_of(name: str) -> Lab:
    mods = from_text(MODS[name], {"torch": torch})
    return attention(mods.score_mod, mods.mask_mod, B=2, H=4, Sq=128, D=64, name=name)


@pytest.mark.parametrize("name", MODS)
def test_what_a_mod_becomes(name: str, golden: Callable[[str, str], None]) -> None:
    lab = lab_of(name)
    assert lab.verify().ok
    sections = {"Cell": MODS[name], "Graph": str(lab.graph), "CuTeDSL": lab.source}
    golden(f"mods/{name}.txt", "\n\n".join(f"== {title}\n{text.rstrip()}" for title, text in sections.items()) + "\n")


def test_every_golden_has_its_mod() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == MODS.keys()
