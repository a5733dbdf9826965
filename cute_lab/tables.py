"""The captured tensors of a variant, each once."""

from __future__ import annotations

from typing import Any

import torch

from cute_lab.errors import Loc, UnsupportedOp
from cute_lab.ir import DTYPES, FROM_TORCH, Table


def short(dtype: torch.dtype) -> str:
    """The IR's name of a dtype, or what to convert it to."""
    name = str(dtype).removeprefix("torch.")
    if name not in FROM_TORCH:
        other = "torch.float32" if dtype.is_floating_point or dtype.is_complex else "torch.int64"
        detail = f"CuTeDSL mods compute in {', '.join(d.torch for d in DTYPES.values())}."
        raise UnsupportedOp(op=f"on values of dtype {name}", detail=detail, example=f"x = x.to({other})    # outside of the mod")
    return FROM_TORCH[name]


class Tables:
    """The captured tensors of one variant, each once, in the order of aux_tensors."""

    def __init__(self) -> None:
        self.rows: list[Table] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._keep: list[torch.Tensor] = []
        self.where: list[Loc | None] = []

    def index(self, x: torch.Tensor, name: str, loc: Loc | None) -> int:
        trained, x = x.requires_grad, x.detach()
        key = (x.device, x.data_ptr(), tuple(x.shape), x.stride(), x.dtype, id(x) if x.is_meta else 0)
        if key not in self._index:
            self._index[key] = len(self.rows)
            kept = [k for k, n in enumerate(x.shape) if n != 1]
            flat = x.squeeze() if kept else x.reshape(1)
            stored = flat.view({torch.bool: torch.uint8, torch.bfloat16: torch.int16}.get(x.dtype, x.dtype))
            dims = tuple(kept.index(k) if k in kept else None for k in range(x.dim()))
            taken = {t.name for t in self.rows}
            unique = name if name not in taken else next(f"{name}_{i}" for i in range(2, 999) if f"{name}_{i}" not in taken)
            self.rows.append(Table(unique, stored, x, dims, short(x.dtype), trained))
            self._keep.append(x)
            self.where.append(loc)
        return self._index[key]
