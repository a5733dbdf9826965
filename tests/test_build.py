"""Real cross-compilation with no GPU: what comes out, what the lines cost, and that nothing takes the caller down."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cute_lab import brisk, build, forkclient, sass
from cute_lab.build import Artifact, Aux, KernelSpec
from cute_lab.errors import CompileError, CompilerCrashed, CompilerTimeout, OptionError
from cute_lab.targets import TARGETS

pytestmark = pytest.mark.cross
HEAD = "import cutlass\nfrom cutlass import cute\n\n"
SCORE = "@cute.jit\ndef score_mod(score, b, h, q_idx, kv_idx, seqlen_info, aux_tensors{more}):\n"
MASK = "@cute.jit\ndef mask_mod(b, h, q_idx, kv_idx, seqlen_info, aux_tensors):\n"
GRAD = "@cute.jit\ndef score_mod_bwd(grad, score, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):\n"


def text(*functions: str) -> str:
    return HEAD + "\n".join(functions)


def score(*lines: str, more: str = "") -> str:
    return SCORE.format(more=more) + "".join(f"    {line}\n" for line in lines)


SOFTCAP = score("small = score * 0.05", "t = cute.math.tanh(small, fastmath=True)", "return t * 20.0")
SOFTCAP_GRAD = GRAD + "    t = cute.math.tanh(score * 0.05, fastmath=True)\n    return grad * (1.0 - t * t)\n"
ALIBI = score(
    "distance = (kv_idx - q_idx).to(cutlass.Float32)",
    "slope = cute.math.exp2((h + 1).to(cutlass.Float32) * -0.5, fastmath=True)",
    "return score + distance * slope",
)
WINDOW = MASK + "    return (q_idx >= kv_idx) & (q_idx - kv_idx < 256)\n"
GATHER = score(
    "table = aux_tensors[0]",
    "at = cute.make_rmem_tensor(kv_idx.shape, cutlass.Int32)",
    "at.store(kv_idx)",
    "row = cute.make_rmem_tensor(kv_idx.shape, table.element_type)",
    "for lane in cutlass.range(cute.size(row.shape), unroll_full=True):",
    "    row[lane] = table[at[lane]]",
    "return score * aux_scalars[0] + row.load().to(cutlass.Float32) * aux_scalars[1].to(cutlass.Float32)",
    more=", aux_scalars",
)
SPECS = {
    "softcap": KernelSpec(text(SOFTCAP, SOFTCAP_GRAD), ("score_mod", "score_mod_bwd"), D=64, user_lines=(0,) * 5 + (3, 3, 4)),
    "alibi": KernelSpec(text(ALIBI), ("score_mod",), D=64),
    "window": KernelSpec(text(WINDOW), ("mask_mod",), D=64, block=(128, 64)),
    "gather": KernelSpec(text(GATHER), ("score_mod",), D=64, aux=(Aux("float16", (1024,), (1,)),), scalars=("Float32", "Int32")),
    "power": KernelSpec(text(score("return score + (kv_idx ** 2).to(cutlass.Float32)")), ("score_mod",), D=64),
    "hang": KernelSpec("import time\n\ntime.sleep(600)\n", ("score_mod",), D=64),
    "wrong": KernelSpec(text(score("return cute.math.max(score, 0.0)")), ("score_mod",), D=64, user_lines=(0, 0, 0, 0, 0, 2)),
}
JOBS = [
    *(("softcap", "sm_90a", way) for way in ("forward", "backward")),
    *(("softcap", "sm_100a", way) for way in ("forward", "backward")),
    *((name, "sm_90a", "forward") for name in ("alibi", "window", "gather")),
    ("alibi", "sm_100a", "forward"),
]
Compiled = Callable[[str, str, str], Artifact]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("CUTE_LAB_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def compiled(cache: Path) -> Compiled:
    """All the good kernels, compiled once and from two threads, which is also the thread test."""
    results: dict[tuple[str, str, str], Artifact | CompileError] = {}

    def work(jobs: list[tuple[str, str, str]]) -> None:
        for name, target, way in jobs:
            results[name, target, way] = build.compile_many(SPECS[name], [target], way)[target]

    threads = [threading.Thread(target=work, args=(JOBS[i::2],)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def get(name: str, target: str, way: str) -> Artifact:
        result = results[name, target, way]
        if isinstance(result, CompileError):
            pytest.fail(f"{name} {target} {way}\n{result}\n{result.log[-3000:]}")
        return result

    return get


def threads(artifact: Artifact) -> int:
    """FA4's: SM90 a warp group per 64 rows and one that loads (backward two and one), SM100 sixteen warps."""
    groups = artifact.tile[0] // 64 + 1 if artifact.direction == "forward" else 3
    return {"sm_90a": 128 * groups, "sm_100a": 512}[artifact.target]


