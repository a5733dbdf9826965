"""%%cute_attention in a real shell and a real kernel: options, completion, help, outputs and what a mistake looks like."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from cute_lab.__main__ import execute
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.magic import load_ipython_extension, matcher, unload_ipython_extension
from cute_lab.options import MAGIC, OPTIONS, SWITCHES, parse
from cute_lab.record import MIME, from_json

ROOT = Path(__file__).parent.parent
CELL = "window = 256\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)\n"


# -- options --------------------------------------------------------------------------------------------------------------
def test_options_are_read() -> None:
    line = "--B 2 --H=16 --Sq 4096 --dtype float16 --block 64x128 --param w=3 --param c=2.5e0 --target sm_90a --target sm_100a,auto --out x"
    assert parse(line) == {
        "--B": 2, "--H": 16, "--Sq": 4096, "--dtype": "fp16", "--block": (64, 128), "--param": [("w", 3), ("c", 2.5)],
        "--target": ["sm_90a", "sm_100a", "auto"], "--out": "x",
    }  # fmt: skip
    assert parse("") == {}
    assert parse("--help --fast-math") == {"--help": True, "--fast-math": True}


def test_every_option_reads_its_own_example() -> None:
    for option in OPTIONS.values():
        assert parse(f"{option.flag} {option.example}")[option.flag]
        for value in option.values():
            assert parse(f"{option.flag} {value}")[option.flag]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("--heads 8", "--H"),
        ("--h 8", "--H"),
        ("--targt sm_90a", "--target"),
        ("--S 12", "--Sq"),
        ("--seqlen 1", "--Sq"),
        ("--fastmath", "--fast-math"),
    ],
)
def test_an_unknown_flag_is_a_usage_error_with_a_guess(line: str, meant: str) -> None:
    with pytest.raises(UsageError, match="unrecognized arguments") as caught:
        parse(line)
    assert f"(did you mean {meant}?)" in str(caught.value)
    assert "--help" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message", "write"),
    [
        ("--B", "--B needs a value", "--B 4"),
        ("--H x", "--H: 'x' is no positive integer below 2**31", "--H 128"),
        ("--D 0", "--D: '0' is no positive integer below 2**31", "--D 128"),
        ("--dtype bfloat", "--dtype: there is no 'bfloat'", "--dtype bfloat16"),
        ("--target sm90", "--target: there is no 'sm90'", "--target sm_90a"),
        ("--block 3y", "--block: '3y' is no block size", "--block 128x128"),
        ("--param w", "--param: 'w' is not name=number", "--param w=512"),
        ("--param 3=4", "--param: '3=4' is not name=number", "--param window=512"),
        ("--out class", "--out: 'class' can't be the name of a variable", "--out lab"),
        ("--views mask,sumary", "--views: there is no 'sumary'", "--views summary"),
        ('--out "x', "the options can't be read: No closing quotation", "%%cute_attention --H 16"),
    ],
)
def test_a_bad_value_names_the_option_and_what_to_write(line: str, message: str, write: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(line)
    assert caught.value.summary == message
    assert caught.value.hint == write


# -- a shell --------------------------------------------------------------------------------------------------------------
@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    made.history_manager.enabled = False
    load_ipython_extension(made)
    yield made
    unload_ipython_extension(made)
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def completions(shell: InteractiveShell, text: str) -> list[str]:
    """With the cursor at the bar."""
    at = text.index("|")
    text = text.replace("|", "")
    with provisionalcompleter():
        return [c.text for c in shell.Completer.completions(text, at)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%cute_attention --S|", ["--Sq", "--Skv"]),
        ("%%cute_attention --Sq 4 --S|", ["--Skv"]),
        ("%%cute_attention --H 8 --ta|\ndef mask_mod(): pass", ["--target"]),
        ("%%cute_attention --target sm_9|", ["sm_90a"]),
        ("%%cute_attention --target=sm_9|", ["sm_90a"]),
        ("%%cute_attention --target sm_90a,sm_100|", ["sm_100a"]),
        ("%%cute_attention --target |", ["sm_90a", "sm_100a", "sm_103a", "sm_120a", "auto", "none"]),
        ("%%cute_attention --dtype f|", ["fp16"]),
        ("%%cute_attention --dtype |", ["bf16", "fp16"]),
        ("%%cute_attention --views summary,ma|", ["mask"]),
        ("%%cute_attention --param |\nwindow = 3\ncap = 2.0\nname = 'x'\n", ["window=", "cap="]),
        ("%%cute_attention --he|", ["--help"]),
        ("%%cute_attention --backward --ba|", []),
        ("%%cute_attention --H| --Hkv 2 --Sq 4", ["--H"]),
    ],
)
def test_options_and_values_complete(shell: InteractiveShell, text: str, expected: list[str]) -> None:
    assert completions(shell, text) == expected


def test_all_flags_are_offered_and_the_body_still_completes_as_python(shell: InteractiveShell) -> None:
    assert completions(shell, "%%cute_attention |") == [*OPTIONS, *SWITCHES]
    shell.user_ns["window_of_the_notebook"] = 3
    body = completions(shell, "%%cute_attention\nx = window_of_|\n")
    assert "window_of_the_notebook" in body
    assert not set(body) & set(OPTIONS)


def test_unloading_takes_everything_away(shell: InteractiveShell) -> None:
    load_ipython_extension(shell)
    assert shell.Completer.custom_matchers.count(matcher) == 1
    unload_ipython_extension(shell)
    assert matcher not in shell.Completer.custom_matchers
    assert shell.find_cell_magic(MAGIC) is None
    assert shell.find_line_magic(MAGIC) is None


def test_load_ext_finds_the_package(shell: InteractiveShell) -> None:
    unload_ipython_extension(shell)
    shell.run_line_magic("load_ext", "cute_lab")
    assert shell.find_cell_magic(MAGIC) is not None
    shell.run_line_magic("unload_ext", "cute_lab")
    assert shell.find_cell_magic(MAGIC) is None


def test_help_is_printed_and_stands_behind_the_question_mark(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_line_magic(MAGIC, "--help")
    shown = capsys.readouterr().out
    assert shown.startswith("usage: %%cute_attention [options]")
    assert all(flag in shown for flag in (*OPTIONS, *SWITCHES))
    assert shell.find_cell_magic(MAGIC).__doc__ in shown
    with pytest.raises(UsageError, match="is a cell magic"):
        shell.run_line_magic(MAGIC, "--H 8")


def test_the_cell_leaves_the_lab_and_nothing_else(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(shell.user_ns)
    shell.run_cell_magic(MAGIC, "--H 2 --Sq 512 --param window=128 --target none --out local --views summary", CELL)
    assert set(shell.user_ns) - before == {"local"}
    lab = shell.user_ns["local"]
    assert lab.params == {"window": 128}
    assert lab.runtime == {"window": 128}
    assert (lab.shape.H, lab.shape.Sq, lab.name) == (2, 512, "local")
    assert lab.cell.text.splitlines()[0] == lab.cell.magic
    assert lab.cell.text.splitlines()[4] == "    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)"
    assert "The generated CuTeDSL equals your function" in capsys.readouterr().out


def test_braces_and_dollars_of_the_line_are_not_expanded(shell: InteractiveShell) -> None:
    shell.user_ns["x"] = 8
    with pytest.raises(OptionError, match=r"'\{x\}' is no positive integer"):
        shell.run_cell_magic(MAGIC, "--H {x}", CELL)


def test_a_mistake_is_raised_at_its_line_of_the_cell(shell: InteractiveShell) -> None:
    with pytest.raises(CuteLabError) as caught:
        shell.run_cell_magic(
            MAGIC, "--target none", "\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return score if q_idx > 3 else score + 1\n"
        )
    assert caught.value.line == 4
    assert "cell line 4" in str(caught.value)


# -- a kernel -------------------------------------------------------------------------------------------------------------
def run(*cells: str) -> list[list[Any]]:
    notebook = nbformat.v4.new_notebook()
    tagged = {"tags": ["raises-exception"]}
    notebook.cells = [nbformat.v4.new_code_cell(cell, metadata=tagged) for cell in ("%load_ext cute_lab", *cells)]
    execute(notebook, ROOT)
    assert notebook.cells[0].outputs == []
    return [cell.outputs for cell in notebook.cells[1:]]


INTERRUPTS = """\
from cute_lab.lab import Lab
plain = Lab.record
def record(self, targets=None, backward=False):
    if targets == ():
        return plain(self, targets)
    raise KeyboardInterrupt
