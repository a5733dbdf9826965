"""CuTeDSL programs for the CPU that run a generated mod: over rows of positions, and over the blocks of a mask.

They load and store by pointer and vector (V lanes of adjacent kv), 20 times faster than lane by lane. A row's last vector is
moved back to end at the row's end, so no lane is ever outside; results are written beside the input, so lanes done twice agree.
"""

import cutlass
from cutlass import cute


def call(mod, lead, b, h, q, kv, captures):  # type: ignore[no-untyped-def]
    """The argument list of a generated function: `lead` is (), (score,) or (grad, score)."""
    if cutlass.const_expr(captures is None):
        return mod(*lead, b, h, q, kv, None, None)
    return mod(*lead, b, h, q, kv, None, None, captures)


def vector(tensor, offset, V):  # type: ignore[no-untyped-def]
    return cute.make_tensor(tensor.iterator + offset, cute.make_layout(V))


@cute.jit
def score_rows(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    S: cute.Tensor,
    O: cute.Tensor,
    rows: cute.Tensor,
    kv: cute.Tensor,
    captures,
    first: cutlass.Int32,
    last: cutlass.Int32,
    V: cutlass.Constexpr,
):
    """O[r, :] = mod(S[r, :]) for rows r = (b, h, q) and the kv positions given."""
    n = cute.size(kv)
    for r in range(first, last):
        b = cute.full((V,), rows[r, 0], cutlass.Int32)
        h = cute.full((V,), rows[r, 1], cutlass.Int32)
        q = cute.full((V,), rows[r, 2], cutlass.Int32)
        base = cutlass.Int64(r) * n
        for c in range(0, (n + V - 1) // V):
            j = min(c * V, n - V)
            result = call(mod, (vector(S, base + j, V).load(),), b, h, q, vector(kv, j, V).load(), captures)
            vector(O, base + j, V).store(result)


@cute.jit
def grad_rows(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    G: cute.Tensor,
    S: cute.Tensor,
    O: cute.Tensor,
    rows: cute.Tensor,
    kv: cute.Tensor,
    captures,
    first: cutlass.Int32,
    last: cutlass.Int32,
    V: cutlass.Constexpr,
):
    """O[r, :] = score_mod_bwd(G[r, :], S[r, :])."""
    n = cute.size(kv)
    for r in range(first, last):
        b = cute.full((V,), rows[r, 0], cutlass.Int32)
        h = cute.full((V,), rows[r, 1], cutlass.Int32)
        q = cute.full((V,), rows[r, 2], cutlass.Int32)
        base = cutlass.Int64(r) * n
        for c in range(0, (n + V - 1) // V):
            j = min(c * V, n - V)
            lead = (vector(G, base + j, V).load(), vector(S, base + j, V).load())
            vector(O, base + j, V).store(call(mod, lead, b, h, q, vector(kv, j, V).load(), captures))


@cute.jit
def mask_rows(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    O: cute.Tensor,
    rows: cute.Tensor,
    kv: cute.Tensor,
    captures,
    first: cutlass.Int32,
    last: cutlass.Int32,
    V: cutlass.Constexpr,
):
    """O[r, :] = mask_mod(...) as bytes 0 and 1."""
    n = cute.size(kv)
    one = cute.full((V,), 1, cutlass.Uint8)
    for r in range(first, last):
        b = cute.full((V,), rows[r, 0], cutlass.Int32)
        h = cute.full((V,), rows[r, 1], cutlass.Int32)
        q = cute.full((V,), rows[r, 2], cutlass.Int32)
        base = cutlass.Int64(r) * n
        for c in range(0, (n + V - 1) // V):
            j = min(c * V, n - V)
            keep = call(mod, (), b, h, q, vector(kv, j, V).load(), captures)
            vector(O, base + j, V).store(cute.where(keep, one, cute.zeros_like(one)))


@cute.jit
def packed_rows(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    O: cute.Tensor,
    rows: cute.Tensor,
    kv: cute.Tensor,
    captures,
    first: cutlass.Int32,
    last: cutlass.Int32,
    V: cutlass.Constexpr,
):
    """O[r, w] = the keep word of kv positions 32 w .. 32 w + 31 (lowest bit first), as FlashAttention-4 wants it on SM100."""
    n = cute.size(kv)
    words = V // 32
    for r in range(first, last):
        b = cute.full((V,), rows[r, 0], cutlass.Int32)
        h = cute.full((V,), rows[r, 1], cutlass.Int32)
        q = cute.full((V,), rows[r, 2], cutlass.Int32)
        base = cutlass.Int64(r) * (n // 32)
        for c in range(0, n // V):
            packed = call(mod, (), b, h, q, vector(kv, c * V, V).load(), captures)
            for w in cutlass.range_constexpr(words):
                O[base + c * words + w] = packed[w]


@cute.jit
def count_blocks(  # type: ignore[no-untyped-def]
    mod: cutlass.Constexpr,
    C: cute.Tensor,
    at: cute.Tensor,
    captures,
    Sq: cutlass.Int32,
    Skv: cutlass.Int32,
    BM: cutlass.Int32,
    BN: cutlass.Int32,
    exact: cutlass.Int32,
    first: cutlass.Int32,
    last: cutlass.Int32,
    V: cutlass.Constexpr,
):
    """C[n] = kept cells in the block at[n] = (b, h, i, j) for n = first .. last - 1; ragged blocks count what they have.

    Unless `exact`, the search ends with the first row after which some cell is kept and some is not: C[n] = -1.
    """
    lanes = cute.make_rmem_tensor((V,), cutlass.Int32)
    for lane in cutlass.range_constexpr(V):
        lanes[lane] = lane
    iota = lanes.load()
    one = cute.full((V,), 1, cutlass.Int32)
    zero = cute.full((V,), 0, cutlass.Int32)
    top = cute.full((V,), Skv - 1, cutlass.Int32)
    for n in range(first, last):
        bv = cute.full((V,), at[4 * n], cutlass.Int32)
        hv = cute.full((V,), at[4 * n + 1], cutlass.Int32)
        i = at[4 * n + 2]
        j = at[4 * n + 3]
        sums = cute.make_rmem_tensor((V,), cutlass.Int32)
        sums.store(zero)
        end = min((j + 1) * BN, Skv)
        mixed = cutlass.Int32(0)
        for q in range(i * BM, min((i + 1) * BM, Sq)):
            if mixed == 0:
                qv = cute.full((V,), q, cutlass.Int32)
                for k in range(0, (BN + V - 1) // V):
                    kv = iota + (j * BN + k * V)
                    keep = call(mod, (), bv, hv, qv, cute.where(kv > top, top, kv), captures)
                    sums.store(sums.load() + cute.where(keep & (kv < end), one, zero))
                if exact == 0:
                    kept = sums.load().reduce(cute.ReductionOp.ADD, cutlass.Int32(0), 0)
                    seen = (q - i * BM + 1) * (end - j * BN)
                    mixed = min(kept, 1) * min(seen - kept, 1)
        total = sums.load().reduce(cute.ReductionOp.ADD, cutlass.Int32(0), 0)
        C[n] = total - mixed * (total + 1)


def store_all(mods, outs, s, zero, q, k, captures, offset, V):  # type: ignore[no-untyped-def]
    """A Python loop, run while the program is built."""
    for mod, out in zip(mods, outs, strict=True):
        value = call(mod, (s,), zero, zero, q, k, captures)
        if value.dtype == cutlass.Boolean:
            value = cute.where(value, cute.full((V,), 1, cutlass.Uint8), cute.full((V,), 0, cutlass.Uint8))
        vector(out, offset, V).store(value)


@cute.jit
def evaluate_all(  # type: ignore[no-untyped-def]
    mods: cutlass.Constexpr,
    outs,
    S: cute.Tensor,
    kv: cute.Tensor,
    captures,
    V: cutlass.Constexpr,
):
    """outs[i][:] = mods[i](score, b=0, h=0, q_idx, kv_idx) for many small functions at once (tests of the op table).

    q_idx is the first kv_idx of the vector: lanes share a query, as in the forward kernels."""
    zero = cute.full((V,), 0, cutlass.Int32)
    for c in range(0, cute.size(kv) // V):
        k = vector(kv, c * V, V).load()
        s = vector(S, c * V, V).load()
        q = cute.full((V,), kv[c * V], cutlass.Int32)
        store_all(mods, outs, s, zero, q, k, captures, c * V, V)