def rows(artifact: Artifact, generated: int) -> list[str]:
    lines = artifact.sass.splitlines()
    return [lines[row] for row, line, _ in artifact.line_map if line == generated]


@pytest.mark.parametrize("job", JOBS, ids="-".join)
def test_artifact_is_for_its_target(compiled: Compiled, job: tuple[str, str, str]) -> None:
    artifact = compiled(*job)
    assert f".target {job[1]}" in artifact.ptx
    assert (artifact.target, artifact.direction, artifact.cached) == (*job[1:], False)
    assert artifact.registers == 65536 // threads(artifact) // 8 * 8  # the kernels take the whole register file
    listed = [line for line in artifact.sass.splitlines() if line.lstrip().startswith("/*")]
    assert len(listed) == artifact.instructions > 1000
    assert artifact.spill_stores == sum(" STL" in line for line in listed)
    assert artifact.loop is not None and artifact.cost is not None
    assert sum(artifact.mix.values()) <= artifact.loop[1] - artifact.loop[0] + 1


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_tanh_line_owns_the_tanh_instructions(compiled: Compiled, target: str) -> None:
    artifact = compiled("softcap", target, "forward")
    tanh = [line for line in artifact.sass.splitlines() if "MUFU.TANH" in line]
    assert len(tanh) == 2 * {"sm_90a": 64, "sm_100a": 128}[target]  # per thread, for the first tile and the others
    assert [line for line in rows(artifact, 7) if "MUFU" in line] == tanh
    for line in (6, 8):
        assert len([text for text in rows(artifact, line) if "FMUL" in text]) >= 64
        assert not [text for text in rows(artifact, line) if "MUFU" in text]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_costs_per_user_line(compiled: Compiled, target: str) -> None:
    """The cell's line 3 has generated lines 6 and 7, its line 4 has line 8."""
    dear, cheap = compiled("softcap", target, "forward").line_cost
    assert (dear.line, dear.generated, cheap.line, cheap.generated) == (3, (6, 7), 4, (8,))
    scores, packed = {"sm_90a": (64, 1), "sm_100a": (128, 2)}[target]  # per thread; SM100 multiplies two at once
    products = scores // packed
    assert (dear.pipes, cheap.pipes) == ({"mufu": scores, "fma": products}, {"fma": products})
    assert dear.share + cheap.share == pytest.approx(1.0)
    assert dear.cycles / cheap.cycles == (scores * TARGETS[target].mufu_cycles + products) / products


def test_alibi_line_converts_the_distance(compiled: Compiled) -> None:
    artifact = compiled("alibi", "sm_90a", "forward")
    assert len([line for line in rows(artifact, 6) if "I2F" in line]) >= 64
    assert len([line for line in rows(artifact, 8) if "FFMA" in line]) >= 64
    assert len([line for line in rows(artifact, 7) if "MUFU.EX2" in line]) <= 2  # one slope: hoisted out of the loop


def test_tanh_costs_more_than_alibi(compiled: Compiled) -> None:
    """The H200's order, facts of section 6: ALiBi 557 TFLOP/s, softcap 500."""
    softcap, alibi = (compiled(name, "sm_90a", "forward").cost for name in ("softcap", "alibi"))
    assert softcap is not None and alibi is not None and 1.05 < softcap / alibi < 1.6


