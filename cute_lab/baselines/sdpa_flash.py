"""torch's scaled_dot_product_attention through its built-in FlashAttention-2."""

from __future__ import annotations

from torch.nn.attention import SDPBackend

from cute_lab.baselines import Baseline, Case, Ready, _sdpa


def prepare(case: Case) -> Ready:
    return _sdpa.prepare(case, SDPBackend.FLASH_ATTENTION, takes_bias=False)


BASELINE = Baseline("SDPA FLASH", 21, prepare)
