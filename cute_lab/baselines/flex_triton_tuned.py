"""FlexAttention through torch.compile, its Triton kernel tuned by max-autotune."""

from __future__ import annotations

from cute_lab.baselines import Baseline, Case, Ready, _flex


def prepare(case: Case) -> Ready:
    return _flex.prepare(case, (128, 128), "max-autotune", mode="max-autotune-no-cudagraphs")


BASELINE = Baseline("FlexAttention Triton, max-autotune", 11, prepare, slow=True)
