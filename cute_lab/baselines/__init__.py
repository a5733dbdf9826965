"""What a variant is measured against, and the variant itself. One file each exports BASELINE; the folder is the list.

`prepare(case)` returns how to run the case, or raises Absent with the reason why this contender can't express it; the reason is
recorded. All get q, k and v as FlexAttention takes them, contiguous [B, H, S, D]; FlashAttention reads views of any strides.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from cute_lab.lab import Lab

Run = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Absent(Exception):
    """This contender can't express the case; the message says why."""


@dataclass(frozen=True)
class Case:
    """One variant at one shape. The lab's mods have their captured tensors on `device`."""

    lab: Lab
    device: torch.device

    @property
    def shape(self) -> Any:
        return self.lab.shape

    @property
    def score_mod(self) -> Callable[..., Any] | None:
        return self.lab.mods.get("score")

    @property
    def mask_mod(self) -> Callable[..., Any] | None:
        return self.lab.mods.get("mask")


@dataclass(frozen=True)
class Ready:
    """`run(q, k, v)` -> out, all [B, H, S, D]; autograd works unless `trains` is False."""

    run: Run
    note: str = ""
    trains: bool = True
    why_not: str = ""  # why it has no backward
    ceiling: bool = False  # it leaves something out, so that it computes something else and can't be checked


@dataclass(frozen=True)
class Baseline:
    """`order` is where it stands in tables."""

    label: str
    order: int
    prepare: Callable[[Case], Ready]
    devices: tuple[str, ...] = ("cuda",)
    slow: bool = False  # only where it is asked for: tuning takes minutes


@cache
def baselines() -> dict[str, Baseline]:
    """By file name, in the order of tables."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    found = {name: importlib.import_module(f"{__name__}.{name}").BASELINE for name in names}
    return dict(sorted(found.items(), key=lambda item: item[1].order))
