"""Runs the user's function once under a dispatch mode that turns every aten call into nodes of the graph.

The function sees real 0-dim CPU tensors (`score` float32; `b, h, q_idx, kv_idx` int32), so that promotion, views, in-place
work on temporaries and Python control flow over captured values are torch's own. What depends on the inputs is "derived":
its storage holds one node per element, so aliasing needs no rules. What depends on captured tensors only is computed at once.

Why not the FX graph of make_fx: the same calls reach this mode, with the same promotion, but in 2 ms instead of 10 to 50, with
the user's column per call, and with captured-only work done by torch itself. `lab.fx` shows make_fx's graph beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cute_lab import formulas, usercode
from cute_lab.capture import Captured
from cute_lab.errors import CaptureTooLarge, CuteLabError, Loc, RandomInMod, WritesTensor
from cute_lab.evaluate import Ranges, bounds
from cute_lab.ir import DTYPES, FROM_TORCH, Node, const, node
from cute_lab.lazy import Lazy
from cute_lab.ops import LEAVES, OPS, Op
from cute_lab.ops import interval as iv
from cute_lab.tables import Tables, short

MAX_ELEMENTS = 4096  # of one value inside a mod: each element is code in the kernel
SHORT = 64  # up to here a captured row is worth a node per element
Array = Any  # a numpy array of nodes (dtype object): numpy's types know no such element


def storage_of(x: torch.Tensor) -> int:
    return int(x.untyped_storage()._cdata)


def labels(x: torch.Tensor) -> Array:
    """For each element of x, its place in x's storage."""
    if x.dim() == 0:
        return np.array(x.storage_offset())
    size = x.untyped_storage().nbytes() // x.itemsize
    return torch.arange(size).as_strided(x.size(), x.stride(), x.storage_offset()).numpy()


