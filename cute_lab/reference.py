"""The independent reference: torch's own eager evaluation of the user's function, vectorised by vmap as FlexAttention does it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

from cute_lab.capture import Mod, captured

CHUNK = 1 << 22  # positions at once: a few float32 temporaries of 16 MB


def over(mod: Mod, score: bool) -> Callable[..., Any]:
    lead = (0,) if score else ()
    inner = torch.vmap(mod, in_dims=(*lead, None, None, None, 0))
    return torch.vmap(inner, in_dims=(*lead, 0, 0, 0, None))


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """FlexAttention's own mode for `table[index]`; quiet where vmap has no batching rule and loops."""
    with TransformGetItemToIndex(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop")
        yield


def home(mod: Mod) -> torch.device:
    """Where the mod's captured tensors lie: positions must lie there too, as in FlexAttention."""
    devices = [t.device for _, t in captured(mod).tensors if t.dim() or t.device.type != "cpu"]
    return devices[0] if devices else torch.device("cpu")


def _chunks(rows: torch.Tensor, n: int) -> list[slice]:
    step = max(1, CHUNK // max(n, 1))
    return [slice(i, min(i + step, len(rows))) for i in range(0, len(rows), step)]


def _columns(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(rows[:, k].contiguous() for k in range(3))


def score(mod: Mod, scores: torch.Tensor, rows: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """score_mod over rows [R, 3] (b, h, q) and kv [N]: scores float32 [R, N] -> float32 [R, N]."""
    f, at = over(mod, True), home(mod)
    out = torch.empty_like(scores)
    with eager(), torch.no_grad():
        for part in _chunks(rows, kv.numel()):
            out[part] = f(scores[part].to(at), *_columns(rows[part].to(at)), kv.to(at)).to(out.device)
    return out


def grad(mod: Mod, grads: torch.Tensor, scores: torch.Tensor, rows: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """The vector-Jacobian product by autograd through the eager evaluation."""
    f, at = over(mod, True), home(mod)
    out = torch.zeros_like(scores)
    with eager():
        for part in _chunks(rows, kv.numel()):
            leaf = scores[part].to(at, copy=True).requires_grad_()
            value = f(leaf, *_columns(rows[part].to(at)), kv.to(at))
            if value.requires_grad:
                (g,) = torch.autograd.grad(value, leaf, grads[part].to(at, value.dtype), allow_unused=True)
                if g is not None:
                    out[part] = g.to(out.device)
    return out


def mask(mod: Mod, rows: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """mask_mod over rows and kv: bool [R, N]."""
    f, at = over(mod, False), home(mod)
    out = torch.empty((len(rows), kv.numel()), dtype=torch.bool)
    with eager(), torch.no_grad():
        for part in _chunks(rows, kv.numel()):
            out[part] = f(*_columns(rows[part].to(at)), kv.to(at)).to(out.device)
    return out
