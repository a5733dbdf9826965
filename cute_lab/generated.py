"""A program's generated functions, run on the CPU over rows of positions, with every index checked before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from cute_lab import check, cutedsl, host
from cute_lab.ir import Graph, Program
from cute_lab.record import Shape


@dataclass(frozen=True)
class Generated:
    """`rows` are int32 [R, 3] (b, h, q), `kv` int32 [N]; scores and gradients float32 [R, N], masks bool [R, N]."""

    program: Program
    shape: Shape
    text: str

    @classmethod
    def of(cls, program: Program, shape: Shape, fast: bool) -> Generated:
        return cls(program, shape, cutedsl.emit(program, fast=fast).text)

    @property
    def _captures(self) -> Any:
        return self.program.tables, self.program.scalars

    def _strike(self, graph: Graph | None, rows: torch.Tensor, kv: torch.Tensor, scores: torch.Tensor | None) -> None:
        assert graph is not None
        check.strike(graph, self.program, self.shape, rows, kv, scores)

    def score(self, scores: torch.Tensor, rows: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        self._strike(self.program.score, rows, kv, scores)
        return host.score(self.text, scores, rows, kv, *self._captures)

    def grad(self, grads: torch.Tensor, scores: torch.Tensor, rows: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        self._strike(self.program.score_bwd, rows, kv, scores)
        return host.grad(self.text, grads, scores, rows, kv, *self._captures)

    def mask(self, rows: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        self._strike(self.program.mask, rows, kv, None)
        return host.mask(self.text, rows, kv, *self._captures)