class Tracer(TorchDispatchMode):
    def __init__(self, seen: Captured, tables: Tables, box: Ranges, specialise: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen, self.tables, self.box, self.specialise = seen, tables, box, specialise
        self.flat: dict[int, Any] = {}  # storage -> node per element, an array or Lazy
        self.fresh: dict[int, bool] = {}  # storage made inside the mod -> does its value depend on captured tensors?
        self.inputs: dict[int, str] = {}
        self.keep: list[Any] = []
        self.origin: dict[Node, Loc] = {}
        self.names: dict[Node, str] = {}
        self.known: dict[Node, iv.Interval] = {}
        self.autograd: dict[int, Loc] = {}  # sequence number of an autograd node -> the user's place
        self.owner = {storage_of(t): name for name, t in reversed(seen.tensors) if not t.is_sparse}
        self.ops_seen: set[str] = set()
        self.calling: Any = None
        self.lowering: list[Any] = []  # the operators whose decompositions are being followed

    # -- places -----------------------------------------------------------------------------------------------------
    def here(self) -> Loc | None:
        frame = usercode.user_frame(self.seen.files)
        if frame is not None:
            return usercode.frame_loc(frame)
        grad = torch._C._current_autograd_node()
        return self.autograd.get(grad._sequence_nr()) if grad is not None else None

    def note(self, n: Node, loc: Loc | None) -> Node:
        if loc is not None and n.op not in ("input", "const"):
            self.origin.setdefault(n, loc)
        return n

    # -- values -----------------------------------------------------------------------------------------------------
    def derived(self, x: object) -> bool:
        return isinstance(x, torch.Tensor) and storage_of(x) in self.flat

    def is_lazy(self, x: object) -> bool:
        """A row of a captured tensor that is too long to be looked at element by element."""
        return isinstance(x, torch.Tensor) and x.numel() > SHORT and isinstance(self.flat.get(storage_of(x)), Lazy)

    def add_input(self, name: str, dtype: torch.dtype, grad: bool = False) -> torch.Tensor:
        x = torch.ones((), dtype=dtype) if dtype.is_floating_point else torch.zeros((), dtype=dtype)
        self.keep.append(x)
        leaf = node("input", FROM_TORCH[str(dtype).removeprefix("torch.")], attr=name)
        self.flat[storage_of(x)] = np.array([leaf], dtype=object)
        self.inputs[storage_of(x)] = name
        return x.requires_grad_(grad)

    def store(self, x: torch.Tensor, value: Array) -> torch.Tensor:
        """Says what a tensor that torch just made holds."""
        self.keep.append(x)
        flat = np.empty(x.untyped_storage().nbytes() // x.itemsize, dtype=object)
        flat[labels(x).reshape(-1)] = np.broadcast_to(value, tuple(x.shape)).reshape(-1)
        self.flat[storage_of(x)] = flat
        return x

    def nodes(self, x: torch.Tensor) -> Array:
        """One node per element."""
        if x.numel() > MAX_ELEMENTS:
            raise CaptureTooLarge(loc=self.here(), size=x.numel(), limit=MAX_ELEMENTS)
        if not self.derived(x):
            return self._constants(x)
        flat = self.flat[storage_of(x)]
        return np.asarray(flat[labels(x)], dtype=object).reshape(tuple(x.shape))

    def _constants(self, x: torch.Tensor) -> Array:
        """Made inside: constants. Captured: one load per element."""
        out = np.empty(tuple(x.shape), dtype=object)
        dtype = short(x.dtype)
        if x._is_zerotensor():  # what autograd makes for a gradient that is 0
            out[...] = const(0, dtype)
            return out
        inline = self.fresh.get(storage_of(x)) is False
        values = x.detach().tolist() if inline else None
        for at in np.ndindex(out.shape):
            if inline:
                value: Any = values
                for i in at:
                    value = value[i]
                out[at] = const(value, dtype)
            else:
                out[at] = self.load(x, [const(i, "i32") for i in at])
        return out

    def load(self, x: torch.Tensor, index: Sequence[Node], loc: Loc | None = None) -> Node:
        """One element of a tensor that does not depend on the inputs."""
        loc = loc or self.here()
        table = self.tables.index(x, self.owner.get(storage_of(x), "table"), loc)
        at = [self.wrap(table, k, i) for k, i in enumerate(index)]
        return self.note(node("gather", self.tables.rows[table].dtype, tuple(at), table), loc)

    def wrap(self, table: int, dim: int, index: Node) -> Node:
        """Negative indices count from the end; where the positions alone prove i >= 0, nothing is emitted."""
        if index.is_const:
            size = self.tables.rows[table].original.shape[dim]
            return const(index.attr + size if index.attr < 0 else index.attr, "i32")
        index = self.cast(index, WIDE[index.dtype])
        known = bounds(index, self.box, self.known)[index]
        if known.lo < 0:
            length = node("size", index.dtype, attr=(table, dim))
            index = OPS["where"](OPS["lt"](index, const(0, index.dtype)), OPS["add"](index, length), index)
        return self.cast(index, "i32")

    def number(self, value: float | int | bool, dtype: str) -> Node:
        """Integers wrap around as torch's conversion does: 2**31 is -2**31 in int32."""
        row = DTYPES[dtype]
        if row.kind == "int" and not isinstance(value, float):
            value = int(value) & ((1 << row.bits) - 1)
            value -= (1 << row.bits) if value > row.hi else 0
        return const(value, dtype)

    def cast(self, n: Node, dtype: str) -> Node:
        if n.dtype == dtype:
            return n
        if n.is_const:
            source, target = (getattr(torch, DTYPES[d].torch) for d in (n.dtype, dtype))
            return const(torch.tensor(n.attr, dtype=source).to(target).item(), dtype)
        if n.op == "cast" and n.dtype == "bf16":  # the host has no conversion to bf16
            return self.cast(formulas.round_to_bf16(self.cast(n.args[0], "f32")), dtype)
        if DTYPES[n.dtype].kind == "float" and dtype in ("u8", "i8", "i16"):
            n = self.cast(n, "i32")  # C leaves -1.0 -> uint8 open; torch wraps around
        if dtype == "bool":
            return OPS["ne"](n, const(0, n.dtype)) if n.dtype in WIDE.values() else self.cast(self.cast(n, WIDE[n.dtype]), "bool")
        return node("cast", dtype, (n,))

    def operand(self, x: torch.Tensor | float | int | bool, dtype: str) -> Array:
        """A tensor's nodes, or a Python number, in a dtype."""
        if not isinstance(x, torch.Tensor):
            out = np.empty((), dtype=object)
            out[()] = self.number(x, dtype)
            return out
        return self.map(lambda n: self.cast(n, dtype), self.nodes(x))

    def map(self, f: Callable[..., Node], *arrays: Array) -> Array:
        """f on each element, broadcast; the results get the user's place."""
        loc = self.here()
        wide: Any = np.broadcast_arrays(*arrays)
        out: Any = np.empty(wide[0].shape, dtype=object)
        if out.size > MAX_ELEMENTS:
            raise CaptureTooLarge(loc=loc, size=out.size, limit=MAX_ELEMENTS)
        for at in np.ndindex(out.shape):
            args = [w[at] for w in wide]
            out[at] = self.note(f(*args), loc)
            self._note_new(out[at], set(args), loc)
        return out

    def name(self, n: Node) -> None:
        """`d = q_idx - kv_idx` names the difference."""
        loc = self.here()
        name = usercode.assigned_name(loc) if loc is not None and n.op not in ("input", "const") and n not in self.names else None
        if name:
            self.names[n] = name

    def _note_new(self, n: Node, stop: set[Node], loc: Loc | None) -> None:
        """The inner nodes of a formula stand at the same place."""
        todo = [n]
        while todo and loc is not None:
            for a in todo.pop().args:
                if a not in stop and a not in self.origin and a.op not in LEAVES:
                    self.origin[a] = loc
                    todo.append(a)

    def apply(self, op: Op | str, *arrays: Array) -> Array:
        return self.map(OPS[op] if isinstance(op, str) else op, *arrays)

    # -- the mode ---------------------------------------------------------------------------------------------------
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from cute_lab.lower import lower_call

        kwargs = kwargs or {}
        self.ops_seen.add(str(func).removeprefix("aten."))
        if torch.Tag.nondeterministic_seeded in func.tags:
            loc = self.here()
            raise RandomInMod(loc=loc, snippet=loc.snippet if loc else str(func), example=RANDOM_HINT)
        flat_args = [a for group in (*args, *kwargs.values()) for a in (group if isinstance(group, (list, tuple)) else [group])]
        tensors = [a for a in flat_args if isinstance(a, torch.Tensor)]
        if func._schema.is_mutable and tensors:
            self.check_write(tensors[0])
        if any(self.derived(t) for t in tensors):
            try:
                out = lower_call(self, func, args, kwargs)
            except CuteLabError as error:
                error.loc = error.loc or self.here()
                raise
        else:
            out = func(*args, **kwargs)
            self._made(func, tensors, out)
        return out

    def _made(self, func: Any, tensors: Sequence[torch.Tensor], out: Any) -> None:
        lifted = "lift_fresh" in str(func)
        captured = not lifted and any(self.fresh.get(storage_of(t), True) for t in tensors)
        names = [self.owner.get(storage_of(t)) for t in tensors]
        for t in out if isinstance(out, (list, tuple)) else [out]:
            if isinstance(t, torch.Tensor) and (lifted or all(storage_of(t) != storage_of(a) for a in tensors)):
                self.keep.append(t)
                self.fresh[storage_of(t)] = captured
                loc = self.here()
                name = (usercode.assigned_name(loc) if loc else None) or next((f"{n}_made" for n in names if n), None)
                if captured and name:
                    self.owner[storage_of(t)] = name

    def check_write(self, target: torch.Tensor) -> None:
        """In-place work is fine on what the mod itself made, not on its inputs and captured tensors."""
        at = storage_of(target)
        if at in self.inputs:
            name = self.inputs[at]
            reason = f"Inputs are read only: torch would change the caller's tensor. Make a new value and give it the name {name}."
            self._refuse_write(f"`{name}`, an input of the mod", "", reason)
        if at not in self.fresh and at not in self.flat:
            name = self.owner.get(at, "a tensor")
            self._refuse_write(
                f"the captured tensor `{name}`", f"# compute {name} outside, from q and k:\nscores = q @ k.transpose(-2, -1)"
            )

    def _refuse_write(self, subject: str, example: str, reason: str = "") -> None:
        loc = self.here()
        example = example or (usercode.out_of_place(loc) if loc else "")
        error = WritesTensor(loc=loc, snippet=loc.text.strip() if loc else "an in-place operator", subject=subject, example=example)
        error.reason = reason or error.reason
        raise error


WIDE = {
    "f16": "f32",
    "bf16": "f32",
    "f32": "f32",
    "f64": "f64",
    "i8": "i32",
    "u8": "i32",
    "i16": "i32",
    "i32": "i32",
    "i64": "i64",
    "bool": "bool",
}
RANDOM_HINT = "keep = torch.rand(Sq, Skv) > 0.1    # outside of the mod\nscore = torch.where(keep[q_idx, kv_idx], score, float('-inf'))"
