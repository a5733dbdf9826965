"""FlexAttention as the three compiled contenders use it."""

from __future__ import annotations

import functools
from typing import Any

from cute_lab.baselines import Case, Ready


def prepare(case: Case, block: tuple[int, int], note: str, mode: str | None = None, **kernel_options: Any) -> Ready:
    """torch.compile(flex_attention); the BlockMask is ours, equal to create_block_mask's in every tensor and made without its memory."""
    import torch._dynamo
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.config.recompile_limit = 10_000  # each shape of a sweep is a compilation of its own
    mask = case.lab.blocks(block).to_block_mask(case.device, compact=True) if case.mask_mod is not None else None
    arguments: dict[str, Any] = {"score_mod": case.score_mod, "block_mask": mask}
    if case.shape.Hkv != case.shape.H:
        arguments["enable_gqa"] = True
    if kernel_options:
        arguments["kernel_options"] = kernel_options
    attend = torch.compile(functools.partial(flex_attention, **arguments), dynamic=False, mode=mode)
    return Ready(lambda q, k, v: attend(q, k, v), note)
