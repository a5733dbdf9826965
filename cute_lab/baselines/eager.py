"""torch's eager formula with the whole score matrix in memory: what the functions mean, at the speed of reading it."""

from __future__ import annotations

import torch

from cute_lab import accuracy
from cute_lab.baselines import Absent, Baseline, Case, Ready

SHARE = 0.4  # of the free memory, at most


def prepare(case: Case) -> Ready:
    s = case.shape
    need = 24 * s.B * s.H * s.Sq * s.Skv  # bytes: six float32 matrices live at once, with the backward's
    free = torch.cuda.mem_get_info(case.device)[0] if case.device.type == "cuda" else 4 << 30
    if need > SHARE * free:
        raise Absent(f"the score matrices need {need / 2**30:,.0f} GiB, {free / 2**30:,.0f} GiB are free")
    rows = [(b, h) for b in range(s.B) for h in range(s.H)]

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        outs = [accuracy.rows(case, q[b, h], k[b, h * s.Hkv // s.H], v[b, h * s.Hkv // s.H], b, h, range(s.Sq), None) for b, h in rows]
        return torch.stack(outs).view(s.B, s.H, s.Sq, -1).to(q.dtype)

    return Ready(run, "float32 scores in memory")


BASELINE = Baseline("eager", 40, prepare, ("cuda", "cpu"))
