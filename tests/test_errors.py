"""What a user sees for every mistake: each error class from a real cell or call, the text a golden, no Python stack.

A class in cute_lab/errors.py that the package raises and that has no row in CELLS or CALLS fails here.
"""

from __future__ import annotations

import ast
import math
import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

import cute_lab
from cute_lab import build, cell, device, errors
from cute_lab.build import KernelSpec
from cute_lab.errors import CuteLabError, UserCodeError
from cute_lab.lab import Lab, attention

GOLDENS = Path(__file__).parent / "goldens" / "errors"
TWO_DEVICES = {"here": torch.ones(64), "there": torch.ones(64, device="meta")}
NOTEBOOK = {"torch": torch, "np": np, "math": math, "random": random}


class Cell(NamedTuple):
    error: str
    what: str
    text: str
    notebook: dict[str, Any] = {}  # noqa: RUF012  variables of the notebook, read only


class Call(NamedTuple):
    error: str
    what: str
    call: Callable[[], object]


def score(*body: str) -> str:
    return "\n".join(("%%cute_attention --Sq 64 --D 64", "def score_mod(score, b, h, q_idx, kv_idx):", *("    " + line for line in body)))


def mask(*body: str) -> str:
    return "\n".join(("%%cute_attention --Sq 64 --D 64", "def mask_mod(b, h, q_idx, kv_idx):", *("    " + line for line in body)))


def top(line: str) -> str:
    return f"%%cute_attention\n{line}\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx"


def options(line: str) -> str:
    return f"%%cute_attention {line}\ncap = 30.0\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return cap * torch.tanh(score / cap)"


CELLS = [
    Cell("CellSyntaxError", "a parenthesis is left open", score("bias = 0.1 * (q_idx - kv_idx", "return score + bias")),
    Cell("MissingMod", "nothing is defined", "%%cute_attention\nwindow = 512"),
    Cell("MissingMod", "another name", "%%cute_attention\ndef score_mods(score, b, h, q_idx, kv_idx):\n    return score"),
    Cell("WrongArity", "b is missing", "%%cute_attention\ndef score_mod(score, h, q_idx, kv_idx):\n    return score * h"),
    Cell("WrongArity", "one too many", "%%cute_attention\ndef mask_mod(score, b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx"),
    Cell("UndefinedName", "misspelt", score("return score + slope[h]"), {"slopes": torch.ones(8)}),
    Cell("UndefinedName", "at the top of the cell", top("wide = widht * 2"), {"width": 3}),
    Cell("ReturnsNone", "no return", score("biased = score + 0.1 * kv_idx")),
    Cell("ReturnsNone", "no return in a mask", mask("keep = q_idx >= kv_idx")),
    Cell("WrongResultType", "a mask as score_mod", score("return q_idx >= kv_idx")),
    Cell("WrongResultType", "an integer score", score("return q_idx - kv_idx")),
    Cell("WrongResultType", "an additive mask", mask("return torch.where(q_idx >= kv_idx, 0.0, float('-inf'))")),
    Cell("WrongResultType", "a row of values", score("return score + rows[h]"), {"rows": torch.ones(8, 4)}),
    Cell("WrongResultType", "a Python number", mask("return True")),
    Cell("UserCodeError", "the mod fails", score("bias = torch.stack(score, kv_idx)", "return bias")),
    Cell("UserCodeError", "the cell fails", top("window = 512 // 0")),
    Cell("UserCodeError", "a division by zero somewhere", mask("return q_idx % (kv_idx - 3) == 0")),
    Cell("BranchOnTensor", "if", score("if q_idx >= kv_idx:", "    return score", "return score - 1.0")),
    Cell("BranchOnTensor", "and", mask("return q_idx >= kv_idx and kv_idx < 16")),
    Cell("BranchOnTensor", "a chained comparison", mask("return 0 <= q_idx - kv_idx < 16")),
    Cell("BranchOnTensor", "max", score("return score - max(q_idx - kv_idx, 4)")),
    Cell("BranchOnTensor", "not", mask("return not (q_idx < kv_idx)")),
    Cell("BranchOnTensor", "while", score("while score > 1.0:", "    score = score / 2", "return score")),
    Cell("TensorToNumber", "item", mask("return q_idx - kv_idx < width[h].item()"), {"width": torch.arange(8)}),
    Cell("TensorToNumber", "float", score("return score * float(kv_idx)")),
    Cell("TensorToNumber", "range", score("for i in range(q_idx):", "    score = score + i", "return score")),
    Cell("WritesTensor", "a captured tensor", score("seen[q_idx, kv_idx] = score", "return score"), {"seen": torch.zeros(64, 64)}),
    Cell("WritesTensor", "an input", score("score *= 2", "return score")),
    Cell("RandomInMod", "torch", score("return torch.where(torch.rand_like(score) < 0.1, float('-inf'), score)")),
    Cell("RandomInMod", "Python", score("return score * random.random()")),
    Cell("SideEffect", "print", score('print("score is", score)', "return score")),
    Cell("SideEffect", "a list outside", score("seen.append(score)", "return score"), {"seen": []}),
    Cell("SideEffect", "a global", score("global count", "count = 1", "return score")),
    Cell("LeavesTorch", "numpy", score("return np.tanh(score / 20.0) * 20.0")),
    Cell("LeavesTorch", "math", score("return score - math.log(kv_idx + 1)")),
    Cell("UnsupportedOp", "a determinant", score("return score + torch.linalg.det(rows[kv_idx])"), {"rows": torch.rand(64, 2, 2)}),
    Cell("UnsupportedOp", "no formula", score("return torch.special.bessel_j0(score)")),
    Cell("UnsupportedOp", "a bool index", score("return score + bias[q_idx >= kv_idx].sum()"), {"bias": torch.rand(1)}),
    Cell("UnsupportedOp", "complex numbers", score("return torch.polar(score, score).real")),
    Cell("CaptureDevice", "two devices", score("return score + here[kv_idx] + there[kv_idx]"), TWO_DEVICES),
    Cell("CaptureTooLarge", "a row of 5000", score("return score + rows[kv_idx].sum()"), {"rows": torch.rand(64, 5000)}),
    Cell("IndexOutOfRange", "50 entries for 64 keys", score("return score + table[kv_idx]"), {"table": torch.rand(50)}),
    Cell("IndexOutOfRange", "a distance below zero", score("return score + far[q_idx - kv_idx - 60]"), {"far": torch.rand(104)}),
    Cell("OptionError", "heads that do not share", options("--H 8 --Hkv 3")),
    Cell("OptionError", "no such dtype", options("--dtype fp8")),
    Cell("OptionError", "no such parameter", options("--param cp=20")),
    Cell("OptionError", "no number", options("--Sq many")),
    Cell("OptionError", "a mod that is no function", "%%cute_attention\nscore_mod = 3"),
]


