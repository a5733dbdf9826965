"""On a GPU: the generated functions of every corpus case at every vector width, and the packed masks, against torch on the CPU.

    python tools/gpu_conformance.py OUT.json [--jobs 8] [--widths 1,2,4,8,32,128] [--device cuda|host] [case ...]

A case is a process with a CUDA context of its own: what kills one (a crash of the compiler, an illegal address) is a row of that case
and no end of the others. OUT.json holds a row per function and width: the largest error, the tolerance, the verdict, or what went wrong;
and per case the hash of the generated code, so that a reader sees whether the record is of today's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from corpus import cases
from cute_lab.conform import WIDTHS

MARK = "@conformance "  # what the child says to the parent, among whatever compilers print


def say(**message: Any) -> None:
    print(MARK + json.dumps(message), flush=True)


# -- a case, in its own process -------------------------------------------------------------------------------------------
def child(name: str, widths: tuple[int, ...], device: str) -> None:
    import torch

    from cute_lab import conform
    from cute_lab.codec import encode
    from cute_lab.environment import environment
    from cute_lab.lab import attention

    stamp = environment()
    if device == "cuda":
        stamp["device"] = torch.cuda.get_device_name(0)  # in words even where nothing else tells the name
    case = cases.build(name)
    shape = {"B": case.B, "H": case.H, "Hkv": case.Hkv, "Sq": case.Sq, "Skv": case.Skv, "D": case.D}
    subject = conform.Subject.of(attention(case.score_mod, case.mask_mod, **shape))
    say(environment=stamp, sha256=conform.code_hash(subject.text), plan=conform.plan(subject, widths))
    conform.check(subject, widths, device, done=lambda row: say(row=encode(row) | {"ok": row.ok}))  # type: ignore[arg-type]


def measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The rows of one case; those that its process did not live to tell say how it ended."""
    start = time.perf_counter()
    command = [sys.executable, __file__, options.out, "--child", "--widths", options.widths, "--device", options.device, name]
    threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // options.jobs))}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, env={**os.environ, **threads})
        out, errors, ending = ran.stdout, ran.stderr, f"its process ended with {ran.returncode}"
    except subprocess.TimeoutExpired as late:
        out, errors = (x.decode(errors="replace") if isinstance(x, bytes) else x or "" for x in (late.stdout, late.stderr))
        ending = f"its process was stopped after {options.timeout:g} s"
    told: list[dict[str, Any]] = []
    for line in out.splitlines():
        with contextlib.suppress(json.JSONDecodeError):  # a line that was cut off
            told += [json.loads(line.removeprefix(MARK))] if line.startswith(MARK) else []
    head: dict[str, Any] = told[0] if told else {"environment": {}, "sha256": "", "plan": [["lab", 0]]}
    rows = [message["row"] for message in told[1:]]
    for what, width in head["plan"][len(rows) :]:
        cause = f"{ending}: {errors.strip()[-400:]}"
        rows.append({"what": what, "width": width, "check": None, "error": cause, "seconds": 0.0, "ok": False})
    return {**head, "rows": rows, "seconds": round(time.perf_counter() - start, 2)}


# -- all cases ------------------------------------------------------------------------------------------------------------
def line(name: str, case: dict[str, Any]) -> str:
    good = sum(row["ok"] for row in case["rows"])
    errors = [float(row["check"]["max_rel_error"]) for row in case["rows"] if row["check"] is not None]
    text = f"{name:32} {good:3} of {len(case['rows']):3} ok  max rel {max(errors, default=0.0):.1e}  {case['seconds']:5.1f} s"
    for row in case["rows"]:
        if not row["ok"]:
            said = (
                row["error"] or f"max rel {row['check']['max_rel_error']}, tolerance {row['check']['tolerance']}: {row['check']['worst']}"
            )
            text += f"\n    FAILS {row['what']} at {row['width']}: {said}"
    return text


def written(environment: dict[str, str], found: dict[str, Any], seconds: float) -> str:
    """JSON with a line per row, so that two records can be compared by eye."""
    parts = []
    for name, case in found.items():
        rows = ",\n   ".join(json.dumps(row) for row in case["rows"])
        parts.append(f'  "{name}": {{"sha256": "{case["sha256"]}", "seconds": {case["seconds"]}, "rows": [\n   {rows}]}}')
    body = ",\n".join(parts)
    return f'{{"environment": {json.dumps(environment)},\n "seconds": {seconds:.1f},\n "cases": {{\n{body}}}}}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("case", nargs="*")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)))
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--timeout", type=float, default=150.0, help="seconds for one case")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.child:
        child(options.case[0], tuple(int(w) for w in options.widths.split(",")), options.device)
        return 0
    start = time.perf_counter()
    valid = [make.__name__ for make in cases.ALL if make().kind == "valid"]
    unknown = sorted(set(options.case) - set(valid))
    if unknown:
        parser.error(f"no valid case of the corpus: {', '.join(unknown)}")
    names = [n for n in valid if not options.case or n in options.case]
    found: dict[str, Any] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(measured, name, options): name for name in names}
        for future in as_completed(waiting):
            name = waiting[future]
            try:
                found[name] = future.result()
            except Exception:  # a bug of this script must not cost the other cases' rows
                row = {"what": "lab", "width": 0, "check": None, "error": traceback.format_exc()[-400:], "seconds": 0.0, "ok": False}
                found[name] = {"environment": {}, "sha256": "", "rows": [row], "seconds": 0.0}
            print(line(name, found[name]), flush=True)
            ordered = {n: found[n] for n in names if n in found}
            stamp = next((c["environment"] for c in found.values() if c["environment"]), {})
            Path(options.out).write_text(written(stamp, ordered, time.perf_counter() - start), encoding="utf-8")
    rows = [row for case in found.values() for row in case["rows"]]
    good = sum(all(row["ok"] for row in case["rows"]) for case in found.values())
    print(f"{good} of {len(found)} cases and {sum(r['ok'] for r in rows)} of {len(rows)} rows pass in {time.perf_counter() - start:.0f} s")
    return 0 if good == len(found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
