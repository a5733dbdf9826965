"""FlexAttention through torch.compile, its Triton kernel with default options."""

from __future__ import annotations

from cute_lab.baselines import Baseline, Case, Ready, _flex


def prepare(case: Case) -> Ready:
    return _flex.prepare(case, (128, 128), "default options")


BASELINE = Baseline("FlexAttention Triton", 10, prepare, ("cuda", "cpu"))
