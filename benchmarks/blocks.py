"""Block maps: a million tokens, against torch's create_block_mask, a mask that nothing decides, and a dragged window. One core.

    python benchmarks/blocks.py [--out out/blocks.json] [--quick]

Every row is a fresh process on one core; memory is its peak above what it held when the mask was traced. Maps are compared with the
mask itself, cell by cell, on whole rows of blocks. Prints a table, writes the figures as JSON, exits 1 where one misses its target.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

MILLION, LONG, DRAGGED, BLOCK = 1 << 20, 1 << 15, 1 << 16, 128
STEPS = 21
FRAME_MS = 1000 / 60
Masks = dict[str, Callable[..., Any]]


def masks(S: int) -> Masks:
    import torch

    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 2 * S // 2000, (4000,), generator=g)
    document = torch.repeat_interleave(torch.arange(4000), lengths)[:S].to(torch.int32)
    return {
        "causal": lambda b, h, q, k: q >= k,
        "causal window of 4,096": lambda b, h, q, k: (q >= k) & (q - k < 4096),
        "prefix-LM": lambda b, h, q, k: (k < 1000) | (q >= k),
        "2,000 documents, by id": lambda b, h, q, k: (document[q] == document[k]) & (q >= k),
        "sink + window": lambda b, h, q, k: (q >= k) & ((q - k < 4096) | (k < 4)),
    }


def mib(which: str) -> float:
    """VmRSS: the memory of this process now; VmHWM: its peak."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(which))
    return int(line.split()[1]) / 1024


def memory() -> float:
    """What is held now; the peak counts from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return mib("VmRSS")


def lab_of(mask_mod: Callable[..., Any], S: int) -> Any:
    import cute_lab

    return cute_lab.attention(mask_mod=mask_mod, H=1, Sq=S, D=128, target="sm_90a")


def warm() -> None:
    """What any first map in a process costs: imports and the JIT's own start."""
    lab_of(lambda b, h, q, k: q > k, 512).blocks(BLOCK)


