"""What CuTeDSL does anew for each operation that it builds, done once: a kernel has some 40,000 of them.

For the worker's processes only, each of which traces one kernel in one MLIR context. The values are the DSL's own.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any


def remember() -> None:
    remember_places()
    remember_types()
    if not imported("cutlass.base_dsl.dsl").BaseDSL._get_dsl().envar.enable_pyir:
        # Its search of each argument for a variable of PyIR's, the DSL's other front end; without it there are none.
        imported("cutlass._mlir_helpers.op")._pyir_auto_load_arg = lambda value: value


def remember_places() -> None:
    """With line info the DSL looks for the user's frame, its source line and its location: 5 s of a 9 s compile.

    The keys are ids, since a code object's hash is that of all its constants and names. `alive` keeps the ids theirs.
    """
    op = imported("cutlass._mlir_helpers.op")
    op._CO_POSITIONS = functools.lru_cache(maxsize=None)(lambda code: tuple(code.co_positions()))
    op.itertools = types.SimpleNamespace(islice=lambda table, index, stop: iter(table[index : index + 1]))
    describe, locate = op._fast_frameinfo, op._get_location_from_frame_info
    context = imported("cutlass._mlir.ir").Context
    library: dict[int, bool] = {}  # is it the DSL's own?
    known: dict[tuple[int, int], Any] = {}
    located: dict[int, Any] = {}
    alive: list[Any] = []

    def own(frame: types.FrameType) -> bool:
        alive.append(frame.f_code)
        return library.setdefault(id(frame.f_code), op._is_framework_stack_frame(frame))

    def caller() -> Any:
        start = frame = sys._getframe(2)  # below the operation's wrapper
        while (inside := library.get(id(frame.f_code))) or (inside is None and own(frame)):
            if frame.f_back is None:
                frame = start
                break
            frame = frame.f_back
        at = id(frame.f_code), frame.f_lasti
        info = known.get(at)
        if info is None:
            alive.append(frame.f_code)
            info = known[at] = describe(frame)
        return info

    def location_of(info: Any) -> Any:
        found = located.get(id(info))
        if found is None or found.context is not context.current:
            alive.append(info)
            found = located[id(info)] = locate(info)
        return found

    op._get_caller_frame_info, op._get_location_from_frame_info = caller, location_of


def remember_types() -> None:
    """The DSL's type of an MLIR type: it lists all thirty-three of them to look one up."""
    numeric = imported("cutlass.base_dsl.typing").Numeric
    numeric.from_mlir_type = staticmethod(functools.lru_cache(maxsize=None)(numeric.from_mlir_type))


def rewritten_early() -> Iterator[None]:
    """Does what the DSL does to the syntax of each of FlashAttention-4's functions before it runs, one a step.

    The parent does it while there is nothing to compile: 0.3 s of each child's time.
    """
    dsl = imported("cutlass.base_dsl.dsl").BaseDSL
    modules = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] in ("flash_attn", "quack")]
    kinds = [kind for m in modules for kind in vars(m).values() if isinstance(kind, type)]
    for value in [value for owner in (*modules, *kinds) for value in vars(owner).values()]:
        function: Any = inspect.unwrap(getattr(value, "__func__", value)) if hasattr(value, "__wrapped__") else None
        if hasattr(function, "_dsl_cls"):
            try:
                dsl._preprocess_and_replace_code(function)
            except Exception:  # a child that needs it meets the error itself, and reports it
                function._preprocessed = False
            yield
    gc.collect()  # syntax trees
    gc.freeze()


def imported(name: str) -> Any:
    """A module without types; Any, since we patch it."""
    return importlib.import_module(name)
