"""A second opinion: the CuTeDSL that Inductor's FLASH backend would emit for a mod, asked for and run with no GPU.

mod -> make_fx (scalars, Inductor's decompositions) -> build_subgraph_module_buffer -> CuteDSLTemplateKernel.modification
    -> text of one @cute.jit function with FlashAttention-4's signature -> cute.compile for the host -> numbers

Nothing of Inductor is reimplemented; tests compare the graph with the one that torch.compile hands to the lowering.
The text is Hopper's: vector loads and packed masks need SM100, and Inductor asks a GPU for that. The import takes
3 s. A read outside a captured tensor or an integer division by zero in the text kills the process: whoever evaluates
functions that aren't known to be safe does it in a child (tools/conformance_inductor.py).
"""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch._inductor import ir
from torch._inductor.codegen.cutedsl.cutedsl_kernel import CuteDSLTemplateKernel
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.joint_graph import constant_fold_uniform_value
from torch._inductor.graph import GraphLowering
from torch._inductor.kernel.flex.common import build_subgraph_module_buffer, create_placeholder, freeze_irnodes
from torch._inductor.kernel.flex.flex_flash_attention import (
    is_trivial_mask_graph,
    is_trivial_score_graph,
    patch_fixed_layout_indexer_for_cutedsl,
)
from torch._inductor.virtualized import V
from torch.fx.experimental.proxy_tensor import make_fx

from cute_lab.errors import CompileError
from cute_lab.failures import reason

Kind = Literal["score", "mask", "score_bwd"]
Mod = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Signature:
    """What Inductor's template fixes for a kind of mod: FA4's `parameters`, `names` of the traced inputs, the `result`."""

    function: str
    parameters: tuple[str, ...]
    names: tuple[str, ...]
    result: str
    lanes: int  # FA4's default on SM90 without aux_tensors; with them it is 1


INDEX = ("b_idx", "h_idx", "q_idx", "kv_idx")
SIGNATURES: dict[Kind, Signature] = {
    "score": Signature("score_mod", ("tSrS_ssa", *INDEX), ("score", "b", "h", "m", "n"), "tSrS_ssa", 2),
    "mask": Signature("mask_mod", INDEX, ("b", "h", "m", "n"), "mask_mod_output", 1),
    "score_bwd": Signature(
        "score_mod_bwd",
        ("grad_score_mod_ssa", "tSrS_ssa", *INDEX),
        ("grad_score_mod", "score", "b", "h", "m", "n"),
        "grad_score_mod_ssa_out",
        4,
    ),
}


@dataclass(frozen=True)
class InductorLowering:
    """Inductor's answer for one mod. With an `error` there is no `source`.

    A source `score_mod = None` or `mask_mod = None` means that Inductor takes the function for the identity
    and gives FlashAttention-4 none at all.
    """

    source: str
    aux: tuple[torch.Tensor, ...]
    error: str = ""


class Refused(Exception):
    """A condition under which FLASH declines before it generates code."""


def lower(mod: Mod, kind: Kind, dtype: torch.dtype = torch.bfloat16) -> InductorLowering:
    """The text that Inductor would emit for `mod` with q, k and v of `dtype`, or the reason why it can't.

    A mistake in the user's function (a branch on a tensor, a wrong signature) comes back as a reason too.
    """
    try:
        with torch.no_grad():
            return _generate(*_trace(mod, kind, dtype), kind, dtype)
    except Exception as error:  # noqa: BLE001  whatever torch raises is the answer
        return InductorLowering("", (), _reason(error))


def _trace(mod: Mod, kind: Kind, dtype: torch.dtype) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """The mod as one functional ATen graph on 0-dim tensors, decomposed as Inductor wants it, and its captured tensors.

    Two traces, as in torch.compile: the first finds the captures (attributes become trailing inputs), the second
    functionalizes (`mul_` on a temporary is legal) and decomposes.
    """

    def joint(grad: torch.Tensor, score: torch.Tensor, *index: torch.Tensor) -> torch.Tensor:
        gradient: torch.Tensor = torch.func.vjp(lambda s: mod(s, *index), score)[1](grad)[0]
        return gradient

    floats = len(SIGNATURES[kind].names) - 4
    values = [torch.zeros((), dtype=dtype) for _ in range(floats)] + [torch.zeros((), dtype=torch.int32) for _ in INDEX]
    fake: dict[str, Any] = {"tracing_mode": "fake", "_allow_non_fake_inputs": True}
    with TransformGetItemToIndex():
        graph = make_fx(joint if kind == "score_bwd" else mod, **fake)(*values)
    captures = _lift_captures(graph)
    functional = torch.func.functionalize(graph)
    graph = make_fx(functional, decomposition_table=select_decomp_table(), **fake)(*values, *captures)
    constant_fold_uniform_value(graph)  # the one joint-graph pass that a mod needs
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph, captures


