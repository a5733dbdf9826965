"""Indexing by what depends on the position: a gather from a captured tensor, or a choice among the mod's own short row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from cute_lab import formulas as f
from cute_lab.errors import CaptureTooLarge, UnsupportedOp
from cute_lab.evaluate import bounds
from cute_lab.ir import Node, const
from cute_lab.lazy import Lazy
from cute_lab.lower import emit, in_place, rule
from cute_lab.tables import short
from cute_lab.tracer import MAX_ELEMENTS, WIDE, Array, Tracer, storage_of

Indices = Sequence[torch.Tensor | None]


def _layout(shape: Sequence[int], indices: Indices) -> tuple[tuple[int, ...], list[int], int]:
    """The result's shape, the dimensions that are kept whole, and where the indexed block stands (torch's advanced indexing)."""
    indexed = [d for d, i in enumerate(indices) if i is not None]
    block = torch.broadcast_shapes(*(i.shape for i in indices if i is not None))
    kept = [d for d in range(len(shape)) if d not in indexed]
    adjacent = indexed == list(range(indexed[0], indexed[-1] + 1))
    first = indexed[0] if adjacent else 0
    before, after = [shape[d] for d in kept[:first]], [shape[d] for d in kept[first:]]
    return (*before, *block, *after), kept, first


@rule("index.Tensor", "_unsafe_index.Tensor")
def index(t: Tracer, x: torch.Tensor, indices: Indices) -> torch.Tensor:
    if len(indices) > x.dim():
        raise IndexError(f"too many indices for tensor of dimension {x.dim()} (got {len(indices)})")
    if any(i is not None and i.dtype.is_floating_point for i in indices):
        raise IndexError("an index must be an integer: use .long() or // instead of /")
    if any(i is not None and i.dtype in (torch.int8, torch.int16) for i in indices):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors: use .long()")
    if any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices):
        raise UnsupportedOp(
            loc=t.here(),
            op="indexing by a bool mask",
            detail="The result's size would depend on the position.",
            example="torch.where(mask, x, 0.0)",
        )
    shape, kept, first = _layout(x.shape, indices)
    if kept and not t.derived(x) and t.fresh.get(storage_of(x)) is not False and all(i is None or i.dim() == 0 for i in indices):
        return _lazy_row(t, x, indices, shape, kept)
    if int(np.prod(shape)) > MAX_ELEMENTS:
        raise CaptureTooLarge(loc=t.here(), size=int(np.prod(shape)), limit=MAX_ELEMENTS)
    given = [i for i in indices if i is not None]
    arrays: Any = np.broadcast_arrays(*(t.nodes(i) for i in given))
    width = arrays[0].ndim
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(shape):
        inner = at[first : first + width]
        outer = iter(at[:first] + at[first + width :])
        chosen = iter(a[inner] for a in arrays)
        where = [const(next(outer), "i32") if d in kept else next(chosen) for d in range(x.dim())]
        out[at] = element_of(t, x, where)
    return emit(t, out, x.dtype)


def _lazy_row(t: Tracer, x: torch.Tensor, indices: Indices, shape: tuple[int, ...], kept: list[int]) -> torch.Tensor:
    """A captured tensor at some positions, the other dimensions whole: its elements are loaded when they are looked at."""
    fixed = {d: t.nodes(i)[()] for d, i in enumerate(indices) if i is not None}
    loc = t.here()

    def element(coordinates: Sequence[Node]) -> Node:
        rest = dict(zip(kept, coordinates, strict=True))
        return t.load(x, [fixed[d] if d in fixed else rest[d] for d in range(x.dim())], loc)

    out = (
        torch.zeros((), dtype=x.dtype).expand(shape).contiguous()
        if int(np.prod(shape)) <= MAX_ELEMENTS
        else torch.empty(shape, dtype=x.dtype)
    )
    t.keep.append(out)
    t.flat[storage_of(out)] = Lazy(shape, element)
    return out


def lazy_pointwise(
    t: Tracer, build: Callable[..., Node], common: torch.dtype, result: torch.dtype, operands: Sequence[Any]
) -> torch.Tensor:
    """A function of a long captured row: done to the elements that are looked at later."""
    shape = tuple(torch.broadcast_shapes(*(x.shape for x in operands if isinstance(x, torch.Tensor))))
    loc = t.here()

    def operand(x: Any, coordinates: Sequence[Node]) -> Node:
        if not isinstance(x, torch.Tensor):
            return t.number(x, short(common))
        own = coordinates[len(coordinates) - x.dim() :]
        return t.cast(element_of(t, x, [const(0, "i32") if n == 1 else c for c, n in zip(own, x.shape, strict=True)]), short(common))

    def element(coordinates: Sequence[Node]) -> Node:
        wide = WIDE[short(common)]
        args = [t.cast(operand(x, coordinates), "i32" if wide == "bool" else wide) for x in operands]
        return t.note(t.cast(build(*args), short(result)), loc)

    out = torch.zeros(shape, dtype=result)
    t.keep.append(out)
    t.flat[storage_of(out)] = Lazy(shape, element)
    return out


def element_of(t: Tracer, x: torch.Tensor, at: Sequence[Node]) -> Node:
    if not t.derived(x):
        if t.fresh.get(storage_of(x)) is False and all(i.is_const for i in at):
            return t.nodes(x)[tuple(i.attr for i in at)]  # type: ignore[no-any-return]
        return t.load(x, at)
    lazy = t.flat[storage_of(x)]
    if isinstance(lazy, Lazy) and not all(i.is_const for i in at):
        found = lazy.at(
            tuple(x.shape), x.stride(), int(x.storage_offset()), [_from_end(t, i, int(n)) for i, n in zip(at, x.shape, strict=True)]
        )
        if found is not None:
            return found
    return _choose(t, t.nodes(x), at)


def _from_end(t: Tracer, i: Node, size: int) -> Node:
    """A negative index counts from the end; the view's end may lie within the table."""
    if i.is_const:
        return i
    i = t.cast(i, WIDE[i.dtype])
    if bounds(i, t.box, t.known)[i].lo >= 0:
        return i
    return f.where(f.lt(i, const(0, i.dtype)), f.add(i, const(size, i.dtype)), i)


