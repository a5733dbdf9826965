"""lab.apply_*: the generated functions over the score matrix, by the host JIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from cute_lab import host, shapes

if TYPE_CHECKING:
    from cute_lab.lab import Lab
    from cute_lab.record import Shape


def grid(s: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (b, h, q) and keys of the whole score matrix."""
    return host.grid_rows(range(s.B), range(s.H), range(s.Sq)), torch.arange(s.Skv, dtype=torch.int32)


def score(lab: Lab, scores: torch.Tensor) -> torch.Tensor:
    code, s = lab.generated(), lab.shape
    flat = shapes.scores(s, scores, "scores")
    out = flat.clone() if code.program.score is None else code.score(flat, *grid(s))
    return out.view(s.B, s.H, s.Sq, s.Skv)


def score_grad(lab: Lab, grad: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    code, s = lab.generated(), lab.shape
    flat, flat_grad = shapes.scores(s, scores, "scores"), shapes.scores(s, grad, "grad")
    out = flat_grad.clone() if code.program.score_bwd is None else code.grad(flat_grad, flat, *grid(s))
    return out.view(s.B, s.H, s.Sq, s.Skv)


def mask(lab: Lab, q: slice | None, kv: slice | None) -> torch.Tensor:
    code, s = lab.generated(), lab.shape
    qs, kvs = range(s.Sq)[q or slice(None)], range(s.Skv)[kv or slice(None)]
    shapes.fits(s, len(qs), len(kvs))
    full = (s.B, s.H, len(qs), len(kvs))
    if code.program.mask is None:
        return torch.ones(full, dtype=torch.bool)
    rows = host.grid_rows(range(s.B), range(s.H), qs)
    return code.mask(rows, torch.tensor(list(kvs), dtype=torch.int32)).view(full)


def cells(lab: Lab, b: int, h: int, q: range, kv: range) -> torch.Tensor:
    """The mask of one batch entry and head at these queries and keys: bool [len(q), len(kv)]."""
    code = lab.generated()
    if code.program.mask is None:
        return torch.ones(len(q), len(kv), dtype=torch.bool)
    return code.mask(host.grid_rows([b], [h], q), torch.tensor(list(kv), dtype=torch.int32)).view(len(q), len(kv))
