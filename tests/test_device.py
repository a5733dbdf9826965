"""The process on a device: what a job can do to it, what Stop does, who outlives whom; and how mods travel there."""

from __future__ import annotations

import functools
import importlib.metadata as metadata
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import cute_lab
from cute_lab import bench, device, fa4, parcel, retime
from cute_lab.capture import captured
from cute_lab.cell import from_text
from cute_lab.errors import CompilerTimeout, DeviceCrashed, DeviceError, DeviceHung, DeviceMissing, IndexOutOfRange, Loc, OptionError

ROOT = Path(__file__).parent.parent
ECHO = [("done", "")]
STOP_LIMIT = 1.0  # seconds from the signal to the last event


@pytest.fixture(autouse=True, scope="module")
def own_processes() -> Iterator[None]:
    """Ctrl-C means KeyboardInterrupt, whoever runs the tests; no process is left behind."""
    device.close_all()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
    signal.signal(signal.SIGINT, before)
    device.close_all()


def ping(job: str, silence: float = 30.0) -> list[device.Event]:
    return list(device.current("cpu").run("ping", job, silence))


def pid() -> int:
    return device.current("cpu").process.pid


def is_alive(number: int) -> bool:
    """A zombie that nobody has waited for is not alive."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(number: int, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while is_alive(number) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(number)


def python(code: str) -> Any:
    """The last line that the code prints, as JSON; also where it ends by a signal."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


# -- jobs -----------------------------------------------------------------------------------------------------------------
def test_one_process_answers_many_jobs() -> None:
    first = pid()
    assert [ping("echo") for _ in range(3)] == [ECHO] * 3
    assert pid() == first


def test_a_job_that_kills_its_process() -> None:
    first = pid()
    with pytest.raises(DeviceCrashed, match=r"the process on cpu died \(signal SIGABRT\)") as caught:
        ping("die")
    assert "last words" in caught.value.reason
    assert gone(first, 0)
    assert ping("echo") == ECHO
    assert pid() != first


def test_a_process_that_was_killed_between_two_jobs_is_replaced() -> None:
    assert ping("echo") == ECHO
    first = device.current("cpu").process
    first.kill()
    first.wait()
    assert ping("echo") == ECHO
    assert pid() != first.pid


def test_a_job_that_says_nothing() -> None:
    ping("echo")
    first = pid()
    with pytest.raises(DeviceHung, match="said nothing"):
        ping("hang", silence=0.2)
    assert gone(first, 0)
    assert ping("echo") == ECHO


def test_a_job_that_raises() -> None:
    first = pid()
    ((event, report),) = ping("raise")
    assert (event, report["reason"], report["fatal"]) == ("error", "ZeroDivisionError: division by zero", False)
    assert "device_worker.py" in report["traceback"]
    assert report["error"] is None  # no CuteLabError: not one that is shown as it is
    ((event, report),) = ping("no such job")
    assert (event, report["reason"]) == ("error", "KeyError: 'no such job'")
    assert ping("echo") == ECHO
    assert pid() == first


@pytest.fixture(scope="module")
def mistake() -> tuple[Exception, bool]:
    """The error of a shape at which a table is too short, and whether the process outlived it."""
    before = ping("echo"), pid()
    with pytest.raises(cute_lab.CuteLabError) as caught:
        short_table().bench(["eager"], Sq=128, rounds=0, device="cpu", quiet=True)
    return caught.value, before == (ECHO, pid())


def test_a_users_mistake_arrives_as_itself(mistake: tuple[Exception, bool]) -> None:
    found = mistake[0]
    assert isinstance(found, IndexOutOfRange), found
    assert (found.line, found.loc and found.loc.snippet) == (4, "table[kv_idx]")


def test_a_mistake_does_not_cost_the_process(mistake: tuple[Exception, bool]) -> None:
    assert "table[kv_idx]" in str(mistake[0])
    assert mistake[1]


