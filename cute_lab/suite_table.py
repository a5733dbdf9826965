"""A suite's record as one table per direction and head layout: variants down, contenders across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cute_lab import throughput
from cute_lab.measurement import DIRECTIONS, Bench, Direction, Shape, Timing
from cute_lab.quantities import short
from cute_lab.record import Record

SHORT = {"timed": "", "checked": "right", "wrong": "WRONG", "absent": "–", "failed": "failed", "stopped": "stopped"}
BASES = (("flex_flash", "FLASH"), ("flex_triton", "Triton"))
Row = tuple[str, ...]


def cell(bench: Bench, t: Timing | None) -> str:
    """TFLOP/s with half the interval's width, or one word."""
    if t is None:
        return ""
    found = throughput.tflops(bench, t)
    if found is None:
        return SHORT[t.status]
    speed = f"{found.median:.0f}" if found.median >= 10 else short(found.median)  # a CPU's are thousandths
    return f"{speed} ±{100 * found.spread:.0f} %"


def against(bench: Bench, ours: Timing, base: str) -> str:
    other = throughput.find(bench, base, ours)
    return "" if other is None else throughput.verdict(throughput.ratio(ours, other))


def place(shape: Shape) -> str:
    heads = f"H{shape.H}" if shape.Hkv == shape.H else f"H{shape.H}/{shape.Hkv}"
    return f"{shape.Sq:,} · {heads} D{shape.D}"


def tables(records: Sequence[Record]) -> Iterator[tuple[Direction, list[Row]]]:
    """(direction, rows with the head first) for each direction that was measured."""
    found = [(r, r.bench) for r in records if r.bench is not None]
    labels = {t.contender: t.label for _, b in found for t in b.timings}
    for direction in DIRECTIONS:
        if not any(t.direction == direction for _, b in found for t in b.timings):
            continue
        rows: list[Row] = [("variant", "S · heads", *labels.values(), *(f"cute_lab : {word}" for _, word in BASES))]
        for record, bench in found:
            for ours in (t for t in bench.timings if t.contender == throughput.OURS and t.direction == direction):
                cells = [cell(bench, throughput.find(bench, name, ours)) for name in labels]
                rows.append((record.name, place(ours.shape), *cells, *(against(bench, ours, base) for base, _ in BASES)))
        yield direction, rows


def problems(records: Sequence[Record]) -> list[str]:
    """Contenders that are wrong or failed, with the reason, once each."""
    out: dict[str, None] = {}
    for record in records:
        for t in record.bench.timings if record.bench is not None else ():
            if t.status in ("wrong", "failed"):
                out[f"{record.name}, {place(t.shape)}, {t.direction}: {t.label} {t.status}: {t.reason}"] = None
    return list(out)


def where(records: Sequence[Record]) -> str:
    """The card, what ran on it, and when."""
    found = next((r for r in records if r.bench is not None), None)
    if found is None or found.bench is None:
        return "nothing was measured"
    return f"{found.bench.device}; {', '.join(f'{k} {v}' for k, v in found.bench.versions.items())}; {found.created}"


def plain(records: Sequence[Record]) -> str:
    parts = [where(records)]
    for direction, rows in tables(records):
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        parts.append("\n".join([f"{direction}, TFLOP/s over kept cells: median ± half the 95 % interval", *lines]))
    return "\n\n".join([*parts, *problems(records)])


def markdown(records: Sequence[Record]) -> str:
    parts = [where(records)]
    for direction, rows in tables(records):
        lines = [f"| {' | '.join(row)} |" for row in rows]
        rule = f"|{'---|' * 2}{'---:|' * (len(rows[0]) - 2)}"
        parts.append(
            "\n".join([f"**{direction}**, TFLOP/s over kept cells: median ± half the 95 % interval\n", lines[0], rule, *lines[1:]])
        )
    found = problems(records)
    if found:
        parts.append("\n".join(f"- {line}" for line in found))
    return "\n\n".join(parts) + "\n"
