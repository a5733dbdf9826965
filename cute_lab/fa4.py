"""FlashAttention-4 with a generated variant on a GPU: forward, backward, native masks, block lists, run-time numbers.

The same two functions as Inductor's backend (`_flash_attn_fwd`, `_flash_attn_bwd`) rather than `flash_attn_func`: the public one
passes one score_mod to both directions, and SM90's backward kernel needs another text than its forward (see cutedsl.Guard).
Every kernel is found by the hash of its text; captured tensors are passed by address and numbers by value, so neither can be stale.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import math
import types
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from cute_lab import host, native, sparse
from cute_lab.crosscompile import load_mods
from cute_lab.errors import DeviceMissing, GeometryError, OptionError
from cute_lab.tables import as_stored, moved
from cute_lab.targets import TARGETS, Target, skips_blocks

if TYPE_CHECKING:
    from cute_lab.ir import Program
    from cute_lab.lab import Lab

UNBOUNDED = native.Window(None, None)


@functools.cache
def interface() -> types.ModuleType:
    return importlib.import_module("flash_attn.cute.interface")


@functools.cache
def target_of(device: torch.device) -> Target:
    """The row of this GPU; FlashAttention-4 chooses its kernel by the compute capability's major number."""
    if device.type != "cuda":
        raise DeviceMissing(f"{device} is no NVIDIA GPU", example="q.cuda()")
    major, minor = torch.cuda.get_device_capability(device)
    rows = [t for t in TARGETS.values() if t.fa_arch // 10 == major]
    if not rows:
        known = ", ".join(f"{t.name}" for t in TARGETS.values())
        raise GeometryError(f"no FlashAttention-4 kernel takes mods on compute capability {major}.{minor}", detail=f"Known: {known}.")
    capability = 10 * major + minor
    return next((t for t in rows if capability == t.fa_arch), rows[0])


@dataclass(frozen=True)
class Direction:
    """One direction's generated functions and block lists; the arguments that both kernels share."""

    mods: dict[str, Any]
    lists: Any = None
    window: native.Window = UNBOUNDED
    text: str = ""
    pack: bool | None = None  # grouped heads in one tile, see targets.packs_heads


@dataclass
class Kernel:
    """A variant, ready for one device. `note` says what runs: "native causal", "block-sparse 128x128"."""

    shape: Any
    device: torch.device
    forward: Direction
    backward: Direction | GeometryError
    scalars: tuple[Any, ...]
    note: str
    keep: list[torch.Tensor] = field(default_factory=list)  # what the addresses point to

    def arguments(self, direction: Direction) -> dict[str, Any]:
        window = direction.window
        return {
            **{name: mod for name, mod in direction.mods.items() if name != "score_mod_bwd"},
            "causal": window.causal,
            "window_size_left": window.left,
            "window_size_right": None if window.causal else window.right,
            "aux_scalars": self.scalars or None,
            "block_sparse_tensors": direction.lists,
        }


def captures(program: Program, device: torch.device) -> tuple[tuple[Any, ...], list[torch.Tensor]]:
    """aux_scalars for this device: addresses of the captured tensors there, then the run-time numbers. And what holds the memory."""
    sources = [t.original if t.source is None else t.source for t in program.tables]
    placed = [
        replace(t, tensor=as_stored(x if x.device == device else moved(x, device))) for t, x in zip(program.tables, sources, strict=True)
    ]
    return host.captures(placed, program.scalars) or (), [t.tensor for t in placed]


@functools.lru_cache(maxsize=256)
def load(text: str, functions: tuple[str, ...], score_vec: int | None, mask_vec: int | None) -> dict[str, Any]:
    """The functions of a text, once: FlashAttention-4 finds its kernel by their hash."""
    spec = {"source": text, "functions": functions, "score_vec": score_vec, "mask_vec": mask_vec}
    return load_mods(spec, f"<cute_lab:{hashlib.sha256(text.encode()).hexdigest()[:12]}>")


def direction_of(
    lab: Lab, program: Program, target: Target, device: torch.device, direction: str, window: native.Window | None
) -> Direction:
    """`window` replaces the mask_mod by FlashAttention-4's own mask."""
    s = lab.shape
    spec = lab.spec(target.name, direction)
    mods = load(spec.source, spec.functions, spec.score_vec, spec.mask_vec)
    if window is not None:
        return Direction({n: m for n, m in mods.items() if n != "mask_mod"}, None, window, spec.source, spec.pack_heads)
    lists = None
    if program.mask is not None and skips_blocks(target, s.D, s.Sq, direction, s.H // s.Hkv):
        block = spec.block or lab.block_of(target.name, direction)
        lists = sparse.lists(lab.blocks(block), device, direction)
    return Direction(mods, lists, text=spec.source, pack=spec.pack_heads)


def is_identity(program: Program) -> bool:
    score = program.score
    return score is None or (score.output.op == "input" and score.output.attr == "score")


def prepare(lab: Lab, device: torch.device, use_native: bool = True) -> Kernel:
    """The lab's variant for this device, from what its mods capture now. Compiles nothing yet: FlashAttention-4 does at the first call.

    `use_native` takes FlashAttention-4's own causal or window mask where the IR proves that the mask is one: measured faster.
    """
    target = target_of(device)
    program = lab.graph
    window = native.window(program, lab.shape) if use_native else None
    if program.mask is None:
        window = native.Window(None, None)
    forward = direction_of(lab, program, target, device, "forward", window)
    backward: Direction | GeometryError
    try:
        backward = direction_of(lab, program, target, device, "backward", window)
    except GeometryError as error:
        backward = error
    if is_identity(program):  # a score_mod that changes nothing costs a tenth of the speed
        forward = _without_score(forward)
        backward = backward if isinstance(backward, GeometryError) else _without_score(backward)
    scalars, keep = captures(program, device)
    has_mods = bool(forward.mods)
    return Kernel(lab.shape, device, forward, backward, scalars if has_mods else (), _note(forward, program), keep)


def _without_score(d: Direction) -> Direction:
    return Direction({n: m for n, m in d.mods.items() if not n.startswith("score")}, d.lists, d.window, d.text, d.pack)


def _note(forward: Direction, program: Program) -> str:
    if "mask_mod" not in forward.mods:
        return str(forward.window) if program.mask is not None else "dense"
    block = forward.lists.block_size if forward.lists is not None else None
    return f"block-sparse {block[0]}×{block[1]}" if block else "mask on every tile"


class Attention(torch.autograd.Function):
    """q [B, Sq, H, D], k, v [B, Skv, Hkv, D] -> out [B, Sq, H, Dv], lse float32 [B, H, Sq] (natural logarithm)."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> Any:
        arguments = kernel.arguments(kernel.forward)
        pack = kernel.forward.pack if kernel.forward.mods else None  # without mods FlashAttention-4 knows best
        out, lse, *_ = interface()._flash_attn_fwd(q, k, v, softmax_scale=scale, return_lse=True, pack_gqa=pack, **arguments)
        ctx.kernel, ctx.scale = kernel, scale
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, d_out: torch.Tensor | None, d_lse: torch.Tensor | None) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        kernel: Kernel = ctx.kernel
        if isinstance(kernel.backward, GeometryError):
            raise kernel.backward
        arguments = kernel.arguments(kernel.backward)
        found = interface()._flash_attn_bwd(
            q,
            k,
            v,
            out,
            torch.zeros_like(out) if d_out is None else d_out,
            lse,
            ctx.scale,
            score_mod_bwd=kernel.backward.mods.get("score_mod_bwd"),
            dlse=d_lse,
            **arguments,
        )
        return None, *found[:3], None


def attend(kernel: Kernel, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    """q [B, H, Sq, D], k and v [B, Hkv, Skv, D], views of any order -> (out [B, H, Sq, Dv], lse float32 [B, H, Sq])."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dtype not in (torch.bfloat16, torch.float16):
            raise OptionError(
                f"{name} is {str(x.dtype).removeprefix('torch.')}: FlashAttention-4 takes bf16 and fp16 with mods",
                example=f"{name}.to(torch.bfloat16)",
            )
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    inputs = (_rows(x.transpose(1, 2)) for x in (q, k, v))
    with torch.cuda.device(kernel.device):
        out, lse = Attention.apply(kernel, *inputs, scale)  # type: ignore[no-untyped-call]
    return out.transpose(1, 2), lse


def _rows(x: torch.Tensor) -> torch.Tensor:
    """FlashAttention-4 reads any strides with a contiguous head dimension."""
    return x if x.stride(-1) == 1 else x.contiguous()