def test_a_consumer_that_goes_away_ends_the_process() -> None:
    """Nobody would read what else it says."""
    lab = short_table()
    request = bench.request_of(lab, lab.shape, parcel.pack((None, lab.mask_mod)), ("eager",), ("forward",), 0, 0, "cpu")
    first = pid()
    events = device.current("cpu").run("measure", request)
    assert next(events)[0] == "device"
    events.close()
    assert gone(first, 0)
    assert ping("echo") == ECHO


def short_table() -> cute_lab.Lab:
    text = "table = torch.arange(64)\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return table[kv_idx] <= q_idx\n"
    mask_mod = from_text(text, {"torch": torch}).mask_mod
    return cute_lab.attention(None, mask_mod, H=1, Sq=64, D=32, target="sm_90a")


RANGE = {"lo": 0, "hi": 9, "size": 5, "dim": 0, "example": ""}
ERRORS = [
    DeviceMissing("no GPU", detail="none", example="cpu"),
    IndexOutOfRange(loc=Loc("<c>", 4), snippet="t[k]", name="t", index=9, b=0, h=0, q=0, kv=9, **RANGE),
    CompilerTimeout("too long", target="sm_90a", direction="forward"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way(error: cute_lab.CuteLabError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found), found.line) == (type(error), str(error), error.line)


def test_threads_take_turns() -> None:
    found: list[list[device.Event]] = []
    threads = [threading.Thread(target=lambda: found.append(ping("echo"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [ECHO] * 12


def test_the_process_sees_no_settings_that_change_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    device.close_all()
    for name in ("CUTE_DSL_ARCH", "FLASH_ATTENTION_ARCH", "FA_DISABLE_2CTA", "MINE"):
        monkeypatch.setenv(name, "1")
    assert ping("echo") == ECHO
    names = {line.partition(b"=")[0].decode() for line in Path(f"/proc/{pid()}/environ").read_bytes().split(b"\0")}
    assert "MINE" in names
    assert not [name for name in names if name.startswith(("CUTE_DSL_", "FLASH_ATTENTION_", "FA_"))]


# -- Stop -----------------------------------------------------------------------------------------------------------------
def stopped(run: Callable[[], list[device.Event]], after: float = 0.3) -> tuple[list[device.Event], float]:
    """What a job ends with when Stop is pressed, and the seconds that this takes."""
    sent: list[float] = []

    def press() -> None:
        sent.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    timer = threading.Timer(after, press)
    timer.start()
    found = run()
    took = time.monotonic() - sent[0]
    timer.join()
    return found, took


def test_stop_ends_the_job_and_not_the_process() -> None:
    ping("echo")
    first = pid()
    found, took = stopped(lambda: ping("hang"))
    assert found == [("stopped", None)]
    assert took < STOP_LIMIT
    assert ping("echo") == ECHO
    assert pid() == first


def test_stop_ends_a_process_that_does_not_listen() -> None:
    """As one in a kernel that never ends: no signal reaches Python."""
    ping("echo")
    first = pid()
    os.kill(first, signal.SIGSTOP)
    found, took = stopped(lambda: ping("hang"))
    assert found == [("stopped", None)]
    assert took < STOP_LIMIT
    assert gone(first, 0)
    assert ping("echo") == ECHO


def test_a_signal_between_jobs_is_no_stop() -> None:
    ping("echo")
    first = pid()
    os.kill(first, signal.SIGINT)
    time.sleep(0.1)
    assert (ping("echo"), pid()) == (ECHO, first)


# -- who outlives whom ----------------------------------------------------------------------------------------------------
START = "import json, os, signal, sys, threading\nfrom cute_lab import device\nprocess = device.current('cpu')\n"
ENDS = {
    "in a job": "threading.Thread(target=lambda: list(process.run('ping', 'hang')), daemon=True).start()\nthreading.Event().wait(0.3)\n",
    "idle": "list(process.run('ping', 'echo'))\n",
}


@pytest.mark.parametrize("job", ENDS)
@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)", "sys.exit(0)"])
def test_a_process_ends_with_its_parent(how: str, job: str) -> None:
    number = python(f"{START}{ENDS[job]}print(process.process.pid, flush=True)\n{how}")
    assert gone(number)


def test_a_forked_copy_has_a_process_of_its_own() -> None:
    code = f"""{START}
list(process.run('ping', 'echo'))
read, write = os.pipe()
child = os.fork()
if child == 0:
    own = device.current('cpu')
    os.write(write, json.dumps([own.process.pid, list(own.run('ping', 'echo'))]).encode())
    sys.exit(0)  # with its atexit functions
os.waitpid(child, 0)
theirs = json.loads(os.read(read, 1000))
print(json.dumps([process.process.pid, device.current('cpu') is process, list(process.run('ping', 'echo')), *theirs]))
"""
    mine, same, echo, other, answer = python(code)
    assert same
    assert echo == answer == [list(event) for event in ECHO]
    assert mine != other
    assert gone(mine)
    assert gone(other)


def test_which_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device.chosen("cpu") == "cpu"
    monkeypatch.setattr(device, "available", lambda: True)
    assert [device.chosen(name) for name in (None, "cuda", "cuda:0", "cuda:1")] == ["cuda:0", "cuda:0", "cuda:0", "cuda:1"]
    monkeypatch.setattr(device, "available", lambda: False)
    with pytest.raises(DeviceMissing, match="no NVIDIA GPU here") as caught:
        device.chosen(None)
    assert "cute_lab.load('record.json')" in caught.value.hint
    for odd in ("gpu", "cuda:x", "cpu:1"):
        with pytest.raises(OptionError, match="there is no device"):
            device.chosen(odd)


# -- mods on their way ----------------------------------------------------------------------------------------------------
RECEIVER = """
import json, pickle, sys
import torch
import cute_lab
from cute_lab import parcel
from cute_lab.capture import captured
found = {}
for name, (sent, options) in pickle.load(sys.stdin.buffer).items():
    try:
        mods = parcel.unpack(sent, torch.device("cpu"))
    except ImportError as error:
        found[name] = [str(error)] * 5
        continue
    lab = cute_lab.attention(*mods, **options)
    tensors = [t for mod in mods if mod is not None for _, t in captured(mod).tensors]
    kept = lab.blocks((16, 16)).kept_cells
    found[name] = [lab.source, lab.params, kept, name != "of_a_cell" or lab.verify().ok, len({t.data_ptr() for t in tensors})]
print(json.dumps(found))
"""
CELL = """slopes = torch.linspace(0, 1, 2)
start = torch.arange(64, dtype=torch.int32) // 8 * 8
width = slider(4, 64, 20)
limit = 3

def near(d):
    return d < width

def score_mod(score, b, h, q_idx, kv_idx):
    bias = slopes[h] * (kv_idx - q_idx)  # by name in the text
    return score + bias

def mask_mod(b, h, q_idx, kv_idx):
    return near(q_idx - kv_idx) & (kv_idx >= start[q_idx] - limit)
"""
MODULE = """import torch
WIDTH = 4
TABLE = torch.arange(64)

def helper(d):
    return d < WIDTH

def mask_mod(b, h, q_idx, kv_idx):
    return helper(q_idx - kv_idx) & (TABLE[kv_idx] >= 0)
"""
Mods = tuple[Any, Any]


def closures() -> Mods:
    table, cap = torch.arange(64.0), 7.0
    return (
        lambda score, b, h, q_idx, kv_idx: cap * torch.tanh(score / cap) + table[kv_idx],
        lambda b, h, q_idx, kv_idx: table[q_idx] + 3 >= kv_idx,
    )


def factories() -> Mods:
    def biased(by: torch.Tensor) -> Callable[..., torch.Tensor]:
        return lambda score, b, h, q_idx, kv_idx: score + by[kv_idx]

    def until(end: torch.Tensor) -> Callable[..., torch.Tensor]:
        return lambda b, h, q_idx, kv_idx: end[q_idx] + 3 >= kv_idx

    table = torch.arange(64.0)
    return biased(table), until(table)


def partials() -> Mods:
    def near(table: Any, width: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any, *, shift: Any = 2) -> Any:
        return (q_idx - kv_idx < width + shift) & (table[kv_idx] > 0)

    return None, functools.partial(near, torch.arange(64) % 3, 5, shift=1)


def objects() -> Mods:
    class Near:
        def __init__(self, width: int) -> None:
            self.table, self.width = torch.arange(64), width

        def __call__(self, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return self.table[q_idx] - kv_idx < self.width

    return None, Near(6)


def views() -> Mods:
    base = torch.arange(256.0).view(4, 64)
    column, wide, mixed, flags = base[1, ::2], base[0].expand(2, 64), base.to(torch.bfloat16).T, base > 9
    return (
        lambda score, b, h, q_idx, kv_idx: score + column[q_idx // 2] + wide[h, kv_idx] + mixed[kv_idx, h],
        lambda b, h, q_idx, kv_idx: flags[h, kv_idx] | (q_idx >= kv_idx),
    )


def of_a_cell() -> Mods:
    mods = from_text(CELL, {"torch": torch})
    return mods.score_mod, mods.mask_mod


def users_module(tmp_path: Path) -> types.ModuleType:
    """One that the other process can't import, and whose number was changed since it was."""
    module = types.ModuleType(f"usersmasks{len(sys.modules)}")
    path = tmp_path / f"{module.__name__}.py"
    path.write_text(MODULE)
    module.__file__, sys.modules[module.__name__] = str(path), module
    exec(compile(MODULE, str(path), "exec"), vars(module))
    vars(module)["WIDTH"] = 9
    return module


def of_a_module(tmp_path: Path) -> Mods:
    return None, users_module(tmp_path).mask_mod


def by_a_module(tmp_path: Path) -> Mods:
    masks = users_module(tmp_path)
    return None, lambda b, h, q_idx, kv_idx: masks.helper(q_idx - kv_idx)


TRIPS = ("closures", "factories", "partials", "objects", "views", "of_a_cell", "of_a_module")
OPTIONS: dict[str, Any] = {"H": 2, "Sq": 64, "D": 32, "target": "sm_90a"}


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Mods, list[Any]]]:
    """(what was sent, what a fresh process says about it) for all of them at once."""
    folder = tmp_path_factory.mktemp("user")
    mods: dict[str, Mods] = {name: globals()[name](*([folder] if "module" in name else [])) for name in (*TRIPS, "by_a_module")}
    sent = pickle.dumps({name: (parcel.pack(pair), OPTIONS) for name, pair in mods.items()})
    done = subprocess.run([sys.executable, "-c", RECEIVER], input=sent, capture_output=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    answers = json.loads(done.stdout)
    return {name: (pair, answers[name]) for name, pair in mods.items()}


@pytest.mark.parametrize("name", [*TRIPS, "by_a_module"])
def test_a_variant_arrives_as_it_is(name: str, trips: dict[str, tuple[Mods, list[Any]]]) -> None:
    mods, (_, params, kept, ok, _) = trips[name]
    lab = cute_lab.attention(*mods, **OPTIONS)
    assert (params, kept, ok) == (lab.params, lab.blocks((16, 16)).kept_cells, True)


@pytest.mark.parametrize("name", [name for name in TRIPS if name != "views"])  # views of one tensor get their names in another order
def test_its_generated_text_is_the_senders(name: str, trips: dict[str, tuple[Mods, list[Any]]]) -> None:
    """With the user's lines in its comments and the user's names, also where they stand in a cell."""
    mods, (source, *_) = trips[name]
    assert source == cute_lab.attention(*mods, **OPTIONS).source


@pytest.mark.parametrize("name", ["closures", "factories", "views", "of_a_cell"])
def test_a_shared_tensor_stays_one(name: str, trips: dict[str, tuple[Mods, list[Any]]]) -> None:
    mods, (*_, tensors) = trips[name]
    assert tensors == len({t.data_ptr() for mod in mods for _, t in captured(mod).tensors}) == len(parcel.pack(mods).tensors)


@pytest.mark.parametrize("make", [closures, objects, views, of_a_cell, of_a_module])
def test_tensors_go_to_the_receivers_device_with_their_strides(make: Callable[..., Mods], tmp_path: Path) -> None:
    """ "meta" stands for any other device."""
    mods = make(tmp_path) if make is of_a_module else make()
    got = parcel.unpack(parcel.pack(mods), torch.device("meta"))
    for mod, arrived in zip(mods, got, strict=True):
        sent, found = (captured(m).tensors if m is not None else () for m in (mod, arrived))
        layout = [(name, t.shape, t.stride(), t.dtype) for name, t in sent]
        assert [(name, t.shape, t.stride(), t.dtype) for name, t in found] == layout
        assert all(t.is_meta for _, t in found)


PACKS = """
import importlib, json, sys
import cloudpickle, torch, mine
from cute_lab import parcel
from cute_lab.freshness import of_library
packed = parcel.pack((None, lambda b, h, q_idx, kv_idx: mine.helper(q_idx - kv_idx)))
print(json.dumps({"library": [of_library(m) for m in ("cloudpickle", "torch", "json", "mine")], "code": packed.code.decode("latin1")}))
"""


def test_packages_may_lie_anywhere_on_the_path(tmp_path: Path) -> None:
    """A folder that pip filled with `--target`, in front of site-packages: its packages are imported there, the user's modules travel."""
    for file in metadata.files("cloudpickle") or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            (tmp_path / "target" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), tmp_path / "target" / file)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text(MODULE)
    path = os.pathsep.join(map(str, (tmp_path / "target", tmp_path / "own", ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", PACKS], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["library"] == [True, True, True, False]
    assert str(tmp_path / "own" / "mine.py") in found["code"]  # its code object, with its file's name


def test_a_row_of_a_large_tensor_travels_alone() -> None:
    row = torch.zeros(1000, 1000)[3]
    sent = parcel.pack((None, lambda b, h, q_idx, kv_idx: row[kv_idx] >= q_idx))
    assert len(pickle.dumps(sent)) < 20_000


@pytest.mark.parametrize("what", ["file", "lock", "generator"])
def test_what_can_not_travel_is_said(what: str, tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        held = {"file": file, "lock": threading.Lock(), "generator": (x for x in "a")}[what]
        lab = cute_lab.attention(mask_mod=lambda b, h, q_idx, kv_idx: q_idx >= kv_idx if held else None, Sq=64, D=32)
        with pytest.raises(DeviceError, match=r"can't be sent to the process on the GPU: .*pickle") as caught:
            lab.bench(device="cpu", quiet=True)
    assert "an open file, a lock, a generator" in str(caught.value)


# -- a slider's step ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("what", ["an edited table", "numbers given back", "fast_math"])
def test_a_step_times_what_is_asked_for(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab that is timed is the lab of the request, whatever came before it. No GPU: what would be timed is looked at."""
    timed: list[tuple[int, bool]] = []

    def prepare(lab: cute_lab.Lab, where: torch.device) -> types.SimpleNamespace:
        timed.append((lab.blocks((16, 16)).kept_cells, lab.fast_math))
        return types.SimpleNamespace(note="")

    monkeypatch.setattr(fa4, "prepare", prepare)
    monkeypatch.setattr(fa4, "attend", lambda kernel, q, k, v, scale: (q, None))
    monkeypatch.setattr(retime, "kernels", lambda: 0)
    monkeypatch.setattr(retime, "_kept", {})
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda where: "none")
    table, width = torch.full((64,), 4), 4
    lab = cute_lab.attention(mask_mod=lambda b, h, q_idx, kv_idx: q_idx - kv_idx < table[kv_idx] + width, H=1, Sq=64, D=32)

    def step(now: cute_lab.Lab) -> None:
        retime.run(bench.request_of(now, now.shape, parcel.pack((None, now.mask_mod)), ("cute_lab",), ("forward",), 0, 0, "cpu"))

    def asked(now: cute_lab.Lab) -> tuple[int, bool]:
        return now.blocks((16, 16)).kept_cells, now.fast_math

    if what == "numbers given back":
        step(lab.with_params(width=20))
    else:
        step(lab)
    if what == "an edited table":
        table.fill_(30)
    now = lab.with_fast_math() if what == "fast_math" else lab
    step(now)
    assert timed[-1] == asked(now)
