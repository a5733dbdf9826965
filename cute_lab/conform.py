"""Generated mods at every vector width, as a GPU kernel or on the CPU, against torch: what SM100 takes wide is proved on any GPU."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_fake_stream, make_fake_tensor

from cute_lab import check as illegal
from cute_lab import conform_kernels, cutedsl, host, packed, reference, verify
from cute_lab.capture import Mod
from cute_lab.ir import Graph, Program
from cute_lab.record import Check, Shape
from cute_lab.tables import moved

if TYPE_CHECKING:
    from cute_lab.lab import Lab

Device = Literal["cuda", "host"]
WIDTHS = (1, 2, 4, 8, 32, 128)
WORD = 32
LONG = 4608  # queries and keys of a longer sequence are cut to both ends: wide enough for a window of 4096 to begin inside
ENDS = 128  # rows of each end of a long sequence
GUARD = 4096  # bytes behind a result that must stay as they were
# A GPU's tanh, exp, log and pow are good to 1-4 units in the last place (2.4e-7 to 5e-7), its compiler fuses a * b + c, and a formula
# chains several of them; the host's own tolerance holds where it is the larger one.
GPU_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Form:
    """A generated function as a kernel: its graph, how many score-like tensors it reads, its result as it is stored."""

    kind: str
    reads: int
    stored: Any
    dtype: torch.dtype
    blank: int  # each byte of a result before it is written: no legal value


FORMS: Mapping[str, Form] = {
    "score_mod": Form("score", 1, cutlass.Float32, torch.float32, 0xFF),
    "score_mod_bwd": Form("score_bwd", 2, cutlass.Float32, torch.float32, 0xFF),
    "mask_mod": Form("mask", 0, cutlass.Uint8, torch.uint8, 0xA5),
    "mask_mod_packed": Form("mask", 0, cutlass.Uint32, torch.uint32, 0xA5),
}


@dataclass(frozen=True)
class Grid:
    """Rows [R, 3] (b, h, q) over the keys first .. first + keys - 1."""

    rows: torch.Tensor
    first: int
    keys: int

    @cached_property
    def kv(self) -> torch.Tensor:
        return torch.arange(self.first, self.first + self.keys, dtype=torch.int32)

    @cached_property
    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores and gradients [R, keys]."""
        return verify.inputs(len(self.rows), self.keys)


@dataclass(frozen=True)
class Subject:
    """What is looked at: the text that runs, and the user's functions that say what is right."""

    program: Program
    mods: Mapping[str, Mod]
    shape: Shape
    text: str

    @classmethod
    def of(cls, lab: Lab) -> Subject:
        program = lab.graph
        extra = {} if program.mask is None else packed.functions(program)
        return cls(program, lab.mods, lab.shape, cutedsl.emit(program, extra, lab.fast_math).text)

    @property
    def functions(self) -> tuple[str, ...]:
        return tuple(name for name, form in FORMS.items() if form.kind in self.program.graphs())

    def graph(self, what: str) -> Graph:
        return self.program.graphs()[FORMS[what].kind]


@dataclass(frozen=True)
class Conformance:
    """One function at one width; `error` says why there is no check."""

    what: str
    width: int
    check: Check | None
    error: str
    seconds: float

    @property
    def ok(self) -> bool:
        return self.check is not None and self.check.ok


def code_hash(text: str) -> str:
    """sha256 of the generated code without its comments, which name lines of the user's file."""
    return hashlib.sha256(re.sub(r" *#.*$", "", text, flags=re.MULTILINE).encode()).hexdigest()


def plan(subject: Subject, widths: Iterable[int] = WIDTHS) -> list[tuple[str, int]]:
    """Each function at each width; packed words at whole words only."""
    sizes = tuple(widths)
    return [(what, v) for what in subject.functions for v in sizes if what != "mask_mod_packed" or v % WORD == 0]


