"""Seeded random graphs over the op table: any op on any typed operands, from inputs, constants, run-time scalars and tables."""

from __future__ import annotations

import random

import torch

from cute_lab import formulas
from cute_lab.evaluate import Inputs
from cute_lab.ir import DTYPES, Graph, Node, Scalar, const, node
from cute_lab.ops import OPS
from values import table

N = 256
LANES = 4
KINDS = {"bool": ("bool",), "int": ("i32", "i64"), "float": ("f32", "f64")}
UNSTABLE = {"pow", "tan"}  # one ulp in becomes many out: tested alone in test_ops
SCALARS = (Scalar("cap", "f32", 30.0), Scalar("window", "i32", 100))


def tables() -> tuple:
    g = torch.Generator().manual_seed(3)
    return (
        table("slopes", torch.randn(N, generator=g)),
        table("half", torch.randn(N, generator=g).to(torch.float16)),
        table("brain", torch.randn(N, generator=g).to(torch.bfloat16)),
        table("ids", torch.randint(-50, 50, (N,), generator=g)),
        table("small", torch.randint(-100, 100, (N,), generator=g).to(torch.int16)),
        table("keep", torch.randint(0, 2, (N,), generator=g).to(torch.bool)),
    )


TABLES = tables()


def inputs() -> Inputs:
    g = torch.Generator().manual_seed(5)
    kv = torch.arange(N, dtype=torch.int32)
    zero = torch.zeros(N, dtype=torch.int32)
    return Inputs(
        {"score": torch.randn(N, generator=g) * 5, "kv_idx": kv, "q_idx": kv // LANES * LANES, "b": zero, "h": zero}, TABLES, SCALARS
    )


def cast(n: Node, dtype: str) -> Node:
    """As lowering casts: to bool by comparison; a float to an integer only where it fits."""
    if n.dtype == dtype:
        return n
    if dtype == "bool":
        return OPS["ne"](n, const(0, n.dtype))
    if DTYPES[n.dtype].kind == "float" and DTYPES[dtype].kind == "int":
        top = const(1000, n.dtype)
        low = OPS["where"](OPS["lt"](n, top), n, top)
        n = OPS["where"](OPS["gt"](low, const(-1000, n.dtype)), low, const(-1000, n.dtype))  # NaN compares false and becomes -1000
    if n.is_const:
        value = torch.tensor(n.attr, dtype=getattr(torch, DTYPES[n.dtype].torch)).to(getattr(torch, DTYPES[dtype].torch))
        return const(value.item(), dtype)
    return node("cast", dtype, (n,))


def graph(seed: int, size: int = 9) -> Graph:
    """About `size` ops deep and wide; the result is any dtype of the table."""
    r = random.Random(seed)
    pool: list[Node] = [node("input", "i32", attr="kv_idx"), node("input", "i32", attr="q_idx"), node("input", "f32", attr="score")]
    pool += [node("scalar", s.dtype, attr=i) for i, s in enumerate(SCALARS)]
    for i in r.sample(range(len(TABLES)), 3):
        loaded = node("gather", TABLES[i].dtype, (pool[r.randrange(2)],), i)
        pool.append(cast(loaded, {"f16": "f32", "bf16": "f32", "i16": "i32"}.get(loaded.dtype, loaded.dtype)))
    pool += [
        const(r.choice([0.5, -2.0, 3.25, 0.0, 1e-3]), "f32"),
        const(r.choice([1, 2, 3, -5, 8, 64]), "i32"),
        const(r.choice([2**40, 7]), "i64"),
    ]
    names = [n for n in OPS if n not in UNSTABLE]
    for _ in range(size):
        op = OPS[r.choice(names)]
        dtype = r.choice([d for k in op.kinds for d in KINDS[k] if d not in ("f64", "i64") or r.random() < 0.3] or list(KINDS[op.kinds[0]]))
        args = [cast(r.choice(pool[-8:] if r.random() < 0.7 else pool), "bool" if k < op.pick else dtype) for k in range(op.arity)]
        if op.nonzero is not None:  # a divisor as users write it: a positive constant, or one made positive
            args[op.nonzero] = (
                const(r.choice([1, 2, 3, 16, 24, -7]), dtype)
                if r.random() < 0.7
                else OPS["or"](OPS["and"](args[op.nonzero], const(31, dtype)), const(1, dtype))
            )
        if op.name in ("shl", "shr"):
            args[1] = OPS["and"](args[1], const(7, dtype))
        if op.name in ("sin", "cos"):  # of a large number they turn one ulp into anything
            limit = const(20.0, dtype)
            args[0] = OPS["where"](OPS["lt"](OPS["abs"](args[0]), limit), args[0], limit)
        if op.name == "copysign":  # the sign of a NaN is nobody's contract
            args[1] = OPS["where"](OPS["isnan"](args[1]), const(1.0, dtype), args[1])
        new = op(*args)
        if not new.is_const:
            pool.append(new)
    if r.random() < 0.3:
        pool.append(formulas.remainder(cast(pool[-1], "i32"), const(r.choice([3, 4, -5]), "i32")))
    result = pool[-1]
    return Graph("score", result)
