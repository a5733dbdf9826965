"""torch's scaled_dot_product_attention through cuDNN."""

from __future__ import annotations

from torch.nn.attention import SDPBackend

from cute_lab.baselines import Baseline, Case, Ready, _sdpa


def prepare(case: Case) -> Ready:
    return _sdpa.prepare(case, SDPBackend.CUDNN_ATTENTION, takes_bias=True)


BASELINE = Baseline("SDPA cuDNN", 20, prepare)
