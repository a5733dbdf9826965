"""Block lists as FlashAttention-4's kernels take them: forward, and the transposed ones of the backward, at the blocks that fit.

The lists are as wide as the longest row, which FlashAttention-4 allows: a window of a million tokens takes 1 MB, not 268.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from cute_lab import targets
from cute_lab.blocks import BlockMap
from cute_lab.errors import GeometryError
from cute_lab.runs import FULL, PARTIAL

if TYPE_CHECKING:
    from cute_lab.lab import Lab


class BlockSparse(NamedTuple):
    """Two BlockSparseTensorsTorch: the second for `_flash_attn_bwd`, over blocks of keys."""

    forward: Any
    backward: Any


def lists(found: BlockMap, device: torch.device | str, direction: str, deterministic: bool = False) -> Any:
    """BlockSparseTensorsTorch of one direction; counts int32 [Bm, Hm, n], indices int32 [Bm, Hm, n, longest]."""
    backward = direction == "backward"
    partial, full = (found.lists(kind, device, transposed=backward) for kind in (PARTIAL, FULL))
    module = importlib.import_module("flash_attn.cute.block_sparsity")
    order: dict[str, Any] = {}
    if deterministic and backward:
        rows = [x for kind in (PARTIAL, FULL) for x in found.lists(kind, device)]
        names = ("dq_write_order", "dq_write_order_full")
        order = dict(zip(names, module.compute_dq_write_order(*rows, *partial, *full), strict=True)) | {"spt": False}
    return module.BlockSparseTensorsTorch(*partial, *full, block_size=found.block, **order)


def tensors(lab: Lab, device: torch.device | str, target: str, deterministic: bool = False) -> BlockSparse:
    """Both directions; GeometryError where the target has no kernel, or one that skips no blocks, at this head dimension."""
    s = lab.shape
    made = []
    for direction in ("forward", "backward"):
        refused = [a for a in lab.advice(target, direction) if a.level == "refused"]
        if refused:
            raise GeometryError(f"{target}, {direction}: {refused[0].message}", example=refused[0].fix)
        if not targets.skips_blocks(targets.target_named(target), s.D, s.Sq, direction, s.H // s.Hkv):
            raise GeometryError(
                f"{target}: the {direction} kernel skips no blocks at D={s.D}",
                detail="A mask_mod works there on every tile, without lists.",
                example="a target with block sparsity: sm_90a, sm_100a",
            )
        block = lab.block or lab.block_of(target, direction)
        made.append(lists(lab.blocks(block), device, direction, deterministic))
    return BlockSparse(*made)
