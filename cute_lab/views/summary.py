"""Four to eight lines of plain words: is it right, how much is computed, what the compilers said, how fast, what to change."""

from __future__ import annotations

from cute_lab import heavy
from cute_lab.measurement import Bench, Direction, Timing
from cute_lab.quantities import count, exact, number, percent, short
from cute_lab.record import BlockSummary, Check, Note, Record, Shape, TargetReport
from cute_lab.series import CEILINGS, against, is_wrong, label_of, one_line, share_of_peak, speed, usable
from cute_lab.series import shape_words as shape_words
from cute_lab.throughput import OURS, verdict
from cute_lab.views import Bundle, View
from cute_lab.views._text import Block, Code, Head, Lines, page, said_missing
from cute_lab.views._words import architecture, no_blocks, note_words, place, register_words


def render(record: Record) -> Bundle:
    lines = [*check_lines(record.checks, record.name), _mask(record), *_targets(record), *_speeds(record)]
    compiled = [target for target in record.targets if target.status == "compiled"]
    notes = [note for note in record.notes if not note.text.startswith("⚙")]
    notes += [note for target in compiled for note in target.advice]
    lines += [_note(note) for note in notes]
    blocks: list[Block] = [Head(f"`{record.name}` · {shape_words(record.shape)}{param_words(record)}"), Lines(tuple(lines))]
    notes += [note for target in record.targets if target.status != "compiled" for note in target.advice]
    blocks += [Code(note.fix, "python") for note in notes if "\n" in note.fix]
    return page(*blocks)


def param_words(record: Record) -> str:
    """The captured numbers by name; another value is another run of the same cell."""
    return "".join(f" · {p.name}={p.value:g}" for p in record.params[:6])


def _evidence(check: Check) -> str:
    points = count(check.points, "point")
    if check.max_rel_error == 0:
        return f"{points}, no difference"
    return f"{points}, worst {short(check.max_rel_error)}{place(check.worst)}"


def check_lines(checks: tuple[Check, ...], name: str) -> list[str]:
    if not checks:
        return [f"○ {said_missing('checks', name)}"]
    lines = []
    forward = [check for check in checks if check.ok and check.name != "score_mod_bwd"]
    backward = [check for check in checks if check.ok and check.name == "score_mod_bwd"]
    if len(forward) == 1:
        line = f"✔ The generated CuTeDSL equals your function ({_evidence(forward[0])})"
        lines.append(line + ("; backward too." if backward else "."))
    elif forward or backward:
        parts = [f"`{check.name}` ({_evidence(check)})" for check in (*forward, *backward)]
        lines.append(f"✔ The generated CuTeDSL equals your functions: {', '.join(parts)}.")
    return [_difference(check) for check in checks if not check.ok] + lines


def _difference(check: Check) -> str:
    at = check.worst
    seen = f": expected {exact(at.expected)}, got {exact(at.got)}{place(at)}" if at else ""
    return (
        f"✘ `{check.name}` differs from your function{seen}. Worst error {short(check.max_rel_error)}, "
        f"tolerance {short(check.tolerance)}, {count(check.points, 'point')}. Do not use this kernel."
    )


def _mask(record: Record) -> str:
    blocks = record.blocks
    return f"▦ {no_blocks(record) if blocks is None else mask_words(blocks, record.shape)}"


def mask_words(blocks: BlockSummary, shape: Shape) -> str:
    square = f"{number(shape.Sq)}²" if shape.Sq == shape.Skv else f"{number(shape.Sq)} × {number(shape.Skv)}"
    maps = [count(n, noun) for n, noun in ((blocks.Bm, "batch"), (blocks.Hm, "head")) if n > 1]
    over = f", mean over {' × '.join(maps).replace('batchs', 'batches')}" if maps else ""
    return (
        f"{percent(blocks.kept)} of {square} is kept{over}; the kernel issues {percent(1 - blocks.sparsity)} "
        f"({blocks.block_q}×{blocks.block_kv} blocks: {number(blocks.partial)} partial, {number(blocks.full)} full, "
        f"{number(blocks.empty)} skipped)."
    )


