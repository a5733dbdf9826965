"""Generated code against torch's eager evaluation of the user's function: which points, how far off, and where it is worst."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from cute_lab import check, cutedsl, host, host_kernels, packed, reference
from cute_lab.capture import Mod
from cute_lab.ir import DTYPES, Graph, Program
from cute_lab.ops import OPS
from cute_lab.record import Check, Shape, Worst

ALL_POINTS = 1 << 17  # grids up to this many cells are checked whole
SIDE = 256  # else this many rows and columns, in runs of adjacent positions, so that boundaries and diagonals are met
RUN = 16
SEED = 20260305
NOISE_LIMIT = 1e-4
WORD = 32


@dataclass(frozen=True, repr=False)
class Verification:
    """`checks` has one entry per function; `worst` is the worst of all. Errors are absolute over max(1, |expected|)."""

    ok: bool
    points: int
    max_abs_error: float
    worst: Worst | None
    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"<Verification\n{self}>"

    def __str__(self) -> str:
        return "\n".join(
            f"{'ok' if c.ok else 'DIFFERS':8}{c.name:14}{c.points:>9,} points  max abs {c.max_abs_error:.3g}  max rel {c.max_rel_error:.3g}"
            f"  ({c.grid})" + ("" if c.ok or c.worst is None else f"  worst at {c.worst}")
            for c in self.checks
        )


def positions(length: int, budget: int, seed: int) -> list[int]:
    """Sorted positions: both ends, and runs of adjacent ones spread over the length."""
    if length <= budget:
        return list(range(length))
    g = torch.Generator().manual_seed(seed)
    starts = [0, length - RUN, *torch.randint(0, length - RUN, (budget // RUN - 2,), generator=g).tolist()]
    return sorted({p for s in starts for p in range(s, s + RUN)})


def few(count: int, used: bool, most: int) -> list[int]:
    """Heads or batch entries to look at: all, or first, last and some between; one where the mods do not ask."""
    if not used:
        return [0]
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def sample(shape: Shape, used: set[str]) -> tuple[torch.Tensor, torch.Tensor, str]:
    """Rows (b, h, q), kv positions, and in words which they are."""
    if shape.B * shape.H * shape.Sq * shape.Skv <= ALL_POINTS:
        rows = host.grid_rows(range(shape.B), range(shape.H), range(shape.Sq))
        return rows, torch.arange(shape.Skv, dtype=torch.int32), "every position"
    batches, heads = few(shape.B, "b" in used, 4), few(shape.H, "h" in used, 16)
    share = max(4, SIDE // (len(batches) * len(heads)) * 2)
    q = positions(shape.Sq, SIDE if len(batches) * len(heads) == 1 else max(2 * RUN, share), SEED)
    kv_positions = positions(shape.Skv, SIDE, SEED)
    shift = shape.Skv - shape.Sq  # causal masks are aligned to the start or to the end of the keys
    near = {p + s for p in q for s in {0, shift} if 0 <= p + s < shape.Skv}
    kv_all = sorted({*kv_positions, *list(near)[: SIDE // 2]})
    where = f"{len(batches)} of {shape.B} batch entries, {len(heads)} of {shape.H} heads"
    text = f"{len(q)} query and {len(kv_all)} key positions in runs, {where}"
    return host.grid_rows(batches, heads, q), torch.tensor(kv_all, dtype=torch.int32), text


def tolerance(graph: Graph) -> float:
    """2e-6, or what the least accurate op of the graph documents for its host form; a long sum may be added up in another order."""
    sums = sum(n.op == "add" and DTYPES[n.dtype].kind == "float" for n in graph.nodes())
    return max([2e-6, 6e-8 * sums, *(OPS[n.op].rtol for n in graph.nodes() if n.op in OPS)])


def with_noise(found: Check, expected: torch.Tensor, exact: torch.Tensor) -> Check:
    """A float32 formula that cancels has torch itself off by more than 2e-6: the code may be off by what torch is off.

    torch's error is its float32 result against its own float64 result (nothing of ours), where 99 % of the points stay below it, so
    that a flipped comparison does not count; and never more than NOISE_LIMIT.
    """
    error = (expected.to(torch.float64) - exact).abs() / exact.abs().clamp(min=1.0)
    real = error[error.isfinite()]
    if not real.numel():
        return found
    noise = 4 * float(real.sort().values[int(0.99 * (real.numel() - 1))])
    limit = max(found.tolerance, min(noise, NOISE_LIMIT))
    return dataclasses.replace(found, tolerance=limit, ok=found.max_rel_error <= limit)


def inputs(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores as attention makes them, with some large and some zero; gradients of unit size."""
    g = torch.Generator().manual_seed(SEED)
    scores = torch.randn(rows, columns, generator=g) * 3
    scores[::7] *= 10
    scores[:, ::31] = 0
    return scores, torch.randn(rows, columns, generator=g)