def causal(**given: Any) -> Lab:
    return attention(mask_mod=lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, **given)


def generated(*lines: str) -> KernelSpec:
    """A kernel with this score_mod; no cell leads to these texts."""
    head = "import cutlass\nfrom cutlass import cute\n\n@cute.jit\ndef score_mod(score, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):\n"
    return KernelSpec(head + "".join(f"    {line}\n" for line in lines), ("score_mod",), D=64, user_lines=(0, 0, 0, 0, 0, 2))


CALLS = [
    Call("MissingMod", "attention()", attention),
    Call("OptionError", "a mask_mod that is a matrix", lambda: attention(mask_mod=torch.ones(4, 4))),  # type: ignore[arg-type]
    Call("OptionError", "Sq is a float", lambda: causal(Sq=64.0)),
    Call("OptionError", "q of another shape", lambda: causal(Sq=64, D=64).run(*(torch.zeros(1, 8, 32, 64) for _ in "qkv"))),
    Call("OptionError", "a result that is too large", lambda: causal(Sq=1 << 16).apply_mask()),
    Call("OptionError", "no such captured number", lambda: causal().with_params(window=3)),
    Call("OptionError", "an empty block", lambda: causal().blocks((0, 128))),
    Call("GeometryError", "no such target", lambda: causal(target="sm_91")),
    Call("GeometryError", "a head dimension that no kernel has", lambda: causal(D=12).block_of("sm_90a")),
    Call("GeometryError", "no such direction", lambda: causal().advice(direction="sideways")),
    Call("CompileError", "a block that the target refuses", lambda: causal(block=(128, 100)).compile("sm_90a")),
    Call("CompileError", "a head dimension that no kernel has", lambda: causal(D=512).compile("sm_90a")),
    Call("CompileError", "the compiler's own word", lambda: build.compile_kernel(generated("return cute.math.max(score, 0.0)"), "sm_90a")),
    Call("CompilerCrashed", "a signal", lambda: build.compile_kernel(generated("return score * (q_idx ** 3)"), "sm_90a")),
    Call("CompilerTimeout", "0.01 s", lambda: causal(Sq=192).compile("sm_90a", timeout=0.01, force=True)),
]
LOCK = threading.Lock()
DTYPES = (torch.float16, torch.float32, torch.float32)


def locked(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score if LOCK else score * 2


def without_gpu(call: Callable[[], object]) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "available", lambda: False)
        return call()