def test_block_lists_set_the_tile(compiled: Compiled) -> None:
    artifact = compiled("window", "sm_90a", "forward")
    assert artifact.tile == (128, 64)
    assert compiled("alibi", "sm_90a", "forward").tile == (192, 128)  # dense
    (cost,) = artifact.line_cost
    assert cost.generated == (6,) and cost.instructions >= 64 and cost.pipes["alu"] > cost.instructions // 2


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_backward_runs_both_mods(compiled: Compiled, target: str) -> None:
    artifact = compiled("softcap", target, "backward")
    assert any("MUFU.TANH" in line for line in rows(artifact, 7))
    grad = [line for number in (12, 13) for line in rows(artifact, number)]
    assert len([line for line in grad if "FFMA" in line or "FMUL" in line or "FADD" in line]) >= 32
    assert artifact.min_stack_bytes >= artifact.stack_bytes >= 0


def test_captures_become_arguments(compiled: Compiled) -> None:
    artifact = compiled("gather", "sm_90a", "forward")
    loads = [line for line in artifact.sass.splitlines() if " LDG." in line]
    assert len(loads) >= 64 and all(".U16" in line for line in loads)
    assert any(".param .f32" in line for line in artifact.ptx.splitlines())


def elapsed(call: Callable[[], Artifact]) -> tuple[Artifact, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def test_second_call_comes_from_the_cache(compiled: Compiled) -> None:
    first = compiled("softcap", "sm_90a", "forward")
    again, seconds = elapsed(lambda: build.compile_kernel(SPECS["softcap"], "sm_90a"))
    assert again == replace(first, cached=True) and seconds < 0.2
    lower_in_the_cell = replace(SPECS["softcap"], user_lines=(0,) * 5 + (9, 9, 9))
    moved, seconds = elapsed(lambda: build.compile_kernel(lower_in_the_cell, "sm_90a"))
    assert moved.cached and [cost.line for cost in moved.line_cost] == [9] and seconds < 0.2


def test_fresh_process_uses_the_cache_without_torch_or_cutlass(compiled: Compiled) -> None:
    compiled("alibi", "sm_90a", "forward")
    code = (
        f"import sys, time\nfrom cute_lab import build\nspec = build.{SPECS['alibi']!r}\n".replace("Aux(", "build.Aux(")
        + "start = time.perf_counter()\nartifact = build.compile_kernel(spec, 'sm_90a')\n"
        + "print(artifact.cached, time.perf_counter() - start, 'cutlass' in sys.modules, 'flash_attn' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    cached, seconds, cutlass, flash = out.stdout.split()
    assert (cached, cutlass, flash) == ("True", "False", "False") and float(seconds) < 0.2


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(build.__file__).parents[1])}


