"""FlexAttention through torch.compile with Inductor's FLASH backend: its own CuTeDSL in FlashAttention-4."""

from __future__ import annotations

from cute_lab import fa4, targets
from cute_lab.baselines import Absent, Baseline, Case, Ready, _flex
from cute_lab.errors import GeometryError


def prepare(case: Case) -> Ready:
    s, target = case.shape, fa4.target_of(case.device)
    try:
        block = targets.block_for(target, s.D, s.Sq, None, "both", s.H // s.Hkv)
    except GeometryError as error:
        raise Absent(f"no block suits its forward and backward: {error.summary}") from None
    return _flex.prepare(case, block, f"BACKEND=FLASH, blocks {block[0]}×{block[1]}", BACKEND="FLASH")


BASELINE = Baseline("FlexAttention FLASH", 12, prepare)
