"""On a GPU: corpus cases exported as modules of their own, each run in a process that has no cute_lab.

    python tools/gpu_module.py OUT.json [--folder DIR] [--jobs N] [case ...]

Each file's own test compares the kernel with the eager evaluation of the embedded functions in float32, forward and backward; then
the module is moved, cast, and called at another length and with other numbers, as far as it has any.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from corpus import cases
from cute_lab.environment import environment
from cute_lab.errors import CuteLabError
from cute_lab.lab import attention

DTYPE = {"bfloat16": "bf16", "float16": "fp16"}
CASES = (
    "alibi_interpolated_slopes t5_bucket_lut decomposed_rel_pos softcap_sliding_gemma fp16_log_capture sliding_offset_asymmetric "
    "prefix_lm_per_batch packed_docs_causal streaming_sink_window natten2d_clamped per_head_windows noop_composition "
    "forget_gate_cumsum cross_docs_different_lengths unix_ms_window dilated_both_directions"
).split()
RUN = """
import dataclasses, importlib.abc, importlib.util, json, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cute_lab":
            raise ImportError("cute_lab is not there")

sys.meta_path.insert(0, Absent())
spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
exported = importlib.util.module_from_spec(spec)
sys.modules["exported"] = exported
spec.loader.exec_module(exported)
kind = next(k for k in vars(exported).values() if isinstance(k, type) and issubclass(k, exported.Variant) and k is not exported.Variant)
said = {"test": exported.check(kind())}
most, tried, spec = kind.spec.most, kind.spec.tried, kind.spec
for queries, keys in ((most[0] // 3, most[1] // 3), (333, 333), (1000, 1000)):
    if 0 < queries <= most[0] and 0 < keys <= most[1] and queries <= 2000:
        kind.spec = dataclasses.replace(spec, tried=(queries, keys))
        said[f"at {queries} x {keys}"] = exported.check(kind())
kind.spec = spec
numbers = kind().numbers
if numbers:
    module = kind()
    exported.check(module)
    module.numbers.update({name: value + (3 if type(value) is int else 0.5) for name, value in numbers.items()})
    said["other numbers, the same module"] = exported.check(module)
said["half"] = exported.check(kind().cuda().half())
print("RESULT" + json.dumps(said))
"""


def one(name: str, folder: Path) -> dict[str, Any]:
    case = cases.build(name)
    shape = {n: getattr(case, n) for n in ("B", "H", "Hkv", "Sq", "Skv", "D")}
    try:
        lab = attention(case.score_mod, case.mask_mod, **shape, dtype=DTYPE[case.dtype], target=("sm_90a", "sm_100a"), name=name)
        path = lab.export("module", folder / f"{name}.py")
    except CuteLabError as error:
        return {"ok": False, "error": error.summary}
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and not (Path(p) / "cute_lab").exists()]
    clean = {**os.environ, "PYTHONPATH": os.pathsep.join(others)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], cwd=folder, env=clean, capture_output=True, text=True, timeout=900, check=False
    )
    line = next((x for x in done.stdout.split("\n") if x.startswith("RESULT")), "")
    if done.returncode or not line:
        return {"ok": False, "error": (done.stderr.strip() or done.stdout.strip())[-1500:]}
    said: dict[str, str] = json.loads(line.removeprefix("RESULT"))
    return {"ok": all(words.startswith(("the kernel equals", "equal in float32")) for words in said.values()), "said": said}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", default=CASES)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--jobs", type=int, default=4)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="cute_lab-modules-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, Any] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        running = {name: pool.submit(one, name, folder) for name in given.names}
        for name, future in running.items():
            try:
                rows[name] = future.result()
            except subprocess.TimeoutExpired:
                rows[name] = {"ok": False, "error": "no answer in 900 s"}
            print(
                f"{name:34} {'ok' if rows[name]['ok'] else 'FAILS'} {json.dumps(rows[name].get('said') or rows[name]['error'])}", flush=True
            )
            given.out.write_text(json.dumps({"environment": environment(), "cases": rows}, indent=1))
    good = sum(row["ok"] for row in rows.values())
    print(f"{good} of {len(rows)} exported modules pass their own tests")
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
