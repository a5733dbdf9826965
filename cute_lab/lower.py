"""One aten call on derived tensors -> nodes: the op table, formulas, a few rules, data movement by labels, torch's decompositions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch._decomp import decomposition_table
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
from torch._prims_common import elementwise_dtypes

from cute_lab import formulas, special
from cute_lab.errors import UnsupportedOp
from cute_lab.ir import Node
from cute_lab.ops import ATEN
from cute_lab.tables import short
from cute_lab.tracer import WIDE, Array, Tracer, labels, storage_of

FORMULAS = {**formulas.FORMULAS, **special.SPECIAL}
PROMOTION = {"same": KIND.DEFAULT, "float": KIND.INT_TO_FLOAT, "compare": KIND.ALWAYS_BOOL}
Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


F = TypeVar("F", bound=Rule)


def rule(*names: str) -> Callable[[F], F]:
    """Registers a rule for overloads ("clamp.default") or whole operators ("clamp")."""

    def register(f: F) -> F:
        RULES.update(dict.fromkeys(names, f))
        return f

    return register


def shadow(x: Any) -> Any:
    """A stand-in on the CPU for a captured tensor of another device: only shape and dtype matter."""
    if isinstance(x, torch.Tensor) and x.device.type != "cpu":
        return torch.zeros(x.shape, dtype=x.dtype)
    return type(x)(shadow(i) for i in x) if isinstance(x, (list, tuple)) else x


def run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The real call, for the result's shape and dtype."""
    extra = {k: (torch.device("cpu") if k == "device" else shadow(v)) for k, v in kwargs.items()}
    return func(*(shadow(a) for a in args), **extra)


def is_number(x: object) -> bool:
    return isinstance(x, (bool, int, float, complex))


def common_dtype(operands: Sequence[Any], how: str) -> tuple[torch.dtype, torch.dtype]:
    """What torch casts the operands to, and the result's dtype."""
    result = elementwise_dtypes(*operands, type_promotion_kind=PROMOTION[how])[1]
    return elementwise_dtypes(*operands, type_promotion_kind=KIND.DEFAULT)[1] if how == "compare" else result, result


def promoted(t: Tracer, operands: Sequence[Any], how: str) -> tuple[list[Array], torch.dtype]:
    """The operands' nodes in the computing dtype, and torch's result dtype."""
    if how == "logical":
        return [t.operand(x, "bool") if not is_number(x) else t.operand(bool(x), "bool") for x in operands], torch.bool
    common, result = common_dtype(operands, how)
    wide = WIDE[short(common)]
    # first to torch's common dtype, so that a number rounds as torch rounds it, then to the dtype that the op computes in
    return [t.map(lambda n: t.cast(n, wide), t.operand(x, short(common))) for x in operands], result


def emit(t: Tracer, value: Array, dtype: torch.dtype, shape: Sequence[int] | None = None) -> torch.Tensor:
    """A tensor that torch would have made, holding `value` rounded to its dtype."""
    rounded = t.map(lambda n: t.cast(n, short(dtype)), value)
    full = tuple(value.shape if shape is None else shape)
    if rounded.ndim == 0:
        t.name(rounded[()])
    return t.store(torch.zeros(full, dtype=dtype), np.broadcast_to(rounded, full))


def pointwise(
    t: Tracer, build: Callable[..., Node], how: str, operands: Sequence[Any], kinds: tuple[str, ...] = ("bool", "int", "float")
) -> torch.Tensor:
    if how != "logical" and any(t.is_lazy(x) for x in operands):
        from cute_lab.indexing import lazy_pointwise

        return lazy_pointwise(t, build, *common_dtype(operands, how), operands)
    torch.broadcast_shapes(*(x.shape for x in operands if isinstance(x, torch.Tensor)))  # torch's own words where they don't fit
    arrays, result = promoted(t, operands, how)
    if "bool" not in kinds and arrays[0].size and arrays[0].flat[0].dtype == "bool":
        arrays = [t.map(lambda n: t.cast(n, "i32"), a) for a in arrays]  # True + True is True: != 0 of the sum
    try:
        value = t.map(build, *arrays)
    except TypeError as error:  # a formula of floats was given integers, as torch refuses them too
        if "is not typed" not in str(error):
            raise
        name = str(t.lowering[0] if t.lowering else t.calling).split(".")[1]
        kind, other, how = ("floats", "integers and bools", "int") if "bitwise" in name else ("integers", "floating-point values", "float")
        detail = f"torch.{name} takes {other} only."
        raise UnsupportedOp(loc=t.here(), op=f"torch.{name} of {kind}", detail=detail, example=f"torch.{name}(x.{how}(), ...)") from error
    return emit(t, value, result)


