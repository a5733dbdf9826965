"""lab.export("module"): the variant as a torch module in a file of its own, which needs torch and flash-attn-4 and no cute_lab.

The file holds the person's functions, the generated CuTeDSL of each GPU and direction, the captured tensors, and its own test. Block
lists are made by running the mask where the module runs, so they are right at any length; a length that
the code was not proved for is refused.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import keyword
import re
import sys
import threading
import types
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cute_lab import __version__, cutedsl, export_sizes, fa4, native, reference, standalone, standalone_check, targets
from cute_lab.embed import Embedder
from cute_lab.environment import version
from cute_lab.errors import OptionError
from cute_lab.ir import inputs_of
from cute_lab.scalar_forms import movable
from cute_lab.tables import moved

if TYPE_CHECKING:
    from cute_lab.lab import Lab

MARKER = "# ---- copied from here on\n"
MOST_BYTES = 8 << 20  # of packed captured tensors in a file
DTYPES = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
WIDTH = 120
MOST_KEYS = 8192  # at which the embedded functions are compared with the lab's
TRIED = 4096  # queries and keys of the test, where the lab has more


@dataclass
class _Tensors:
    """Captured tensors by the name of their buffer; those that the kernels read come first, in their order."""

    rows: dict[str, torch.Tensor] = field(default_factory=dict)

    def name(self, wanted: str, x: torch.Tensor) -> str:
        x = x.detach()
        for name, known in self.rows.items():
            same = (known.data_ptr(), known.shape, known.stride(), known.dtype) == (x.data_ptr(), x.shape, x.stride(), x.dtype)
            if same and known.device == x.device:
                return name
        return self.add(wanted, x)

    def add(self, wanted: str, x: torch.Tensor) -> str:
        base = re.sub(r"\W", "_", wanted)
        base = (
            base if base.isidentifier() and not hasattr(torch.nn.Module, base) and base not in ("spec", "numbers") else f"captured_{base}"
        )
        name = next(n for i in range(1, 9999) if (n := base if i == 1 else f"{base}_{i}") not in self.rows)
        self.rows[name] = x
        return name

    def text(self) -> str:
        out, total = [], 0
        for name, x in self.rows.items():
            host = moved(x, "cpu") if x.device.type != "cpu" else x
            reach = 1 + sum((n - 1) * step for n, step in zip(host.shape, host.stride(), strict=True)) if host.numel() else 0
            flat = host.as_strided((reach,), (1,), host.storage_offset()).contiguous()
            packed = base64.b64encode(zlib.compress(flat.view(torch.uint8).numpy().tobytes(), 9)).decode()
            total += len(packed)
            lines = "\n".join(f'            "{packed[i : i + WIDTH]}"' for i in range(0, len(packed), WIDTH))
            layout = f"{x.dtype}, {tuple(x.shape)}, {tuple(x.stride())}"
            out.append(f"        Captured(\n            {name!r}, {layout},\n{lines},\n        ),")
        if total > MOST_BYTES:
            raise OptionError(
                f"the captured tensors take {total:,} bytes packed, more than a file of code should hold ({MOST_BYTES:,})",
                example="compute them inside of the functions, or capture smaller ones: offsets in place of a table",
            )
        return "\n".join(out)


def module(lab: Lab) -> str:
    """The file's text."""
    program = lab.graph
    tensors = _Tensors()
    for t in program.tables:
        tensors.add(t.name, (t.original if t.source is None else t.source).detach())
    moving = movable(lab)
    embedder = Embedder(moving.names, tensors.name)
    mods = lab.mods
    own = {kind: embedder.value(f"{kind}_mod", mods[kind]) if kind in mods else "None" for kind in ("score", "mask")}
    dead = {"score_mod", "score_mod_bwd"} if fa4.is_identity(program) else set()
    kernels, functions = _kernels(lab, dead)
    title, file = _title(lab.name), _identifier(lab.name)
    numbers = {name: lab.params[name] for name in moving.names}
    s, reads = lab.shape, inputs_of(program.mask.output) if program.mask is not None else frozenset()
    window = native.bounds(program.mask.output, ()) if program.mask is not None and not _moves(program.mask.output) else None
    scalars = "".join(f"\n        ({kind!r}, lambda n: {text}),  # {name}" for name, kind, text in moving.scalars)
    spec = f"""Spec(
    H={s.H},
    Hkv={s.Hkv},
    D={s.D},
    dtype={DTYPES[s.dtype]},
    batches={export_sizes.batches(lab)},
    most={export_sizes.lengths(lab)},
    tried={min(s.Sq, TRIED), min(s.Skv, TRIED)},
    kernels={{
{kernels}
    }},
    captured=(
{tensors.text()}
    ),
    addresses={len(program.tables)},
    scalars=({scalars}
    ),
    reads={("b" in reads, "h" in reads)},
    window={_number_pair(window)},
)"""
    given = ", ".join(f"{name}={value!r}" for name, value in numbers.items())
    keywords = "".join(f", {name}={value!r}" for name, value in numbers.items())
    passed = ", ".join(f"{name}={name}" for name in numbers)
    base, test = (Path(m.__file__ or "").read_text(encoding="utf-8").partition(MARKER)[2] for m in (standalone, standalone_check))
    imports, _, machinery = base.partition("\n\n\n")
    parts = [
        _head(lab, title, given),
        _imports(imports, functions),
        f"# -- the variant, as it was written {'-' * 90}\n{_definitions(embedder)}",
        f"# -- the generated CuTeDSL {'-' * 99}\n{functions}",
        f"# -- attention with it {'-' * 104}\n{machinery}",
        f"SPEC = {spec}",
        f"""class {title}(Variant):
    spec = SPEC

    def __init__(self{keywords}):
        super().__init__({passed})

    def functions(self):
        t, n = self.tensors(), self.numbers
        return {own["score"]}, {own["mask"]}""",
        test,
        f"def test_{file}():\n    print(check({title}()))",
        f'if __name__ == "__main__":\n    test_{file}()',
    ]
    text = "\n\n\n".join(part.strip("\n") for part in parts) + "\n"
    text = re.sub(r"  # type: ignore\[[^\n]*", "", text)
    _same_functions(lab, text, title)
    return text


