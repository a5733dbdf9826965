"""Hardware as data: what FlashAttention-4 does and refuses on each architecture; `check` answers before compiling.

The tiles and rules are those of flash_attn/cute/interface.py, flash-attn-4 4.0.0b36; tests/test_targets.py compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

from cute_lab.errors import GeometryError
from cute_lab.tiles import BlockRule, TileRule, packs_heads

Direction = Literal["forward", "backward"]
DIRECTIONS: dict[str, Direction] = {"forward": "forward", "backward": "backward"}
_MODS = ("score_mod", "mask_mod")
_SPARSE = ("block_sparsity", "score_mod_bwd", "mask_mod_bwd", "block_sparsity_bwd")
# "folded_heads_bwd": the backward kernel takes its rows for rows of packed heads, and so hands over wrong q and h with grouped heads.
FEATURES = frozenset((*_MODS, *_SPARSE, "score_vec", "mask_vec", "packed_mask", "two_cta", "folded_heads_bwd"))


@dataclass(frozen=True)
class Target:
    name: str
    cute_arch: str  # what the DSL compiles for
    fa_arch: int  # what FA4 selects its kernel by
    num_sms: int
    fwd: tuple[TileRule, ...]
    bwd: tuple[TileRule, ...]
    score_vecs: tuple[int, ...]  # legal __vec_size__ of score_mod and mask_mod
    mask_vecs: tuple[int, ...]
    features: frozenset[str]
    tensor_op: str  # SASS mnemonic of the matrix instruction
    tensor_in_loop: bool  # the softmax warps issue the matrix products themselves
    rows_per_warp: int  # forward rows of a tile per warp and scheduler; the backward loop runs on `bwd_warps` of them
    bwd_warps: int
    macs: int  # dense bf16 multiply-adds per cycle and SM
    mufu_cycles: int  # cycles of one scheduler per MUFU warp instruction
    notes: tuple[str, ...]  # where the figures come from
    calibrated: bool = False  # was the cost compared with times measured on a device? Without that its error is not known

    def __post_init__(self) -> None:
        assert self.features <= FEATURES, self.features - FEATURES
        assert self.cute_arch.startswith(f"sm_{self.fa_arch}"), (self.cute_arch, self.fa_arch)
        assert self.num_sms > 0 and self.macs > 0 and self.mufu_cycles > 0 and self.notes and self.fwd
        assert (max(self.score_vecs) > 2) == ("score_vec" in self.features)
        assert (max(self.mask_vecs) > 1) == ("mask_vec" in self.features)
        for rule in (*self.fwd, *self.bwd):
            assert rule.without <= self.features, rule
            assert not rule.legal or any(r.accepts(rule.block) for r in rule.legal), rule

    def rules(self, direction: Direction) -> tuple[TileRule, ...]:
        return {"forward": self.fwd, "backward": self.bwd}[direction]

    def warps(self, direction: str, tile: tuple[int, int]) -> int:
        """Warps per scheduler that run the main loop for one tile."""
        return max(1, tile[0] // self.rows_per_warp) if direction == "forward" else self.bwd_warps


@dataclass(frozen=True)
class Advice:
    level: Literal["refused", "note"]
    message: str
    fix: str


def _sm90(D: tuple[int, int], Dv: tuple[int, int], tile: tuple[int, int], block: tuple[int, int], *legal: BlockRule) -> TileRule:
    return TileRule(D, Dv, tile, block, legal)


# SM90 forward shrinks its tile to the sparse block: tile_m falls back to 128 or 64, tile_n to a smaller multiple of 16.
def _fwd90(kv_max: int) -> BlockRule:
    return BlockRule((64,), 16, kv_max)


SM90_FWD = (
    _sm90((8, 64), (8, 256), (192, 128), (128, 128), _fwd90(128)),
    _sm90((72, 96), (8, 256), (192, 144), (128, 128), BlockRule((192,), 16, 144), _fwd90(128)),
    _sm90((104, 128), (8, 256), (128, 128), (128, 128), _fwd90(128)),
    _sm90((136, 192), (8, 128), (128, 128), (128, 128), _fwd90(128)),
    _sm90((136, 192), (136, 256), (128, 112), (128, 112), _fwd90(112)),
    _sm90((200, 256), (8, 256), (128, 80), (128, 80), _fwd90(80)),
)
SM90_BWD = (
    _sm90((8, 64), (8, 256), (128, 128), (128, 128), BlockRule((128,), 128, 128)),
    _sm90((72, 96), (8, 256), (64, 128), (128, 128), BlockRule((64,), 128, 128)),
    _sm90((104, 128), (8, 256), (80, 128), (128, 128), BlockRule((80, 64), 128, 128)),
    _sm90((136, 192), (8, 256), (64, 96), (128, 96), BlockRule((64,), 96, 96)),
    _sm90((200, 256), (8, 256), (64, 48), (128, 64), BlockRule((64,), 64, 64)),
)
_BY_256, _BY_128 = BlockRule((256,), 128), BlockRule((128,), 128)
SM100_FWD = (
    TileRule((8, 128), (8, 128), (128, 128), (256, 128), (_BY_256,), stages=2),
    TileRule((192, 192), (128, 128), (128, 128), (256, 128), (_BY_256,), stages=2),
    TileRule((256, 256), (256, 256), (128, 128), (128, 128), (_BY_128,)),
)
SM100_BWD = (
    TileRule((8, 128), (8, 128), (128, 128), (128, 128), (_BY_128,)),
    TileRule((192, 192), (128, 128), (128, 128), (128, 256), (BlockRule((128,), 256),)),
    TileRule(
        (256, 256),
        (256, 256),
        (128, 64),
        (128, 128),
        (),
        without=frozenset(("score_mod_bwd", "mask_mod_bwd", "block_sparsity_bwd")),
    ),
)
# 99 KB of shared memory: FA4 does not ask can_implement, so that a larger head compiles and then fails to launch.
SM120_FWD = (
    TileRule((8, 64), (8, 64), (128, 128), (128, 128), ()),
    TileRule((72, 192), (8, 192), (128, 64), (128, 64), ()),
)
SM120_BWD = (TileRule((8, 128), (8, 128), (64, 64), (64, 64), ()),)

_WIDE = (1, 2, 4, 8, 16, 32, 64, 128)
# fmt: off
_ROWS = (
    Target("sm_90a", "sm_90a", 90, 132, SM90_FWD, SM90_BWD, (1, 2), (1,), frozenset((*_MODS, *_SPARSE, "folded_heads_bwd")),
           "HGMMA", True, 64, 2, 2048, 8,
           ("H100/H200 SXM: 132 SMs; 2048 MAC and 16 MUFU lanes per cycle and SM, as in the H200 cost model",), True),
    Target("sm_100a", "sm_100a", 100, 148, SM100_FWD, SM100_BWD, _WIDE, _WIDE, FEATURES - {"folded_heads_bwd"},
           "UTCHMMA", False, 128, 2, 4096, 8,
           ("B200: 148 SMs, twice H100's bf16 rate per SM, its MUFU rate: from memory, no source was opened",
            "cost not calibrated on a device")),
    Target("sm_103a", "sm_103a", 103, 148, SM100_FWD, SM100_BWD, _WIDE, _WIDE, FEATURES - {"folded_heads_bwd"},
           "UTCHMMA", False, 128, 2, 4096, 4,
           ("B300: as B200 with twice the MUFU rate: from memory, no source was opened; the SM count is B200's",
            "cost not calibrated on a device")),
    Target("sm_120a", "sm_120a", 120, 170, SM120_FWD, SM120_BWD, (1, 2), (1,), frozenset(_MODS),
           "HMMA", True, 128, 1, 256, 8,
           ("GeForce RTX 5090: 170 SMs, 256 MAC per cycle and SM with fp32 sums: from memory, no source was opened",
            "cost not calibrated on a device")),
)
# fmt: on
TARGETS: dict[str, Target] = {row.name: row for row in _ROWS}


def target_named(name: str) -> Target:
    if name not in TARGETS:
        known = f"Known: {', '.join(TARGETS)}."
        raise GeometryError(f"there is no target {name!r}", detail=known, example="target='sm_90a'")
    return TARGETS[name]


def tile_rule(target: Target, D: int, Sq: int, Dv: int | None = None, direction: Direction = "forward", group: int = 1) -> TileRule:
    """The row for these head dims; `group` = query heads per kv head. GeometryError where FA4 has no such kernel."""
    wanted = (D, D if Dv is None else Dv)
    for rule in target.rules(direction):
        if rule.covers(*wanted) and all(d % 8 == 0 for d in wanted):
            return rule.rows(Sq * (group if direction == "forward" and packs_heads(rule, Sq, group) else 1))
    ranges = "; ".join(f"D {r.D[0]}-{r.D[1]} with Dv {r.Dv[0]}-{r.Dv[1]}" for r in target.rules(direction))
    raise GeometryError(
        f"no kernel for D = {D}{'' if wanted[1] == D else f' with Dv = {Dv}'} on {target.name}, {direction}",
        detail=f"in steps of 8: {ranges}",
        example="D=128",
    )


def block_for(target: Target | str, D: int, Sq: int, Dv: int | None = None, direction: str = "forward", group: int = 1) -> tuple[int, int]:
    """The sparse block (q, kv) to use; direction "both" gives one that suits forward and backward."""
    target = target_named(target) if isinstance(target, str) else target
    if direction != "both":
        return tile_rule(target, D, Sq, Dv, _direction(direction), group).block
    forward, backward = (tile_rule(target, D, Sq, Dv, _direction(name), group) for name in ("forward", "backward"))
    for block in product((forward.block[0], backward.block[0]), (forward.block[1], backward.block[1])):
        if all(any(r.accepts(block) for r in rule.legal) for rule in (forward, backward)):
            return block
    raise GeometryError(
        f"{target.name}: no block suits forward and backward at D={D}",
        detail="Forward and backward take their own block maps.",
        example='block_for(target, D, Sq, direction="forward")',
    )


def skips_blocks(target: Target, D: int, Sq: int, direction: str, group: int = 1) -> bool:
    """Can this kernel skip empty blocks? Without it a mask_mod still works, on every tile."""
    way = _direction(direction)
    try:
        rule = tile_rule(target, D, Sq, None, way, group)
    except GeometryError:
        return True  # refused for the head dim, whatever the mask
    return "block_sparsity" + ("_bwd" if way == "backward" else "") in target.features - rule.without


def _direction(name: str) -> Direction:
    if name not in DIRECTIONS:
        known = f"Known: {', '.join(DIRECTIONS)}."
        raise GeometryError(f"there is no direction {name!r}", detail=known, example="direction='forward'")
    return DIRECTIONS[name]


def check(
    target: Target | str,
    D: int,
    Sq: int,
    *,
    Dv: int | None = None,
    H: int = 1,
    Hkv: int = 1,
    has_score: bool = False,
    has_mask: bool = False,
    has_score_bwd: bool = True,
    block: tuple[int, int] | None = None,
    block_sparse: bool = True,
    score_vec: int | None = None,
    mask_vec: int | None = None,
    direction: str = "forward",
) -> list[Advice]:
    """What this target refuses (level "refused") and what is worth knowing ("note"), without compiling. Empty = go."""
    target = target_named(target) if isinstance(target, str) else target
    if H % Hkv != 0:
        return [Advice("refused", f"{H} query heads can't share {Hkv} kv heads", "choose H as a multiple of Hkv")]
    way = _direction(direction)
    try:
        rule = tile_rule(target, D, Sq, Dv, way, H // Hkv)
    except GeometryError as error:
        return [Advice("refused", error.summary, "choose " + error.reason)]
    backward = way == "backward"
    suffix = "_bwd" if backward else ""
    features = target.features - rule.without
    sparse = has_mask and block_sparse
    out: list[Advice] = []

    def refuse(message: str, fix: str) -> None:
        out.append(Advice("refused", message, fix))

    def note(message: str, fix: str) -> None:
        out.append(Advice("note", message, fix))

    for name, used in (("score_mod", has_score), ("mask_mod", has_mask), ("block_sparsity", sparse)):
        if used and name + suffix not in features:
            dense = name == "block_sparsity" and "mask_mod" + suffix in features
            what = name.replace("block_sparsity", "block sparsity")
            way_out = "block_sparse=False" if dense else "another target or head dim"
            refuse(f"the {way} kernel at D={D} takes no {what}", f"use {way_out}")
    if backward and has_score and not has_score_bwd:
        refuse("a score_mod needs its score_mod_bwd", "generate score_mod_bwd with the other functions")
    if sparse and block is not None and rule.legal and not any(r.accepts(block) for r in rule.legal):
        refuse(f"block {block} does not fit; {'; or '.join(map(str, rule.legal))}", f"use block={rule.block}")
    for name, size, sizes in (("score_mod", score_vec, target.score_vecs), ("mask_mod", mask_vec, target.mask_vecs)):
        if size is not None and size not in sizes and not backward:
            refuse(f"{name} can't take {size} values at once, only {', '.join(map(str, sizes))}", f"use {max(sizes)}")
    if backward and has_mask and (mask_vec or 1) > 1:
        refuse("the backward kernel wants a mask_mod for one value, not packed words", "generate it with mask_vec=None")
    wide = (block or rule.block)[1] % (2 * rule.tile[1]) == 0
    if backward and sparse and "two_cta" in features and D >= 128 and not wide:
        note("a kv block of one tile switches the 2-CTA kernel off", f"use block=({rule.block[0]}, {2 * rule.tile[1]})")
    if has_mask and not block_sparse:
        note(
            "without block sparsity the mask runs on every tile and no tile is skipped",
            "use block_sparse=True" if "block_sparsity" + suffix in features else "choose a target with block sparsity: sm_90a, sm_100a",
        )
    return out
