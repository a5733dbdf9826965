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


def as_stored(x: torch.Tensor) -> torch.Tensor:
    """The tensor without dimensions of size 1, bool as uint8, bf16 as int16: what the generated code reads."""
    flat = x.squeeze() if x.numel() != 1 else x.reshape(1)
    return flat.view({torch.bool: torch.uint8, torch.bfloat16: torch.int16}.get(x.dtype, x.dtype))


def moved(x: torch.Tensor, device: torch.device | str, copy: bool = False) -> torch.Tensor:
    """A copy on the device with the very same strides, of no more memory than the view reaches over.

    `.to` makes views with gaps or overlaps dense, and pickle takes the whole storage.
    """
    if x.numel() == 0 or x.is_meta:
        return x.to(device)
    reach = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
    flat = x.as_strided((reach,), (1,), x.storage_offset()).to(device, copy=copy)
    return flat.as_strided(tuple(x.shape), x.stride())


def on_host(x: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a copy where it lies on a GPU: the host runs the generated code too."""
    return moved(x, "cpu") if x.device.type == "cuda" else x


class Tables:
    """The captured tensors of one variant, each once, in the order of aux_tensors."""

    def __init__(self) -> None:
        self.rows: list[Table] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self.where: list[Loc | None] = []

    def index(self, x: torch.Tensor, name: str, loc: Loc | None) -> int:
        trained, source = x.requires_grad, x.detach()
        x = on_host(source)
        key = (source.device, source.data_ptr(), tuple(x.shape), source.stride(), x.dtype, id(source) if x.is_meta else 0)
        if key not in self._index:
            self._index[key] = len(self.rows)
            kept = [k for k, n in enumerate(x.shape) if n != 1]
            stored = as_stored(x)
            dims = tuple(kept.index(k) if k in kept else None for k in range(x.dim()))
            taken = {t.name for t in self.rows}
            unique = name if name not in taken else next(f"{name}_{i}" for i in range(2, 999) if f"{name}_{i}" not in taken)
            self.rows.append(Table(unique, stored, x, dims, short(x.dtype), trained, source))
            self.where.append(loc)
        return self._index[key]
