"""Runs generated CuTeDSL text on the CPU with CuTeDSL's host JIT; both threads, no GPU."""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

from cute_lab import cutedsl, host_kernels
from cute_lab.ir import DTYPES, Graph, Scalar, Table
from cute_lab.usercode import unclashed

THREADS = max(1, len(os.sched_getaffinity(0)))
SCORE_LANES, MASK_LANES = 8, 32
_counter = itertools.count(1)
_compile_lock = threading.Lock()  # the DSL keeps its build state in globals


@functools.lru_cache(maxsize=256)
def load(text: str) -> types.SimpleNamespace:
    """The functions of a generated module. CuTeDSL reads their text back through linecache."""
    name = f"<cute_lab:{next(_counter)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"__name__": "cute_lab_generated"}
    exec(compile(text, name, "exec"), scope)
    return types.SimpleNamespace(file=name, **{k: v for k, v in scope.items() if not k.startswith("__")})


@functools.lru_cache(maxsize=1)
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="cute_lab")


def argument(t: torch.Tensor) -> Any:
    """A tensor for the DSL, by reference, with its own layout."""
    return _ready(from_dlpack(t.detach()))


def dynamic(t: torch.Tensor) -> Any:
    """The same with sizes that are not compiled in."""
    return _ready(from_dlpack(t.detach()).mark_layout_dynamic())


def _ready(made: Any) -> Any:
    """The DSL makes a tensor's descriptor in the first call that takes it: two threads at once would make two, and free one in use."""
    made.__c_pointers__()
    return made


def captures(tables: Sequence[Table], rows: Sequence[Scalar]) -> Any:
    """aux_scalars of the generated functions: the captured tensors' addresses, then the run-time numbers."""
    types_: dict[str, Callable[[Any], Any]] = {"i32": cutlass.Int32, "f32": cutlass.Float32}
    addresses = (cutlass.Int64(t.tensor.data_ptr()) for t in tables)
    return (*addresses, *(types_[s.dtype](s.value) for s in rows)) or None  # an empty tuple is no argument of the DSL


_built: OrderedDict[Any, Any] = OrderedDict()  # the longest unused first
KEPT = 512  # kernels: a dropped one leaves its code behind in the process, so those in use must stay


def compiled(kernel: Any, text: str, function: str, arguments: Sequence[Any], key: Any, *constants: int) -> Any:
    """The kernel with the mod of this text built in; compiled once per text and argument layout (about 0.1 s)."""
    full_key = (kernel.__name__, text, function, key, constants)
    with _compile_lock:
        if full_key not in _built:
            if len(_built) >= KEPT:
                _built.popitem(last=False)
            mod = getattr(load(text), function)
            _built[full_key] = unclashed(lambda: cute.compile(kernel, mod, *arguments, *constants))
        _built.move_to_end(full_key)
        return _built[full_key]


def layout_key(tables: Sequence[Table], rows: Sequence[Scalar]) -> Any:
    return len(tables), tuple(s.dtype for s in rows)  # a table's layout stands in the text


