"""What a person should know of a variant: before compiling for a target, and about the mods themselves, each with the fix."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cute_lab import packed, targets
from cute_lab.errors import CuteLabError
from cute_lab.ir import Graph, Node, Program
from cute_lab.record import Note
from cute_lab.targets import Advice

if TYPE_CHECKING:
    from cute_lab.lab import Lab

WIDE_TYPES = {
    "i64": "64-bit integers take two instructions and two registers each",
    "f64": "float64 runs at a fraction of the float32 rate",
}


def for_target(lab: Lab, target: str, direction: str) -> list[Advice]:
    s, program = lab.shape, lab.program
    return targets.check(
        target,
        s.D,
        s.Sq,
        H=s.H,
        Hkv=s.Hkv,
        has_score=program.score is not None,
        has_mask=program.mask is not None,
        block=lab.block,
        block_sparse=targets.skips_blocks(targets.target_named(target), s.D, s.Sq, direction, s.H // s.Hkv),
        direction=direction,
    )


def geometry(lab: Lab, target: str) -> str:
    """What this target's kernels take at this lab's shape, in words: tiles, legal sparse blocks, vector widths."""
    row = targets.target_named(target)
    s = lab.shape
    lines = []
    for direction in ("forward", "backward"):
        try:
            rule = targets.tile_rule(row, s.D, s.Sq, None, direction, s.H // s.Hkv)
        except CuteLabError as error:
            lines.append(f"{target} {direction}: {error.summary}")
            continue
        legal = "; or ".join(map(str, rule.legal)) or "no block sparsity"
        tile, block = (f"{a} x {b}" for a, b in (rule.tile, rule.block))
        lines.append(f"{target} {direction}: tile {tile}, sparse blocks: {legal} (default {block})")
    widths = f"score_mod {', '.join(map(str, row.score_vecs))}; mask_mod {', '.join(map(str, row.mask_vecs))}"
    return "\n".join([*lines, f"{target} values per call: {widths}"])


def for_program(lab: Lab) -> list[Note]:
    """Notes on the mods: in the user's names, with lines."""
    program = lab.program
    notes = [*_gradients(program), *_wide(program), *_packing(program), *_fast(lab), *_fixed(lab)]
    return [dataclasses.replace(n, text=n.text.rstrip(".") + ".") for n in notes]


def _line(graph: Graph, n: Node) -> int | None:
    loc = graph.origin.get(n)
    return loc.line if loc else None


def _gradients(program: Program) -> list[Note]:
    return [
        Note(
            "warning",
            f"captured tensor `{t.name}` requires a gradient: FlashAttention-4 gives none to captured tensors, only to q, k and v",
            None,
            f"{t.name}.detach(), or FlexAttention's Triton backend to train it",
        )
        for t in program.tables
        if t.trained
    ]


def _wide(program: Program) -> list[Note]:
    notes: dict[tuple[int | None, str], Note] = {}
    for graph in program.graphs().values():
        for n in graph.nodes():
            if n.dtype in WIDE_TYPES and n.op not in ("const", "size", "gather", "cast"):
                line = _line(graph, n)
                notes.setdefault(
                    (line, n.dtype),
                    Note(
                        "info",
                        f"computed in {n.dtype}: {WIDE_TYPES[n.dtype]}",
                        line,
                        "convert with .to(torch.int32) where the values allow it"
                        if n.dtype == "i64"
                        else "use float32 where the values allow it",
                    ),
                )
    return list(notes.values())


def _packing(program: Program) -> list[Note]:
    found = packed.form(program)
    if found is None or program.mask is None or not found.lanes:
        return []
    equal_reads = [n for n in found.lanes if n.op == "eq" and all(a.op in ("gather", "cast") for a in n.args)]
    fix = (
        "capture each row's first and last key (offsets) and compare kv_idx with them"
        if equal_reads
        else "write it as comparisons of kv_idx with values of the row"
    )
    first = found.lanes[0]
    return [
        Note("info", f"the mask can't be packed as runs of keys on Blackwell: {found.words(program.mask)}", _line(program.mask, first), fix)
    ]


def _fast(lab: Lab) -> list[Note]:
    if lab.fast_math:
        return [
            Note(
                "info", "`fast_math`: the check ran the exact functions; the approximate ones exist on the GPU only, with errors near 1e-3"
            )
        ]
    if lab.program.score is None:
        return []
    slow = [n for n in lab.program.score.nodes() if n.op in ("tanh", "div", "exp", "log", "sin", "cos", "sigmoid")]
    if not slow:
        return []
    names = ", ".join(dict.fromkeys("a division" if n.op == "div" else f"`{n.op}`" for n in slow))
    return [
        Note(
            "info",
            f"{names} at full float32 precision: bf16 inputs do not need it",
            _line(lab.program.score, slow[0]),
            "`fast_math=True` (`--fast-math`) takes the approximate instructions",
        )
    ]


def _fixed(lab: Lab) -> list[Note]:
    return [Note("info", f"`{name}` is compiled in: {why}") for name, why in lab.traced.fixed.items()]
