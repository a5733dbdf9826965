"""Typing does nothing: what is run only computes, within limits, and leaves the notebook and its random numbers alone."""

from __future__ import annotations

import ast
import functools
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import and_masks

from cute_lab import assist, limits
from cute_lab.harmless import judge
from typed import HEAD, LIBRARIES, MASK, errors, look

# -- what may run while typing ---------------------------------------------------------------------------------------------------
PURE = [
    "window = 512",
    "window = slider(1, 5, 2)",
    "a, b = 1, [2.0] * 8",
    "import torch as t\nw = t.zeros(3)\nw[0] = 1",
    "s = torch.exp2(-torch.arange(1, 9.0))\nx = [s[i].item() for i in range(8)]",
    "bias = torch.randn(3, 4)",
    "from functools import partial\nfrom torch.nn.attention.flex_attention import and_masks",
    "z = (lambda a: a + 1)(3)",
    "class A:\n    x = 3\n    def f(self):\n        return self.x\ny = A().f()",
    "h = table.to(torch.bfloat16)[:, None].cumsum(0)",
    "def helper(n):\n    return n * 2\nx = helper(3)",
    "for i in range(8):\n    if i > 3:\n        break",
    "x = np.arange(5) + np.pi",
    "g = torch.Generator().manual_seed(1)\nr = torch.rand(3, generator=g)",
    "rows = []\nfor i in range(9):\n    rows.append(i)",
    "G = F.logsigmoid(table)\nm = math.log2(8)",
    "n = 3\nn *= 2",
    "y = near(3)",
    "mask = and_masks(near, near)",
]
REFUSED = [
    "while True: pass",
    "x = open('f')",
    "f = os.system\nf('x')",
    "list(map(print, [1]))",
    "exec('1')",
    "getattr(os, 'system')('x')",
    "import subprocess as sp\nsp.run('x')",
    "torch.save(table, 'x')",
    "torch.load('x')",
    "torch.manual_seed(0)",
    "x = np.random.rand(3)",
    "random.seed(1)",
    "table[0] = 1",
    "table.add_(1)",
    "t = table\nt += 1",
    "table.numpy()[0] = 3",
    "names.append(3)",
    "del names[0]\nx = names.pop()",
    "x = [0] * 10**9",
    "n = 10**9\nx = [0] * n",
    "y = 10**10**10",
    "for i in range(10**7): pass",
    "x = sum(range(10**9))",
    "x = [i for i in range(999) for j in range(999)]",
    "math.factorial(10**6)",
    "import antigravity",
    "from os import *",
    "with open('x'): pass",
    "@functools.cache\ndef f(): pass",
    "x = torch.zeros(3, device='cuda')",
    "x = table.cuda()",
    "def f(n):\n    return os.remove(n)\nf('x')",
    "y = bad(3)",
    "x = print(3)",
    "x = Path('x').unlink()",
    "hook(3)",
    "try:\n    x = 1\nexcept Exception:\n    pass",
]


def near(n: Any) -> Any:
    return n > 3


def bad(n: Any) -> Any:
    Path(str(n)).write_text("x")
    return n


NOTEBOOK: dict[str, Any] = {
    **LIBRARIES,
    "table": torch.ones(4),
    "names": [1],
    "functools": functools,
    "near": near,
    "bad": bad,
    "Path": Path,
    "and_masks": and_masks,
    "os": __import__("os"),
    "hook": functools.partial(bad, 3),
}


@pytest.mark.parametrize("text", PURE)
def test_what_only_computes_runs(text: str) -> None:
    assert judge(ast.parse(text), NOTEBOOK).top == ""


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_more_does_not_run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = NOTEBOOK["table"].clone(), list(NOTEBOOK["names"]), torch.get_rng_state(), random.getstate()
    answer = assist.look(f"{HEAD}{text}\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n", NOTEBOOK)
    assert not answer.ran
    assert answer.why.startswith(("line ", "`"))
    assert torch.equal(before[0], NOTEBOOK["table"])
    assert before[1] == NOTEBOOK["names"]
    assert torch.equal(before[2], torch.get_rng_state())
    assert before[3] == random.getstate()
    assert list(tmp_path.iterdir()) == []


def test_a_function_that_does_more_is_not_called_and_its_text_is_read(tmp_path: Path) -> None:
    spoiled = tmp_path / "spoiled"
    answer = look(f"{MASK}    bad()\n    return q_idx >= kv_idx and h > 2\n", bad=lambda: spoiled.write_text("x"))
    assert not answer.ran
    assert not spoiled.exists()
    assert [d.message.split("\n")[0] for d in errors(answer)] == ["a Python `and/or` on an index can't be lowered"]


def test_too_large_and_too_long_end() -> None:
    large = look(
        f"{HEAD}grid = torch.arange(20000)[:, None] - torch.arange(20000)\n{MASK.partition(chr(10))[2]}    return q_idx >= kv_idx\n"
    )
    assert not large.ran
    assert "64 MB" in large.why
    start = time.perf_counter()
    endless = look(f"{MASK}    n = 0\n    while n >= 0:\n        n = n + 1\n    return q_idx >= kv_idx\n")
    assert not endless.ran
    assert "2 s" in endless.why
    assert time.perf_counter() - start < limits.SECONDS + 1.5
    assert not [t for t in threading.enumerate() if t.name == "cute_lab-typing" and t.is_alive()]
    assert look(f"{MASK}    return q_idx >= kv_idx\n").ran


def test_random_tables_of_a_cell_leave_the_notebook_s_numbers_alone() -> None:
    state = torch.get_rng_state()
    text = f"{HEAD}bias = torch.randn(8, 64) + torch.rand(64) + torch.randint(0, 9, (64,)) + torch.empty(64).normal_()\n"
    answer = look(f"{text}def score_mod(score, b, h, q_idx, kv_idx):\n    return score + bias[h, kv_idx]\n")
    assert answer.ran, answer.why
    assert errors(answer) == []
    assert torch.equal(state, torch.get_rng_state())
