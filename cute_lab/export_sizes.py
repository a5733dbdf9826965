"""At which sizes an exported module is right: where blocks and packing change, and up to which lengths the code is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_lab import targets
from cute_lab.errors import CuteLabError, GeometryError
from cute_lab.tiles import packs_heads

if TYPE_CHECKING:
    from cute_lab.build import KernelSpec
    from cute_lab.lab import Lab

DEFAULT_TARGETS = ("sm_90a", "sm_100a")
DIRECTIONS = ("forward", "backward")
MOST_CHANGING = 1024  # queries up to which a kernel's blocks and packing may change
ANY_LENGTH = 1 << 20


def specs(lab: Lab) -> dict[tuple[str, str], KernelSpec | str]:
    """What is compiled for each target and direction, or why there is nothing."""
    out: dict[tuple[str, str], KernelSpec | str] = {}
    for name in lab.targets or DEFAULT_TARGETS:
        for direction in DIRECTIONS:
            refused = [a.message for a in lab.advice(name, direction) if a.level == "refused"]
            out[name, direction] = refused[0] if refused else lab.spec(name, direction)
    return out


def changes(lab: Lab, target: str, direction: str) -> list[str]:
    """Where a kernel's sparse block and its packing of heads change with the number of queries."""
    s, row = lab.shape, targets.target_named(target)
    group, runs = s.H // s.Hkv, list[tuple[int, Any, bool | None]]()
    for queries in range(1, MOST_CHANGING + 1):
        skips = targets.skips_blocks(row, s.D, queries, direction, group)
        block = (lab.block or targets.block_for(target, s.D, queries, None, direction, group)) if skips else None
        try:
            pack = packs_heads(targets.tile_rule(row, s.D, queries), queries, group) if direction == "forward" else None
        except GeometryError:
            pack = None
        if runs and runs[-1][1:] == (block, pack):
            runs.pop()
        runs.append((queries, block, pack))
    runs[-1] = (1 << 30, *runs[-1][1:])
    return [f"Sizes({most}, {block}, {pack})" for most, block, pack in runs]


def _texts(lab: Lab) -> list[Any]:
    return [spec if isinstance(spec, str) else spec.source for spec in specs(lab).values()]


def lengths(lab: Lab) -> tuple[int, int]:
    """The most queries and keys for which the code is this very one. What is proved of all positions holds of fewer: shorter is right."""
    s, mine = lab.shape, _texts(lab)
    longest = max(s.Sq, s.Skv)
    for most in sorted({ANY_LENGTH, ANY_LENGTH >> 3, ANY_LENGTH >> 5, 4 * longest}, reverse=True):
        if most > longest and _same(lab, mine, Sq=most, Skv=most):
            return most, most
    return s.Sq, s.Skv


def _same(lab: Lab, mine: list[Any], **sizes: int) -> bool:
    """The same code at other sizes, and its reads inside of the captured tensors."""
    try:
        return _texts(lab.with_shape(**sizes)) == mine
    except CuteLabError:
        return False


def batches(lab: Lab) -> int | None:
    """How many batch entries there may be; None where nothing limits them."""
    return None if _same(lab, _texts(lab), B=lab.shape.B + 1) else lab.shape.B
