"""Cell text -> mods: line numbers, what the cell sees and leaves, parameters, and every mistake of the text itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from cute_lab.cell import KINDS, Mods, from_text
from cute_lab.errors import CellSyntaxError, CuteLabError, MissingMod, OptionError, UndefinedName, UserCodeError

WINDOW = """\
# %%cute_attention --H 4
window = 512
half = window // 2

def near(q_idx, kv_idx):
    return q_idx - kv_idx < half

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & near(q_idx, kv_idx)
"""


def kept(mods: Mods, q: int, kv: int) -> bool:
    assert mods.mask_mod is not None
    return bool(mods.mask_mod(*(torch.tensor(i, dtype=torch.int32) for i in (0, 0, q, kv))))


def test_the_text_is_found_under_the_editors_line_numbers() -> None:
    mods = from_text(WINDOW)
    assert mods.score_mod is None
    lines, first = inspect.getsourcelines(mods.mask_mod)  # type: ignore[arg-type]
    assert first == 8
    assert WINDOW.splitlines(keepends=True)[first - 1 :] == lines


def test_the_cell_sees_the_notebook_and_leaves_it_as_it_is() -> None:
    notebook: dict[str, Any] = {"window": 3, "torch": torch, "score_mod": lambda *a: None}
    before = dict(notebook)
    text = "wide = window * 2\ndef mask_mod(b, h, q_idx, kv_idx):\n    return torch.abs(q_idx - kv_idx) < wide\n"
    mods = from_text(text, notebook)
    assert notebook == before
    assert kept(mods, 5, 0)
    assert not kept(mods, 6, 0)
    assert mods.score_mod is None  # the notebook's score_mod belongs to another cell
    assert mods.namespace["wide"] == 6


def test_a_cell_keeps_no_variable_alive_that_it_does_not_mention() -> None:
    text = "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & keep[q_idx]\n"
    notebook: dict[str, Any] = {"keep": torch.ones(8, dtype=torch.bool), "large": torch.zeros(9), "Out": {}}
    mods = from_text(text, notebook)
    mods.forget_unused()
    assert {name for name in mods.namespace if not name.startswith("__")} == {"keep"}
    assert "large" in notebook
    assert kept(mods, 3, 1)


@pytest.mark.parametrize(
    "text",
    [
        "from operator import add\nscore_mod = lambda score, b, h, q_idx, kv_idx: add(score, b)",
        "def make(scale):\n    return lambda score, b, h, q_idx, kv_idx: score * scale\nscore_mod = make(2.0)",
        "from functools import partial\ndef f(k, score, b, h, q_idx, kv_idx):\n    return score * k\nscore_mod = partial(f, 2.0)",
        "class Mod:\n    def __call__(self, score, b, h, q_idx, kv_idx):\n        return score\nscore_mod = Mod()",
    ],
)
def test_any_callable_is_a_mod(text: str) -> None:
    mods = from_text(text)
    assert callable(mods.score_mod)
    assert mods.mask_mod is None


# -- parameters -----------------------------------------------------------------------------------------------------------
HALF = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < half\n"
FULL = HALF.replace("half", "window")
CLOSURE = "def make(width):\n    return lambda b, h, q_idx, kv_idx: q_idx - kv_idx < width\nmask_mod = make(512)\n"
BOOK = {"window": 512}


@pytest.mark.parametrize(
    ("text", "notebook", "params", "passed", "edge"),
    [
        (WINDOW, {}, {"window": 64}, {}, 32),  # captured through another number: set before that, nothing left to pass
        (WINDOW, {}, {"half": 64}, {"half": 64}, 64),  # captured itself: set, and passed so that it stays a run-time value
        (FULL, BOOK, {"window": 64}, {"window": 64}, 64),
        ("half = window // 2\n" + HALF, BOOK, {"window": 64}, {}, 32),
        (CLOSURE, {}, {"width": 64}, {"width": 64}, 512),  # only a closure holds it: attention(params=) sets it in a copy
        ("a, window = 1, 512\nwindow: int = window\n" + FULL, {}, {"window": 64}, {"window": 64}, 64),
        ("for window in (1, 512): pass\n" + FULL, {}, {"window": 64.0}, {"window": 64}, 64),
    ],
)
def test_a_parameter_overrides_a_number(
    text: str, notebook: dict[str, Any], params: dict[str, int], passed: dict[str, int], edge: int
) -> None:
    before = dict(notebook)
    mods = from_text(text, notebook, params=params)
    assert mods.params == passed
    assert all(type(mods.params[n]) is type(passed[n]) for n in passed)
    assert kept(mods, edge - 1, 0)
    assert not kept(mods, edge, 0)
    assert notebook == before


def test_a_parameter_takes_the_type_of_the_number() -> None:
    text = "cap = 20.0\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return score / cap\n"
    value = from_text(text, params={"cap": 30}).params["cap"]
    assert value == 30
    assert isinstance(value, float)


@pytest.mark.parametrize(
    ("params", "notebook", "message"),
    [
        ({"windw": 3}, {}, "no number is called 'windw' (did you mean 'window'?)"),
        ({"window": 2.5}, {}, "`window` is an integer in the code, 2.5 is not"),
        ({"near": 2}, {}, "no number is called 'near'"),
        ({"window": 2}, {"window": "wide"}, "`window` is a str in the code, only numbers can be set"),
        ({"unused": 2}, {"unused": 3}, "no number is called 'unused'"),
    ],
)
def test_a_wrong_parameter_is_named(params: dict[str, Any], notebook: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        from_text(WINDOW.replace("window = 512", "") if "window" in notebook else WINDOW, notebook, params=params)
    assert message in caught.value.summary


# -- mistakes -------------------------------------------------------------------------------------------------------------
def mistake(text: str) -> CuteLabError:
    with pytest.raises(CuteLabError) as caught:
        from_text(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "message", "line", "column", "snippet"),
    [
        ("# %%x\nx = (1,\ny = 2\n", "'(' was never closed", 2, 5, "("),
        ("def score_mod(score)\n    return score\n", "expected ':'", 1, 21, ""),
        ("def f():\nreturn 1\n", "expected an indented block after function definition on line 1", 2, 1, "return"),
        ("return 3\n", "'return' outside function", 1, 1, "return 3"),
        ("x = 1\n  y = 2\n", "unexpected indent", 2, 0, None),
        ("x = 'abc\n", "unterminated string literal (detected at line 1)", 1, 5, "'"),
        ("é = 'ü' + )\n", "unmatched ')'", 1, 11, ")"),
        ("x = 1\0\n", "source code string cannot contain null bytes", 1, 1, None),
        ("await f()\n", "'await' outside function", 1, 1, "await f()"),
    ],
)
def test_a_syntax_error_is_pythons_own_words_at_its_place(text: str, message: str, line: int, column: int, snippet: str | None) -> None:
    error = mistake(text)
    assert isinstance(error, CellSyntaxError)
    assert error.summary == message
    assert error.line == line
    if column:
        assert error.column == column
    if snippet is not None:
        assert error.loc is not None
        assert error.loc.snippet == snippet


def test_an_unknown_name_is_marked_and_guessed() -> None:
    error = mistake("import torch\nx = 1\ny = touch.exp(x)\ndef mask_mod(b, h, q, kv):\n    return q > kv\n")
    assert isinstance(error, UndefinedName)
    assert error.summary == "name 'touch' is not defined in the cell (did you mean 'torch'?)"
    assert (error.line, error.column, error.end_column) == (3, 5, 9)
    inner = mistake("def table():\n    return sise\nsize = 3\nx = table()\n")
    assert inner.summary == "name 'sise' is not defined in table (did you mean 'size'?)"
    assert inner.line == 2


def test_an_exception_of_the_cell_stands_at_its_line() -> None:
    error = mistake("x = 4\n\ny = 1 // (x - 4)\n")
    assert isinstance(error, UserCodeError)
    assert error.summary == "ZeroDivisionError in the cell: integer division or modulo by zero"
    assert (error.line, error.column, error.end_column) == (3, 5, 16)
    assert isinstance(error.__cause__, ZeroDivisionError)
    shown = str(error)
    assert "Traceback" not in shown
    assert "scalars" not in shown


MISSING = "no score_mod and no mask_mod is defined"


@pytest.mark.parametrize(
    ("text", "line", "says", "write"),
    [
        ("x = 1\n", None, MISSING, "def score_mod(score, b, h, q_idx, kv_idx):\n    return score"),
        (
            "\ndef scoremod(score, b, h, q, kv): ...\n",
            2,
            "`score_mod` where the cell defines `scoremod`?",
            "def score_mod(score, b, h, q, kv):",
        ),
        ("def mask(b, h, q, kv): ...\n", 1, "Did you mean `mask_mod` where the cell defines `mask`?", "def mask_mod(b, h, q, kv):"),
        ("def alibi(s, b, h, q, kv): ...\n", 1, "`score_mod` where the cell defines `alibi`?", "def score_mod(s, b, h, q, kv):"),
        ("score_mod = None\n", None, MISSING, ""),
    ],
)
def test_a_cell_without_mods_says_what_it_lacks(text: str, line: int | None, says: str, write: str) -> None:
    error = mistake(text)
    assert isinstance(error, MissingMod)
    assert says in str(error)
    assert error.line == line
    assert write in error.hint


def test_a_mod_that_is_no_function_is_an_error() -> None:
    error = mistake("\nmask_mod = 3\n")
    assert error.summary == "mask_mod must be a function, not the int 3"
    assert error.line == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_each_message_is_a_cell_that_works(kind: str) -> None:
    from cute_lab.cell import _signature

    made: Callable[..., Any] | None = getattr(from_text(_signature(kind)), kind)
    assert made is not None
