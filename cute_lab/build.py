"""Generated mods -> Artifact: FlashAttention-4's kernel for any target, compiled without a GPU and cached on disk.

compile_kernel, compile_many  block; a compiler that refuses, crashes or hangs gives a CompileError, nothing else dies
warm                          starts the worker (3 s of imports) without waiting
This file imports neither torch nor cutlass.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import signal
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from cute_lab import sass
from cute_lab.errors import CompileError, CompilerCrashed, CompilerTimeout, GeometryError, OptionError
from cute_lab.forkclient import Ending, current
from cute_lab.sass import LineCost
from cute_lab.targets import check, target_named

PACKAGES = ("nvidia-cutlass-dsl", "flash-attn-4", "quack-kernels")
OWN_FILES = ("worker.py", "brisk.py", "crosscompile.py", "ptx.py", "sass.py", "targets.py")  # a change of them makes artifacts stale
INTEGER_POWER = re.compile(r"\*\*|powi")
NOISE = ("Accessing the data pointer", "UserWarning: Argument aux_data", "exe_args, func_types")


@dataclass(frozen=True)
class Aux:
    """A captured tensor. `align` and `leading_dim` are FA4's hints for vector loads."""

    dtype: str  # torch's name: "float32", "int64", "uint8"
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    align: int | None = None
    leading_dim: int | None = None


@dataclass(frozen=True)
class KernelSpec:
    """One kernel: the generated text and the shapes. `block` None = the target's own (see targets.block_for)."""

    source: str
    functions: tuple[str, ...]  # of score_mod, mask_mod, score_mod_bwd those that are in the text
    B: int = 1
    H: int = 8
    Hkv: int = 8
    Sq: int = 1024
    Skv: int = 1024
    D: int = 128
    dtype: str = "bf16"
    aux: tuple[Aux, ...] = ()
    scalars: tuple[str, ...] = ()
    block: tuple[int, int] | None = None
    block_sparse: bool = True  # with a mask_mod: pass block lists, so that it runs on partial blocks only
    score_vec: int | None = None
    mask_vec: int | None = None
    user_lines: tuple[int, ...] = ()  # [i]: line of the cell for generated line i + 1, 0 = none; not in the key
    Dv: int | None = None
    pack_heads: bool | None = None  # FA4's pack_gqa, forward; None leaves it to FA4
    sparse_batch: int = 1  # extents of the block lists; a list per head switches off FA4's packing of grouped heads
    sparse_heads: int = 1

    def __post_init__(self) -> None:
        if self.dtype not in ("bf16", "fp16"):
            raise GeometryError(f"no kernel for dtype {self.dtype!r}", detail="bf16 or fp16.", example="dtype='bf16'")


@dataclass(frozen=True, repr=False)
class Artifact:
    target: str
    direction: str
    ptx: str
    sass: str
    registers: int  # at launch; SM90 and SM100 redistribute them between warps
    stack_bytes: int
    min_stack_bytes: int
    spill_loads: int
    spill_stores: int
    instructions: int
    seconds: float
    cached: bool
    tile: tuple[int, int]
    loop: tuple[int, int] | None  # first and last line of the main loop in `sass`
    mix: dict[str, int]  # main-loop instructions by pipe, see sass.PIPES
    line_map: tuple[tuple[int, int, int], ...]  # (line index in `sass`, generated line, line of the cell)
    ptx_map: tuple[tuple[int, int, int], ...]  # the same for `ptx`
    line_cost: tuple[LineCost, ...]
    cost: float | None  # cycles of a tile, comparable within one target and to 10 %, see sass

    def __repr__(self) -> str:
        """A line: the PTX and SASS are half a megabyte."""
        spills = (
            f"{self.spill_stores} spilled stores, {self.spill_loads} spilled loads"
            if self.spill_stores or self.spill_loads
            else "no spills"
        )
        words = f"{self.registers} registers, {self.stack_bytes} bytes of stack, {spills}, {self.instructions:,} instructions"
        return f"<Artifact {self.target} {self.direction}: {words}, {self.seconds:.1f} s{' (cached)' if self.cached else ''}>"


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("CUTE_LAB_CACHE") or Path(base) / "cute_lab")


@lru_cache
def _stamp() -> str:
    try:
        versions = {name: importlib.metadata.version(name) for name in PACKAGES} | {"nvdisasm": sass.disassembler()[1]}
    except importlib.metadata.PackageNotFoundError as error:
        words = f"{error.name} is not installed"
        raise OptionError(words, detail="Kernels are compiled with it.", example=f"pip install {error.name}") from None
    code = {name: hashlib.sha256(Path(__file__).with_name(name).read_bytes()).hexdigest() for name in OWN_FILES}
    return json.dumps([versions, code], sort_keys=True)


def _job(spec: KernelSpec, target: str, direction: str) -> str:
    plain = asdict(spec)
    del plain["user_lines"]
    return json.dumps({"spec": plain, "target": target, "direction": direction}, sort_keys=True)


def _path(spec: KernelSpec, target: str, direction: str) -> Path:
    key = hashlib.sha256((_stamp() + _job(spec, target, direction)).encode()).hexdigest()
    return cache_folder() / "artifacts" / f"{key}.json.gz"


def _artifact(packed: bytes, spec: KernelSpec, cached: bool) -> Artifact:
    fields = json.loads(gzip.decompress(packed))
    lines = spec.user_lines
    for name in ("line_map", "ptx_map"):
        fields[name] = tuple((row, line, sass.user_line(line, lines)) for row, line in fields[name])
    fields["line_cost"] = tuple(sass.by_user_line([LineCost(**cost) for cost in fields["line_cost"]], lines))
    fields["tile"] = tuple(fields["tile"])
    fields["loop"] = fields["loop"] and tuple(fields["loop"])
    return Artifact(**fields, cached=cached)


