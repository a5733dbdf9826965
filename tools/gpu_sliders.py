"""On a GPU: how long a slider's step takes end to end, and 100 random edits in a row with no stale result and no leak.

    python tools/gpu_sliders.py out.json

A step: the value changes, the lab is traced, block lists are made, the process on the GPU times the kernel and answers; nothing may be
compiled. An edit: a number, a table in place, a new table, a helper function, another mask; after each, attention on the GPU is
compared with torch's eager evaluation of the functions as they are now.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import torch

from cute_lab import accuracy, bench, device, parcel, retime
from cute_lab.baselines import Case
from cute_lab.environment import version
from cute_lab.lab import Lab, attention

STEPS, EDITS = 20, 100
window, cap, prefix = 1024, 20.0, 1000


def local(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)


def prefixed(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (q_idx >= kv_idx) | (kv_idx < prefix)


def capped(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return cap * torch.tanh(score / cap)


def steps() -> dict[str, Any]:
    """Milliseconds of each step from the changed value to the answer, and the kernel's own."""
    found = {}
    cases = (("window", None, local, 1024, 64), ("prefix", None, prefixed, 1000, 100), ("cap", capped, None, 20.0, 0.5))
    for name, score, mask, start, by in cases:
        lab = attention(score, mask, B=4, H=16, Sq=8192, D=128, params={name: start})
        packed, rows = parcel.pack((score, mask)), []
        for i in range(STEPS + 1):
            began = time.perf_counter()
            moved = lab.with_params(**{name: start + by * i})
            request = bench.request_of(moved, moved.shape, packed, ("cute_lab",), ("forward",), 0, 0, "cuda:0")
            event, answer = list(device.current().run("retime", request))[-1]
            assert event == "done", answer
            assert isinstance(answer, retime.Retimed)
            rows.append(
                {"ms": 1e3 * (time.perf_counter() - began), "kernel_ms": answer.us / 1e3, "compiled": answer.compiled, "note": answer.note}
            )
        moves = rows[1:]
        own = [r["ms"] - r["kernel_ms"] for r in moves]
        found[name] = {"first": rows[0], "steps": moves, "median_ms_without_kernel": statistics.median(own), "worst": max(own)}
        print(f"{name:8} first {rows[0]['ms']:.0f} ms; a step {statistics.median(own):.1f} ms + {moves[0]['kernel_ms']:.2f} ms kernel, "
              f"worst {max(own):.1f} ms, compiled {sum(r['compiled'] for r in moves)}", flush=True)  # fmt: skip
    return found


def edits() -> dict[str, Any]:
    """Errors, memory of the card and of this process after each edit."""
    scope: dict[str, Any] = {"torch": torch, "table": torch.randn(2, 1024, device="cuda"), "width": 100, "gain": 0.5}
    helpers = ("return d * gain", "return d.abs() * gain", "return torch.where(d > 0, d * gain, 0.0)")
    masks = ("q_idx >= kv_idx", "q_idx - kv_idx < width", "(q_idx >= kv_idx) & (q_idx - kv_idx < width)")
    text = "def bend(d):\n    {}\ndef score_mod(score, b, h, q_idx, kv_idx):\n"
    text += "    return score + 0.01 * bend(q_idx - kv_idx) + table[h, kv_idx]\n"
    text += "def mask_mod(b, h, q_idx, kv_idx):\n    return {}\n"
    dice = random.Random(0)
    exec(text.format(helpers[0], masks[0]), scope)
    shape = {"B": 1, "H": 2, "Sq": 512, "D": 64}
    q, k, v = (torch.randn(1, 2, 512, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    lab: Lab = attention(scope["score_mod"], scope["mask_mod"], **shape)
    rows, before = [], []
    for _ in range(EDITS):
        kind = dice.choice(("width", "gain", "in place", "new table", "helper", "mask"))
        if kind == "width":
            scope["width"] = dice.randint(1, 500)
        elif kind == "gain":
            scope["gain"] = dice.uniform(0.1, 2.0)
        elif kind == "in place":
            scope["table"].mul_(dice.uniform(-1.5, 1.5))
        elif kind == "new table":
            scope["table"] = torch.randn(2, 1024, device="cuda")
        else:  # the cell is run again
            exec(text.format(dice.choice(helpers), dice.choice(masks)), scope)
            lab = attention(scope["score_mod"], scope["mask_mod"], **shape)
        out = lab.run(q, k, v, tried=False)
        assert isinstance(out, torch.Tensor)
        expected = accuracy.make(Case(lab, q.device), q, k, v, None)
        (found,) = accuracy.compare(expected, {"out": out})
        changed = [float((expected.part("out", old).float() - expected.exact["out"]).abs().max()) for old in before[-1:]]
        before = [out]
        del expected
        memory = torch.cuda.memory_allocated() >> 10
        rows.append({"edit": kind, "ok": found.ok, "error": found.relative_error, "moved": changed, "device_kib": memory,
                     "host_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10})  # fmt: skip
    late = rows[EDITS // 2 :]
    growth = {name: late[-1][name] - late[0][name] for name in ("device_kib", "host_mib")}
    print(f"{sum(r['ok'] for r in rows)} of {EDITS} edits right; growth over the last {EDITS // 2}: {growth}", flush=True)
    return {"rows": rows, "growth_of_the_last_half": growth}


def main() -> int:
    versions = {name: version(name) for name in ("torch", "flash-attn-4", "nvidia-cutlass-dsl")} | {"gpu": torch.cuda.get_device_name(0)}
    found = {"environment": versions, "steps": steps(), "edits": edits()}
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
