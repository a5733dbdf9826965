"""How long each step of a cell takes in a warm process, on this machine's CPU; the targets stand beside.

    python benchmarks/speed.py [--repeat 7] [--out out/speed.json]

A figure is the median of several runs with their smallest and largest; each run has a new text, so that no cache of texts helps.
Prints a table, writes the raw samples as JSON, and exits 1 where a median misses its target.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

LONG = 1 << 15
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    target: float | None
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def ok(self) -> bool:
        return self.target is None or self.median < self.target

    def line(self) -> str:
        spread = f"{min(self.samples):,.4g} .. {max(self.samples):,.4g}"
        target = "" if self.target is None else f"< {self.target:g} {self.unit}"
        verdict = "" if self.target is None else "ok" if self.ok else "MISSED"
        return f"{self.name:66}{self.median:>9,.4g} {self.unit:3}{spread:>22}  {len(self.samples):>2} runs  {target:10}{verdict}"


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def cells() -> Iterator[str]:
    """Texts of mods without captures that no run has seen: other constants in the code."""
    while True:
        n = next(_numbers)
        yield (
            f"def score_mod(score, b, h, q_idx, kv_idx):\n    return score - {n}e-3 * (q_idx - kv_idx).abs()\n\n"
            f"def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < {64 + n})\n"
        )


def biases() -> Iterator[str]:
    while True:
        yield next(SCORES).split("\n\n")[0] + "\n"


def masks() -> Iterator[str]:
    while True:
        yield f"def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < {1024 + next(_numbers)})\n"


SCORES, MASKS, BIASES = cells(), masks(), biases()


def lab_of(text: str, **shape: Any) -> Any:
    from cute_lab.cell import from_text
    from cute_lab.lab import attention

    mods = from_text(text)
    return attention(mods.score_mod, mods.mask_mod, **shape)


def cell_to_proof() -> float:
    """attention() and verify(): text of the cell to generated code that ran equal to torch at 256 x 256 points, and backward."""
    text = next(SCORES)

    def run() -> None:
        proof = lab_of(text, H=1, Sq=256, D=64).verify()
        assert proof.ok
        assert all(c.points == 256 * 256 for c in proof.checks if c.name != "mask_mod_packed")

    return seconds(run)


def trace_time() -> float:
    """Milliseconds from the functions to the rewritten graphs: score, backward and mask."""
    from cute_lab.cell import from_text
    from cute_lab.record import Shape
    from cute_lab.trace import build

    mods = from_text(next(SCORES))
    shape = Shape(B=1, H=8, Hkv=8, Sq=4096, Skv=4096, D=128, dtype="bf16")
    return 1000 * seconds(lambda: build(mods.score_mod, mods.mask_mod, shape))


def classification() -> tuple[float, float]:
    """The block map of causal + window at S = 32k, 128 x 128 blocks: with a new text, and again."""
    lab = lab_of(next(MASKS), H=1, Sq=LONG, D=128)
    first = seconds(lambda: lab.blocks(128))
    return first, seconds(lambda: lab.blocks(128))


@contextmanager
def own_cache() -> Iterator[None]:
    """Compiled kernels go to an empty folder, not to the user's cache."""
    before = os.environ.get("CUTE_LAB_CACHE")
    with TemporaryDirectory() as folder:
        os.environ["CUTE_LAB_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["CUTE_LAB_CACHE"]
            else:
                os.environ["CUTE_LAB_CACHE"] = before


def compilation(text: str) -> tuple[float, float]:
    """FlashAttention-4's kernel for Hopper: by the compiler, and from the cache."""
    lab = lab_of(text, Sq=4096)
    first = seconds(lambda: lab.compile("sm_90a", force=True))
    return first, seconds(lambda: lab.compile("sm_90a"))


PEAK = """
import sys
sys.path.insert(0, {root!r})
from benchmarks_speed import lab_of, MASKS, resident
lab_of(next(MASKS), H=1, Sq=1024, D=128).blocks(128)
lab = lab_of(next(MASKS), H=1, Sq={long}, D=128)
base = resident("VmRSS")
lab.blocks(128)
print((resident("VmHWM") - base) / 1e6)
"""


def resident(field: str) -> int:
    """Bytes: VmRSS is now, VmHWM the peak since the process began."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def peak() -> float:
    """MB above base of a fresh process that classifies at S = 32k; base is after a small map, so with the compiler loaded."""
    code = PEAK.replace("benchmarks_speed", Path(__file__).stem).format(root=str(Path(__file__).parent), long=LONG)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(repeat: int) -> Iterator[Figure]:
    def times(call: Callable[[], float], count: int = repeat) -> tuple[float, ...]:
        return tuple(call() for _ in range(count))

    start = time.perf_counter()
    cell_to_proof()
    yield Figure("first cell of a fresh process, imports and first compilation", "s", None, (time.perf_counter() - start,))
    cell_to_proof()
    yield Figure("warm cell to verified code: score, mask, backward at 256 x 256", "s", 0.5, times(cell_to_proof))
    yield Figure("trace, derive and rewrite: score, mask, backward", "ms", 30, times(trace_time, 3 * repeat))
    pairs = [classification() for _ in range(repeat)]
    yield Figure("block map, S = 32k causal + window, first call with its compilation", "s", None, tuple(a for a, _ in pairs))
    yield Figure("block map, S = 32k causal + window, again", "s", 0.2, tuple(b for _, b in pairs))
    yield Figure("its peak memory above base", "MB", 200, times(peak, min(3, repeat)))
    with own_cache():
        yield Figure("compile a score_mod for sm_90a, worker cold", "s", None, (compilation(next(BIASES))[0],))
        pairs = [compilation(next(BIASES)) for _ in range(min(5, repeat))]
        yield Figure("compile a score_mod for sm_90a, worker warm", "s", 4, tuple(a for a, _ in pairs))
        masked = [compilation(next(SCORES)) for _ in range(min(3, repeat))]
        yield Figure("the same with a mask_mod, so block-sparse", "s", 4, tuple(a for a, _ in masked))
        yield Figure("compile for sm_90a, from the cache", "s", 0.2, tuple(b for _, b in pairs + masked))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="runs of each step")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "speed.json")
    given = parser.parse_args()
    print(f"{'step':66}{'median':>9}    {'smallest .. largest':>22}           target")
    figures = []
    for figure in measure(max(1, given.repeat)):
        figures.append(figure)
        print(figure.line(), flush=True)

    from cute_lab.environment import environment

    cores = len(os.sched_getaffinity(0))
    print(f"\n{cores} cores, load {os.getloadavg()[0]:.1f}: other work on them counts in these figures")
    rows = [{**asdict(f), "median": f.median, "ok": f.ok} for f in figures]
    record = {"environment": environment(), "cores": cores, "load": os.getloadavg(), "figures": rows}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if all(f.ok for f in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
