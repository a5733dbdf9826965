"""This project: the generated CuTeDSL in FlashAttention-4; on a CPU the host reference attention."""

from __future__ import annotations

import torch

from cute_lab import fa4
from cute_lab.baselines import Baseline, Case, Ready


def prepare(case: Case) -> Ready:
    if case.device.type == "cpu":
        return Ready(lambda q, k, v: case.lab.run(q, k, v), "the generated code on the CPU's host JIT")  # type: ignore[arg-type, return-value]
    kernel = fa4.prepare(case.lab, case.device)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return fa4.attend(kernel, q, k, v, None)[0]

    failed = kernel.backward if isinstance(kernel.backward, Exception) else None
    return Ready(run, kernel.note, failed is None, str(failed or ""))


BASELINE = Baseline("cute_lab", 0, prepare, ("cuda", "cpu"))
