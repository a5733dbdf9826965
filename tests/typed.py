"""Cells while they are typed: what is said of them, and what running them gives."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from cute_lab import assist, squiggles
from cute_lab.cell import from_text
from cute_lab.lab import Lab, attention
from cute_lab.options import SHAPE, parse
from cute_lab.squiggles import Diagnostic

LIBRARIES: dict[str, Any] = {"torch": torch, "np": np, "math": math, "random": random, "F": F}
HEAD = "%%cute_attention --Sq 64 --D 64\n"
SCORE = f"{HEAD}def score_mod(score, b, h, q_idx, kv_idx):\n"
MASK = f"{HEAD}def mask_mod(b, h, q_idx, kv_idx):\n"


def errors(answer: assist.Answer) -> list[Diagnostic]:
    return [d for d in answer.diagnostics if d.severity == "error"]


def look(text: str, **notebook: Any) -> assist.Answer:
    return assist.look(text, {**LIBRARIES, **notebook})


def run(text: str, notebook: dict[str, Any]) -> Lab:
    """What the magic does with the cell, as far as it can fail."""
    given = parse(text.partition("\n")[0].removeprefix("%%cute_attention"))
    mods = from_text(f"# {text}", notebook, None, dict(given.get("--param", ())))
    shape = {flag.strip("-"): given[flag] for flag in SHAPE if flag in given}
    return attention(mods.score_mod, mods.mask_mod, params=mods.params, target="none", **shape)


def marked(text: str, d: Diagnostic) -> str:
    """The text under the squiggle, of its first line."""
    line = text.split("\n")[d.line - 1]
    first, last = (squiggles.characters(line, c) for c in (d.column, d.end_column))
    return line[first : last if d.end_line == d.line else None]