def grids(shape: Shape) -> tuple[Grid, ...]:
    """All positions of the first, a middle and the last (b, h); of a long sequence both ends."""
    at = sorted({(0, 0), (shape.B // 2, shape.H // 2), (shape.B - 1, shape.H - 1)})
    q = range(shape.Sq) if shape.Sq <= LONG else (*range(ENDS), *range(shape.Sq - ENDS, shape.Sq))
    rows = torch.cat([host.grid_rows([b], [h], q) for b, h in at])
    return tuple(Grid(rows, first, min(shape.Skv, LONG)) for first in sorted({0, max(0, shape.Skv - LONG)}))


# -- compiling ------------------------------------------------------------------------------------------------------------
def build(subject: Subject, what: str, width: int, device: Device, options: str = "") -> Any:
    """The function, compiled for the CPU or as a kernel; the latter needs no GPU when `options` name an architecture.

    The result takes (leads, out, rows, captures, first, keys, count of cells), tensors as torch's.
    """
    form, on_cpu = FORMS[what], device == "host"

    def like(kind: Any, dtype: torch.dtype, *shape: int) -> Any:
        if on_cpu:
            return from_dlpack(torch.zeros(shape, dtype=dtype), enable_tvm_ffi=True).mark_layout_dynamic()
        return make_fake_tensor(kind, (cute.sym_int(), *shape[1:]), stride=(*shape[1:], 1))  # on a GPU that need not be there

    leads = tuple(like(cutlass.Float32, torch.float32, 2) for _ in range(form.reads)) or None
    tensors = (leads, like(form.stored, form.dtype, 2), like(cutlass.Int32, torch.int32, 2, 3))
    captures, zero = host.captures(subject.program.tables, subject.program.scalars), cutlass.Int32(0)
    kernel = conform_kernels.on_host if on_cpu else conform_kernels.on_device
    stream = () if on_cpu else (make_fake_stream(use_tvm_ffi_env_stream=True),)
    mod = getattr(host.load(subject.text), what)
    return cute.compile(kernel, mod, *tensors, captures, zero, zero, zero, *stream, width, options=f"--enable-tvm-ffi {options}")


def machine_code(subject: Subject, what: str, width: int, arch: str) -> tuple[str, bytes]:
    """PTX and cubin for an architecture ("sm_100a"); no GPU needed. A text that crashes the compiler ends the process."""
    with tempfile.TemporaryDirectory(prefix="cute_lab-") as folder:
        made = build(subject, what, width, "cuda", f"--gpu-arch {arch} --keep-ptx --keep-cubin --dump-dir {folder}")
        return str(made.__ptx__), bytes(made.__cubin__)


# -- running --------------------------------------------------------------------------------------------------------------
def launch(function: Any, subject: Subject, what: str, width: int, grid: Grid, device: Device) -> torch.Tensor:
    """The compiled function over a grid: float32, or uint8 for masks, [R, keys], on the CPU."""
    form, place = FORMS[what], torch.device("cpu" if device == "host" else device)
    chunks = -(-grid.keys // width)
    columns = torch.arange(chunks * width).clamp(max=grid.keys - 1)  # rows are padded to whole vectors, by cells of their own
    scores, grads = grid.inputs
    leads = tuple(x[:, columns].contiguous().view(-1).to(place) for x in (grads, scores)[2 - form.reads :]) or None
    count, words = len(grid.rows) * chunks, max(1, width // WORD) if form.dtype == torch.uint32 else width
    size = count * words * form.dtype.itemsize
    memory = torch.full((size + GUARD,), form.blank, dtype=torch.uint8, device=place)
    tables = [dataclasses.replace(t, tensor=moved(t.tensor, place)) for t in subject.program.tables]  # held here: addresses are passed
    captures = host.captures(tables, subject.program.scalars)
    function(leads, memory[:size].view(form.dtype), grid.rows.to(place), captures, grid.first, grid.keys, count)
    found = memory.cpu()
    if bool((found[size:] != form.blank).any()):
        raise AssertionError(f"{what} at width {width} wrote behind the end of its result")
    cells = found[:size].view(torch.int32 if form.dtype == torch.uint32 else form.dtype).view(count, words)
    if form.dtype == torch.uint32:
        cells = ((cells[:, :, None] >> torch.arange(min(width, WORD))) & 1).to(torch.uint8)
    return cells.reshape(len(grid.rows), chunks * width)[:, : grid.keys]


def run(lab: Lab | Subject, width: int, what: str, b: int, h: int, device: Device = "cuda") -> torch.Tensor:
    """One function over all positions of one (b, h): [Sq, Skv] float32, or uint8 0 and 1 for a mask."""
    subject = lab if isinstance(lab, Subject) else Subject.of(lab)
    grid = Grid(host.grid_rows([b], [h], range(subject.shape.Sq)), 0, subject.shape.Skv)
    legal(subject, what, grid)
    return launch(build(subject, what, width, device), subject, what, width, grid, device)


# -- comparing ------------------------------------------------------------------------------------------------------------
def legal(subject: Subject, what: str, grid: Grid) -> None:
    """Raises where an index would read outside of a captured tensor, before it does."""
    scores = None if FORMS[what].kind == "mask" else grid.inputs[0]
    illegal.strike(subject.graph(what), subject.program, subject.shape, grid.rows, grid.kv, scores)


def expected(subject: Subject, what: str, grid: Grid, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """torch's own values."""
    if FORMS[what].kind == "mask":
        return reference.mask(subject.mods["mask"], grid.rows, grid.kv)
    scores, grads = (x.to(dtype) for x in grid.inputs)
    if what == "score_mod":
        return reference.score(subject.mods["score"], scores, grid.rows, grid.kv)
    return reference.grad(subject.mods["score"], grads, scores, grid.rows, grid.kv)


def compare(subject: Subject, what: str, grid: Grid, got: torch.Tensor, right: torch.Tensor, limit: float) -> Check:
    words = f"{len(grid.rows)} rows, keys {grid.first} to {grid.first + grid.keys - 1}"
    found = verify.compare(what, got, right, grid.rows, grid.kv, limit, words)
    if found.ok or FORMS[what].kind == "mask":
        return found
    return verify.with_noise(found, right, expected(subject, what, grid, torch.float64))


def check(
    lab: Lab | Subject,
    widths: Sequence[int] = WIDTHS,
    device: Device = "cuda",
    where: Sequence[Grid] | None = None,
    done: Callable[[Conformance], None] = lambda row: None,
) -> list[Conformance]:
    """Every function at every width against torch; `done` hears of each as it comes."""
    subject = lab if isinstance(lab, Subject) else Subject.of(lab)
    places = tuple(where) if where is not None else grids(subject.shape)
    rows: list[Conformance] = []
    right: dict[str, list[torch.Tensor]] = {}
    for what, width in plan(subject, widths):
        start = time.perf_counter()
        limit = max(verify.tolerance(subject.graph(what)), GPU_TOLERANCE if device == "cuda" else 0.0)
        worst, error = None, ""
        try:
            if what not in right:
                for grid in places:
                    legal(subject, what, grid)
                right[what] = [expected(subject, what, grid) for grid in places]
            function = build(subject, what, width, device)
            results = zip(places, right[what], strict=True)
            found = [compare(subject, what, g, launch(function, subject, what, width, g, device), r, limit) for g, r in results]
            worst = max(found, key=lambda c: (not c.ok, c.max_rel_error))
            worst = dataclasses.replace(worst, points=sum(c.points for c in found))
        except Exception as problem:  # recorded: a width that a compiler refuses is a result
            error = f"{type(problem).__name__}: {str(problem)[:400]}"
        rows.append(Conformance(what, width, worst, error, round(time.perf_counter() - start, 3)))
        done(rows[-1])
    return rows
