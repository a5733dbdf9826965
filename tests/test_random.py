"""3,000 seeded random graphs: printed text on the host = torch meaning; bounds contain every value; rewrites change nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cute_lab import host
from cute_lab.evaluate import Ranges, bounds, evaluate
from cute_lab.ir import DTYPES, Graph
from cute_lab.ops import interval as iv
from cute_lab.rewrite import rewrite
from random_ir import LANES, SCALARS, TABLES, N, graph, inputs
from values import same

SEEDS = 3000
BATCH = 100
ENV = inputs()
BOX = Ranges(
    {
        "score": iv.Interval(float(ENV.inputs["score"].min()), float(ENV.inputs["score"].max())),
        "kv_idx": iv.Interval(0.0, N - 1.0),
        "q_idx": iv.Interval(0.0, N - 1.0),
        "b": iv.Interval(0.0, 0.0),
        "h": iv.Interval(0.0, 0.0),
    },
    TABLES,
    SCALARS,
)


def close(got: torch.Tensor, expected: torch.Tensor, g: Graph) -> torch.Tensor:
    """Transcendental results differ in the last bits; a comparison or rounding right at such a result may flip, rarely."""
    ops = {n.op for n in g.nodes()}
    exact = not ops & {
        "exp",
        "exp2",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "sin",
        "cos",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "sigmoid",
    }
    return same(got, expected, 0.0 if exact and "fmod" not in ops else 1e-4)


@pytest.mark.parametrize("batch", range(SEEDS // BATCH))
def test_text_bound_and_rewrite(batch: int) -> None:
    seeds = range(batch * BATCH, (batch + 1) * BATCH)
    graphs = [graph(s) for s in seeds]
    got = host.evaluate_all(graphs, TABLES, SCALARS, ENV.inputs["score"], ENV.inputs["kv_idx"], LANES)
    for seed, g, value in zip(seeds, graphs, got, strict=True):
        expected = evaluate(g.output, ENV).expand(N)
        right = close(value, expected, g)
        assert right.float().mean() >= 0.98, (
            f"seed {seed}: {int((~right).sum())} of {N} differ\n{g}\n{value[~right][:4]} != {expected[~right][:4]}"
        )
        check_bounds(seed, g)
        for off, tolerance in ((("reciprocals",), 0.0), ((), 1e-6)):  # reciprocals may cost ulps, on every path to the result
            changed = rewrite(g, BOX, off)
            again = evaluate(changed.output, ENV).expand(N)
            assert same(again, expected, tolerance).all(), f"seed {seed}: the rewrite changes the value\n{g}\n{changed}"


def check_bounds(seed: int, g: Graph) -> None:
    """Every node's value, at every position, inside its interval."""
    known = bounds(g.output, BOX)
    nodes = g.nodes()
    for n, value in zip(nodes, evaluate(nodes, ENV), strict=True):
        b = known[n]
        real = value.double().reshape(-1)
        if real.isnan().any():
            assert np.any(b.nan), f"seed {seed}: {n.op} gives NaN, bound {b}\n{g}"
        real = real[~real.isnan()]
        slack = 2.0**-10 * real.abs() if n.dtype == "i64" else 0.0  # int64 beyond 2**53 rounds in this test's float64
        assert (real + slack >= float(b.lo)).all() and (real - slack <= float(b.hi)).all(), (
            f"seed {seed}: {n} in [{real.min()}, {real.max()}], bound {b}\n{g}"
        )


def test_the_generator_reaches_the_table() -> None:
    """The seeds above use every op but those named unstable, in every dtype kind."""
    from cute_lab.ops import OPS
    from random_ir import UNSTABLE

    used = {(n.op, DTYPES[n.args[OPS[n.op].pick].dtype].kind) for s in range(SEEDS) for n in graph(s).nodes() if n.op in OPS}
    assert {(op.name, kind) for op in OPS.values() if op.name not in UNSTABLE for kind in op.kinds} <= used
