"""Views: every record reads well everywhere, what a user wrote stays text, and what is missing says what to run."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from cute_lab.quantities import bar, percent, short
from cute_lab.record import Note, Record, Source, Stages, load
from cute_lab.views import view, views
from cute_lab.views._text import Table, Verbatim, page, prose
from example_record import EXAMPLE, STORED, Seen

NAMES = [v.name for v in views()]
FOLDER = Path(__file__).parent.parent / "cute_lab" / "views"
TAGS = {"p", "br", "code", "pre", "div", "span", "h4", "a", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.fixture
def example() -> Record:
    return load(EXAMPLE)


def test_the_folder_is_the_list() -> None:
    files = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    assert {v.name for v in views()} == files
    assert [v.order for v in views()] == sorted({v.order for v in views()})
    fields = {field.name for field in dataclasses.fields(Record)}
    assert all(set(v.needs) <= fields for v in views())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_every_view_renders_every_stored_record(path: Path, name: str) -> None:
    bundle = view(name).render(load(path))
    assert set(bundle) in ({"text/markdown", "text/plain"}, {"image/png", "text/plain"})
    assert bundle["text/plain"].strip()
    assert "object at 0x" not in bundle["text/plain"]
    assert "Record(" not in bundle["text/plain"]
    assert max(len(line) for line in bundle["text/plain"].split("\n")) < 200
    if "image/png" in bundle:
        assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    else:
        seen = Seen(markdown2html_mistune(bundle["text/markdown"]))
        assert seen.tags <= TAGS


def test_the_summary_is_words_with_numbers(example: Record) -> None:
    assert view("summary").render(example)["text/plain"].split("\n")[3:] == [
        "✔ The generated CuTeDSL equals your functions: `score_mod` (65,536 points, worst 2.58e-5 "
        "at b2 h12 q1920 kv3605), `mask_mod` (16,777,216 points, no difference).",
        "▦ 21.9 % of 4,096² is kept; the kernel issues 24.6 % (128×128 blocks: 56 partial, 196 full, 772 skipped).",
        "⚙ Hopper (sm_90a): 168 registers, no spills, lines 6 and 7 cost about the same, together 99 %. "
        "Blackwell (sm_100a): 128 registers, 4 spilled stores, 4 spilled loads, line 6 costs 57 % of the mod.",
        "⊘ Blackwell RTX (sm_120a), forward: refused. Block-sparse attention is not built for it. "
        "FlashAttention-4 has no block sparsity on this target. Use `sm_90a` or `sm_100a`.",
        "💡 Example record: mask and check are computed, the numbers of the targets are made up.",
        "💡 Line 7: `biased / 20` is a division per element; a product is one instruction. Write `biased * 0.05`.",
    ]


def test_a_single_function_with_its_gradient_is_one_sentence(example: Record) -> None:
    forward = example.checks[0]
    both = (forward, dataclasses.replace(forward, name="score_mod_bwd"))
    line = view("summary").render(dataclasses.replace(example, checks=both))["text/plain"].split("\n")[3]
    evidence = "65,536 points, worst 2.58e-5 at b2 h12 q1920 kv3605"
    assert line == f"✔ The generated CuTeDSL equals your function ({evidence}); backward too."


def test_a_difference_comes_first_and_is_not_called_right(example: Record) -> None:
    wrong = dataclasses.replace(example.checks[0], ok=False, max_abs_error=0.5)
    record = dataclasses.replace(example, checks=(example.checks[1], wrong))
    line = view("summary").render(record)["text/plain"].split("\n")[3]
    assert line.startswith("✘ `score_mod` differs from your function: expected 14.818711, got 14.818708 at b2 h12")
    assert "Do not use this kernel." in line
    assert "✘ differs" in view("check").render(record)["text/plain"]


def test_source_lines_carry_the_line_of_the_cell(example: Record) -> None:
    text = view("source").render(example)["text/markdown"]
    assert " 7      return 20 * torch.tanh(biased / 20)\n" in text
    assert "return t4 * 20.0" in text
    assert "| 10 | `\N{NO-BREAK SPACE}" in text
    assert "| 12-14 |" in text


def test_lines_of_a_function_from_a_file_keep_their_numbers(example: Record) -> None:
    moved = dataclasses.replace(example.cell, first_line=101)
    lines = tuple(line and line + 100 for line in example.source.user_lines)
    record = dataclasses.replace(example, cell=moved, source=dataclasses.replace(example.source, user_lines=lines))
    text = view("source").render(record)["text/plain"]
    assert "107      return 20 * torch.tanh(biased / 20)" in text
    assert "107        " in text.split("Which line made which")[1]


def test_cost_by_line_adds_up_what_no_line_asked_for(example: Record) -> None:
    text = view("lines").render(example)["text/markdown"]
    rows = [line for line in text.split("\n") if "(from no line of yours)" in line]
    assert len(rows) == 1
    assert "0.3\N{NO-BREAK SPACE}% | 2 (2 alu)" in rows[0]


def test_numbers_that_are_none_do_not_break_a_view(example: Record) -> None:
    odd = dataclasses.replace(example.targets[0].line_cost[0], share=float("nan"))
    targets = tuple(dataclasses.replace(t, cost=float("inf"), line_cost=(odd,)) for t in example.targets[:1])
    check = dataclasses.replace(example.checks[0], ok=False, max_abs_error=float("nan"), max_rel_error=float("inf"))
    record = dataclasses.replace(example, targets=targets, checks=(check,))
    told = {name: view(name).render(record)["text/plain"] for name in NAMES}
    assert "Worst error inf" in told["summary"]
    assert "inf (inf to inf)" in told["targets"]
    assert "nan" in told["lines"]


def test_a_fix_of_several_lines_is_shown_below(example: Record) -> None:
    note = Note("warning", "It is slow.", 7, "a = 1\nb = 2")
    refused = dataclasses.replace(example.targets[2], advice=(note,))
    for change in ({"notes": (note,)}, {"targets": (refused,)}):
        text = view("summary").render(dataclasses.replace(example, **change))["text/markdown"]
        assert "Line 7: It is slow. Write as below." in text
        assert text.endswith("```python\na = 1\nb = 2\n```")


def test_targets_show_a_band_and_no_speed(example: Record) -> None:
    bundle = view("targets").render(example)
    assert "7,400 (6,660 to 8,140)" in bundle["text/plain"]
    assert "5,900 (not calibrated)" in bundle["text/plain"]  # Blackwell: its error is not known, so it has no band
    assert "FLOP" not in json.dumps(bundle)
    assert "⊘ refused" in bundle["text/markdown"]
    assert "Block-sparse attention is not built for it." in bundle["text/markdown"]


MISSING: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("summary", {"checks": (), "targets": ()}, "`example_alibi_softcap.verify()`"),
    ("summary", {"checks": (), "targets": ()}, "`example_alibi_softcap.compile('sm_90a')`"),
    ("source", {"source": Source("", (0,), ())}, "Run the cell"),
    ("graph", {"stages": Stages("", "", None)}, "Run the cell again"),
    ("mask", {"blocks": None}, "Run `example_alibi_softcap.blocks()`"),
    ("mask", {"blocks": None, "source": Source("x", (1,), ("score_mod",))}, "this cell has no `mask_mod`"),
    ("check", {"checks": ()}, "Run `example_alibi_softcap.verify()`"),
    ("targets", {"targets": ()}, "Run `example_alibi_softcap.compile('sm_90a')`"),
    ("lines", {"targets": ()}, "Run `example_alibi_softcap.compile('sm_90a')`"),
)


@pytest.mark.parametrize(("name", "change", "said"), MISSING)
def test_what_is_missing_says_what_to_run(example: Record, name: str, change: dict[str, Any], said: str) -> None:
    bundle = view(name).render(dataclasses.replace(example, **change))
    assert said in bundle["text/plain"]
    assert said in bundle["text/markdown"]


def test_machine_code_that_is_awaited_is_said_once_and_nobody_is_told_to_compile(example: Record) -> None:
    text = "⚙ The kernel is being compiled for `sm_90a`."
    awaits = dataclasses.replace(example, targets=(), notes=(Note("info", "A note."), Note("info", text)))
    lines = view("summary").render(awaits)["text/plain"].splitlines()
    assert [line for line in lines if "⚙" in line] == [text]
    assert "💡 A note." in lines
    assert not any(".compile(" in line for line in lines)


HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a | b || c",
    "r'\\|' | \\\\| end",
    "```\n</code></pre><b>out</b>\n```",
    "``a`b```",
    "$x$ and $$y$$ and \\begin{align} z \\end{align} \\(w\\)",
    "[click](javascript:alert(1)) ![i](x) <javascript:alert(1)>",
    "# *a* _b_ ~~c~~ __d__ &lt; &#36; &copy;",
    "\x1b[31mred\x1b]0;title\x07 \u202eabc",
)


def without_spaces(text: str) -> str:
    return "".join(text.replace("\N{ZERO WIDTH SPACE}", "").split())


def expected_text(text: str) -> str:
    return without_spaces("".join("\ufffd" if ch in "\x1b\x07\u202e" else ch for ch in text))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_prose_and_tables(text: str) -> None:
    bundle = page(Table((text, "x"), ((Verbatim(text), "last"), (text, "last"))))
    seen = Seen(markdown2html_mistune(bundle["text/markdown"]))
    assert seen.tags <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
    assert seen.attributes <= {"style"}
    assert without_spaces(seen.text).count("last") == 2  # no column more, none less
    assert without_spaces(seen.text).count(expected_text(text)) >= 1  # the code form, to the character
    assert "$" not in seen.prose
    assert "\\" not in seen.prose
    assert without_spaces(Seen(markdown2html_mistune(prose(text))).text).replace("`", "") == expected_text(text).replace("`", "")
    assert "\x1b" not in bundle["text/plain"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_every_view(example: Record, name: str, text: str) -> None:
    checks = tuple(dataclasses.replace(check, grid=text) for check in example.checks)
    targets = tuple(dataclasses.replace(t, reason=text, target=text, mix={text: 1}) for t in example.targets)
    lines = text.split("\n")
    record = dataclasses.replace(
        example,
        name=text,
        cell=dataclasses.replace(example.cell, text=f"def f():\n    return {text}\n", magic=text),
        source=Source(text, tuple(range(len(lines))), (text,)),
        stages=Stages(text, text, text),
        checks=checks,
        targets=targets,
        notes=(Note("info", text, 1, text),),
        params=tuple(dataclasses.replace(p, name=text) for p in example.params),
        environment={text: text},
    )
    bundle = view(name).render(record)
    assert "\x1b" not in bundle["text/plain"]
    assert "\u202e" not in bundle["text/plain"]
    if "text/markdown" in bundle:
        seen = Seen(markdown2html_mistune(bundle["text/markdown"]))
        assert seen.tags <= TAGS
        assert seen.attributes <= {"class", "id", "href", "style"}
        assert "$" not in seen.prose


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.0694, "6.9 %"),
        (0.5, "50 %"),
        (4e-5, "0.004 %"),
        (0.99999, "99.999 %"),
        (1e-12, "0.0000000001 %"),
    ],
)
def test_shares_never_round_to_none_or_all(share: float, words: str) -> None:
    assert percent(share) == words


def test_numbers_are_short() -> None:
    assert [short(x) for x in (4.8e-7, 0.0, 1e-5, 573.2, 1.5e21)] == ["4.8e-7", "0", "1e-5", "573", "1.5e21"]
    assert [bar(x, 4) for x in (0, 0.5, 1, 7, 1 / 32)] == ["", "██", "████", "████", "▏"]
