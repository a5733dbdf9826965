"""A generated mod over whole rows, V adjacent keys at a time: one cell text, as a loop on the CPU and as a kernel, a thread a cell.

Rows are padded to whole vectors, so cell n reads and writes at n V and nothing else; the lanes beyond a row's end look at its last
key again, so that no captured table is read outside (FlashAttention-4 wraps them to the row's start).
"""

import cutlass
from cutlass import cute

from cute_lab.host_kernels import call, vector

THREADS = 128


def cell(mod, leads, O, rows, captures, first, keys, n, V):  # type: ignore[no-untyped-def]
    """O at cell n = mod(leads at cell n): cells go through the keys first .. first + keys - 1 of rows[0], then of rows[1]."""
    chunks = (keys + V - 1) // V
    r = n // chunks
    lanes = cute.make_rmem_tensor((V,), cutlass.Int32)
    for lane in range(V):
        lanes[lane] = cutlass.Int32(lane)
    at, top = lanes.load() + (n - r * chunks) * V, cute.full((V,), keys - 1, cutlass.Int32)
    kv = cute.where(at > top, top, at) + first
    b, h, q = (cute.full((V,), rows[r, k], cutlass.Int32) for k in range(3))
    base = cutlass.Int64(n) * V
    lead = () if leads is None else tuple(vector(x, base, V).load() for x in leads)
    put(O, n, call(mod, lead, b, h, q, kv, captures), V)


def put(O, n, result, V):  # type: ignore[no-untyped-def]
    """Scores as they are, Booleans as bytes, a packed mask as its words (a vector below 32 lanes fills the low bits of one)."""
    if not isinstance(result, cute.TensorSSA):
        words = max(1, V // 32)
        for w in range(words):
            O[cutlass.Int64(n) * words + w] = result[w]
        return
    if result.dtype == cutlass.Boolean:
        result = cute.where(result, cute.full((V,), 1, cutlass.Uint8), cute.full((V,), 0, cutlass.Uint8))
    vector(O, cutlass.Int64(n) * V, V).store(result)


@cute.jit
def on_host(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    leads,
    O: cute.Tensor,
    rows: cute.Tensor,
    captures,
    first: cutlass.Int32,
    keys: cutlass.Int32,
    count: cutlass.Int32,
    V: cutlass.Constexpr,
):
    """All `count` cells."""
    for n in range(count):
        cell(mod, leads, O, rows, captures, first, keys, n, V)


@cute.kernel
def cells(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    leads,
    O: cute.Tensor,
    rows: cute.Tensor,
    captures,
    first: cutlass.Int32,
    keys: cutlass.Int32,
    count: cutlass.Int32,
    V: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    n = block * THREADS + thread
    if n < count:
        cell(mod, leads, O, rows, captures, first, keys, n, V)


@cute.jit
def on_device(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    leads,
    O: cute.Tensor,
    rows: cute.Tensor,
    captures,
    first: cutlass.Int32,
    keys: cutlass.Int32,
    count: cutlass.Int32,
    stream,
    V: cutlass.Constexpr,
):
    """All `count` cells, a thread each."""
    grid = ((count + THREADS - 1) // THREADS, 1, 1)
    cells(mod, leads, O, rows, captures, first, keys, count, V).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)