def _choose(t: Tracer, row: Array, at: Sequence[Node]) -> Node:
    """An element of the mod's own row: a chain of where over the places it can be."""
    if not at:
        return row if isinstance(row, Node) else row[()]
    head, rest = at[0], at[1:]
    size = row.shape[0]
    if head.is_const:
        return _choose(t, row[head.attr], rest)
    plain = head.args[0] if head.op == "cast" else head
    if plain.op == "input" and plain.dtype == "i32" and (last := int(bounds(plain, t.box, t.known)[plain].hi)) >= size:
        raise IndexError(f"index {last} is out of bounds for a dimension of size {size}: {plain.attr} goes up to {last}")
    picks: list[Node] = [_choose(t, row[k], rest) for k in range(size)]
    result = picks[0]
    for k in range(1, size):
        hit = f.either(f.eq(head, const(k, head.dtype)), f.eq(head, const(k - size, head.dtype)))
        result = f.where(hit, picks[k], result)
    return result


def _put(t: Tracer, x: torch.Tensor, indices: Indices, value: Any, accumulate: bool) -> Array:
    """x with values put where the indices say: each element asks whether it is meant."""
    dtype = short(x.dtype)
    out = t.operand(x, WIDE[dtype]).copy()
    shape, kept, first = _layout(x.shape, indices)
    arrays: Any = np.broadcast_arrays(*(t.nodes(i) for i in indices if i is not None))
    width = arrays[0].ndim
    values = np.broadcast_to(t.operand(value, WIDE[dtype]), shape)
    for at in np.ndindex(shape):
        inner, outer = at[first : first + width], iter(at[:first] + at[first + width :])
        chosen = iter(a[inner] for a in arrays)
        wanted = [const(next(outer), "i32") if d in kept else next(chosen) for d in range(x.dim())]
        ranges = [[i.attr % n] if i.is_const else range(n) for i, n in zip(wanted, x.shape, strict=True)]
        for place in itertools.product(*ranges):
            hit: Node | None = None
            for i, k, n in zip(wanted, place, x.shape, strict=True):
                if not i.is_const:
                    here = f.either(f.eq(i, const(k, i.dtype)), f.eq(i, const(k - n, i.dtype)))
                    hit = here if hit is None else f.both(hit, here)
            new = f.add(out[place], values[at]) if accumulate and dtype != "bool" else values[at]
            out[place] = new if hit is None else f.where(hit, new, out[place])
    return t.map(lambda n: n, out)


@rule("index_put_", "_index_put_impl_")
def index_put_(t: Tracer, x: torch.Tensor, indices: Indices, value: torch.Tensor, accumulate: bool = False, *_: Any) -> torch.Tensor:
    """x[i] = value on the mod's own row."""
    return in_place(t, torch.ops.aten.copy_.default, (x, emit(t, _put(t, x, indices, value, accumulate), x.dtype)), {})


@rule("index_put.default")
def index_put(t: Tracer, x: torch.Tensor, indices: Indices, value: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    return emit(t, _put(t, x, indices, value, accumulate), x.dtype)


@rule("zeros_and_scatter")
def zeros_and_scatter(t: Tracer, shape: Sequence[int], indices: Indices, value: torch.Tensor) -> torch.Tensor:
    """The gradient of an indexed row of the mod's own, as torch's flex_attention says it."""
    zeros = torch.zeros(tuple(shape), dtype=value.dtype)
    t.keep.append(zeros)
    t.fresh[storage_of(zeros)] = False
    return index_put(t, zeros, indices, value, True)


@rule("index_select.default")
def index_select(t: Tracer, x: torch.Tensor, dim: int, at: torch.Tensor) -> torch.Tensor:
    return index(t, x, [None] * (dim % max(x.dim(), 1)) + [at])


@rule("take.default")
def take(t: Tracer, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return index(t, x.reshape(-1), [at])


@rule("embedding.default")
def embedding(t: Tracer, weight: torch.Tensor, at: torch.Tensor, *_: Any) -> torch.Tensor:
    return index(t, weight, [at])


@rule("gather.default")
def gather(t: Tracer, x: torch.Tensor, dim: int, at: torch.Tensor, *, sparse_grad: bool = False) -> torch.Tensor:
    if at.dim() == 0:
        return index(t, x.reshape(-1), [at])
    grid = [torch.arange(n).reshape([-1 if d == k else 1 for d in range(at.dim())]) for k, n in enumerate(at.shape)]
    for g in grid:
        t.keep.append(g)
        t.fresh[storage_of(g)] = False
    return index(t, x, [at if k == dim % at.dim() else grid[k] for k in range(at.dim())])