def ours(name: str, S: int, check: bool = True) -> dict[str, Any]:
    """First call with its compilation, and again on a fresh lab."""
    import torch

    warm()
    mask_mod = masks(S)[name]
    labs = [lab_of(mask_mod, S) for _ in range(6)]
    for lab in labs:
        _ = lab.program
    base, seconds = memory(), []
    for lab in labs:
        start = time.perf_counter()
        found = lab.blocks(BLOCK)
        seconds.append(time.perf_counter() - start)
    peak = mib("VmHWM") - base
    start = time.perf_counter()
    kept = found.kept_cells
    row = {"first": seconds[0], "again": statistics.median(seconds[1:]), "mib": peak, "count": time.perf_counter() - start}
    row |= {"full": found.full, "partial": found.partial, "empty": found.empty, "kept_cells": kept, "exact": True}
    for i in random.Random(0).sample(range(-(-S // BLOCK)), 5) if check else ():
        cells = labs[0].apply_mask(q=slice(BLOCK * i, BLOCK * (i + 1))).view(BLOCK, -1, BLOCK).sum((0, 2))
        kinds = torch.where(cells == 0, 0, torch.where(cells == BLOCK * BLOCK, 2, 1))
        row["exact"] &= torch.equal(torch.from_numpy(found.kinds[0, 0, i]).long(), kinds)
    return row


def torchs(name: str, S: int, compiled: bool) -> dict[str, Any]:
    from torch.nn.attention.flex_attention import create_block_mask

    mask_mod = masks(S)[name]
    create_block_mask(mask_mod, 1, 1, 512, 512, device="cpu")
    base, seconds = memory(), []
    for _ in range(2 if compiled else 1):
        start = time.perf_counter()
        mask = create_block_mask(mask_mod, 1, 1, S, S, device="cpu", _compile=compiled)
        seconds.append(time.perf_counter() - start)
    counts = [int(x.sum()) for x in (mask.full_kv_num_blocks, mask.kv_num_blocks)]
    return {"seconds": seconds[-1], "mib": mib("VmHWM") - base, "full": counts[0], "partial": counts[1]}


def undecided(share: float, S: int) -> dict[str, Any]:
    """A random table per cell: the classification against the same code run on every cell of every block."""
    import numpy as np
    import torch

    warm()
    size = 1 << 16
    table = torch.rand(size, generator=torch.Generator().manual_seed(0)) < share
    seconds: dict[str, list[float]] = {"map": [], "dense": []}
    for _ in range(4):
        lab = lab_of(lambda b, h, q, k: table[(q * 40503 + k * 30011) & (size - 1)], S)
        _ = lab.program
        start = time.perf_counter()
        found = lab.blocks(BLOCK)
        seconds["map"].append(time.perf_counter() - start)
        rows, columns = (x.reshape(-1).astype(np.int32) for x in np.indices((S // BLOCK, S // BLOCK)))
        start = time.perf_counter()
        kept = found.classifier.counted((np.zeros_like(rows), rows, columns), exact=True)
        seconds["dense"].append(time.perf_counter() - start)
    kinds = np.where(kept == 0, 0, np.where(kept == BLOCK * BLOCK, 2, 1)).reshape(S // BLOCK, -1)
    later = seconds["map"][1:]
    return {"map": statistics.median(later), "dense": statistics.median(seconds["dense"][1:]), "how": found.how,
            "exact": bool((found.kinds[0, 0] == kinds).all())}  # fmt: skip


window = 4096


def dragged(S: int) -> dict[str, Any]:
    """A slider's step: a number moves, the map is made anew. The kernel was compiled by the first step."""
    warm()
    lab = lab_of(lambda b, h, q, k: (q >= k) & (q - k < window), S)
    found, ms = [], []
    for i in range(STEPS):
        start = time.perf_counter()
        moved = lab.with_params(window=1024 + 512 * i)
        found.append(moved.blocks(BLOCK))
        ms.append(1e3 * (time.perf_counter() - start))
    partial = [2 * (S // BLOCK) - (8 + 4 * i) for i in range(STEPS)]
    return {"ms": statistics.median(ms[1:]), "worst": max(ms[1:]), "exact": [f.partial for f in found] == partial}


def child(call: str) -> dict[str, Any]:
    name, _, arguments = call.partition(" ")
    given = json.loads(arguments)
    result: dict[str, Any] = globals()[name](*given)
    return result


def asked(name: str, *arguments: Any) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--child", f"{name} {json.dumps(arguments)}"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "blocks.json")
    parser.add_argument("--quick", action="store_true", help="leave torch's create_block_mask out: it takes minutes and 11 GB")
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(child(given.child)))
        return 0
    rows: dict[str, Any] = {}
    missed = []

    def row(name: str, words: str, *targets: tuple[str, bool]) -> None:
        bad = [what for what, ok in targets if not ok]
        missed.extend(bad)
        print(f"{name:34}  {words}  {'MISSED ' + ', '.join(bad) if bad else 'ok'}", flush=True)

    print(f"S = {MILLION:,}, block {BLOCK}: the first call with its compilation, again, counting the kept cells, memory")
    for name in masks(LONG):
        r = rows[f"1M {name}"] = asked("ours", name, MILLION)
        words = f"{r['first']:6.3f} s {r['again']:6.3f} s {r['count']:6.3f} s {r['mib']:5.0f} MiB"
        row(name, f"{words}  {r['full']:,} full, {r['partial']:,} partial",
            ("0.3 s", r["first"] < 0.3), ("300 MB", r["mib"] < 286), ("exact", r["exact"]))  # fmt: skip
    print("\na random table per cell, S = 32,768: against running every cell")
    for share in (0.5, 1e-5):
        r = rows[f"undecided {share}"] = asked("undecided", share, LONG)
        row(f"{share:g} of the cells are kept", f"{r['map']:6.3f} s, dense {r['dense']:6.3f} s: {r['map'] / r['dense']:.2f}  {r['how']}",
            ("1.3 times", r["map"] < 1.3 * r["dense"]), ("exact", r["exact"]))  # fmt: skip
    r = rows["dragged"] = asked("dragged", DRAGGED)
    print(f"\na dragged window, S = {DRAGGED:,}")
    row("a step", f"{r['ms']:.1f} ms, worst {r['worst']:.1f} ms", ("a frame", r["ms"] < FRAME_MS), ("exact", r["exact"]))
    if not given.quick:
        print("\nS = 32,768 against create_block_mask on the CPU: eager, and its compiled second call")
        for name in masks(LONG):
            mine = rows[f"32k {name}"] = asked("ours", name, LONG, False)
            eager = rows[f"32k torch {name}"] = asked("torchs", name, LONG, False)
            compiled = rows[f"32k torch compiled {name}"] = asked("torchs", name, LONG, True)
            same = all((r["full"], r["partial"]) == (mine["full"], mine["partial"]) for r in (eager, compiled))
            by, by_compiled = eager["seconds"] / mine["again"], compiled["seconds"] / mine["again"]
            less = eager["mib"] / max(mine["mib"], 1.0)
            words = "; ".join(f"{how} {r['seconds']:6.3f} s {r['mib']:6,.0f} MiB" for how, r in (("eager", eager), ("compiled", compiled)))
            row(name, f"{1e3 * mine['again']:6.1f} ms; {words}: {by:,.0f}x, {by_compiled:,.0f}x, 1/{less:,.0f} of the memory",
                ("100x", by >= 100), ("20x", by_compiled >= 20), ("1/50", less >= 50), ("equal", same))  # fmt: skip
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(rows, indent=1))
    print(f"\none core; raw figures in {given.out}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
