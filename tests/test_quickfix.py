"""Every mend mends: the mended cell runs and says nothing more."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch

from cute_lab import assist
from cute_lab.squiggles import apply
from test_errors import CELLS, Cell
from typed import HEAD, LIBRARIES, MASK, SCORE, errors, look, run


# -- mends --------------------------------------------------------------------------------------------------------------------------
class Mend(NamedTuple):
    before: str
    after: str  # a part of the mended text
    notebook: dict[str, Any] = {}  # noqa: RUF012


IF = "    if q_idx >= kv_idx:\n        return score\n"
MENDS = [
    Mend(f"{SCORE}{IF}    return score - 1.0\n", "    return torch.where(q_idx >= kv_idx, score, score - 1.0)\n"),
    Mend(f"{SCORE}{IF}    else:\n        return score - 1.0\n", "    return torch.where(q_idx >= kv_idx, score, score - 1.0)\n"),
    Mend(
        f"{SCORE}{IF}    elif h == 0 and b == 0:\n        return score / 2\n    return score - 1.0\n",
        "torch.where(q_idx >= kv_idx, score, torch.where((h == 0) & (b == 0), score / 2, score - 1.0))",
    ),
    Mend(
        f"{SCORE}    if not q_idx < kv_idx:\n        score = score * 2\n    return score\n",
        "score = torch.where(~(q_idx < kv_idx), score * 2, score)",
    ),
    Mend(
        f"{SCORE}    x = score\n    if h > 1:\n        x += 2\n    else:\n        x = x - 1\n    return x\n",
        "x = torch.where(h > 1, x + 2, x - 1)",
    ),
    Mend(f"{SCORE}    return score if q_idx > 3 else score * 2\n", "return torch.where(q_idx > 3, score, score * 2)"),
    Mend(f"{MASK}    return q_idx >= kv_idx and kv_idx < 16 or h == 0\n", "((q_idx >= kv_idx) & (kv_idx < 16)) | (h == 0)"),
    Mend(f"{MASK}    return not (q_idx < kv_idx)\n", "return ~(q_idx < kv_idx)"),
    Mend(f"{MASK}    return 0 <= q_idx - kv_idx < 16\n", "(0 <= q_idx - kv_idx) & (q_idx - kv_idx < 16)"),
    Mend(f"{MASK}    return kv_idx in (1, 2, 3)\n", "torch.isin(kv_idx, torch.tensor(list((1, 2, 3))))"),
    Mend(f"{SCORE}    return torch.tahn(score)\n", "return torch.tanh(score)"),
    Mend(f"{SCORE}    x = 2 * torch.sigmod(\n        score.tanhh()\n    )\n    return x\n", "torch.sigmoid(\n        score.tanh()"),
    Mend(f"{SCORE}    return score - max(q_idx - kv_idx, 4)\n", "(q_idx - kv_idx).clamp(min=4)"),
    Mend(f"{SCORE}    assert q_idx >= 0\n    return score\n", "kv_idx):\n    return score"),
    Mend(f"{MASK}    return q_idx - kv_idx < width[h].item()\n", "< width[h]\n", {"width": torch.arange(8)}),
    Mend(f"{SCORE}    return score * float(kv_idx)\n", "(kv_idx).to(torch.float32)"),
    Mend(f"{SCORE}    return score * int(score)\n", "(score).to(torch.int32)"),
    Mend(f"{SCORE}    print(score)\n    return score\n", "kv_idx):\n    return score"),
    Mend(f"{SCORE}    return np.tanh(score / 20.0)\n", "torch.tanh(score / 20.0)"),
    Mend(f"{SCORE}    score *= 2\n    return score\n", "score = score * 2"),
    Mend(f"{SCORE}    return score + slope[h]\n", "slopes[h]", {"slopes": torch.ones(8)}),
    Mend(f"{SCORE}    return torch.tanh(scor)\n", "torch.tanh(score)"),
    Mend(f"{SCORE}    return score * math.pi\n", "\nimport math\ndef", {"math": None}),
    Mend(f"{MASK}    return torch.where(q_idx >= kv_idx, 0.0, float('-inf'))\n", "return q_idx >= kv_idx\n"),
    Mend(f"{SCORE}    return q_idx >= kv_idx\n", "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx"),
    Mend(f"{SCORE}    biased = score + 0.1 * kv_idx\n", "    return biased"),
    Mend(f"{HEAD}def score_mod(score, h, q_idx, kv_idx):\n    return score\n", "def score_mod(score, b, h, q_idx, kv_idx):"),
    Mend(f"{HEAD}def score_mods(score, b, h, q_idx, kv_idx):\n    return score\n", "def score_mod(score"),
    Mend(f"{SCORE}    é = '😀' ; return score * float(kv_idx)\n", "é = '😀' ; return score * (kv_idx).to(torch.float32)"),
]


@pytest.mark.parametrize("mend", MENDS, ids=lambda m: m.after.strip()[:40])
def test_a_mend_mends(mend: Mend) -> None:
    notebook = {k: v for k, v in {**LIBRARIES, **mend.notebook}.items() if v is not None}
    text = mend.before
    for _ in range(3):  # an if in an if takes two
        found = errors(assist.look(text, notebook))
        if not found:
            break
        assert found[0].fixes, found[0]
        text = apply(text, found[0].fixes[0])
    assert mend.after in text
    answer = assist.look(text, notebook)
    assert answer.ran, answer.why
    assert errors(answer) == []


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c.error}: {c.what}")
def test_no_offered_mend_leaves_its_mistake(cell: Cell) -> None:
    notebook = {**LIBRARIES, **cell.notebook}
    for d in errors(assist.look(cell.text, notebook)):
        for fix in d.fixes:
            answer = assist.look(apply(cell.text, fix), notebook)
            assert answer.ran, (fix.title, answer.why)
            assert errors(answer) == [], fix.title


DEF = "def mask_mod(b, h, q_idx, kv_idx):\n"
INFOS = [
    (
        "a slider",
        f"{HEAD}window = 16\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < window\n",
        "window = slider(1, 64, 16)",
    ),
    ("a float", f"{HEAD}cap = 2.5\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return score * cap\n", "cap = slider(0.0, 10.0, 2.5)"),
    ("fast math", f"{SCORE}    return torch.tanh(score)\n", "--D 64 --fast-math\n"),
    (
        "offsets",
        f"{HEAD}ids = torch.arange(64) // 20\n{DEF}    return (q_idx >= kv_idx) & (ids[q_idx] == ids[kv_idx])\n",
        "return (q_idx >= kv_idx) & (((kv_idx >= ids_first[q_idx]) & (kv_idx < ids_end[q_idx])))",
    ),
]


@pytest.mark.parametrize(("what", "text", "after"), INFOS, ids=[i[0] for i in INFOS])
def test_an_advice_can_be_taken(what: str, text: str, after: str) -> None:
    answer = look(text)
    assert errors(answer) == []
    fixed = [apply(text, fix) for d in answer.diagnostics for fix in d.fixes]
    (taken,) = [t for t in fixed if after in t]
    then = look(taken)
    assert then.ran, then.why
    assert errors(then) == []
    assert torch.equal(run(text, LIBRARIES).apply_mask(), run(taken, LIBRARIES).apply_mask())
    assert not any(after in apply(taken, fix) for d in then.diagnostics for fix in d.fixes), "it is offered again"
