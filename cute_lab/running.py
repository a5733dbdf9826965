"""lab.run: attention on the CPU with the generated code, or on a GPU through FlashAttention-4."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from cute_lab import attend, fa4, shapes, trial
from cute_lab.errors import OptionError

if TYPE_CHECKING:
    from cute_lab.lab import Lab

Result = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


def run(lab: Lab, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None, return_lse: bool, tried: bool) -> Result:
    shapes.attention_inputs(lab.shape, q, k, v)
    tables = lab.graph.tables
    untrained = [t.name for t in tables if t.trained] if torch.is_grad_enabled() else []
    if untrained:
        warnings.warn(f"captured tensors get no gradient, only q, k and v do: {', '.join(untrained)}", stacklevel=3)
    if q.device.type == "cpu":
        out, lse = attend.attend(lab.generated(), q, k, v, scale)
    elif q.device.type == "cuda":
        out, lse = fa4.attend(kernel(lab, q.device, tried), q, k, v, scale)
    else:
        raise OptionError(f"q is on {q.device}: `run` works on a CPU and on NVIDIA GPUs", example="lab.run(q.cpu(), k.cpu(), v.cpu())")
    return (out, lse) if return_lse else out


def kernel(lab: Lab, device: torch.device, tried: bool) -> fa4.Kernel:
    """The variant for this device; the same object as long as the mods read the same. A new text is tried in another process first."""

    def make() -> fa4.Kernel:
        made = fa4.prepare(lab, device)
        if tried:
            trial.once(lab, made, device)
        return made

    found: fa4.Kernel = lab.live.remember(("kernel", device), make)
    return found
