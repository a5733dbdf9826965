"""The table of torch_mods: the generated code, run on the host, against torch's eager evaluation; forward, gradient and mask.

Mods are compiled 16 at a time: one function whose batch index picks the mod, so that a row (i, h, q) belongs to mod i.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from cute_lab import cutedsl, host, reference
from cute_lab.capture import captured
from cute_lab.ir import Graph, Node, Program, const, node
from cute_lab.ops import OPS
from cute_lab.record import Shape
from cute_lab.rewrite import rewrite
from cute_lab.trace import Session, trace
from cute_lab.verify import tolerance
from torch_mods import EAGER_GRADIENT, MODS, SKV, SQ, H, Mod

TOGETHER = 16
# their derivatives subtract numbers of one size
TOLERANCE = {
    "special.erfcx": 5e-6,
    "special.log_ndtr": 4e-6,
    "special.erfinv": 5e-6,
    "erfinv": 5e-6,
    "gelu tanh": 4e-6,
    "special.sinc": 2e-5,
    "sinc": 2e-5,
}
GROUPS = [MODS[i : i + TOGETHER] for i in range(0, len(MODS), TOGETHER)]


def positions() -> tuple[torch.Tensor, torch.Tensor]:
    """(h, q) rows without the mod's number, and kv."""
    return host.grid_rows([0], range(H), range(0, SQ, 3)), torch.arange(SKV, dtype=torch.int32)


def values(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(5)
    scores = torch.randn(rows, SKV, generator=g) * 3
    scores[::7] *= 10
    scores[:, ::31] = 0
    return scores, torch.randn(rows, SKV, generator=g)


def chosen(graphs: Sequence[Node]) -> Node:
    """The value of mod number b."""
    result = graphs[0]
    for i, value in enumerate(graphs[1:], 1):
        result = OPS["where"](OPS["eq"](node("input", "i32", attr="b"), const(i, "i32")), value, result)
    return result


def worst(got: torch.Tensor, expected: torch.Tensor, where: torch.Tensor | None = None) -> float:
    a, b = got.double(), expected.double()
    same = (a == b) | (a.isnan() & b.isnan())
    error = torch.where(same, 0.0, (a - b).abs() / b.abs().clamp(min=1.0).nan_to_num(posinf=1.0)).nan_to_num(nan=float("inf"))
    return float(error.max() if where is None else (error * where).nan_to_num(nan=0.0).max())


def one_by_one(
    mod: Mod, grads: torch.Tensor, scores: torch.Tensor, rows: torch.Tensor, kv: torch.Tensor, got: torch.Tensor
) -> torch.Tensor:
    """Gradients by torch's autograd on single scores (every 97th; elsewhere `got`): vmap adds up those of an indexed row over the batch."""
    out = got.clone()
    for i in range(0, scores.numel(), 97):
        r, c = divmod(i, kv.numel())
        leaf = scores[r, c].clone().requires_grad_()
        value = mod(leaf, *rows[r].unbind(), kv[c])
        (out[r, c],) = torch.autograd.grad(value.reshape(()).to(torch.float32), leaf, grads[r, c])
    return out


@pytest.mark.filterwarnings("ignore:torch.searchsorted")
@pytest.mark.parametrize("group", GROUPS, ids=lambda g: f"{g[0][0]} .. {g[-1][0]}")
def test_generated_code_is_torch(group: list[tuple[str, str, Mod]]) -> None:
    shape = Shape(TOGETHER, H, H, SQ, SKV, 64, "bf16")
    session = Session(shape)
    kinds = ("score", "score_bwd", "mask")
    graphs: dict[str, list[Graph | None]] = {kind: [] for kind in kinds}
    for _, kind, mod in group:
        for k in kinds:
            wanted = k == kind or (kind, k) == ("score", "score_bwd")
            graphs[k].append(rewrite(trace(mod, k, session, captured(mod)), session.box) if wanted else None)
    blank = {"mask": const(False, "bool"), "score": const(0.0, "f32"), "score_bwd": const(0.0, "f32")}
    program = Program(
        **{k: Graph(k, chosen([blank[k] if g is None else g.output for g in graphs[k]])) for k in kinds if any(graphs[k])},
        tables=tuple(session.tables.rows),
    )
    text = cutedsl.emit(program).text
    few, kv = positions()
    rows = torch.cat([few + torch.tensor([i, 0, 0], dtype=torch.int32) for i in range(len(group))])
    scores, grads = values(len(rows))
    got = {}
    if program.score is not None:
        got["score"] = host.score(text, scores, rows, kv, program.tables, ())
        got["score_bwd"] = host.grad(text, grads, scores, rows, kv, program.tables, ())
    if program.mask is not None:
        got["mask"] = host.mask(text, rows, kv, program.tables, ())
    bad = []
    for i, (name, kind, mod) in enumerate(group):
        part = slice(i * len(few), (i + 1) * len(few))
        mine = rows[part], kv
        if kind == "mask":
            if not torch.equal(got["mask"][part], reference.mask(mod, *mine)):
                bad.append(f"{name}: mask differs")
            continue
        forward = reference.score(mod, scores[part], *mine)
        limit = next((x for start, x in TOLERANCE.items() if name.startswith(start)), 0.0)
        for k, expected in (("score", forward), ("score_bwd", None)):
            graph = graphs[k][i]
            assert graph is not None
            most = max(limit, tolerance(graph))
            if k == "score_bwd":
                how = EAGER_GRADIENT.get(name)
                if how == "none":
                    continue
                arguments = mod, grads[part], scores[part], *mine
                expected = one_by_one(*arguments, got[k][part]) if how == "one by one" else reference.grad(*arguments)
            error = worst(got[k][part], expected, forward.isfinite() if k == "score_bwd" else None)  # type: ignore[arg-type]
            if error > most:
                bad.append(f"{name}: {k} is off by {error:.2g}, at most {most:.1g}")
    assert not bad, "\n".join(bad)
