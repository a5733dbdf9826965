"""The other views of a mod: torch's make_fx graph, and what Inductor's FLASH backend would emit."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.fx.experimental.proxy_tensor import make_fx

from cute_lab.capture import Mod


def fx(mods: Mapping[str, Mod]) -> str:
    """make_fx on the scalars of each mod, as torch.compile's tracing starts."""
    parts = []
    for kind, mod in mods.items():
        index = [torch.zeros((), dtype=torch.int32) for _ in range(4)]  # one object each: make_fx takes equal objects for one input
        arguments = [torch.ones(()), *index] if kind == "score" else index

        def traced(*values: torch.Tensor, mod: Mod = mod) -> torch.Tensor:
            with TransformGetItemToIndex():
                return mod(*values)  # type: ignore[no-any-return]

        try:
            module = make_fx(traced)(*arguments)
            parts.append(f"# {kind}_mod\n{module.code.strip()}")
        except Exception as error:  # the view is a second opinion: what it can't trace, it says
            parts.append(f"# {kind}_mod: make_fx fails: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return "\n\n".join(parts)


def inductor(mods: Mapping[str, Mod]) -> str:
    """Inductor's CuTeDSL text for each mod, or why it has none."""
    from cute_lab import inductor as backend  # takes seconds to import

    parts = []
    for kind, mod in mods.items():
        lowered = backend.lower(mod, kind)  # type: ignore[arg-type]
        parts.append(lowered.source if not lowered.error else f"# {kind}_mod: {lowered.error}")
    return "\n\n".join(parts)