def _targets(record: Record) -> list[str]:
    targets = record.targets
    if not targets:
        return [n.text for n in record.notes if n.text.startswith("⚙")] or [f"⚙ {said_missing('targets', record.name)}"]
    lines = []
    for direction in ("forward", "backward"):
        told = [_machine(t) for t in targets if t.status == "compiled" and t.direction == direction]
        if told:
            lines.append(f"⚙ {'Backward: ' if direction == 'backward' else ''}{' '.join(told)}")
    refused = [t for t in targets if t.status != "compiled"]
    return lines + [f"⊘ {architecture(t.target)}, {t.direction}: {t.status}. {t.reason}{_advice(t)}" for t in refused]


def _machine(target: TargetReport) -> str:
    words = register_words(target)
    words += filter(None, [heavy.summary(target.line_cost)])
    return f"{architecture(target.target)}: {', '.join(words)}."


def _advice(target: TargetReport) -> str:
    return "".join(f" {note_words(note)}" for note in target.advice)


def _speeds(record: Record) -> list[str]:
    """The largest shape's, forward and with the backward; not one, if the kernel was wrong anywhere in that direction."""
    bench = record.bench
    if bench is None:
        return []
    shown: tuple[Direction, ...] = ("forward", "forward+backward")
    ours = [[t for t in bench.timings if (t.contender, t.direction) == (OURS, direction)] for direction in shown]
    return [_speed(bench, timings) for timings in ours if timings]


def _speed(bench: Bench, ours: list[Timing]) -> str:
    device, start = one_line(bench.device, 60), "" if ours[0].direction == "forward" else "Forward + backward: "
    wrong = next((t for t in ours if is_wrong(t)), None)
    if wrong:
        said = f" {one_line(wrong.reason)}" if wrong.reason else ""
        return f"✘ {start}{device}, {shape_words(wrong.shape)}: it did not pass the check on the GPU, so no speed is shown.{said}"
    largest = max(ours, key=lambda t: (usable(t), t.shape.Sq * t.shape.Skv * t.shape.B * t.shape.H * t.shape.D))
    reached = speed(bench, largest)
    if reached is None:
        if largest.status == "checked":
            return f"○ {start}It passed the check on {device}; it was not timed."
        status = "no usable sample" if largest.status == "timed" else largest.status
        return f"⊘ {start}Not measured on {device}: {status}. {one_line(largest.reason)}".rstrip()
    others = [t for t in bench.timings if (t.shape, t.direction) == (largest.shape, largest.direction) and not t.contender.startswith(OURS)]
    words = [_rival(bench, t) for t in others if t.contender not in CEILINGS and usable(t)][:3]
    words += [_of(found.median, label_of(t)) for t in others if t.contender in CEILINGS and (found := against(bench, t))]
    share = share_of_peak(bench, largest)
    words += [_of(share, "the cuBLAS peak")] if share else []
    shape = f" at {shape_words(largest.shape)}" if len({t.shape for t in bench.timings}) > 1 else ""
    checked = "" if largest.accuracy else ", not checked,"
    return f"⏱ {start}{reached.median:,.0f} TFLOP/s{checked} on {device}{shape}{': ' if words else ''}{', '.join(words)}."


def _of(share: float, what: str) -> str:
    return f"{percent(round(share, 2) if share > 0.01 else share)} of {what}"


def _rival(bench: Bench, timing: Timing) -> str:
    words, label = verdict(against(bench, timing)), label_of(timing)
    same = words.removeprefix("no difference ")
    return f"{words} {label}" if same == words else f"no difference from {label} ({same})"


def _note(note: Note) -> str:
    return f"{'⚠' if note.level == 'warning' else '💡'} {note_words(note)}"


VIEW = View("summary", "Summary", 10, (), render)
