"""Mods -> Program: traces score, backward and mask over one set of tables, and turns captured numbers into run-time scalars."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

from cute_lab import diagnose, runtime
from cute_lab.capture import Captured, Mod, Number, captured, with_numbers
from cute_lab.errors import CaptureDevice, CuteLabError, OptionError
from cute_lab.evaluate import Ranges, positions
from cute_lab.functions import Python
from cute_lab.ir import INPUTS, Graph, Program
from cute_lab.record import Shape
from cute_lab.rewrite import rewrite
from cute_lab.sliders import Slider, plain
from cute_lab.tables import Tables
from cute_lab.tracer import Tracer

TORCH_INPUT = {"f32": torch.float32, "i32": torch.int32}


@dataclass
class Session:
    """One trace of a variant: what the graphs share."""

    shape: Shape
    tables: Tables = field(default_factory=Tables)
    ops_seen: set[str] = field(default_factory=set)

    @property
    def box(self) -> Ranges:
        """Ranges that hold for any contents of the captured tensors: the text must not depend on what they hold now."""
        return Untrusted(positions(self.shape.B, self.shape.H, self.shape.Sq, self.shape.Skv), self.tables.rows)


@dataclass(frozen=True)
class Traced:
    """A program, its captured numbers by name, and those that stayed constants, with the reason."""

    program: Program
    session: Session
    numbers: Mapping[str, Number]
    fixed: Mapping[str, str]


class Untrusted(Ranges):
    def contents(self, table: int) -> object:  # type: ignore[override]
        from cute_lab.ops.interval import whole

        return whole(self.tables[table].dtype)


def trace(mod: Mod, kind: str, session: Session, seen: Captured | None = None) -> Graph:
    """The graph of one mod; `kind` "score", "mask" or "score_bwd" (the vector-Jacobian product of a score mod)."""
    forward = "score" if kind == "score_bwd" else kind
    t = Tracer(seen or captured(mod), session.tables, session.box)
    inputs = {name: t.add_input(name, TORCH_INPUT[dtype], grad=name == "score" and kind == "score_bwd") for name, dtype in INPUTS[kind]}
    arguments = [inputs[name] for name, _ in INPUTS[forward]]
    try:
        with t, Python(t), TransformGetItemToIndex():
            out = mod(*arguments)
            check_result(out, mod, forward)
            if kind == "score_bwd":
                out = _backward(out, inputs["score"], inputs["grad"])
            value = t.operand(out, "bool" if kind == "mask" else "f32").reshape(-1)[0]
    except CuteLabError:
        raise
    except Exception as error:
        raise diagnose.from_exception(error, mod, t) from error
    session.ops_seen |= t.ops_seen
    check_devices(session.tables)
    return Graph(kind, value, t.origin, t.names)


def _backward(out: torch.Tensor, score: torch.Tensor, grad: torch.Tensor) -> torch.Tensor | float:
    if not out.requires_grad:
        return 0.0
    (gradient,) = torch.autograd.grad(out.reshape(()).to(torch.float32), score, grad, allow_unused=True)
    return 0.0 if gradient is None else gradient


def check_result(out: object, mod: Mod, kind: str) -> None:
    if inspect.iscoroutine(out):
        out.close()  # an `async def`: it is refused below, and nobody will await it
    good = isinstance(out, torch.Tensor) and out.dim() == 0
    if not good or not isinstance(out, torch.Tensor) or (out.dtype != torch.bool if kind == "mask" else not out.dtype.is_floating_point):
        raise diagnose.result_error(out, mod, kind)


def check_devices(tables: Tables) -> None:
    """All captured tensors lie on one device; a 0-dim CPU tensor may stay, torch allows it too."""
    given = [(t.original if t.source is None else t.source, t.name, loc) for t, loc in zip(tables.rows, tables.where, strict=True)]
    rows = [row for row in given if row[0].dim() or row[0].device.type != "cpu"]
    for tensor, name, loc in rows:
        if tensor.device != rows[0][0].device or tensor.is_meta:
            expected = next((str(x.device) for x, _, _ in rows if not x.is_meta), "cpu")
            raise CaptureDevice(loc=loc, name=name, device=str(tensor.device), expected=expected)


def build(
    score_mod: Mod | None,
    mask_mod: Mod | None,
    shape: Shape,
    params: Mapping[str, Number] | None = None,
    off: Collection[str] = (),
    fast: bool = False,
) -> Traced:
    """Traces a variant. Captured numbers become run-time scalars where another value gives the same graph but for constants.

    `params` are values for captured numbers by name; these, and sliders, stay run-time also as a divisor, where a number that the user
    only captured is better left a constant (an integer division by a constant is a multiplication).
    """
    mods = {kind: mod for kind, mod in (("score", score_mod), ("mask", mask_mod)) if mod is not None}
    for kind, mod in mods.items():
        diagnose.check_arity(mod, kind)
        diagnose.check_text(mod)
    seen = {kind: captured(mod) for kind, mod in mods.items()}
    numbers: dict[str, Number] = {}
    for c in seen.values():
        numbers |= {n: v for n, v in c.numbers.items() if n not in numbers}
    given = dict(params or {})
    check_params(given, numbers)
    explicit = {*given, *(n for n, v in numbers.items() if isinstance(v, Slider))}
    numbers = {n: plain(v) for n, v in numbers.items()}
    numbers |= {n: float(v) if isinstance(numbers[n], float) else plain(v) for n, v in given.items()}
    session, graphs = _trace_all(mods, seen, numbers if explicit else {}, shape, off, not explicit, fast)
    base = Program(graphs.get("score"), graphs.get("score_bwd"), graphs.get("mask"), tuple(session.tables.rows))
    if not numbers:
        return Traced(base, session, {}, {})

    def retrace(values: Mapping[str, Number], specialise: bool) -> Program | None:
        """None where the mod fails with these values: a number that is a size, or an index into a list."""
        try:
            return _program(*_trace_all(mods, seen, {**numbers, **values}, shape, off, specialise, fast))
        except CuteLabError:
            return None

    lifted = runtime.lift(base, numbers, explicit, retrace)
    return Traced(lifted.program, session, numbers, lifted.fixed)


def _program(session: Session, graphs: Mapping[str, Graph]) -> Program:
    return Program(graphs.get("score"), graphs.get("score_bwd"), graphs.get("mask"), tuple(session.tables.rows))


def _trace_all(
    mods: Mapping[str, Mod],
    seen: Mapping[str, Captured],
    values: Mapping[str, Number],
    shape: Shape,
    off: Collection[str],
    specialise: bool,
    fast: bool,
) -> tuple[Session, dict[str, Graph]]:
    session = Session(shape)
    graphs: dict[str, Graph] = {}
    for kind, mod in mods.items():
        own = {n: v for n, v in values.items() if n in seen[kind].numbers}
        changed = with_numbers(mod, own) if own else mod
        for k in ("score", "score_bwd") if kind == "score" else ("mask",):
            graphs[k] = rewrite(trace(changed, k, session, seen[kind]), session.box, off, specialise, fast)
    return session, graphs


def check_params(given: Mapping[str, Number], numbers: Mapping[str, Number]) -> None:
    for name, value in given.items():
        if name not in numbers:
            close = difflib.get_close_matches(name, numbers, n=1, cutoff=0.5)
            known = f"The captured numbers are: {', '.join(numbers)}." if numbers else "The mods capture no numbers."
            guess = f" (did you mean '{close[0]}'?)" if close else ""
            raise OptionError(
                f"no captured number is called '{name}'{guess}",
                detail=known,
                example=f"params={{{', '.join(f'{n!r}: {v}' for n, v in numbers.items())}}}"
                if numbers
                else f"{name} = {value!r}    # above the mod",
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise OptionError(f"parameter '{name}' must be a number, not {value!r}", example=f"params={{{name!r}: {numbers[name]!r}}}")
        if isinstance(numbers[name], int) and not isinstance(value, int):
            near = int(value) if math.isfinite(value) else numbers[name]
            raise OptionError(f"parameter '{name}' is an integer in the code; {value!r} is not", example=f"params={{{name!r}: {near}}}")
