"""On a GPU: a notebook's benchmark in a real kernel: run, watched and stopped through the comm, interrupted, saved and verified again.

    python tools/gpu_notebook.py OUT.json

The front end's part is played by the client of the tests: what JupyterLab's toolbar, panel and slider send, this sends. The saved
notebook is verified twice: as it is, and with its samples made a third shorter, which verify must find.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import nbformat

from cute_lab import notebook as files
from cute_lab.environment import environment
from cute_lab.record import MIME
from test_comm import Client
from test_panel_kernel import FrontEnd

CELL = """\
%%cute_attention --B 4 --H 16 --Sq {length} --D 128 --out local --target sm_90a --bench --against {against}
window = slider(64, 4096, 1024, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
"""
LONG = "found = local.bench(Sq=[2048, 4096, 8192], rounds=400, against=['fa4_dense'], directions=['forward', 'forward+backward'])"
SAID = """\
b = found.bench
print("stopped:", b.stopped, "samples:", [(t.contender, t.shape.Sq, t.direction, t.status, len(t.samples_us)) for t in b.timings])"""


def cells(text: str) -> Any:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in ("%load_ext cute_lab", text)]
    return notebook


def verified(path: Path) -> dict[str, Any]:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "cute_lab", "verify", str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    return {"exit": done.returncode, "said": (done.stdout + done.stderr)[-3000:], "seconds": round(time.monotonic() - start, 1)}


def shared(folder: Path) -> dict[str, Any]:
    notebook = cells(CELL.format(length=8192, against="flex_triton,fa4_native"))
    start = time.monotonic()
    files.execute(notebook, folder)
    seconds = round(time.monotonic() - start, 1)
    path = folder / "measured.ipynb"
    files.write(files.text_of(notebook), path)
    (record,) = files.records(notebook)
    assert record.bench is not None
    rows = [(t.contender, t.direction, t.status, len(t.samples_us)) for t in record.bench.timings]
    found = {"seconds": seconds, "device": record.bench.device, "rows": rows, "size": path.stat().st_size, "as it is": verified(path)}
    for cell in notebook.cells:
        for output in cell.outputs:
            for timing in (output.get("data", {}).get(MIME, {}).get("bench") or {}).get("timings", ()):
                timing["samples_us"] = [x / 1.5 for x in timing["samples_us"]]
    files.write(files.text_of(notebook), path)
    return found | {"made faster": verified(path)}


def live(folder: Path) -> dict[str, Any]:
    front = FrontEnd(folder)
    found: dict[str, Any] = {}
    try:
        front.run("%load_ext cute_lab\nimport torch, time")
        client = Client(front, front.subshell(), "panel")
        client.wait(lambda data: "hello" in data)
        found["before"] = client.ask("status")["result"]
        start = time.monotonic()
        front.printed(front.begin(CELL.format(length=4096, against="fa4_native")), timeout=200)
        found["a cell with --bench, seconds"] = round(time.monotonic() - start, 1)
        found["after a bench"] = client.ask("status")["result"]
        front.printed(front.begin("local.bench(Sq=[2048, 4096, 8192], rounds=5, against=['fa4_dense'])"), timeout=200)  # compiled
        found["stop by the comm"] = stopped(front, client, lambda: client.ask("stop")["result"])
        found["stop by an interrupt"] = stopped(front, client, front.manager.interrupt_kernel)
        start = time.monotonic()
        front.run("panel = local.panel()\npanel.settled()")
        found["a panel, seconds"] = round(time.monotonic() - start, 1)
        steps = []
        for window in (512, 2048, 3072, 640):
            said = front.run(
                f"start = time.perf_counter()\npanel.set(window={window})\npanel.settled()\n"
                "print(round(1000 * (time.perf_counter() - start), 1), '|', ' | '.join(panel.text.values()).replace(chr(10), ' '))"
            )
            steps.append(said.strip())
        found["a panel's steps, ms"] = steps
        front.run("panel.close()")
        found["after all"] = client.ask("status")["result"]
    finally:
        front.client.stop_channels()
        front.manager.shutdown_kernel(now=True)
    return found


def stopped(front: FrontEnd, client: Client, press: Callable[[], Any]) -> dict[str, Any]:
    """Pressed when the panel says that something is under way and samples have come."""
    request = front.begin(LONG)
    watched: list[Any] = []
    for _ in range(14):
        time.sleep(0.5)
        status = client.ask("status")["result"]
        watched.append((status["running"], [(g["memory_used"], g["sm_mhz"], g["utilization"], g["watts"]) for g in status["gpus"]]))
    start = time.monotonic()
    said = press()
    answered = time.monotonic() - start
    reply = front.client.get_shell_msg(timeout=60)
    while reply["parent_header"].get("msg_id") != request:
        reply = front.client.get_shell_msg(timeout=60)
    over = time.monotonic() - start
    kept = front.run(SAID).strip() if reply["content"]["status"] == "ok" else reply["content"].get("evalue", "")
    return {
        "said": said,
        "answered_s": round(answered, 2),
        "over_s": round(over, 2),
        "reply": reply["content"]["status"],
        "kept": kept,
        "watched": watched[-3:],
        "idle": client.ask("status")["result"]["running"],
    }


def main() -> int:
    out = Path(sys.argv[1])
    rows: dict[str, Any] = {"environment": environment()}
    for part in (live, shared):
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows[part.__name__] = part(Path(folder))
            except Exception as error:  # the other part is still worth its minutes
                rows[part.__name__] = {"failed": f"{type(error).__name__}: {str(error)[:3000]}"}
        out.write_text(json.dumps(rows, indent=1))
        print(json.dumps(rows[part.__name__], indent=1)[:6000], flush=True)
    return 0 if not any("failed" in row for row in rows.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
