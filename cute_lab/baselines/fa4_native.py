"""FlashAttention-4's own causal and window masks through its public function, without the score_mod: the ceiling for masked variants."""

from __future__ import annotations

import torch

from cute_lab import fa4, native
from cute_lab.baselines import Absent, Baseline, Case, Ready


def prepare(case: Case) -> Ready:
    program = case.lab.program
    window = native.window(program, case.shape)
    if program.mask is None:
        raise Absent("the variant has no mask")
    if window is None:
        raise Absent("FlashAttention-4 has causal and window masks only, and this is neither")
    flash = fa4.interface().flash_attn_func

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        rows = (x.transpose(1, 2) for x in (q, k, v))
        right = None if window.causal else window.right
        out: torch.Tensor = flash(*rows, causal=window.causal, window_size=(window.left, right))[0].transpose(1, 2)
        return out

    same = fa4.is_identity(program)
    return Ready(run, str(window) + ("" if same else ", without the score_mod: a ceiling"), ceiling=not same)


BASELINE = Baseline("FA4 native", 31, prepare)