def _lift_captures(graph: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Turn captured tensors from attributes into trailing placeholders, one per tensor, as Dynamo hands them over."""
    captures: list[torch.Tensor] = []
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    inputs = len(nodes)
    for node in [node for node in graph.graph.nodes if node.op == "get_attr"]:
        if all(user.target is torch.ops.aten.lift_fresh_copy.default for user in node.users):
            continue  # made inside the mod: the 0 of `bias[0]`
        value = getattr(graph, str(node.target))
        position = next((i for i, capture in enumerate(captures) if capture is value), None)
        if position is None:
            if value.requires_grad:
                raise Refused("Input buffers require gradients (not supported by flash attention)")
            position = len(captures)
            with graph.graph.inserting_after(nodes[-1]):
                nodes.append(graph.graph.placeholder(f"buffer{position}"))
            captures.append(value)
        node.replace_all_uses_with(nodes[inputs + position])
        graph.graph.erase_node(node)
    graph.recompile()
    return captures


def _generate(graph: torch.fx.GraphModule, captures: list[torch.Tensor], kind: Kind, dtype: torch.dtype) -> InductorLowering:
    """Graph -> text, through Inductor's subgraph lowering and its CuTeDSL kernel."""
    signature = SIGNATURES[kind]
    trivial = is_trivial_mask_graph if kind == "mask" else is_trivial_score_graph
    if trivial(graph):
        return InductorLowering(f"{signature.function} = None", ())
    cpu = torch.device("cpu")
    floats = len(signature.names) - 4
    arguments = [create_placeholder(name, dtype if i < floats else torch.int32, cpu) for i, name in enumerate(signature.names)]
    root = GraphLowering(graph)
    buffers: dict[str, ir.IRNode] = {}
    for i, capture in enumerate(captures):
        layout = ir.FixedLayout(cpu, capture.dtype, list(capture.shape), list(capture.stride()))
        buffers[f"buffer{i}"] = ir.InputBuffer(name=f"buffer{i}", layout=layout)
    root._cutedsl_capture_nodes = buffers  # realize_captures_for_cutedsl registers them there
    with V.set_graph_handler(root), patch_fixed_layout_indexer_for_cutedsl():
        boxes = [ir.TensorBox.create(buffer) for buffer in buffers.values()]
        body = build_subgraph_module_buffer([*arguments, *boxes], graph)
        freeze_irnodes(body)
        kernel: Any = CuteDSLTemplateKernel("mod", [], None, [body])  # type: ignore[arg-type,list-item]
        text = kernel.modification(0, signature.result, **dict(zip(signature.names, signature.parameters, strict=True)))
        original = {inner: outer for outer, inner in kernel.args.input_buffers.items()}
        names = list(dict.fromkeys(kernel.get_tensor_buffers()))
    unpack = [f"{name} = aux_tensors[{i}]" for i, name in enumerate(names)]
    head = f"def {signature.function}({', '.join(signature.parameters)}, seqlen_info, aux_tensors):"
    lines = [f"    {line}" for line in [*unpack, *text.strip().split("\n"), f"return {signature.result}"]]
    source = "\n".join([kernel.gen_imports().strip(), "", "@cute.jit", head, *lines, ""])
    return InductorLowering(source, tuple(captures[int(original[name].removeprefix("buffer"))] for name in names))


def _reason(error: BaseException) -> str:
    """One line: Inductor's banner gives the operation, our own refusal its words, anything else its first line."""
    banner = re.search(r"UNSUPPORTED CUTEDSL OPERATION: '\w+'", str(error))
    if banner:
        return banner.group()
    return str(error) if isinstance(error, Refused) else reason(error)


@cute.jit
def _run(
    mod: cutlass.Constexpr,  # type: ignore[name-defined]
    kind: cutlass.Constexpr,  # type: ignore[name-defined]
    lanes: cutlass.Constexpr,  # type: ignore[name-defined]
    index: Any,
    score: Any,
    grad: Any,
    out: Any,
    aux: Any,
) -> None:
    """Call the mod on groups of `lanes` points, as FA4's softmax and mask code calls it."""
    layout = cute.make_layout(lanes)
    count = cute.size(score)
    for i in cutlass.range(0, count, lanes):  # type: ignore[attr-defined]
        b = cute.make_tensor(index.iterator + i, layout).load()
        h = cute.make_tensor(index.iterator + (count + i), layout).load()
        q = cute.make_tensor(index.iterator + (2 * count + i), layout).load()
        kv = cute.make_tensor(index.iterator + (3 * count + i), layout).load()
        if cutlass.const_expr(kind == "mask"):  # type: ignore[attr-defined]
            keep = mod(b, h, q, kv, None, aux)
            out[i] = cutlass.Float32(1.0) if cutlass.Boolean(keep[0]) else cutlass.Float32(0.0)
        else:
            s = cute.make_tensor(score.iterator + i, layout).load()
            fragment = cute.make_rmem_tensor(lanes, cutlass.Float32)
            if cutlass.const_expr(kind == "score"):  # type: ignore[attr-defined]
                fragment.store(mod(s, b, h, q_idx=q, kv_idx=kv, seqlen_info=None, aux_tensors=aux))
            else:
                g = cute.make_tensor(grad.iterator + i, layout).load()
                fragment.store(mod(g, s, b, h, q_idx=q, kv_idx=kv, seqlen_info=None, aux_tensors=aux))
            cute.make_tensor(out.iterator + i, layout).store(fragment.load())


_number = itertools.count(1)


def _load(source: str, function: str) -> Any:
    """Define the text's function with no file: CuTeDSL reads the lines back from linecache."""
    name = f"<inductor:{next(_number)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(source, name, "exec"), namespace)  # noqa: S102  text that Inductor wrote
    return namespace[function]


def _erf(x: Any) -> Any:
    """Abramowitz and Stegun 7.1.26 (1.5e-7): the GPU has erf, LLVM's host back end has not."""
    a = cute.where(x < 0.0, -x, x)
    t = 1.0 / (1.0 + 0.3275911 * a)
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    y = 1.0 - p * cute.math.exp(-a * a)  # type: ignore[attr-defined]
    return cute.where(x < 0.0, -y, y)


@contextmanager
def _host_functions() -> Iterator[None]:
    """Stand-ins for what only the GPU's libdevice has, so that a host limit isn't taken for Inductor's."""
    with patch.object(cute.math, "erf", _erf), patch.object(cute.math, "erfc", lambda x: 1.0 - _erf(x)):
        yield


def evaluate_points(
    lowering: InductorLowering,
    kind: Kind,
    index: torch.Tensor,
    scores: torch.Tensor | None = None,
    grad: torch.Tensor | None = None,
) -> torch.Tensor:
    """Run Inductor's text at the points `index`, int32 [4, N] of (b, h, q, kv): float32 [N], or bool [N] for a mask."""
    if lowering.error:
        raise ValueError(f"Inductor did not lower this function: {lowering.error}")
    signature = SIGNATURES[kind]
    count = index.shape[1]
    zeros = torch.zeros(count)
    score, slope = (zeros if t is None else t.reshape(count).float() for t in (scores, grad))
    if lowering.source == f"{signature.function} = None":
        return torch.ones(count, dtype=torch.bool) if kind == "mask" else (score if kind == "score" else slope).clone()
    lanes = 1 if lowering.aux else signature.lanes
    fill = torch.arange(-(-count // lanes) * lanes).clamp(max=count - 1)  # repeat the last point, never invent one
    data = [t[..., fill].contiguous() for t in (index.to(torch.int32), score, slope)] + [torch.full((len(fill),), torch.nan)]
    tensors = [from_dlpack(t).mark_layout_dynamic() for t in data]
    aux = tuple(from_dlpack(t.detach()).mark_layout_dynamic() for t in lowering.aux) or None
    mod = _load(lowering.source, signature.function)
    try:
        with _host_functions():
            compiled = cute.compile(_run, mod, kind, lanes, *tensors, aux)
    except Exception as error:
        raise CompileError(
            _reason(error), target="Inductor's text on the host", direction=kind, source=lowering.source, log=str(error)
        ) from error
    compiled(*tensors, aux)
    out = data[3][:count]
    return out != 0 if kind == "mask" else out


def evaluate(
    lowering: InductorLowering,
    kind: Kind,
    shape: tuple[int, int, int, int],
    scores: torch.Tensor | None = None,
    grad: torch.Tensor | None = None,
) -> torch.Tensor:
    """Run Inductor's text over the whole grid `shape` = [B, H, Sq, Skv]: float32, or bool for a mask.

    `scores` are the scaled scores (not for a mask), `grad` the gradient of the new scores (only for score_bwd).
    """
    index = torch.cartesian_prod(*(torch.arange(n, dtype=torch.int32) for n in shape)).T.contiguous()
    return evaluate_points(lowering, kind, index, scores, grad).reshape(shape)