def spread(run: Callable[[int, int], None], count: int, least: int = 1) -> None:
    """run(first, last) over `count` rows on all threads; the JIT code releases the interpreter lock."""
    parts = min(THREADS, max(1, count // max(least, 1)))
    edges = [count * i // parts for i in range(parts + 1)]
    if parts == 1:
        run(0, count)
        return
    for future in [pool().submit(run, a, b) for a, b in itertools.pairwise(edges)]:
        future.result()


def spread_even(run: Callable[[int, int], None], count: int, parts: int = 32) -> None:
    """The same in more, smaller parts, so that threads stay busy where rows cost unequally."""
    edges = sorted({count * i // parts for i in range(parts + 1)})
    for future in [pool().submit(run, a, b) for a, b in itertools.pairwise(edges)]:
        future.result()


def lanes_for(n: int, widest: int) -> int:
    """The widest power of two that fits into a row of n."""
    return min(widest, 1 << (n.bit_length() - 1))


def over_rows(
    kernel: Any,
    text: str,
    function: str,
    buffers: Sequence[torch.Tensor],
    rows: torch.Tensor,
    kv: torch.Tensor,
    tables: Sequence[Table],
    values: Sequence[Scalar],
    lanes: int,
) -> None:
    """Fills buffers[-1] [R, N] from the others, for rows [R, 3] (b, h, q) and kv [N]; int32, contiguous."""
    count = rows.shape[0]
    if count == 0 or kv.numel() == 0:
        return
    data = [*(dynamic(b.view(-1)) for b in buffers), dynamic(rows), dynamic(kv), captures(tables, values)]
    zero = cutlass.Int32(0)
    run = compiled(kernel, text, function, [*data, zero, zero], layout_key(tables, values), lanes)
    spread(lambda a, b: run(*data, cutlass.Int32(a), cutlass.Int32(b)), count, least=max(1, 4096 // kv.numel()))


def grid_rows(b: Sequence[int], h: Sequence[int], q: Sequence[int]) -> torch.Tensor:
    """Rows (b, h, q) in that order, [len(b) len(h) len(q), 3] int32."""
    columns = torch.meshgrid(*(torch.as_tensor(list(x), dtype=torch.int32) for x in (b, h, q)), indexing="ij")
    return torch.stack([c.reshape(-1) for c in columns], 1).contiguous()


def score(
    text: str,
    scores: torch.Tensor,
    rows: torch.Tensor,
    kv: torch.Tensor,
    tables: Sequence[Table],
    values: Sequence[Scalar],
    lanes: int | None = None,
) -> torch.Tensor:
    out = torch.full_like(scores, float("nan"))
    over_rows(
        host_kernels.score_rows, text, "score_mod", (scores, out), rows, kv, tables, values, lanes or lanes_for(kv.numel(), SCORE_LANES)
    )
    return out


def grad(
    text: str,
    grads: torch.Tensor,
    scores: torch.Tensor,
    rows: torch.Tensor,
    kv: torch.Tensor,
    tables: Sequence[Table],
    values: Sequence[Scalar],
    lanes: int | None = None,
) -> torch.Tensor:
    out = torch.full_like(scores, float("nan"))
    width = lanes or lanes_for(kv.numel(), SCORE_LANES)
    over_rows(host_kernels.grad_rows, text, "score_mod_bwd", (grads, scores, out), rows, kv, tables, values, width)
    return out


def mask(
    text: str,
    rows: torch.Tensor,
    kv: torch.Tensor,
    tables: Sequence[Table],
    values: Sequence[Scalar],
    function: str = "mask_mod",
    lanes: int | None = None,
) -> torch.Tensor:
    out = torch.full((rows.shape[0], kv.numel()), 255, dtype=torch.uint8)
    over_rows(host_kernels.mask_rows, text, function, (out,), rows, kv, tables, values, lanes or lanes_for(kv.numel(), MASK_LANES))
    return out.view(torch.bool)


def evaluate_all(
    graphs: Sequence[Graph], tables: Sequence[Table], values: Sequence[Scalar], scores: torch.Tensor, kv: torch.Tensor, lanes: int = 4
) -> list[torch.Tensor]:
    """The generated text of many graphs of kind "score" at once, each in its own dtype; q_idx is each vector's first kv_idx, b = h = 0."""
    text = cutedsl.HEADER + cutedsl.TABLE
    for i, graph in enumerate(graphs):
        body = cutedsl.write_function(graph, tables, values).lines
        text += f"\n\n@cute.jit\ndef mod_{i}({cutedsl.signature('score', bool(tables or values))}):\n" + "".join(
            f"    {line}\n" for line, _ in body
        )
    scope = load(text)
    stored = [torch.uint8 if g.output.dtype == "bool" else getattr(torch, DTYPES[g.output.dtype].torch) for g in graphs]
    outs = [torch.zeros(kv.numel(), dtype=d) for d in stored]
    data = [tuple(dynamic(o) for o in outs), dynamic(scores), dynamic(kv), captures(tables, values)]
    with _compile_lock:
        run = cute.compile(host_kernels.evaluate_all, tuple(getattr(scope, f"mod_{i}") for i in range(len(graphs))), *data, lanes)
    run(*data)
    return [o.view(torch.bool) if g.output.dtype == "bool" else o for o, g in zip(outs, graphs, strict=True)]
