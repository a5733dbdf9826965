"""Orders of the tokens of an image: a mask over near pixels touches fewer blocks where near pixels lie in one block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from cute_lab.ir import Node, toposort

if TYPE_CHECKING:
    from cute_lab.capture import Mod
    from cute_lab.lab import Lab

TILES = ((8, 16), (16, 8))  # rows x columns of an image that make a block of 128 tokens
# position // width and position % width; for powers of two a shift and a mask of bits stand in their place
SPLITS: dict[str, tuple[str, Callable[[int], int]]] = {
    "floordiv": ("row", lambda n: n),
    "shr": ("row", lambda n: 1 << n if 0 <= n < 31 else 0),
    "mod": ("column", lambda n: n),
    "and": ("column", lambda n: n + 1),
}


def widths(lab: Lab) -> list[int]:
    """Numbers that both a position is divided by and its remainder is taken: the width of an image, if the mask is over one."""
    program = lab.program
    if program.mask is None or lab.shape.Sq != lab.shape.Skv:
        return []
    found: dict[str, set[int]] = {"row": set(), "column": set()}
    for n in toposort(program.mask.output):
        if n.op in SPLITS and n.args[0].op == "input" and (value := _number(n.args[1], lab)) is not None:
            part, width = SPLITS[n.op]
            found[part].add(width(value))
    return sorted(w for w in found["row"] & found["column"] if 1 < w < lab.shape.Sq and lab.shape.Sq % w == 0)


def _number(n: Node, lab: Lab) -> int | None:
    value: Any = n.attr if n.is_const else lab.program.scalars[n.attr].value if n.op == "scalar" else None
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def of(lab: Lab) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, int32 [S]: the token at each place) for the images that the mask is over."""
    for width in widths(lab):
        height = lab.shape.Sq // width
        for rows, columns in TILES:
            if height % rows == 0 and width % columns == 0:
                yield f"tiles {rows}×{columns}", tiled(height, width, rows, columns)
        if height & (height - 1) == 0 and width & (width - 1) == 0:
            yield "Morton", morton(height, width)


def tiled(height: int, width: int, rows: int, columns: int) -> torch.Tensor:
    """Tile after tile, each row by row."""
    at = torch.arange(height * width, dtype=torch.int32).view(height // rows, rows, width // columns, columns)
    return at.permute(0, 2, 1, 3).reshape(-1).contiguous()


def morton(height: int, width: int) -> torch.Tensor:
    """The bits of row and column in turn, for powers of two."""
    rows, columns = (torch.arange(n) for n in (height, width))
    code = torch.zeros(height, width, dtype=torch.int64)
    place = 0
    for bit in range(max(height, width).bit_length() - 1):
        for values, n in ((columns[None, :], width), (rows[:, None], height)):
            if 1 << bit < n:
                code += (values >> bit & 1) << place
                place += 1
    return code.reshape(-1).argsort().to(torch.int32)


def reordered(lab: Lab, order: torch.Tensor) -> Lab:
    """The variant for tokens that lie in another order: place i holds token order[i], int32 [S]."""
    mods = lab.mods

    def placed(mod: Mod, lead: int) -> Mod:
        def moved(*given: Any) -> Any:
            *score, b, h, q_idx, kv_idx = given
            return mod(*score, b, h, order[q_idx], order[kv_idx])

        if lead:
            return lambda score, b, h, q_idx, kv_idx: moved(score, b, h, q_idx, kv_idx)
        return lambda b, h, q_idx, kv_idx: moved(b, h, q_idx, kv_idx)

    score, mask = (placed(mods[kind], lead) if kind in mods else None for kind, lead in (("score", 1), ("mask", 0)))
    return type(lab)(score, mask, lab.shape, lab.targets, {}, lab.block, lab.fast_math, lab.name, None)
