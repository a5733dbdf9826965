"""From a lab to its record: the kernel to compile per target, the reports, and everything a reader needs as plain data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from cute_lab import advice, browser_mask, build, cutedsl, packed
from cute_lab.errors import CompilerCrashed, CompilerTimeout, CuteLabError, GeometryError
from cute_lab.excerpt import Listing, excerpt
from cute_lab.ir import DTYPES, Program
from cute_lab.record import SCHEMA, Cell, LineCost, Note, Param, Record, Shape, Source, Stages, TargetReport, digest, environment, now
from cute_lab.targets import DIRECTIONS, Target, skips_blocks, tile_rule
from cute_lab.tiles import packs_heads

if TYPE_CHECKING:
    from cute_lab.lab import Lab

PACKED_LANES = 32
FAR = 400  # lines between two functions of a file, from which on they are shown as if they were neighbours
Direction = Literal["forward", "backward"]


def spec(program: Program, shape: Shape, target: Target, direction: str, block: tuple[int, int] | None, fast: bool) -> build.KernelSpec:
    """What the compiler needs to know: the text for this target (a packed mask where it takes one), shapes and captures."""
    forward = direction == "forward"
    pack = program.mask is not None and forward and PACKED_LANES in target.mask_vecs
    graphs = {k: g for k, g in program.graphs().items() if k != "mask" or not pack}
    kept = Program(graphs.get("score"), graphs.get("score_bwd"), graphs.get("mask"), program.tables, program.scalars)
    guard = guard_for(shape, target, direction)
    source = cutedsl.emit(kept, {"mask_mod": packed.function(program, "mask_mod", guard)} if pack else {}, fast, guard)
    return build.KernelSpec(
        source.text,
        source.functions,
        B=shape.B,
        H=shape.H,
        Hkv=shape.Hkv,
        Sq=shape.Sq,
        Skv=shape.Skv,
        D=shape.D,
        dtype=shape.dtype,
        scalars=(*("Int64" for _ in program.tables), *(DTYPES[s.dtype].cute for s in program.scalars)),
        block_sparse=skips_blocks(target, shape.D, shape.Sq, direction, shape.H // shape.Hkv),
        block=block,
        pack_heads=pack_heads(shape, target) if forward else None,
        mask_vec=PACKED_LANES if pack else None,
        user_lines=source.user_lines,
    )


def pack_heads(shape: Shape, target: Target) -> bool | None:
    try:
        return packs_heads(tile_rule(target, shape.D, shape.Sq), shape.Sq, shape.H // shape.Hkv)
    except GeometryError:
        return None  # there is no such kernel: the compiler's check says so


def guard_for(shape: Shape, target: Target, direction: str) -> cutedsl.Guard:
    """Where the kernel's tiles overhang the sequence, and how it names heads."""
    try:
        rows, keys = tile_rule(target, shape.D, shape.Sq, None, DIRECTIONS[direction], shape.H // shape.Hkv).cover
    except GeometryError:
        return cutedsl.HOST  # there is no such kernel: the compiler's check says so
    if "two_cta" in target.features:  # a pair of CTAs takes two tiles, the second one may lie beyond the end
        rows, keys = (2 * rows, keys) if direction == "forward" else (rows, 2 * keys)
    folded = direction == "backward" and "folded_heads_bwd" in target.features
    return cutedsl.Guard(
        q=shape.Sq - 1 if shape.Sq % rows else None,
        kv=shape.Skv - 1 if shape.Skv % keys else None,
        heads=shape.H // shape.Hkv if folded else 1,
        one_row=direction == "forward",
    )


def report(found: build.Artifact | CuteLabError, target: str, direction: Direction, hints: tuple[Note, ...]) -> TargetReport:
    if isinstance(found, CuteLabError):
        detail = f" {found.reason}" if found.reason else ""
        status: Literal["refused", "failed"] = "failed" if isinstance(found, (CompilerTimeout, CompilerCrashed)) else "refused"
        return TargetReport(
            target, direction, status, f"{found.fields['message'] or found.summary}.{detail}"
        )  # the reason holds the fix; the view names the target
    costs = tuple(LineCost(c.line, c.instructions, c.share, dict(c.pipes)) for c in found.line_cost)
    return TargetReport(
        target=target,
        direction=direction,
        status="compiled",
        registers=found.registers,
        stack_bytes=found.stack_bytes,
        spill_loads=found.spill_loads,
        spill_stores=found.spill_stores,
        instructions=found.instructions,
        seconds=found.seconds,
        cached=found.cached,
        mix=dict(found.mix),
        cost=found.cost,
        line_cost=costs,
        advice=hints,
        listing=Listing(
            excerpt(found.sass, {row: user for row, _, user in found.line_map}, found.loop),
            excerpt(found.ptx, {row: user for row, _, user in found.ptx_map}, None),
        ),
    )


def target_reports(lab: Lab, names: tuple[str, ...], backward: bool) -> tuple[TargetReport, ...]:
    reports = []
    directions: tuple[Direction, ...] = ("forward", "backward") if backward else ("forward",)
    for direction in directions:
        jobs = {}
        for name in names:
            try:
                jobs[name] = lab.spec(name, direction)
            except CuteLabError as error:
                reports.append(report(error, name, direction, ()))
        for name, found in build.compile_specs(jobs, direction).items():
            hints = tuple(Note("warning" if a.level == "refused" else "info", a.message, None, a.fix) for a in lab.advice(name, direction))
            reports.append(report(found, name, direction, hints))
    return tuple(sorted(reports, key=lambda r: (names.index(r.target), r.direction != "forward")))


def record(lab: Lab, names: tuple[str, ...], backward: bool, start: float) -> Record:
    if names:
        build.warm()  # the compiler's imports run while this process verifies
    emitted = lab.emitted
    program = lab.program
    proof = lab.verify()
    blocks = lab.blocks().summary() if program.mask is not None else None
    source = Source(emitted.text, emitted.user_lines, emitted.functions)
    params = tuple(
        Param(n, v, n not in lab.traced.fixed and any(n in s.name for s in program.scalars)) for n, v in lab.traced.numbers.items()
    )
    compiled = target_reports(lab, names, backward)
    return Record(
        schema=SCHEMA,
        kind="attention",
        name=lab.name,
        created=now(),
        seconds=time.perf_counter() - start,
        cell=lab.cell or cell_of(lab),
        shape=lab.shape,
        params=params,
        source=source,
        stages=Stages(lab.fx, str(program), None),
        checks=proof.checks,
        blocks=blocks,
        cells=browser_mask.cell_code(program),
        targets=compiled,
        notes=tuple(advice.for_program(lab)),
        bench=None,
        environment=environment(),
        hash=digest(emitted.text, lab.shape),
    )


def cell_of(lab: Lab) -> Cell:
    """The mods' own text, for a lab that was made by the function and not by a cell. In one file each line keeps its number."""
    import inspect

    from cute_lab.diagnose import function_of

    files: dict[str, dict[int, str]] = {}  # line by line: two lambdas may share one
    for mod in (lab.score_mod, lab.mask_mod):
        function = function_of(mod) if mod is not None else None
        if function is None:
            continue
        try:
            lines, start = inspect.getsourcelines(function)
        except (OSError, TypeError):
            continue
        text = "".join(lines).rstrip().split("\n")
        files.setdefault(function.__code__.co_filename, {}).update(enumerate(text, start))
    if not files:
        return Cell("", "", lab.name, 1)
    first, *others = files.values()
    text = [first.get(n, "") for n in range(min(first), max(first) + 1)] if max(first) - min(first) < FAR else list(first.values())
    return Cell("\n".join([*text, *(line for other in others for line in other.values())]), "", lab.name, min(first))
