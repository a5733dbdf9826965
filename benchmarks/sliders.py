"""How long after a slider has moved its mask and its check are shown, on this machine's CPU: causal window, S = 8k.

    python benchmarks/sliders.py [--moves 60] [--S 8192] [--out out/sliders.json]

A panel without a front end: "shown" is when the widget has its new value, which a browser then gets as a message. Rested: the hand
waits until all is shown. Dragged: a move every 20 ms, and the time from the last move on. Prints a table, writes the raw samples.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

CELLS = {
    "mask_mod": """
window = slider(64, 4096, 1024, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
""",
    "mask_mod and score_mod": """
window = slider(64, 4096, 1024, step=64)
cap = slider(1.0, 50.0, 20.0)

def score_mod(score, b, h, q_idx, kv_idx):
    return cap * torch.tanh(score / cap)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
""",
}


def panel_of(text: str, length: int) -> Any:
    import torch

    from cute_lab.cell import from_text
    from cute_lab.lab import attention
    from cute_lab.panel import Panel

    mods = from_text(text, {"torch": torch})
    panel = Panel(attention(mods.score_mod, mods.mask_mod, Sq=length, target="sm_90a"))
    panel.refresh()
    panel.settled()
    return panel


def watched(panel: Any) -> dict[str, float]:
    """Line -> when it was last written in black."""
    seen: dict[str, float] = {}
    for name in ("mask", "check"):

        def written(change: Any, name: str = name) -> None:
            if "from earlier values" not in change["new"]:
                seen[name] = time.perf_counter()

        panel.controls.lines[name].observe(written, "value")
    return seen


def samples(panel: Any, moves: int, drag: int) -> dict[str, list[float]]:
    """Milliseconds from the last of `drag` moves to the mask and to the check."""
    rng, seen = random.Random(1), watched(panel)
    found: dict[str, list[float]] = {"mask": [], "check": []}
    for _ in range(moves):
        for i in range(drag):
            if i:
                time.sleep(0.02)
            window = rng.randrange(64, 4096, 8)
            start = time.perf_counter()
            panel.set(window=window)
        assert panel.settled().params["window"] == window
        for name, times in found.items():
            times.append(1000 * (seen[name] - start))
    return found


def compilations() -> int:
    from cute_lab import host

    return len(host._built)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=60)
    parser.add_argument("--S", type=int, default=8192)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "sliders.json")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'cell':24}{'hand':9}{'shown':7}{'median':>9}     {'smallest .. largest':>20}   {given.moves} moves, S = {given.S:,}")
    for name, text in CELLS.items():
        panel = panel_of(text, given.S)
        before = compilations()
        for hand, drag in (("rested", 1), ("dragged", 25)):
            found = samples(panel, given.moves if drag == 1 else max(3, given.moves // 6), drag)
            for line, times in found.items():
                rows.append({"cell": name, "hand": hand, "shown": line, "median": statistics.median(times), "samples_ms": times})
                spread = f"{min(times):,.1f} .. {max(times):,.1f}"
                print(f"{name:24}{hand:9}{line:7}{statistics.median(times):>9,.1f} ms  {spread:>20}", flush=True)
        assert compilations() == before, "a run-time parameter has compiled something"
        panel.close()

    from cute_lab.environment import environment

    cores = len(os.sched_getaffinity(0))
    print(f"\nnothing was compiled; {cores} cores, load {os.getloadavg()[0]:.1f}: other work on them counts in these figures")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"environment": environment(), "cores": cores, "load": os.getloadavg(), "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