Lab.record = record"""
BRANCH = "def score_mod(score, b, h, q_idx, kv_idx):\n    if q_idx > 3:\n        return score\n    return -score"
KERNEL_CELLS = {
    "good": f"%%cute_attention --H 2 --Sq 512 --target none --views summary,mask\n{CELL}",
    "again": f"%%cute_attention --H 2 --Sq 512 --target none --views summary,mask\n{CELL}",
    "mistake": f"%%cute_attention --target none\nimport torch\n{BRANCH}",
    "syntax": "%%cute_attention\nx = (1,\n",
    "option": f"%%cute_attention --block big\n{CELL}",
    "usage": f"%%cute_attention --heads 8\n{CELL}",
    "help": "%cute_attention --help",
    "source": "import inspect; print(inspect.getsource(lab.mask_mod), lab.mask_mod.__code__.co_firstlineno)",
    "leak": "print('window' in globals(), 'mask_mod' in globals())",
    "interrupts": INTERRUPTS,
    "stopped": f"%%cute_attention --H 2 --Sq 512 --target sm_90a --views summary\n{CELL}",
    "goes_on": "Lab.record = plain",
    "trace": "from cute_lab import lab as module\nmodule.attention = lambda *a, **k: 1 // 0",
    "bug": f"%%cute_attention\n{CELL}",
}


@pytest.fixture(scope="module")
def kernel() -> dict[str, list[Any]]:
    return dict(zip(KERNEL_CELLS, run(*KERNEL_CELLS.values()), strict=True))


def text_of(output: Any) -> str:
    return str(output.text if output.output_type == "stream" else "\n".join(output.traceback))


def test_a_cell_shows_each_view_once(kernel: dict[str, list[Any]]) -> None:
    for name in ("good", "again"):
        outputs = kernel[name]
        assert [output.output_type for output in outputs] == ["display_data", "display_data"]
        assert [sorted(output.data) for output in outputs] == [[MIME, "text/markdown", "text/plain"], [MIME, "image/png", "text/plain"]]
        record = from_json(json.loads(json.dumps(outputs[0].data[MIME])))
        assert all(check.ok for check in record.checks)
        assert record.blocks is not None
        assert record.cell.text == KERNEL_CELLS[name].rstrip("\n") + "\n"


def test_a_mistake_shows_the_users_line_and_no_stack(kernel: dict[str, list[Any]]) -> None:
    (output,) = kernel["mistake"]
    assert (output.output_type, output.ename) == ("error", "BranchOnTensor")
    shown = text_of(output).splitlines()
    assert shown[0].startswith("CuteLabError: a Python `if` on an index can't be lowered")
    assert shown[0].endswith("cell line 4, columns 8-16")
    assert shown[1] == "    4 |     if q_idx > 3:"
    assert "Traceback" not in text_of(output)
    (syntax,) = kernel["syntax"]
    assert syntax.ename == "CellSyntaxError"
    assert "'(' was never closed" in text_of(syntax)
    assert "cell line 2" in text_of(syntax)


def test_a_bad_option_is_an_error_and_an_unknown_flag_a_usage_error(kernel: dict[str, list[Any]]) -> None:
    (option,) = kernel["option"]
    assert option.ename == "OptionError"
    assert "--block 128x128" in text_of(option)
    (usage,) = kernel["usage"]
    assert (usage.output_type, usage.name) == ("stream", "stderr")
    assert "did you mean --H?" in text_of(usage)


def test_help_source_and_scope(kernel: dict[str, list[Any]]) -> None:
    assert text_of(kernel["help"][0]).startswith("usage: %%cute_attention [options]")
    assert text_of(kernel["source"][0]).startswith("def mask_mod(b, h, q_idx, kv_idx):\n    return")
    assert text_of(kernel["source"][0]).split()[-1] == "4"
    assert text_of(kernel["leak"][0]) == "False False\n"


def test_an_interrupted_compile_is_said_in_the_card_and_in_a_sentence(kernel: dict[str, list[Any]]) -> None:
    card, error = kernel["stopped"]
    record = from_json(json.loads(json.dumps(card.data[MIME])))
    assert all(check.ok for check in record.checks)  # what was there stays
    assert [note.text.split(":")[0] for note in record.notes] == ["⚙ Stopped before the kernel was compiled for `sm_90a`"]
    assert (error.ename, text_of(error)) == ("Stopped", "Stopped: the kernel is not compiled. Run the cell again for the machine code.")


def test_a_bug_of_ours_shows_its_whole_stack(kernel: dict[str, list[Any]]) -> None:
    (output,) = kernel["bug"]
    assert output.ename == "ZeroDivisionError"
    assert "Traceback" in text_of(output)


# -- the command line -----------------------------------------------------------------------------------------------------
def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "cute_lab", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60)


def test_show_prints_a_record() -> None:
    done = command("show", "tests/records/example.cute.json", "--views", "summary,check")
    assert done.returncode == 0, done.stderr
    assert "The generated CuTeDSL equals your functions" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "missing.json"), "there is no file"),
        (("show", "pyproject.toml"), "pyproject.toml is not JSON"),
        (("show", "tests/records/example.cute.json", "--views", "speed"), "there is no view 'speed'"),
    ],
)
def test_show_says_what_is_wrong(arguments: tuple[str, ...], says: str) -> None:
    done = command(*arguments)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_bench_without_a_gpu_shows_all_else_first_and_then_says_so(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cute_lab.device.available", lambda: False)
    text = "%%cute_attention --H 1 --Sq 64 --D 64 --target none --bench --against eager --views check\n"
    done = shell.run_cell(f"{text}def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n")
    assert type(done.error_in_exec).__name__ == "DeviceMissing"
    assert "✔ equal" in capsys.readouterr().out
    assert shell.user_ns["lab"].verify().ok


def test_bench_adds_speed_to_the_summary_and_shows_the_chart_and_the_table(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On this CPU, whose name stands beside every figure."""
    monkeypatch.setattr("cute_lab.device.chosen", lambda device: "cpu")
    text = "%%cute_attention --H 1 --Sq 64 --D 32 --target none --bench --against eager --views summary\n"
    done = shell.run_cell(f"{text}def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n")
    done.raise_error()
    out = capsys.readouterr().out
    assert "CPU: no GPU was used" in out
    assert out.count("eager") >= 2