def compare(name: str, got: torch.Tensor, expected: torch.Tensor, rows: torch.Tensor, kv: torch.Tensor, limit: float, grid: str) -> Check:
    a, b = got.to(torch.float64), expected.to(torch.float64)
    equal = (a == b) | (a.isnan() & b.isnan())
    error = torch.where(equal, torch.zeros_like(a), (a - b).abs())
    error = torch.where(error.isnan(), torch.full_like(error, float("inf")), error)
    relative = torch.where(equal, torch.zeros_like(error), error / b.abs().clamp(min=1.0).nan_to_num(posinf=1.0))
    top = int(relative.argmax()) if relative.numel() else 0
    row, column = divmod(top, max(kv.numel(), 1))
    largest = float(relative.reshape(-1)[top]) if relative.numel() else 0.0
    worst = None
    if largest > 0:
        batch, head, q = (int(x) for x in rows[row])
        worst = Worst(batch, head, q, int(kv[column]), float(b[row, column]), float(a[row, column]))
    limit = 0.0 if name.startswith("mask_mod") else limit
    return Check(name, largest <= limit, got.numel(), float(error.max()) if error.numel() else 0.0, largest, limit, worst, grid)  # type: ignore[arg-type]


def verify(program: Program, text: str, mods: Mapping[str, Mod], shape: Shape) -> Verification:
    used = {str(n.attr) for g in program.graphs().values() for n in g.nodes() if n.op == "input"}
    rows, kv, grid = sample(shape, used)
    scores, grads = inputs(len(rows), kv.numel())
    tables, values = program.tables, program.scalars
    checks: list[Check] = []
    for kind, graph in program.graphs().items():
        check.strike(graph, program, shape, rows, kv, scores)
        limit = tolerance(graph)
        if kind == "score":
            got, expected = host.score(text, scores, rows, kv, tables, values), reference.score(mods["score"], scores, rows, kv)
        elif kind == "score_bwd":
            got, expected = host.grad(text, grads, scores, rows, kv, tables, values), reference.grad(mods["score"], grads, scores, rows, kv)
        else:
            got, expected = host.mask(text, rows, kv, tables, values), reference.mask(mods["mask"], rows, kv)
        name = {"score": "score_mod", "score_bwd": "score_mod_bwd", "mask": "mask_mod"}[kind]
        found = compare(name, got, expected, rows, kv, limit, grid)
        if not found.ok and kind != "mask":
            wide = scores.double()
            exact = (
                reference.score(mods["score"], wide, rows, kv)
                if kind == "score"
                else reference.grad(mods["score"], grads.double(), wide, rows, kv)
            )
            found = with_noise(found, expected, exact)
        checks.append(found)
    if program.mask is not None:
        words = packed_check(program, mods["mask"], shape, rows)
        checks += [words] if words is not None else []
    return summary(checks)


def packed_check(program: Program, mask_mod: Mod, shape: Shape, rows: torch.Tensor) -> Check | None:
    """The words that Blackwell masks by, on runs of 32 keys that do not start at multiples of 32 only; bit by bit."""
    if program.tables and shape.Skv < WORD:  # a word reaches beyond the keys, and a table may end with them
        return None
    starts = sorted(
        {0, max(0, shape.Skv - WORD), *(p - p % 16 for p in positions(shape.Skv, SIDE // 2, SEED) if p - p % 16 + WORD <= shape.Skv)}
    )
    kv = torch.cat([torch.arange(s, s + WORD, dtype=torch.int32) for s in starts[:: -(-len(starts) // 16)]])
    assert program.mask is not None
    check.strike(program.mask, program, shape, rows, kv, None)  # other keys than the sample's: an index may be wrong only here
    text = cutedsl.emit(program, packed.functions(program)).text
    words = torch.zeros(len(rows), kv.numel() // WORD, dtype=torch.int32)
    host.over_rows(
        host_kernels.packed_rows, text, "mask_mod_packed", (words.view(torch.uint32),), rows, kv, program.tables, program.scalars, WORD
    )
    got = ((words[:, :, None] >> torch.arange(WORD)) & 1).bool().reshape(len(rows), -1)
    grid = f"{kv.numel() // WORD} words of {WORD} keys in every row of the others"
    got, kv = got[:, kv < shape.Skv], kv[kv < shape.Skv]  # FlashAttention-4 itself drops keys beyond the end
    return compare("mask_mod_packed", got, reference.mask(mask_mod, rows, kv), rows, kv, 0.0, grid)


def summary(checks: Sequence[Check]) -> Verification:
    worst = max(checks, key=lambda c: c.max_rel_error, default=None)
    return Verification(
        all(c.ok for c in checks),
        sum(c.points for c in checks),
        max((c.max_abs_error for c in checks), default=0.0),
        worst.worst if worst else None,
        tuple(checks),
    )