CALLS += [
    Call("OptionError", "no such device", lambda: causal(Sq=64).bench(device="tpu")),
    Call("OptionError", "no such record", lambda: cute_lab.load("h200_mha")),
    Call("OptionError", "nothing to sweep", lambda: causal(Sq=64).bench(Sq=[])),
    Call("OptionError", "k of another dtype", lambda: causal(Sq=64, D=64).run(*(torch.zeros(1, 8, 64, 64, dtype=d) for d in DTYPES))),
    Call("DeviceError", "a capture that can't travel", lambda: attention(locked, Sq=64).bench(device="cpu")),
    Call("DeviceMissing", "bench() without a GPU", lambda: without_gpu(causal(Sq=64).bench)),
    Call("DeviceCrashed", "an abort", lambda: list(device.current("cpu").run("ping", "die"))),
    Call("DeviceHung", "half a second of silence", lambda: list(device.current("cpu").run("ping", "hang", silence=0.5))),
]
NAMES = sorted({row.error for row in (*CELLS, *CALLS)})


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    from traitlets.config import Config

    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.colors = "nocolor"
    shell.run_line_magic("load_ext", "cute_lab")
    yield shell
    InteractiveShell.clear_instance()


def shown_by(shell: InteractiveShell, row: Cell, capsys: pytest.CaptureFixture[str]) -> str:
    """Runs the cell as a notebook does; what is printed is what the error says, and nothing else."""
    shell.user_ns.update(NOTEBOOK | row.notebook)
    capsys.readouterr()
    error = shell.run_cell(row.text).error_in_exec
    for name in row.notebook:
        del shell.user_ns[name]
    printed = capsys.readouterr()
    assert isinstance(error, CuteLabError), f"{row.error}, {row.what}: {type(error).__name__} {error}"
    assert type(error).__name__ == row.error, f"{row.what}: {error}"
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed.out + printed.err).rstrip("\n")
    assert text == str(error), row.what
    return text


def shown(call: Call) -> str:
    with pytest.raises(CuteLabError) as caught:
        call.call()
    assert type(caught.value).__name__ == call.error, f"{call.what}: {caught.value}"
    return str(caught.value)


def normal(text: str) -> str:
    """Without what another machine or another version of this file would say differently."""
    text = re.sub(r"(test_errors\.py line )\d+(, columns \d+-\d+)?", r"\1N", text)
    text = re.sub(r"^ *\d+ \| (?=.*(lambda|causal))", "    N | ", text, flags=re.M)
    return re.sub(r"(/[\w.+-]+){2,}/", "/", text)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.cross] if n.startswith("Compile") else []) for n in NAMES])
def test_what_the_user_sees(
    name: str, shell: InteractiveShell, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    parts = [f"# {row.what}\n{row.text}\n\n{shown_by(shell, row, capsys)}\n" for row in CELLS if row.error == name]
    parts += [f"# {call.what}\n\n{shown(call)}\n" for call in CALLS if call.error == name]
    text = normal("\n\n".join(parts))
    assert "Traceback" not in text
    assert "``" not in text, "an empty place in a template"
    golden(f"errors/{name}.txt", text)


def test_a_divisor_that_starts_at_zero() -> None:
    """Its interval touches 0 from one side."""
    for sign in ("%", "//"):
        mod = cell.from_text(f"def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx {sign} kv_idx == 0").mask_mod
        with pytest.raises(UserCodeError, match="division by zero at b=0, h=0, q_idx=0, kv_idx=0"):
            attention(mask_mod=mod, Sq=64)


def subclasses(cls: type[CuteLabError]) -> set[type[CuteLabError]]:
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


def called_names() -> set[str]:
    """Names that the package calls or picks: `raise X(...)`, `return X(...)`, `kind = X`."""
    files = [path for path in Path(cute_lab.__path__[0]).rglob("*.py") if path.name != "errors.py"]
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    loads = (node for node in nodes if isinstance(node, ast.Call | ast.Assign | ast.AnnAssign))
    return {n.id for load in loads for n in ast.walk(load) if isinstance(n, ast.Name)}


def test_every_error_that_is_raised_has_a_golden() -> None:
    known = {cls.__name__: cls for cls in subclasses(CuteLabError) if cls.__module__ == errors.__name__}
    groups = {name for name, cls in known.items() if cls.__subclasses__()}
    raised = known.keys() & called_names() - {"CuteLabError"}
    assert raised - set(NAMES) == set(), "raised, but without a row here"
    assert known.keys() - groups - raised == set(), "in the tree, but never raised"
    assert {path.stem for path in GOLDENS.glob("*.txt")} == set(NAMES)
