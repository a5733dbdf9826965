"""FlashAttention-4's kernel with generated mods, compiled without a GPU: fake CUDA tensors and a patched cute.compile.

Runs in the worker's processes only: it sets the DSL's architecture and replaces what would ask a driver.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import os
import sys
import types
from pathlib import Path
from typing import Any

from cute_lab.brisk import imported, remember
from cute_lab.targets import Target, block_for

OPTIONS = " --keep-ptx --keep-cubin --generate-line-info --dump-dir "
HELPERS = ("Preprocess", "Postprocess")  # kernels around the backward one: no mod in them, 0.7 s each
TILE_FIELDS = (("tile_m", "tile_n"), ("m_block_size", "n_block_size"), ("tile_m_dkdv", "tile_n_dkdv"))
AUX_FIELDS = {"align": "__assumed_align__", "leading_dim": "__leading_dim__"}


def preload() -> None:
    if importlib.util.find_spec("triton") is None:
        # quack imports triton and derives from one class; compiling calls none of it. Dynamo first: it probes triton.
        importlib.import_module("torch._dynamo")
        stub: Any = types.ModuleType("triton")
        stub.runtime = types.SimpleNamespace(cache=types.SimpleNamespace(FileCacheManager=object))
        sys.modules["triton"] = stub
    importlib.import_module("flash_attn.cute.interface")
    importlib.import_module("torch._subclasses.fake_tensor")
    gc.collect()
    remember()
    gc.disable()  # a child lives for one kernel: collecting costs it half a second of eight
    gc.freeze()  # keeps the collector from touching, and so copying, the pages shared with the children


def load_mods(spec: dict[str, Any], filename: str) -> dict[str, Any]:
    """The @cute.jit functions of the generated text, which is no file on disk: the DSL reads it from linecache."""
    source = spec["source"]
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": filename}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102
    mods = {name: namespace[name] for name in spec["functions"]}
    for name, mod in mods.items():
        mod.__cute_hash__ = hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()
    for name, size in (("score_mod", spec["score_vec"]), ("mask_mod", spec["mask_vec"])):
        if size is not None and name in mods:
            mods[name].__vec_size__ = size
    return mods


def compile_cubin(spec: dict[str, Any], target: Target, direction: str, filename: str, folder: Path) -> tuple[Any, Any]:
    """FA4's kernel object and the compiled function: fake CUDA tensors, and a cute.compile that only compiles."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    cutlass, cute, fa4 = (imported(name) for name in ("cutlass", "cutlass.cute", "flash_attn.cute.interface"))
    # FA4's constructors ask the DSL for the arch before they compile: `--gpu-arch` alone is too late.
    imported("cutlass.base_dsl.dsl").BaseDSL._get_dsl().envar.arch = target.cute_arch
    fa4._get_device_arch = lambda: target.fa_arch
    os.environ["FLASH_ATTENTION_NUM_SMS"] = str(target.num_sms)
    # The real one asks the driver, which is absent here.
    cutlass.utils.HardwareInfo = lambda device_id=0: types.SimpleNamespace(
        get_max_active_clusters=lambda cluster_size, stream=None: target.num_sms // cluster_size,
        get_device_multiprocessor_count=lambda: target.num_sms,
    )
    compiled: list[tuple[Any, Any]] = []
    original = cute.compile

    def compile_only(kernel: Any, *args: Any, options: str | None = None, **kwargs: Any) -> None:
        if not any(word in type(kernel).__name__ for word in HELPERS):
            given = (options or "") + OPTIONS + str(folder)
            compiled.append((kernel, original(kernel, *args, options=given, no_jit_engine=True, **kwargs)))  # nothing runs here

    cute.compile = compile_only
    mods = load_mods(spec, filename)
    B, H, Hkv, Sq, Skv, D = (spec[name] for name in ("B", "H", "Hkv", "Sq", "Skv", "D"))
    Dv = spec["Dv"] or D
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[spec["dtype"]]
    forward = direction == "forward"
    with FakeTensorMode():

        def empty(*shape: int, dtype: Any = dtype) -> Any:
            return torch.empty(*shape, dtype=dtype, device="cuda")

        def aux(row: dict[str, Any]) -> Any:
            tensor = torch.empty_strided(row["shape"], row["stride"], dtype=getattr(torch, row["dtype"]), device="cuda")
            for name in ("align", "leading_dim"):
                if row[name] is not None:
                    setattr(tensor, AUX_FIELDS[name], row[name])
            return tensor

        common: dict[str, Any] = {name: mods.get(name) for name in ("score_mod", "mask_mod")}
        common["aux_tensors"] = [aux(row) for row in spec["aux"]] or None
        common["aux_scalars"] = tuple(getattr(cutlass, name)(0) for name in spec["scalars"]) or None
        if "mask_mod" in mods and spec["block_sparse"]:
            block = tuple(spec["block"] or block_for(target, D, Sq, Dv, direction, H // Hkv))
            nq, nkv = -(-Sq // block[0]), -(-Skv // block[1])
            rows, columns = (nq, nkv) if forward else (nkv, nq)  # backward walks the transposed lists
            counts = [empty(spec["sparse_batch"], spec["sparse_heads"], rows, dtype=torch.int32) for _ in range(2)]
            indices = [empty(*counts[0].shape, columns, dtype=torch.int32) for _ in range(2)]
            common["block_sparse_tensors"] = fa4.BlockSparseTensorsTorch(counts[0], indices[0], counts[1], indices[1], block_size=block)
        q, k, v = empty(B, Sq, H, D), empty(B, Skv, Hkv, D), empty(B, Skv, Hkv, Dv)
        if forward:
            fa4._flash_attn_fwd(q, k, v, pack_gqa=spec["pack_heads"], **common)
        else:
            out, dout = empty(B, Sq, H, Dv), empty(B, Sq, H, Dv)
            lse = empty(B, H, Sq, dtype=torch.float32)
            fa4._flash_attn_bwd(q, k, v, out, dout, lse, score_mod_bwd=mods.get("score_mod_bwd"), **common)
    return compiled[0]


def tile_of(kernel: Any) -> tuple[int, int]:
    """Rows and columns of the kernel's tile; FA4's classes have three spellings."""
    fields = vars(kernel)
    m, n = next(names for names in TILE_FIELDS if names[0] in fields)
    return fields[m], fields[n]


def folded_places() -> dict[tuple[str, int], str]:
    """FA4 lines that take over a mod's arithmetic, and the mod.

    A mod that works on one value at a time ends in `vec[0]`; MLIR turns `extract(op(a, b))` into `op(extract(a),
    extract(b))` all the way up and gives each new op the line of the extract. (Two values at a time keep theirs.)
    """
    softmax, utils = imported("flash_attn.cute.softmax"), imported("flash_attn.cute.utils")
    places: dict[tuple[str, int], str] = {}
    for function, start, mod in (
        (utils.ssa_to_scalar, "return val", "mask_mod"),
        (softmax.apply_score_mod_inner, "score_vec.store(", "score_mod"),
        (softmax.apply_score_mod_bwd_inner, "grad_vec.store(", "score_mod_bwd"),
    ):
        plain = inspect.unwrap(function)
        lines, first = inspect.getsourcelines(plain)
        at = next(i for i, line in enumerate(lines) if line.strip().startswith(start))
        places.update({(plain.__code__.co_filename, first + i): mod for i in range(at, len(lines))})
    return places
