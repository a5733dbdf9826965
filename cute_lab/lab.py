"""The lab of one attention variant: from two Python functions to generated code, its proof, its block map and its machine code."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from cute_lab import advice, applied, build, check, cutedsl, inspector, maps, packed, reports, shapes, sparse, stages, targets, verify
from cute_lab.blocks import BlockMap
from cute_lab.capture import Mod, Number
from cute_lab.errors import MissingMod, OptionError
from cute_lab.exporting import export
from cute_lab.generated import Generated
from cute_lab.ir import INPUTS, Program
from cute_lab.known_labs import remember
from cute_lab.live import Live
from cute_lab.record import Cell, Record, Shape
from cute_lab.trace import Traced

if TYPE_CHECKING:
    from cute_lab.panel import Panel

DEFAULT_TARGETS = ("sm_90a", "sm_100a")


def attention(
    score_mod: Mod | None = None,
    mask_mod: Mod | None = None,
    *,
    B: int = 1,
    H: int = 8,
    Hkv: int | None = None,
    Sq: int = 1024,
    Skv: int | None = None,
    D: int = 128,
    dtype: str = "bf16",
    target: str | Sequence[str] = "auto",
    params: Mapping[str, Number] | None = None,
    block: tuple[int, int] | None = None,
    fast_math: bool = False,
    name: str | None = None,
    cell: Cell | None = None,
) -> Lab:
    """A variant of attention, ready to look at.

    `score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b, h, q_idx, kv_idx)` are FlexAttention's; one of them may be None.
    B batch entries, H query heads, Hkv key/value heads (H), Sq queries, Skv keys (Sq), head dimension D, q/k/v dtype "bf16" or "fp16".
    `target` is "auto" (Hopper and Blackwell) or names like "sm_90a". `params` gives captured numbers other values. `block` is the
    sparse block (query rows, keys); None takes what the target's kernel uses. `fast_math` prints approximate functions and
    reciprocals. Raises CuteLabError with the user's line for what can't be lowered.
    """
    if score_mod is None and mask_mod is None:
        raise MissingMod()
    for given, what in ((score_mod, "score_mod"), (mask_mod, "mask_mod")):
        if given is not None and not callable(given):
            raise OptionError(
                f"{what} must be a function, not {type(given).__name__}",
                example=f"def {what}({', '.join(n for n, _ in INPUTS[what[:-4]])}): ...",
            )
    shape = shapes.checked(B, H, Hkv, Sq, Skv, D, dtype)
    names = DEFAULT_TARGETS if target == "auto" else () if target == "none" else (target,) if isinstance(target, str) else tuple(target)
    for t in names:
        targets.target_named(t)
    label = name or next(n for m in (score_mod, mask_mod) if m is not None and (n := getattr(m, "__name__", "variant")))
    return Lab(score_mod, mask_mod, shape, names, dict(params or {}), block, fast_math, label, cell)


class Lab:
    """One variant at one shape. Every verb follows the present values of what the mods capture: a changed number or list traces
    again (milliseconds), and compiled code is looked up by its text, so nothing stale can run."""

    def __init__(
        self,
        score_mod: Mod | None,
        mask_mod: Mod | None,
        shape: Shape,
        target_names: tuple[str, ...],
        params: Mapping[str, Number],
        block: tuple[int, int] | None,
        fast_math: bool,
        name: str,
        cell: Cell | None,
    ) -> None:
        self.score_mod, self.mask_mod, self.shape, self.targets = score_mod, mask_mod, shape, target_names
        self.block, self.fast_math, self.name, self.cell = block, fast_math, name, cell
        self.given = dict(params)
        self.live = Live(score_mod, mask_mod, shape, self.given, fast_math)
        check.program(self.program, shape)

    @property
    def traced(self) -> Traced:
        """The trace of what the captures hold now."""
        return self.live.now()

    _target = property(lambda self: str((self.targets or DEFAULT_TARGETS)[0]))

    @property
    def mods(self) -> dict[str, Mod]:
        """The functions with this lab's parameters in place of what they captured."""
        from cute_lab.capture import captured, ranges, with_numbers

        found = {"score": self.score_mod, "mask": self.mask_mod}
        return {
            kind: with_numbers(m, {n: v for n, v in self.given.items() if n in captured(m).numbers}) if self.given or ranges(m) else m
            for kind, m in found.items()
            if m is not None
        }

    @property
    def program(self) -> Program:
        """The program for what the captures hold now."""
        return self.traced.program

    @property
    def emitted(self) -> cutedsl.Source:
        return self._emit(self.program)

    def _emit(self, program: Program) -> cutedsl.Source:
        extra = {} if program.mask is None else packed.functions(program)
        return cutedsl.emit(program, extra, self.fast_math)

    @property
    def source(self) -> str:
        """The generated CuTeDSL: score_mod, score_mod_bwd, mask_mod and the packed mask for SM100, as far as there are such."""
        return self.emitted.text

    @property
    def graph(self) -> Program:
        """The typed IR; print it."""
        return self.program

    @property
    def fx(self) -> str:
        """torch's own make_fx graph of the mods, to compare with."""
        return stages.fx(self.mods)

    @property
    def params(self) -> dict[str, Number]:
        """The captured numbers by name, with their present values."""
        return dict(self.traced.numbers)

    @property
    def runtime(self) -> dict[str, Number]:
        """Those values that are passed at run time: changing one recompiles nothing."""
        return {s.name: s.value for s in self.program.scalars}

    def with_params(self, **values: Number) -> Lab:
        """The same variant with other values for captured numbers."""
        return self._like_this(params={**self.given, **values})

    def with_fast_math(self) -> Lab:
        """The same variant with approximate functions and reciprocals."""
        return self._like_this(fast_math=True)

    def with_shape(self, **sizes: int) -> Lab:
        """The same variant at other sizes. Skv follows Sq, and Hkv follows H, where they were equal."""
        from cute_lab.bench import shapes as swept

        return self._like_this(shape=swept(self.shape, sizes)[0])

    def _like_this(self, **other: Any) -> Lab:
        now: dict[str, Any] = {"shape": self.shape, "params": self.given, "fast_math": self.fast_math} | other
        return Lab(self.score_mod, self.mask_mod, target_names=self.targets, block=self.block, name=self.name, cell=self.cell, **now)

    # -- running the generated code on the CPU --------------------------------------------------------------------------
    def generated(self) -> Generated:
        """The generated functions for what the captures hold now."""
        return Generated.of(self.program, self.shape, self.fast_math)

    def apply_score(self, scores: torch.Tensor) -> torch.Tensor:
        """score_mod over float32 [B, H, Sq, Skv] by running the generated CuTeDSL; without a score_mod, the scores."""
        return applied.score(self, scores)

    def apply_score_grad(self, grad: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The generated backward: gradient of the modified scores -> gradient of the scores, both float32 [B, H, Sq, Skv]."""
        return applied.score_grad(self, grad, scores)

    def apply_mask(self, q: slice | None = None, kv: slice | None = None) -> torch.Tensor:
        """mask_mod over all positions, or over a slice of queries and keys: bool [B, H, len(q), len(kv)]; all True without one."""
        return applied.mask(self, q, kv)

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *,
        scale: float | None = None,
        return_lse: bool = False,
        tried: bool = True,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Attention with the generated code: q [B, H, Sq, D], k and v [B, Hkv, Skv, D] -> [B, H, Sq, D]; autograd works.

        CPU tensors: the generated code by the host JIT, any float dtype. CUDA tensors: FlashAttention-4, bf16 or fp16, forward and
        backward; a text that is new is compiled, run and checked in another process before it runs here (`tried=False` skips that).
        Scores are q @ k.T * scale (1 / sqrt(D)) in float32. `lse` is the natural logarithm of the row sums, float32 [B, H, Sq].
        """
        from cute_lab import running

        return running.run(self, q, k, v, scale, return_lse, tried)

    def bench(
        self,
        against: Iterable[str] | None = None,
        *,
        B: int | Sequence[int] | None = None,
        H: int | Sequence[int] | None = None,
        Hkv: int | Sequence[int] | None = None,
        Sq: int | Sequence[int] | None = None,
        D: int | Sequence[int] | None = None,
        directions: Sequence[str] = ("forward", "forward+backward"),
        rounds: int = 10,
        seed: int = 0,
        device: str | None = None,
        quiet: bool = False,
    ) -> Record:
        """Checks and times this variant beside its baselines on a GPU; sizes given as lists are swept. Stop keeps what is complete.

        `against` are names of cute_lab/baselines (all that need no minutes of tuning), `directions` of "forward", "backward" and
        "forward+backward", `rounds` samples per contender (0 only checks), `device` like "cuda:1", or "cpu", which times the host
        code and says nothing about a GPU. Returns the record with `bench` in it; raises DeviceMissing where there is no GPU.
        """
        from cute_lab import bench

        sweep = {"B": B, "H": H, "Hkv": Hkv, "Sq": Sq, "D": D}
        found = bench.bench(self, against, sweep, directions, rounds, seed, device, quiet)
        return dataclasses.replace(self.record(targets=()), bench=found)

    # -- proof, blocks, machine code ------------------------------------------------------------------------------------
    def verify(self) -> verify.Verification:
        """The generated code, run on the against torch's eager evaluation: every position of small grids, else a sample."""
        program = self.program
        check.program(program, self.shape)
        return verify.verify(program, cutedsl.emit(program, fast=self.fast_math).text, self.mods, self.shape)

    def blocks(self, block: tuple[int, int] | int | None = None) -> BlockMap:
        """The mask's block map at `block` (query rows, keys); None takes the first target's kernel's own block."""
        size = shapes.block(self.block or maps.default_block(self) if block is None else block)
        found: BlockMap = self.live.remember(("blocks", size), lambda: maps.of(self, size))
        return found

    def block_of(self, target: str, direction: str = "forward") -> tuple[int, int]:
        """The sparse block that FlashAttention-4's kernel for this target uses."""
        s = self.shape
        return targets.block_for(target, s.D, s.Sq, None, direction, s.H // s.Hkv)

    def block_sparse(self, device: str = "cuda", target: str | None = None, deterministic: bool = False) -> sparse.BlockSparse:
        """FlashAttention-4's block lists, (forward, backward), made on the device; GeometryError where no kernel takes any."""
        return sparse.tensors(self, device, target or self._target, deterministic)

    def inspect(self, target: str | None = None, compile: bool = False) -> inspector.Inspection:
        """What the mask costs and what would make it cheaper; `compile` predicts shares of time where nothing is compiled yet."""
        return inspector.inspect(self, target or self._target, compile)

    def advice(self, target: str | None = None, direction: str = "forward") -> list[targets.Advice]:
        """Before compiling: what this target refuses or what costs time, each with the fix."""
        return advice.for_target(self, target or self._target, direction)

    def geometry(self, target: str | None = None) -> str:
        """The target's tiles, legal sparse blocks and vector widths at this shape, in words; nothing is compiled."""
        return "\n".join(advice.geometry(self, t) for t in ([target] if target else self.targets))

    def compile(
        self, target: str | None = None, direction: str = "forward", *, timeout: float = 120.0, force: bool = False
    ) -> build.Artifact:
        """FlashAttention-4's kernel with this variant for a target, with no GPU: PTX, SASS, registers, spills, cost by line."""
        name = target or self._target
        targets.target_named(name)
        return build.compile_kernel(self.spec(name, direction), name, direction, timeout=timeout, force=force)

    def spec(self, target: str, direction: str = "forward") -> build.KernelSpec:
        return reports.spec(self.program, self.shape, targets.target_named(target), direction, self.block, self.fast_math)

    # -- the record -------------------------------------------------------------------------------------------------------
    def record(self, targets: Sequence[str] | None = None, backward: bool = False) -> Record:
        """Everything above, once, as plain data: verified, block map, compiled for the targets (side by side)."""
        made = reports.record(self, tuple(self.targets if targets is None else targets), backward, time.perf_counter())
        return remember(made, self)

    def show(self, *views: str | Sequence[str]) -> None:
        """Displays the named views of a new record; summary, mask and source without a name."""
        self.record().show(*(name for v in views for name in ([v] if isinstance(v, str) else v)))

    export = export

    def panel(self, retime: Callable[[Lab], str] | None = None) -> Panel:
        """Its sliders, to show and to move; the same ones until they are closed. `retime` times a Lab on the GPU, in words."""
        from cute_lab import panel

        return panel.of(self, retime)

    def __repr__(self) -> str:
        s = self.shape
        what = " and ".join(n for n, m in (("score_mod", self.score_mod), ("mask_mod", self.mask_mod)) if m is not None)
        heads = f"H{s.H}" + (f" Hkv{s.Hkv}" if s.Hkv != s.H else "")
        return f"<Lab {self.name}: {what}, B{s.B} {heads} Sq{s.Sq} Skv{s.Skv} D{s.D} {s.dtype}>"
