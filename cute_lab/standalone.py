"""What an exported module consists of beside its variant. The text below the line is copied into it; torch and flash-attn-4 suffice."""

# ---- copied from here on
import base64
import importlib
import math
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex


@dataclass(frozen=True)
class Sizes:
    """Up to `most` queries: the sparse block of queries x keys (None: this kernel skips none), and whether grouped heads share tiles."""

    most: int
    block: tuple[int, int] | None
    pack: bool | None


@dataclass(frozen=True)
class Kernel:
    """One direction on one generation of GPUs. `refused` says why there is none."""

    functions: dict[str, Any] = field(default_factory=dict)  # score_mod, score_mod_bwd, mask_mod: the generated CuTeDSL
    sizes: tuple[Sizes, ...] = ()
    refused: str = ""

    def at(self, queries: int) -> Sizes:
        return next(s for s in self.sizes if queries <= s.most)


@dataclass(frozen=True)
class Captured:
    """A captured tensor: its elements as they lie in memory, zlib and base64, and its layout in them."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    data: str


@dataclass(frozen=True)
class Spec:
    H: int
    Hkv: int
    D: int
    dtype: torch.dtype  # of the test
    batches: int | None  # at most, where a captured tensor has a row for each
    most: tuple[int, int]  # queries and keys that the generated code was proved for, and the captured tensors reach
    tried: tuple[int, int]  # those of the test
    kernels: dict[int, dict[str, Kernel]]  # by compute capability: 9 Hopper, 10 Blackwell
    captured: tuple[Captured, ...]
    addresses: int  # of the first so many of them the kernels take the address
    scalars: tuple[tuple[str, Callable[[dict[str, Any]], Any]], ...]  # type and value of the kernels' run-time numbers
    reads: tuple[bool, bool]  # does the mask depend on the batch entry, on the head?
    window: tuple[float, float] | None  # kv - q where the mask keeps, if that is all it asks: FlashAttention-4's own mask is faster


@contextmanager
def eager() -> Iterator[None]:
    """FlexAttention's own mode for `table[index]` with tensors as indices; quiet where vmap loops."""
    with TransformGetItemToIndex(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop")
        yield


class Variant(nn.Module):
    """attention(q, k, v): q [B, H, Sq, D], k and v [B, Hkv, Skv, D] -> [B, H, Sq, D]; q, k and v get gradients, captured tensors none.

    On a GPU the generated kernel in bf16 or fp16; on the CPU the eager evaluation, in float32. `numbers` may be changed at any time.
    """

    spec: Spec
    numbers: dict[str, Any]

    def __init__(self, **numbers: Any) -> None:
        super().__init__()
        self.numbers = numbers
        self._lists: dict[Any, Any] = {}
        for t in self.spec.captured:
            raw = bytearray(zlib.decompress(base64.b64decode(t.data)))
            self.register_buffer(t.name, torch.frombuffer(raw, dtype=torch.uint8).clone().view(t.dtype))

    def functions(self) -> tuple[Any, Any]:
        """score_mod and mask_mod as they were written, or None; each exported class has its own."""
        return None, None

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Moves; `.half()` and the like must not change what the kernels read by address."""
        before = {t.name: getattr(self, t.name) for t in self.spec.captured}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            if getattr(self, name).dtype != old.dtype:
                setattr(self, name, old.to(getattr(self, name).device))
        return self

    def tensors(self) -> dict[str, torch.Tensor]:
        """The captured tensors as the functions read them."""
        return {t.name: getattr(self, t.name).as_strided(t.shape, t.stride) for t in self.spec.captured}

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None) -> torch.Tensor:
        self._check(q, k, v)
        scale = 1 / math.sqrt(self.spec.D) if scale is None else scale
        if q.device.type != "cuda":
            return self.eager(q, k, v, scale).to(q.dtype)
        rows = [x.transpose(1, 2) for x in (q, k, v)]
        with torch.cuda.device(q.device):
            return FlashAttention.apply(self, scale, *(x if x.stride(-1) == 1 else x.contiguous() for x in rows)).transpose(1, 2)  # type: ignore[no-untyped-call, no-any-return]

    def _check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        s = self.spec
        sizes, wanted = (q.shape[1], k.shape[1], q.shape[3], k.shape[3]), (s.H, s.Hkv, s.D, s.D)
        if sizes != wanted or k.shape[:3] != v.shape[:3] or q.shape[0] != k.shape[0]:
            raise ValueError(f"q is [B, {s.H}, Sq, {s.D}], k and v are [B, {s.Hkv}, Skv, {s.D}], not {[list(x.shape) for x in (q, k, v)]}")
        if s.batches is not None and q.shape[0] > s.batches:
            raise ValueError(f"the captured tensors have {s.batches} batch entries, not {q.shape[0]}: export the variant at that size")
        if q.shape[2] > s.most[0] or k.shape[2] > s.most[1]:
            most = f"at most {s.most[0]:,} queries and {s.most[1]:,} keys"
            raise ValueError(f"this variant takes {most}, not {q.shape[2]:,} and {k.shape[2]:,}: export it at that size")
        moved = [t.name for t in s.captured if getattr(self, t.name).device != q.device]
        if moved:
            raise ValueError(f"{moved[0]} is on {getattr(self, moved[0]).device}, q on {q.device}: module.to(q.device)")

    # -- the kernel -------------------------------------------------------------------------------------------------------
    def kernel(self, device: torch.device, direction: str) -> Kernel:
        major = torch.cuda.get_device_capability(device)[0]
        if major not in self.spec.kernels:
            raise RuntimeError(f"exported for compute capabilities {sorted(self.spec.kernels)}, not {major}")
        found = self.spec.kernels[major][direction]
        if found.refused:
            raise RuntimeError(f"{direction} on compute capability {major}: {found.refused}")
        return found

    def arguments(self, kernel: Kernel, direction: str, Sq: int, Skv: int, batches: int, device: torch.device) -> dict[str, Any]:
        """What `_flash_attn_fwd` and `_flash_attn_bwd` take for this variant."""
        cutlass = importlib.import_module("cutlass")
        functions = dict(kernel.functions)
        window = self.native(Sq, Skv)
        if window is not None:
            functions.pop("mask_mod", None)
        left, right = window or (None, None)
        causal = window is not None and left is None and right == 0
        kinds = {"i32": cutlass.Int32, "f32": cutlass.Float32}
        scalars = [cutlass.Int64(getattr(self, t.name).data_ptr()) for t in self.spec.captured[: self.spec.addresses]]
        scalars += [kinds[kind](value(self.numbers)) for kind, value in self.spec.scalars]
        block = kernel.at(Sq).block
        lists = self.lists(block, direction, Sq, Skv, batches, device) if block and "mask_mod" in functions else None
        ends = {"causal": causal, "window_size_left": left, "window_size_right": None if causal else right}
        return {**functions, **ends, "aux_scalars": tuple(scalars) if functions and scalars else None, "block_sparse_tensors": lists}

    def native(self, Sq: int, Skv: int) -> tuple[int | None, int | None] | None:
        """The window that FlashAttention-4 has built in, counted from the diagonal that ends at the last query and key."""
        if self.spec.window is None:
            return None
        (lo, hi), end = self.spec.window, Skv - Sq
        sides = None if lo <= -Sq else -lo + end, None if hi >= Skv else hi - end
        return None if any(s is not None and s < 0 for s in sides) else tuple(None if s is None else int(s) for s in sides)  # type: ignore[return-value]

    def lists(self, block: tuple[int, int], direction: str, Sq: int, Skv: int, batches: int, device: torch.device) -> Any:
        """FlashAttention-4's block lists at these lengths, made by running the mask's own function; kept until something changes."""
        held = tuple((getattr(self, t.name).data_ptr(), getattr(self, t.name)._version) for t in self.spec.captured)
        key = (block, direction, Sq, Skv, batches, device, held, tuple(self.numbers.items()))
        if key not in self._lists:
            kinds = self.blocks(block, Sq, Skv, batches, device)
            kinds = kinds.transpose(-1, -2) if direction == "backward" else kinds
            parts = [part for kind in (1, 2) for part in listed(kinds == kind)]
            made = importlib.import_module("flash_attn.cute.block_sparsity").BlockSparseTensorsTorch(*parts, block_size=block)
            self._lists = {**dict(list(self._lists.items())[-7:]), key: made}
        return self._lists[key]

    @torch.no_grad()
    def blocks(self, block: tuple[int, int], Sq: int, Skv: int, batches: int, device: torch.device) -> torch.Tensor:
        """uint8 [Bm, Hm, nq, nkv]: 0 empty, 1 partial, 2 full; what reaches beyond the end is never full."""
        mask_mod, (by_batch, by_head) = self.functions()[1], self.spec.reads
        nq, nkv = -(-Sq // block[0]), -(-Skv // block[1])
        kinds = torch.empty((batches if by_batch else 1, self.spec.H if by_head else 1, nq, nkv), dtype=torch.uint8, device=device)
        step = block[0] * max(1, (1 << 24) // (block[0] * Skv))
        for b in range(kinds.shape[0]):
            for h in range(kinds.shape[1]):
                for first in range(0, Sq, step):
                    rows = torch.arange(first, min(first + step, Sq), dtype=torch.int32, device=device)
                    keep = over(mask_mod, None, b, h, rows, Skv).expand(len(rows), Skv)
                    keep = nn.functional.pad(keep, (0, nkv * block[1] - Skv, 0, -len(rows) % block[0]))
                    counts = keep.view(-1, block[0], nkv, block[1]).sum((1, 3))
                    kinds[b, h, first // block[0] :][: len(counts)] = (counts > 0).to(torch.uint8) + (counts == block[0] * block[1])
        for dim in (0, 1):
            kinds = kinds.narrow(dim, 0, 1) if bool((kinds == kinds.narrow(dim, 0, 1)).all()) else kinds
        return kinds

    # -- the eager evaluation ---------------------------------------------------------------------------------------------
    def eager(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        scale: float | None = None,
        rows: torch.Tensor | None = None,
        rounded: torch.dtype | None = None,
    ) -> torch.Tensor:
        """float32 [B, H, rows, Dv] by the functions as they were written. `rounded` rounds the probabilities, as a kernel does."""
        score_mod, mask_mod = self.functions()
        scale = 1 / math.sqrt(self.spec.D) if scale is None else scale
        rows = torch.arange(q.shape[2], device=q.device) if rows is None else rows
        group, out = q.shape[1] // k.shape[1], []
        for b, h in ((b, h) for b in range(q.shape[0]) for h in range(q.shape[1])):
            scores = q[b, h, rows].float() @ k[b, h // group].float().T * scale
            if score_mod is not None:
                scores = over(score_mod, scores, b, h, rows.to(torch.int32), k.shape[2]).to(torch.float32)
            if mask_mod is not None:
                scores = torch.where(over(mask_mod, None, b, h, rows.to(torch.int32), k.shape[2]), scores, float("-inf"))
            none = (scores == float("-inf")).all(-1, keepdim=True)
            weights = scores.masked_fill(none, 0.0).softmax(-1).masked_fill(none, 0.0)
            out.append((weights if rounded is None else weights.to(rounded).float()) @ v[b, h // group].float())
        return torch.stack(out).view(*q.shape[:2], len(rows), v.shape[3])


def over(mod: Any, scores: torch.Tensor | None, b: int, h: int, rows: torch.Tensor, keys: int) -> torch.Tensor:
    """A mod at rows x all keys of one head, vectorised by vmap as FlexAttention does it."""
    lead, given = ((), ()) if scores is None else ((0,), (scores,))
    at = (torch.tensor(x, dtype=torch.int32, device=rows.device) for x in (b, h))
    inner = torch.vmap(mod, in_dims=(*lead, None, None, None, 0))
    with eager():
        found: torch.Tensor = torch.vmap(inner, in_dims=(*lead, None, None, 0, None))(
            *given, *at, rows, torch.arange(keys, dtype=torch.int32, device=rows.device)
        )
    return found


def listed(dense: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """bool [..., n, m] -> how many blocks each row has int32 [..., n], and their columns int32 [..., n, longest row]."""
    counts = dense.sum(-1)
    order = dense.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)[..., : max(1, int(counts.max()))]
    # A sort keeps the strides of a transposed tensor, and contiguous() those of a dimension of 1; FlashAttention-4 takes neither.
    counts, order = (x.to(torch.int32).clone(memory_format=torch.contiguous_format) for x in (counts, order))
    return counts, order


class FlashAttention(torch.autograd.Function):
    """q [B, Sq, H, D], k and v [B, Skv, Hkv, D]. The functions behind `flash_attn_func`, since the directions take different texts."""

    @staticmethod
    def forward(ctx: Any, module: Variant, scale: float, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        kernel = module.kernel(q.device, "forward")
        arguments = module.arguments(kernel, "forward", q.shape[1], k.shape[1], q.shape[0], q.device)
        fa4 = importlib.import_module("flash_attn.cute.interface")
        pack = kernel.at(q.shape[1]).pack if any(name in arguments for name in kernel.functions) else None
        out, lse, *_ = fa4._flash_attn_fwd(
            q, k, v, softmax_scale=scale, return_lse=True, pack_gqa=pack, **_without(arguments, "score_mod_bwd")
        )
        ctx.module, ctx.scale = module, scale
        ctx.save_for_backward(q, k, v, out, lse)
        return out  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, d_out: torch.Tensor) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        module: Variant = ctx.module
        arguments = module.arguments(module.kernel(q.device, "backward"), "backward", q.shape[1], k.shape[1], q.shape[0], q.device)
        fa4 = importlib.import_module("flash_attn.cute.interface")
        dq, dk, dv, *_ = fa4._flash_attn_bwd(q, k, v, out, d_out.contiguous(), lse, ctx.scale, **arguments)
        return None, None, dq, dk, dv


def _without(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    return {n: value for n, value in arguments.items() if n != name}