def in_place(t: Tracer, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """x.op_(...) on the mod's own tensor: the functional op, written where x lies; views of x see it."""
    target: torch.Tensor = args[0]
    name, overload = func._schema.name.split("::")[1], func._overloadname
    if name in RESHAPED_IN_PLACE:
        func(*args, **kwargs)  # the stand-in takes the shape; its storage, and so its nodes, stay
        return target
    if name == "copy_":
        value = t.operand(args[1], short(target.dtype))
    elif name in ("fill_", "zero_"):
        value = t.operand(args[1] if len(args) > 1 else 0, short(target.dtype))
    else:
        packet = getattr(torch.ops.aten, name.rstrip("_"), None)
        plain = next((getattr(packet, o) for o in (overload, "default") if hasattr(packet, o)), None)
        if plain is None:
            raise unsupported(t, func)
        value = t.operand(lower_call(t, plain, args, kwargs), short(target.dtype))
    at = storage_of(target)
    if at not in t.flat:
        count = target.untyped_storage().nbytes() // target.itemsize
        t.flat[at] = t.nodes(target.as_strided((count,), (1,), 0)).copy()
    if not isinstance(t.flat[at], np.ndarray):
        t.flat[at] = t.flat[at].copy()  # a lazy row that is written to
    t.flat[at][labels(target).reshape(-1)] = np.broadcast_to(value, tuple(target.shape)).reshape(-1)
    return target


MOVES = frozenset(
    """view _unsafe_view reshape expand permute transpose t unsqueeze squeeze select slice cat stack clone detach alias lift
lift_fresh contiguous repeat flip roll diagonal unbind split split_with_sizes as_strided movedim tile rot90 unfold repeat_interleave
constant_pad_nd broadcast_to narrow tril triu diag diagonal_copy hstack vstack""".split()
)
RESHAPED_IN_PLACE = frozenset(("squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_"))
FACTORIES = frozenset(
    """zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty new_empty_strided scalar_tensor
full zeros ones arange empty eye linspace""".split()
)


def move(t: Tracer, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Data movement, whatever it is: torch moves element numbers, and nodes follow them."""
    pool: list[Node] = []

    def number(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(number(i) for i in x)
        if not isinstance(x, torch.Tensor):
            return x
        value = t.nodes(x)
        first = len(pool) + 1
        pool.extend(value.reshape(-1))
        return torch.arange(first, len(pool) + 1).reshape(x.shape)

    like = next(x for a in args for x in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(x, torch.Tensor))
    moved = func(*(number(a) for a in args), **kwargs)
    many = isinstance(moved, (list, tuple))
    outs = []
    zero = t.operand(0, short(like.dtype))[()]  # label 0: padding and the other triangle
    for m in moved if many else [moved]:
        value = np.empty(tuple(m.shape), dtype=object)
        for at in np.ndindex(value.shape):
            k = int(m[at])
            value[at] = pool[k - 1] if k else zero
        outs.append(emit(t, value, like.dtype))
    return outs if many else outs[0]


def unsupported(t: Tracer, func: Any) -> UnsupportedOp:
    loc = t.here()
    name = func._schema.name.split("::")[1]
    if torch.Tag.pointwise in func.tags:
        return UnsupportedOp(
            loc=loc,
            op=f"torch.{name}",
            detail=f"cute_lab knows no formula for `{name}`. Tabulate it outside and look it up, or write it with exp, log and the like.",
            example=f"table = torch.{name}(torch.linspace(low, high, 1024))    # outside of the mod; inside: table[index]",
        )
    return UnsupportedOp(
        loc=loc,
        op=f"torch.{name}",
        detail=f"`{name}` is not an operator on single scores: it cannot be done per score inside the kernel. "
        "Compute it once outside and capture the result.",
        example=f"ready = {loc.snippet if loc else name}    # outside of the mod, on whole tensors",
    )


def lower_call(t: Tracer, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The tensors that `func(*args, **kwargs)` gives, with their nodes."""
    from cute_lab import indexing, order, rows, rules  # noqa: F401  (they fill RULES)

    t.calling = func
    space, name = func._schema.name.split("::")
    overload = f"{name}.{func._overloadname or 'default'}"
    found = RULES.get(f"{space}::{name}") or RULES.get(overload) or RULES.get(name)
    if found is not None:
        try:
            return found(t, *args, **kwargs)
        except TypeError as error:  # an argument that only a rare call has
            if "unexpected keyword argument" not in str(error) and "positional argument" not in str(error):
                raise
            raise unsupported(t, func) from error
    if func._schema.is_mutable:
        return in_place(t, func, args, kwargs)
    if overload in ATEN or overload in FORMULAS:
        build: Callable[..., Node]
        build, how = ATEN[overload] if overload in ATEN else FORMULAS[overload]
        given = {**{a.name: v for a, v in zip(func._schema.arguments, args, strict=False)}, **kwargs}
        alpha = given.pop("alpha", 1)
        operands = [a for a in given.values() if isinstance(a, torch.Tensor) or is_number(a)]
        if name in ("sub", "rsub", "neg") and all(isinstance(a, torch.Tensor) and a.dtype == torch.bool for a in operands):
            run(func, args, kwargs)  # torch refuses - of bools, and says what to write
        if alpha != 1:
            scaled = 0 if name == "rsub" else 1
            operands[scaled] = lower_call(t, torch.ops.aten.mul.Tensor, (operands[scaled], alpha), {})
        return pointwise(t, build, how, operands, getattr(build, "kinds", ("int", "float")))
    if name in FACTORIES:
        out = run(func, args, kwargs)
        t.keep.append(out)
        t.fresh[storage_of(out)] = False
        return out
    if name in MOVES:
        if func.is_view:
            out = func(*args, **kwargs)
            if all(storage_of(o) in t.flat for o in (out if isinstance(out, (list, tuple)) else [out])):
                return out
        return move(t, func, args, kwargs)
    if func not in t.lowering:  # a prim falls back on its aten op, whose decomposition may be that prim again
        t.lowering.append(func)
        try:
            for way in _ways(space, func):
                with t:
                    out = way(*args, **kwargs)
                if out is not NotImplemented:
                    return out
        finally:
            t.lowering.pop()
    raise unsupported(t, t.lowering[0] if t.lowering else func)


def _ways(space: str, func: Any) -> Iterator[Callable[..., Any]]:
    """torch's own definitions of an operator by others, in the order to try."""
    if func in decomposition_table:
        yield decomposition_table[func]
    if func._can_decompose():
        yield func.decompose
    if space == "prims" and getattr(func._overloadpacket, "impl_aten", None) is not None:
        yield func._overloadpacket.impl_aten