def test_client_files_import_no_torch() -> None:
    for name in ("build.py", "sass.py", "targets.py"):
        for node in ast.walk(ast.parse((Path(build.__file__).parent / name).read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {n.split(".")[0] for n in names} & {"torch", "cutlass", "flash_attn"}, name


def missing(name: str) -> str:
    raise importlib.metadata.PackageNotFoundError(name)


def test_without_the_wheel_a_toolkit_s_nvdisasm_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, _ = sass.disassembler()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nvdisasm").symlink_to(wheel)
    monkeypatch.setattr(importlib.metadata, "files", missing)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    sass.disassembler.cache_clear()
    try:
        tool, version = sass.disassembler()
    finally:
        sass.disassembler.cache_clear()
    assert tool == str(tmp_path / "bin/nvdisasm") and re.search(r"cuda_\d+\.\d+", version)


@pytest.mark.parametrize("name", [*build.PACKAGES, sass.NVDISASM])
def test_a_package_that_is_not_installed_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(sass, "TOOLKIT", str(tmp_path))
    version, files = importlib.metadata.version, importlib.metadata.files
    monkeypatch.setattr(importlib.metadata, "version", lambda asked: missing(asked) if asked == name else version(asked))
    monkeypatch.setattr(importlib.metadata, "files", lambda asked: missing(asked) if asked == name else files(asked))
    for cached in (sass.disassembler, build._stamp):
        cached.cache_clear()
    try:
        with pytest.raises(OptionError, match=f"{name} is not installed") as caught:
            build.compile_kernel(SPECS["alibi"], "sm_90a")
    finally:
        for cached in (sass.disassembler, build._stamp):
            cached.cache_clear()
    assert f"pip install {name}" in str(caught.value)


def test_damaged_entry_is_compiled_again(compiled: Compiled, cache: Path) -> None:
    compiled("alibi", "sm_90a", "forward")
    path = build._path(SPECS["alibi"], "sm_90a", "forward")
    good = path.read_bytes()
    for damaged in (b"", b"nonsense", good[: len(good) // 2], good[:-9] + b"\0" * 9):
        path.write_bytes(damaged)
        assert build._load(path, SPECS["alibi"]) is None
    artifact = build.compile_kernel(SPECS["alibi"], "sm_90a")
    assert not artifact.cached and build.compile_kernel(SPECS["alibi"], "sm_90a").cached
    assert not list(cache.rglob("*.part"))


def works() -> bool:
    """A job that needs the worker and takes no time: a refusal by the compiler."""
    result = build.compile_many(SPECS["wrong"], ["sm_90a"])["sm_90a"]
    return type(result) is CompileError and "TensorSSA" in str(result)


def test_crash_is_an_error_and_the_worker_lives() -> None:
    with pytest.raises(CompilerCrashed, match="SIGSEGV") as caught:
        build.compile_kernel(SPECS["power"], "sm_90a")
    assert not build._path(SPECS["power"], "sm_90a", "forward").exists()
    assert "i * i" in caught.value.reason and caught.value.source == SPECS["power"].source
    assert "Segmentation fault" in caught.value.log
    worker = forkclient.current()
    assert works() and forkclient.current() is worker


def test_hang_is_stopped() -> None:
    start = time.monotonic()
    with pytest.raises(CompilerTimeout, match=r"0\.3 s"):
        build.compile_kernel(SPECS["hang"], "sm_100a", timeout=0.3)
    assert time.monotonic() - start < 15
    assert works()


def test_refusals_are_short_and_placed(compiled: Compiled) -> None:
    results = build.compile_many(SPECS["wrong"], ["sm_90a", "sm_100a"])
    for target, error in results.items():
        assert type(error) is CompileError
        assert error.summary.startswith(f"{target} forward: max: Expected all inputs")
        assert error.reason == "Generated line 6, from line 2 of the cell: return cute.math.max(score, 0.0)"
        assert len(str(error)) < 300 and "\x1b" not in error.log and "Traceback" in error.log
    bad_block = replace(SPECS["window"], block=(128, 128))
    known, refused = build.compile_many(SPECS["alibi"], ["sm_90a"]), build.compile_many(bad_block, ["sm_100a"])
    assert isinstance(known["sm_90a"], Artifact)
    assert str(refused["sm_100a"]).endswith("Fix: use block=(256, 128).")


def test_interrupt_cancels_the_job_only() -> None:
    assert works()
    worker = forkclient.current()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits "ignore"
    timer = threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        build.compile_kernel(SPECS["hang"], "sm_100a")
    timer.join()
    signal.signal(signal.SIGINT, before)
    children = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children")
    until(lambda: not children.read_text().strip())
    assert works() and forkclient.current() is worker


def alive(pid: int) -> bool:
    """A zombie that nobody reaps is dead too."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "still not so"
        time.sleep(0.05)


def test_dead_worker_is_replaced() -> None:
    assert works()
    worker = forkclient.current()
    worker.process.kill()
    assert works() and forkclient.current() is not worker


def test_worker_dies_with_its_parent() -> None:
    """Even when a fork of the parent, which holds the socket too, lives on."""
    code = (
        "import os, time\nfrom cute_lab import build, forkclient\nbuild.warm()\nworker = forkclient.current().process.pid\n"
        "os.dup(forkclient.current().socket.fileno())\npid = os.fork()\n"
        "if pid == 0:\n    os.close(1)\n    time.sleep(60)\n    os._exit(0)\n"
        "print(worker, pid, flush=True)\nos._exit(0)"  # no atexit: as if killed
    )
    out = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, env=environment())
    worker, fork = map(int, out.stdout.split())
    try:
        until(lambda: not alive(worker))
    finally:
        os.kill(fork, signal.SIGKILL)


def test_warm_does_not_wait() -> None:
    code = "import time\nfrom cute_lab import build\nt = time.time()\nbuild.warm()\nprint(time.time() - t)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert float(out.stdout) < 0.5 and out.stderr == ""


LISTING = """
\t.section\t.text.kernel_demo_object_at_1,"ax",@progbits
.L_x_0:
\t//## File "<mod>", line 3
        /*0000*/                   MUFU.EX2 R1, R1 ;
\t//## File "kernel.py", line 9
        /*0010*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0020*/                   FCHK P0, R1, R2 ;
        /*0030*/              @!P0 BRA `(.L_x_1) ;
        /*0040*/                   MOV R4, R1 ;
        /*0050*/                   CALL.REL.NOINC `($division) ;
.L_x_1:
        /*0060*/                   FFMA R3, R1, R2, R3 ;
        /*0070*/               @P1 BRA `(.L_x_0) ;
        /*0080*/                   EXIT ;
.L_x_2:
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0 ;
        /*00a0*/              @!P0 BRA `(.L_x_2) ;
        /*00b0*/                   BRA `(.L_x_0) ;
"""


def test_what_is_remembered_is_what_the_dsl_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of operations under frames of the DSL's, met twice and in two contexts; types of every kind."""
    op, ir = brisk.imported("cutlass._mlir_helpers.op"), brisk.imported("cutlass._mlir.ir")
    numeric = brisk.imported("cutlass.base_dsl.typing").Numeric
    for name in (
        "_CO_POSITIONS",
        "itertools",
        "_get_caller_frame_info",
        "_get_location_from_frame_info",
        "_ENABLE_FRAME_FILTERING",
    ):
        monkeypatch.setattr(op, name, getattr(op, name))
    monkeypatch.setattr(numeric, "from_mlir_type", staticmethod(numeric.from_mlir_type))
    op._ENABLE_FRAME_FILTERING = True

    @op.dsl_user_op
    def outer(*, loc: object = None) -> list[str]:
        return [str(loc), inner()]  # a frame of the DSL's wrapper lies between

    @op.dsl_user_op
    def inner(*, loc: object = None) -> str:
        return str(loc)

    def places() -> list[list[str]]:
        found = []
        for _ in range(2):
            with ir.Context(), ir.Location.unknown():
                found += [outer() for _ in range(2)] + [outer(), outer()]
        return found

    def kinds() -> list[object]:
        with ir.Context():
            names = ("i1", "i8", "si16", "ui32", "i64", "f16", "bf16", "f32", "f64", "f8E4M3FN")
            return [numeric.from_mlir_type(ir.Type.parse(name)) for name in names * 2]

    own = places(), kinds()
    brisk.remember_places()
    brisk.remember_types()
    assert (places(), kinds()) == own
    assert "test_build.py" in own[0][0][0]
    assert len({text for pair in own[0] for text in pair}) == 4  # three calls of outer, one of inner


def test_listing_loop_and_slow_path() -> None:
    listing = sass.parse(LISTING)
    assert listing.lines[:2] == ("// kernel kernel_demo", ".L_x_0:")
    assert [(ins.file, ins.line) for ins in listing.instructions[:2]] == [("<mod>", 3), ("kernel.py", 9)]
    assert sass.loops(listing) == [(0, 7), (9, 10)]  # not the failed wait that branches back from the end
    loop = sass.main_loop(listing, TARGETS["sm_90a"], frozenset())
    assert loop == (0, 7)
    body = sass.hot(listing, loop)
    assert [ins.opcode for ins in body] == ["MUFU", "HGMMA", "FCHK", "BRA", "FFMA", "BRA"]
    # 128 x 128 x (64 + 64) / 2048 for the products, then two warps: one MUFU of 8 cycles against 6 instructions.
    assert sass.tile_cost(body, TARGETS["sm_90a"], "forward", 64, 64, (128, 128)) == 1024 + 2 * 8


@pytest.mark.parametrize(
    ("opcode", "pipe"),
    [("HGMMA", "tensor"), ("UTCHMMA", "tensor"), ("MUFU", "mufu"), ("I2F", "mufu"), ("I2FP", "alu"), ("FFMA2", "fma"),
     ("IMAD", "fma"), ("FMNMX3", "alu"), ("LDG", "memory"), ("STL", "memory"), ("LDTM", "memory"), ("SYNCS", "memory"),
     ("UTMALDG", "memory"), ("BRA", "control"), ("UIADD3", "uniform"), ("R2UR", "uniform"), ("ISETP", "alu")],
)  # fmt: skip
def test_pipes(opcode: str, pipe: str) -> None:
    assert sass.pipe_of(opcode) == pipe
