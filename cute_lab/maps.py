"""The block map of a lab: at which block, and of which mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from cute_lab import check, cutedsl
from cute_lab.blocks import BlockMap, classify, unmasked
from cute_lab.errors import GeometryError, OptionError

if TYPE_CHECKING:
    from cute_lab.lab import Lab

MOST_CELLS = 1 << 31  # of a block: they are counted in 32 bits
ANY_BLOCK = (128, 128)  # FlexAttention's own default, where no target has a kernel


def of(lab: Lab, size: tuple[int, int]) -> BlockMap:
    program = lab.graph
    if program.mask is None:
        return unmasked(lab.shape, size, _everything)
    check.program(program, lab.shape)
    cells = min(size[0], lab.shape.Sq) * min(size[1], lab.shape.Skv)
    if cells >= MOST_CELLS:
        raise OptionError(
            f"a block of {size[0]:,} × {size[1]:,} has {cells:,} cells", detail="Fewer than 2³¹ can be counted.", example="128"
        )
    return classify(program, cutedsl.emit(program, fast=lab.fast_math).text, lab.shape, size, lab.mods["mask"])


def default_block(lab: Lab) -> tuple[int, int]:
    return block_for(lab, lab.targets)


def block_for(lab: Lab, names: Sequence[str]) -> tuple[int, int]:
    """The block of the first target that has a kernel for this head dimension."""
    for name in names:
        try:
            return lab.block_of(name)
        except GeometryError:
            continue
    return ANY_BLOCK


def _everything(b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
    return q_idx >= 0