def _load(path: Path, spec: KernelSpec) -> Artifact | None:
    try:
        return _artifact(path.read_bytes(), spec, cached=True)
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):  # damaged: compile again
        return None


def _save(path: Path, packed: bytes) -> None:
    with contextlib.suppress(OSError):  # a read-only cache costs time, not results
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
            part.write(packed)
        os.replace(part.name, path)


def is_known(spec: KernelSpec, target: str, direction: str = "forward") -> bool:
    """Would its compilation come from the cache?"""
    return _path(spec, target, direction).exists()


def warm() -> None:
    """Starts the worker's imports in the background."""
    current()


class _Run:
    """One compilation under way."""

    def __init__(self, spec: KernelSpec, target: str, direction: str, timeout: float) -> None:
        self.spec, self.target, self.direction, self.timeout = spec, target, direction, timeout
        self.folder = Path(tempfile.mkdtemp(prefix="cute_lab-"))
        (self.folder / "job.json").write_text(_job(spec, target, direction))
        self.worker = current()
        self.number = self.worker.submit(self.folder, timeout)

    def result(self) -> Artifact | CompileError:
        end = self.worker.wait(self.number, self.timeout)
        if end.exit is None and not end.timed_out:  # the worker died, of which a job in a fork can't be the cause
            self.worker.forget(self.number)
            self.worker = current()
            self.number = self.worker.submit(self.folder, self.timeout)
            end = self.worker.wait(self.number, self.timeout)
        if end.exit == 0:
            packed = (self.folder / "result.json.gz").read_bytes()
            _save(_path(self.spec, self.target, self.direction), packed)
            return _artifact(packed, self.spec, cached=False)
        return self._error(end)

    def _error(self, end: Ending) -> CompileError:
        log = self.folder / "log.txt"
        text = log.read_text(errors="replace") if log.exists() else ""
        kind: type[CompileError] = CompilerCrashed
        detail = ""
        if end.timed_out:
            kind, message = CompilerTimeout, f"the compiler was stopped after {self.timeout:g} s"
        elif end.exit == 1 and (self.folder / "error.json").exists():
            report = json.loads((self.folder / "error.json").read_text())
            kind, message, text = CompileError, report["message"], text + report["traceback"]
            detail = self._place(report["line"])
        elif end.exit is None:
            text += self.worker.close()
            message = "the compiler process ended: " + (text.strip().splitlines() or ["it said nothing"])[-1]
        else:
            message = f"the compiler crashed ({signal.Signals(-end.exit).name if end.exit < 0 else end.exit})"
            detail = "Integer powers are known to crash it: write i * i." * bool(INTEGER_POWER.search(self.spec.source))
        text = "\n".join(line for line in text.splitlines() if not any(noise in line for noise in NOISE))
        place = {"target": self.target, "direction": self.direction, "source": self.spec.source}
        return kind(message, **place, log=text, detail=detail)

    def _place(self, line: int) -> str:
        lines = self.spec.source.splitlines()
        if not 0 < line <= len(lines):
            return ""
        user = sass.user_line(line, self.spec.user_lines)
        return f"Generated line {line}{f', from line {user} of the cell' if user else ''}: {lines[line - 1].strip()}"

    def end(self) -> None:
        self.worker.forget(self.number)
        shutil.rmtree(self.folder, ignore_errors=True)


def _refusal(spec: KernelSpec, target: str, direction: str) -> CompileError | None:
    """What the target's rules already refuse, in no time and with a fix."""
    has = {"has_score": "score_mod", "has_mask": "mask_mod", "has_score_bwd": "score_mod_bwd"}
    same = ("D", "Sq", "Dv", "H", "Hkv", "block", "block_sparse", "score_vec", "mask_vec")
    fields: dict[str, Any] = {name: getattr(spec, name) for name in same}
    fields |= {name: function in spec.functions for name, function in has.items()}
    for advice in check(target_named(target), direction=direction, **fields):
        if advice.level == "refused":
            fix = f"Fix: {advice.fix}."
            return CompileError(advice.message, target=target, direction=direction, source=spec.source, detail=fix)
    return None


def compile_many(
    spec: KernelSpec, targets: Iterable[str], direction: str = "forward", *, timeout: float = 120.0, force: bool = False
) -> dict[str, Artifact | CompileError]:
    """One spec for several targets, side by side; an error stands in its target's place."""
    return compile_specs(dict.fromkeys(targets, spec), direction, timeout=timeout, force=force)


def compile_specs(
    specs: Mapping[str, KernelSpec], direction: str = "forward", *, timeout: float = 120.0, force: bool = False
) -> dict[str, Artifact | CompileError]:
    """A spec per target, side by side; an interrupt cancels what is still running."""
    results: dict[str, Artifact | CompileError] = {}
    runs: dict[str, _Run] = {}
    try:
        for name, spec in specs.items():
            known = _refusal(spec, name, direction) or (None if force else _load(_path(spec, name, direction), spec))
            if known is not None:
                results[name] = known
            else:
                runs[name] = _Run(spec, name, direction, timeout)
        for name, run in runs.items():
            results[name] = run.result()
    finally:
        for run in runs.values():
            run.end()
    return {name: results[name] for name in specs}


def compile_kernel(spec: KernelSpec, target: str, direction: str = "forward", *, timeout: float = 120.0, force: bool = False) -> Artifact:
    result = compile_many(spec, [target], direction, timeout=timeout, force=force)[target]
    if isinstance(result, CompileError):
        raise result
    return result
