"""What happens above the dispatcher, in torch's Python functions: indexing by slices and positions together, missing derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from cute_lab import usercode
from cute_lab.tracer import Tracer


def one_hot(x: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    return (x.unsqueeze(-1) == torch.arange(num_classes)).to(torch.int64)


# functions that ask a tensor for its values where a formula does without
REPLACED = {torch.nn.functional.one_hot: one_hot}
STEPS = frozenset(("floor_divide", "__floordiv__", "__rfloordiv__", "__ifloordiv__", "floor_divide_", "heaviside"))


def differentiable(func: Any, out: torch.Tensor, args: Sequence[Any], kwargs: Any) -> torch.Tensor:
    """torch has no derivative for a few functions that have one: steps have 0, and `7.5 % x` is that of two tensors."""
    if getattr(func, "__name__", "") in STEPS:
        return out.detach()
    if getattr(func, "__name__", "") in ("__rmod__", "remainder") and any(isinstance(a, (int, float)) for a in args):
        a, b = args[::-1] if func.__name__ == "__rmod__" else args
        return torch.remainder(torch.as_tensor(a, dtype=out.dtype), b)
    return out


def split_index(t: Tracer, x: torch.Tensor, index: Any) -> tuple[tuple[Any, ...], list[Any]] | None:
    """x[i, 1:3, None] with a position i -> (basic, advanced): what torch's slicing does first, then the indexing by tensors.

    torch would read a 0-dim tensor as a number here; under vmap, as FlexAttention calls a mod, it is an index like any other.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    if not any(t.derived(i) for i in items) or all(isinstance(i, (torch.Tensor, int)) for i in items):
        return None
    basic: list[Any] = []
    advanced: list[Any] = []
    whole = x.dim() - sum(i is not None and i is not Ellipsis for i in items)
    for i in items:
        if i is Ellipsis:
            basic += [slice(None)] * whole
            advanced += [None] * whole
        elif isinstance(i, (torch.Tensor, list)):
            basic.append(slice(None))
            advanced.append(torch.as_tensor(i))
        else:
            basic.append(i)
            advanced += [None] * (i is None or isinstance(i, slice))
    return tuple(basic), advanced


class Python(TorchFunctionMode):
    """Sees what the dispatcher does not: writes by `x[i] = y`, ways out of torch, and which autograd node stands where."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from cute_lab.diagnose import leaves_torch

        name = getattr(func, "__name__", "")
        if func is torch.Tensor.__getitem__ and (parts := split_index(self.tracer, *args)) is not None:
            return torch.ops.aten.index(func(args[0], parts[0]), parts[1])
        if func in REPLACED and args and self.tracer.derived(args[0]) and len(args) + len(kwargs or {}) > 1:
            return REPLACED[func](*args, **(kwargs or {}))
        if args and isinstance(args[0], torch.Tensor):
            if name == "__setitem__":
                self.tracer.check_write(args[0])
            elif name in ("__array__", "numpy", "tolist", "data_ptr", "__dlpack__") and self.tracer.derived(args[0]):
                raise leaves_torch(self.tracer)
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.grad_fn is not None and out.grad_fn.name().endswith("NotImplemented"):
            out = differentiable(func, out, args, kwargs or {})
        if isinstance(out, torch.Tensor) and out.grad_fn is not None:
            frame = usercode.user_frame(self.tracer.seen.files)
            if frame is not None:
                self.tracer.autograd.setdefault(out.grad_fn._sequence_nr(), usercode.frame_loc(frame))
        return out