def _same_functions(lab: Lab, text: str, title: str) -> None:
    """What was embedded gives what the lab's own functions give, at some queries of two heads; bit by bit."""
    made, s = types.ModuleType(f"cute_lab_exported_{threading.get_ident()}"), lab.shape
    sys.modules[made.__name__] = made  # dataclasses look their module up; two threads may export at once
    try:
        exec(compile(text, "<exported>", "exec"), vars(made))
        scope = vars(made)
        module = scope[title]()
        rows = torch.tensor(sorted({0, s.Sq // 3, s.Sq // 2, s.Sq - 1}), dtype=torch.int32)
        keys = min(s.Skv, MOST_KEYS)
        scores = torch.randn(len(rows), keys, generator=torch.Generator().manual_seed(1)) * 3
        for kind, mine in zip(("score", "mask"), module.functions(), strict=True):
            for b, h in {(0, 0), (s.B - 1, s.H - 1)} if kind in lab.mods else ():
                at = reference.home(lab.mods[kind])
                given = scores.to(at) if kind == "score" else None
                expected = standalone.over(lab.mods[kind], given, b, h, rows.to(at), keys).cpu()
                found = scope["over"](mine, scores if kind == "score" else None, b, h, rows, keys)
                if not torch.equal(found.nan_to_num(nan=7.0), expected.nan_to_num(nan=7.0)) and at.type == "cpu":
                    raise OptionError(
                        f"the text of the {kind}_mod is not what it does: it was changed after it was defined, or holds a state",
                        example="define it again, and export it then",
                    )
    finally:
        del sys.modules[made.__name__]


def _head(lab: Lab, title: str, given: str) -> str:
    s, file = lab.shape, _identifier(lab.name)
    needs = " and ".join(f"{name} {version(name).partition('+')[0]}" for name in ("torch", "flash-attn-4"))
    return f'''"""{file}: a variant of attention as a torch module. Made by cute_lab {__version__}; needs {needs}, and no cute_lab.

    from {file} import {title}

    attention = {title}({given}).cuda()
    out = attention(q, k, v)  # q [B, {s.H}, Sq, {s.D}], k and v [B, {s.Hkv}, Skv, {s.D}], bf16 or fp16

    python {file}.py  # its test, as `pytest {file}.py`: the kernel against the eager evaluation in float32, on a GPU
"""'''.replace("\\", "\\\\")


def _identifier(name: str) -> str:
    found = re.sub(r"\W", "_", name) or "variant"
    return f"variant_{found}" if found[0].isdigit() or keyword.iskeyword(found) else found


def _title(name: str) -> str:
    found = "".join(part[:1].upper() + part[1:] for part in _identifier(name).split("_")) or "Exported"
    return (
        f"{found}Attention" if found in ("Spec", "Sizes", "Kernel", "Captured", "Variant", "FlashAttention", "Any", "Callable") else found
    )


def _definitions(embedder: Embedder) -> str:
    rebuilt = ""
    if embedder.rebuilds:
        rebuilt = "def rebuilt(kind, fields):\n    made = object.__new__(kind)\n    vars(made).update(fields)\n    return made\n\n\n"
    return rebuilt + "\n\n".join(embedder.definitions)


def _imports(own: str, functions: str) -> str:
    """Those of the machinery, of the generated code and of the variant, in the usual order."""
    lines = {*own.split("\n"), "import functools", "import cutlass", "from cutlass import cute"} - {""}
    lines |= {"import operator"} if "operator." in functions else set()
    parts: dict[bool, list[str]] = {True: [], False: []}
    for line in sorted(lines, key=lambda line: (line.startswith("from"), line)):
        parts[line.split()[1].partition(".")[0] in sys.stdlib_module_names].append(line)
    return "\n".join([*parts[True], "", *sorted(parts[False], key=lambda line: line.split()[1])])


def _moves(output: Any) -> bool:
    from cute_lab.ir import toposort

    return any(n.op == "scalar" for n in toposort(output))


def _number_pair(window: tuple[float, float] | None) -> str:
    """As Python text: an infinity has no literal."""
    if window is None:
        return "None"
    return "({}, {})".format(*(f"float({str(x)!r})" if x - x else repr(x) for x in window))


# -- the kernels -------------------------------------------------------------------------------------------------------------
def _kernels(lab: Lab, dead: set[str]) -> tuple[str, str]:
    """The rows of Spec.kernels, and the functions that they name, each text once."""
    texts: dict[str, str] = {}  # a function's text -> its name in the file
    marks: dict[str, str] = {}
    rows: dict[int, list[str]] = {}
    for (target, direction), spec in export_sizes.specs(lab).items():
        major = targets.target_named(target).fa_arch // 10
        if len(rows.get(major, ())) == len(export_sizes.DIRECTIONS):
            continue  # two targets of one generation take the same texts
        if isinstance(spec, str):
            rows.setdefault(major, []).append(f"            {direction!r}: Kernel(refused={spec!r}),")
            continue
        named = []
        for function, text in _functions(spec.source).items():
            if function in dead or function not in spec.functions or (direction == "forward" and function == "score_mod_bwd"):
                continue
            name = texts.setdefault(text, f"{function}_{target.rstrip('abcdef')}_{direction}")
            digest = hashlib.sha256(f"{function}\n{text}".encode()).hexdigest()
            marks[name] = f'{name}.__cute_hash__ = "{digest}"'
            vec = {"score_mod": spec.score_vec, "mask_mod": spec.mask_vec}.get(function)
            marks[name] += f"\n{name}.__vec_size__ = {vec}" if vec is not None else ""
            named.append(f"{function!r}: {name}")
        sizes = "".join(f"\n                    {text}," for text in export_sizes.changes(lab, target, direction))
        rows.setdefault(major, []).append(
            f"            {direction!r}: Kernel(\n                {{{', '.join(named)}}},\n                ({sizes}\n                ),\n"
            "            ),"
        )
    written = [re.sub(r"^def \w+\(", f"def {name}(", text, count=1, flags=re.MULTILINE) for text, name in texts.items()]
    table = [cutedsl.TABLE.strip("\n")] if any("table(aux_scalars" in text for text in texts) else []
    functions = "\n\n\n".join([*table, *written, *(["\n".join(marks[name] for name in texts.values())] if texts else [])])
    lines = [line for major, found in rows.items() for line in (f"        {major}: {{", *found, "        },")]
    return "\n".join(lines), functions


def _functions(source: str) -> dict[str, str]:
    """The text of each generated function, with its decorator."""
    lines = source.split("\n")
    found = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    return {node.name: "\n".join(lines[node.decorator_list[0].lineno - 1 : node.end_lineno]) for node in found}
