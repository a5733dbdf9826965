"""Two records of one variant compared: generated code, verdicts of the checks, block map, and timings of the same GPU."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from cute_lab.measurement import Bench, Timing
from cute_lab.private import LEFT_OUT
from cute_lab.quantities import count, number, short
from cute_lab.record import Record, digest
from cute_lab.throughput import estimate

Verdict = Literal["same", "differs", "not run"]
SAME: Verdict = "same"
MOST_LINES = 60  # of a diff


@dataclass(frozen=True)
class Comparison:
    name: str
    verdict: Verdict
    said: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.verdict}", *(f"  {line}" for said in self.said for line in said.split("\n"))]
        return "\n".join(lines)


def diff(old: str, new: str) -> str:
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "saved", "run again", lineterm="", n=2))
    rest = len(lines) - MOST_LINES
    return "\n".join(lines[:MOST_LINES] + ([f"... {count(rest, 'more line')}"] if rest > 0 else []))


def code(saved: Record, text: str) -> Comparison:
    """Only the code: the record itself could not be made again."""
    bad, said = _code(saved, text, digest(text, saved.shape))
    return Comparison(
        saved.name, "differs" if bad else SAME, (*said, "checks, block map and timings not compared: the cell did not run here")
    )


def records(saved: Record, new: Record, here: str) -> Comparison:
    """`here` is this machine's GPU, or that it has none."""
    bad: list[str] = []
    said: list[str] = []
    if saved.shape != new.shape:
        bad.append(f"shape: saved {_shape(saved)}, run again {_shape(new)}")
    if saved.key == new.key and saved == new:
        return Comparison(saved.name, SAME, (f"the same stored record, of {saved.created}: nothing was measured again",))
    parts = (_code(saved, new.source.text, new.hash), _checks(saved, new), _blocks(saved, new), _timings(saved, new, here))
    for wrong, words in parts:
        (bad if wrong else said).extend(words)
    said += _versions(saved, new) if bad else []
    return Comparison(saved.name, "differs" if bad else SAME, (*bad, *said))


def _shape(record: Record) -> str:
    s = record.shape
    return f"B{s.B} H{s.H} Hkv{s.Hkv} Sq{s.Sq} Skv{s.Skv} D{s.D} {s.dtype}"


def _code(saved: Record, text: str, new_hash: str) -> tuple[bool, list[str]]:
    own = digest(saved.source.text, saved.shape)
    if saved.source.text != text:
        return True, [f"the generated code differs\n{diff(saved.source.text, text)}"]
    if own != saved.hash:
        return True, [
            f"the saved record was changed after it was made: its code and shape have the hash {own[:12]}, it says {saved.hash[:12]}"
        ]
    if new_hash != saved.hash:
        return True, [f"the hash of code and shape differs: saved {saved.hash[:12]}, run again {new_hash[:12]}"]
    return False, [f"code and shape: same, sha256 {saved.hash[:12]}"]


def _checks(saved: Record, new: Record) -> tuple[bool, list[str]]:
    old, now = ({c.name: c for c in record.checks} for record in (saved, new))
    bad = []
    for name in dict.fromkeys((*old, *now)):
        words = ["not checked" if name not in of else "equal" if of[name].ok else "DIFFERS from your function" for of in (old, now)]
        if words[0] != words[1]:
            bad.append(f"check of {name}: saved {words[0]}, run again {words[1]}")
    if bad:
        return True, bad
    worst = max((c.max_rel_error for c in new.checks), default=0.0)
    return False, [f"checks: same verdicts ({', '.join(now) or 'none'}), largest error now {short(worst)}"]


def _blocks(saved: Record, new: Record) -> tuple[bool, list[str]]:
    fields = ("block_q", "block_kv", "full", "partial", "empty", "kept_cells", "total_cells")
    old, now = saved.blocks, new.blocks
    if (old is None) != (now is None):
        left_out = any("block map" in note.text for note in (*saved.notes, *new.notes))
        return not left_out, [f"block map: saved {'none' if old is None else 'there'}, run again {'none' if now is None else 'there'}"]
    if old is None or now is None:
        return False, []
    bad = [
        f"block map, {f}: saved {number(getattr(old, f))}, run again {number(getattr(now, f))}"
        for f in fields
        if getattr(old, f) != getattr(now, f)
    ]
    if not bad and (old.encoding, old.data) != (now.encoding, now.data):
        bad.append("block map: the counts are the same, but other blocks")
    return bool(bad), bad or [f"block map: same, {number(now.full)} full, {number(now.partial)} partial, {number(now.empty)} empty"]


def _timings(saved: Record, new: Record, here: str) -> tuple[bool, list[str]]:
    if saved.bench is None:
        return False, []
    was = saved.bench.device
    if was == LEFT_OUT:
        return False, ["timings not compared: the saved record does not say its GPU"]
    if new.bench is None:
        return False, [f"timings not compared: saved on {was}, nothing was measured here ({here})"]
    if new.bench.device != was:
        return False, [f"timings not compared: saved on {was}, this is {new.bench.device}"]
    bad, same = [], 0
    for old in saved.bench.timings:
        words = _timing(old, new.bench)
        bad += [words] if words else []
        same += not words
    return bool(bad), bad or [f"timings: {count(same, 'interval')} as before or overlapping, on {was}"]


def _timing(old: Timing, bench: Bench) -> str:
    what = f"timing of {old.contender}, {old.direction}, Sq {number(old.shape.Sq)}"
    new = next((t for t in bench.timings if (t.contender, t.shape, t.direction) == (old.contender, old.shape, old.direction)), None)
    if new is None:
        return f"{what}: not measured when run again"
    if new.status != old.status:
        return f"{what}: saved {old.status}, run again {new.status} {new.reason}".rstrip()
    if not old.samples_us or not new.samples_us:
        return ""
    a, b = estimate(old.samples_us), estimate(new.samples_us)
    if b.low <= a.high and a.low <= b.high:  # as a benchmark says "no difference"
        return ""
    times = f"saved {a.median:.1f} us [{a.low:.1f}, {a.high:.1f}], run again {b.median:.1f} us [{b.low:.1f}, {b.high:.1f}]"
    return f"{what}: {times}: {b.median / a.median:.2f} times as long"


def _versions(saved: Record, new: Record) -> list[str]:
    """What may be the reason of a difference."""
    names = [n for n in saved.environment if n in new.environment and saved.environment[n] != new.environment[n]]
    return [
        f"environment, {n}: saved {saved.environment[n]}, run again {new.environment[n]}" for n in names if saved.environment[n] != LEFT_OUT
    ]
