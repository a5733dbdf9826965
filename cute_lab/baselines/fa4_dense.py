"""FlashAttention-4 with no mod at all: the ceiling for score mods. It computes something else, so it is not checked against them."""

from __future__ import annotations

import torch

from cute_lab import fa4
from cute_lab.baselines import Absent, Baseline, Case, Ready


def prepare(case: Case) -> Ready:
    program = case.lab.program
    if program.mask is not None:
        raise Absent("the variant has a mask: without it every block would be computed")
    flash = fa4.interface().flash_attn_func

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = flash(*(x.transpose(1, 2) for x in (q, k, v)))[0].transpose(1, 2)
        return out

    return Ready(run, "" if (same := fa4.is_identity(program)) else "without the score_mod: a ceiling", ceiling=not same)


BASELINE = Baseline("FA4 dense", 30, prepare)
