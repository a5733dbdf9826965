"""Shapes and tensors at the border: what a person may pass, and the error that says what to pass instead."""

from __future__ import annotations

import difflib
import operator
from typing import Any

import torch

from cute_lab.errors import OptionError
from cute_lab.record import Shape

DTYPES = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "f16": "fp16", "float16": "fp16"}
CELLS = 1 << 28  # apply_* makes no larger result: 1 GiB of float32


def checked(B: int, H: int, Hkv: int | None, Sq: int, Skv: int | None, D: int, dtype: str) -> Shape:
    """The shape, with Hkv = H and Skv = Sq where they are None."""
    given = {"B": B, "H": H, "Hkv": H if Hkv is None else Hkv, "Sq": Sq, "Skv": Sq if Skv is None else Skv, "D": D}
    for what, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
            whole = max(1, int(value)) if isinstance(value, float) else 1
            raise OptionError(
                f"{what} must be a positive integer below 2**31, not {value!r}", example=f"{what}={whole}    # in a cell: --{what} {whole}"
            )
    if given["H"] % given["Hkv"]:
        fits = next(n for n in range(given["Hkv"], 0, -1) if given["H"] % n == 0)
        message = f"{given['H']} query heads can't share {given['Hkv']} key/value heads"
        raise OptionError(message, detail="H must be a multiple of Hkv.", example=f"Hkv={fits}    # in a cell: --Hkv {fits}")
    if dtype not in DTYPES:
        close = difflib.get_close_matches(str(dtype), DTYPES, n=1)
        raise OptionError(
            f"dtype {dtype!r} is no dtype of FlashAttention-4's kernels",
            detail="q, k and v are bf16 or fp16; scores are float32.",
            example=f"dtype={(close[0] if close else 'bf16')!r}",
        )
    return Shape(**given, dtype=DTYPES[dtype])


def fits(shape: Shape, rows: int, columns: int) -> None:
    """Refuses a dense result that would not fit into memory."""
    cells = shape.B * shape.H * rows * columns
    if cells > CELLS:
        raise OptionError(
            f"a result of {cells:,} cells is too large (at most {CELLS:,})",
            detail="Ask for a part, or for the block map: lab.blocks().",
            example="lab.apply_mask(q=slice(0, 256), kv=slice(0, 4096))",
        )


def scores(shape: Shape, given: torch.Tensor, what: str) -> torch.Tensor:
    """float32 [B, H, Sq, Skv] as rows [B H Sq, Skv]."""
    wanted = (shape.B, shape.H, shape.Sq, shape.Skv)
    fits(shape, shape.Sq, shape.Skv)
    if tuple(given.shape) != wanted:
        raise OptionError(f"{what} has shape {list(given.shape)}, this lab is for {list(wanted)}", example=f"{what} = torch.randn{wanted}")
    return given.detach().to("cpu", torch.float32).reshape(-1, shape.Skv).contiguous()


def attention_inputs(shape: Shape, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    s = shape
    wanted = {"q": (q, (s.B, s.H, s.Sq, s.D)), "k": (k, (s.B, s.Hkv, s.Skv, s.D)), "v": (v, (s.B, s.Hkv, s.Skv, s.D))}
    for name, (tensor, expected) in wanted.items():
        if tuple(tensor.shape) != expected and not (name == "v" and tuple(tensor.shape[:-1]) == expected[:-1]):
            sizes = "B=q.shape[0], H=q.shape[1], Hkv=k.shape[1], Sq=q.shape[2], Skv=k.shape[2], D=q.shape[3]"
            raise OptionError(
                f"{name} has shape {list(tensor.shape)}, this lab is for {list(expected)}",
                detail="The order is [batch, heads, length, head dim].",
                example=f"cute_lab.attention(..., {sizes})",
            )
        if tensor.dtype != q.dtype:
            to = str(q.dtype)
            raise OptionError(
                f"{name} is {str(tensor.dtype).removeprefix('torch.')}, q is {to.removeprefix('torch.')}", example=f"{name}.to({to})"
            )
        if tensor.device != q.device:
            raise OptionError(f"{name} is on {tensor.device}, q is on {q.device}", example=f"{name} = {name}.to(q.device)")


def block(size: Any) -> tuple[int, int]:
    """Checked; a number stands for both sides, and any integers will do."""
    sides = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if len(sides) != 2:
        raise OptionError(f"a block has rows and keys, not {len(sides)} sides", example="block=(128, 128)")
    found = []
    for what, value in zip(("rows", "keys"), sides, strict=True):
        try:
            number = operator.index(value)
        except TypeError:
            number = 0
        if isinstance(value, bool) or not 0 < number < 1 << 31:
            raise OptionError(f"a block must have a positive number of {what}, not {value!r}", example="block=(128, 128)")
        found.append(number)
    return found[0], found[1]
