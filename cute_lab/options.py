"""The options of %%cute_attention as one table: flags, values, completion, help and what to write for a wrong one."""

from __future__ import annotations

import argparse
import ast
import difflib
import keyword
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import UsageError

from cute_lab import sliders
from cute_lab.errors import OptionError
from cute_lab.targets import TARGETS
from cute_lab.views import views

MAGIC = "cute_attention"
AUTO, NONE = "auto", "none"
SHAPE = ("--B", "--H", "--Hkv", "--Sq", "--Skv", "--D", "--dtype", "--block")  # as attention() calls them, but for the dashes
HELP = """\
The cell's score_mod and mask_mod as CuTeDSL: the code, its check against your functions, the block map and the machine code.

The cell is plain Python. It sees the notebook's variables and defines score_mod(score, b, h, q_idx, kv_idx),
mask_mod(b, h, q_idx, kv_idx) or both. Nothing that it defines stays in the notebook but the Lab, under the name of --out.
"""
EXAMPLE = """\
example:
  %%cute_attention --H 16 --Sq 8192 --target sm_90a --param window=1024 --out local
  window = 512

  def mask_mod(b, h, q_idx, kv_idx):
      return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
"""


def choice(flag: str, text: str, known: list[str]) -> str:
    if text in known:
        return text
    close = difflib.get_close_matches(text.lower(), known, n=1, cutoff=0.5)
    shown = close[0] if close else known[0]
    raise OptionError(f"{flag}: there is no {text!r}", detail=f"Known: {', '.join(known)}.", example=f"{flag} {shown}")


def positive(flag: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value < 2**31:
        raise OptionError(f"{flag}: {text!r} is no positive integer below 2**31", example=f"{flag} 128")
    return value


def dtype(flag: str, text: str) -> str:
    from cute_lab.shapes import DTYPES

    return DTYPES[choice(flag, text, list(DTYPES))]


def block(flag: str, text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d*)(?:[x×*,]([1-9]\d*))?", text)
    if not found:
        raise OptionError(f"{flag}: {text!r} is no block size", detail="Query rows x keys.", example=f"{flag} 128x128")
    return int(found[1]), int(found[2] or found[1])


def target(flag: str, text: str) -> list[str]:
    return [choice(flag, name, _targets()) for name in text.split(",") if name]


def view_names(flag: str, text: str) -> list[str]:
    return [choice(flag, name, _views()) for name in text.split(",") if name]


def param(flag: str, text: str) -> tuple[str, int | float | sliders.Asked]:
    name, _, value = text.partition("=")
    if name.isidentifier() and ".." in value:
        return name, sliders.read(f"{flag} {name}", value, f"{flag} {name}=64..4096:64")
    for kind in (int, float):
        try:
            if name.isidentifier():
                return name, kind(value)
        except ValueError:
            continue
    example = f"{flag} {name if name.isidentifier() else 'window'}=512"
    detail = "A number that the cell uses, and its value or the range of a slider."
    raise OptionError(f"{flag}: {text!r} is not name=number", detail=detail, example=example)


def variable(flag: str, text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise OptionError(f"{flag}: {text!r} can't be the name of a variable", example=f"{flag} lab")
    return text


def _targets() -> list[str]:
    return [*TARGETS, AUTO, NONE]


def _views() -> list[str]:
    return [view.name for view in views()]


def contenders(flag: str, text: str) -> list[str]:
    return [choice(flag, name, _contenders()) for name in text.split(",") if name]


def _contenders() -> list[str]:
    """The files of cute_lab/baselines: their names alone need no torch."""
    folder = Path(__file__).parent / "baselines"
    return sorted(path.stem for path in folder.glob("[a-z]*.py"))


def _no_values() -> list[str]:
    return []


TARGET_HELP = (
    f"an architecture to compile for, no GPU needed: {', '.join(TARGETS)}; {AUTO} is Hopper and Blackwell, {NONE} compiles nothing; "
    f"repeat it for several ({AUTO})"
)


@dataclass(frozen=True)
class Option:
    """`read(flag, text)` gives the value or an OptionError; `values` completes it; `many` = may be repeated."""

    flag: str
    metavar: str
    example: str
    help: str
    read: Callable[[str, str], Any]
    values: Callable[[], list[str]] = _no_values
    many: bool = False
    listed: bool = False  # comma-separated


OPTIONS = {
    option.flag: option
    for option in (
        Option("--B", "N", "4", "batch entries (1)", positive),
        Option("--H", "N", "16", "query heads (8)", positive),
        Option("--Hkv", "N", "4", "key/value heads (as --H)", positive),
        Option("--Sq", "N", "4096", "queries (1024)", positive),
        Option("--Skv", "N", "4096", "keys (as --Sq)", positive),
        Option("--D", "N", "128", "head dimension (128)", positive),
        Option("--dtype", "NAME", "bf16", "of q, k and v: bf16 or fp16 (bf16)", dtype, lambda: ["bf16", "fp16"]),
        Option("--target", "NAME", "sm_90a", TARGET_HELP, target, _targets, many=True, listed=True),
        Option(
            "--block", "QxKV", "128x128", "sparse block (what the target's kernel uses)", block, lambda: ["128x128", "64x128", "256x128"]
        ),
        Option(
            "--param",
            "NAME=VALUE",
            "window=512",
            "another value for a number that the cell uses, or a slider: window=64..4096:64; repeat it for several",
            param,
            many=True,
        ),
        Option(
            "--against",
            "LIST",
            "flex_triton,flex_flash",
            "what --bench measures it beside (all that need no minutes of tuning)",
            contenders,
            _contenders,
            listed=True,
        ),
        Option("--out", "NAME", "lab", "the notebook variable that gets the Lab (lab)", variable),
        Option("--views", "LIST", "summary,mask", "what to show and in which order (summary,mask,source)", view_names, _views, listed=True),
    )
}
SWITCHES = {
    "--backward": "compile the backward kernels too",
    "--bench": "check and time it on this machine's GPU, beside what people would use instead",
    "--fast-math": "print approximate functions and reciprocals: fewer instructions, less exact",
    "--help": "this text",
}
SYNONYMS = {
    "batch": "--B", "heads": "--H", "head": "--H", "num_heads": "--H", "nheads": "--H", "kv_heads": "--Hkv", "kvheads": "--Hkv",
    "seq": "--Sq", "s": "--Sq", "seqlen": "--Sq", "length": "--Sq", "dim": "--D", "head_dim": "--D", "arch": "--target", "gpu": "--target",
    "set": "--param", "name": "--out", "show": "--views",
}  # fmt: skip


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        flag = re.match(r"argument (--\w+): expected", message)
        if flag:
            option = OPTIONS[flag[1]]
            raise OptionError(f"{option.flag} needs a value", detail=f"It sets {option.help}.", example=f"{option.flag} {option.example}")
        raise UsageError(f"{message}{_guess(message)}; %{MAGIC} --help lists the options")


def _parser() -> Parser:
    texts = {"prog": f"%%{MAGIC}", "usage": "%(prog)s [options]", "description": HELP, "epilog": EXAMPLE}
    made = Parser(**texts, add_help=False, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)  # type: ignore[arg-type]
    for option in OPTIONS.values():
        action = "append" if option.many else "store"
        made.add_argument(option.flag, metavar=option.metavar, help=option.help, action=action, dest=option.flag)
    for flag, words in SWITCHES.items():
        made.add_argument(flag, help=words, action="store_true", dest=flag)
    return made


PARSER = _parser()


def parse(line: str) -> dict[str, Any]:
    """`--H 16 --target sm_90a` -> {"--H": 16, "--target": ["sm_90a"]}: the options that were given, read."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise OptionError(f"the options can't be read: {error}", example="%%cute_attention --H 16") from None
    given = {flag: text for flag, text in vars(PARSER.parse_args(words)).items() if text}
    out: dict[str, Any] = {}
    for flag, text in given.items():
        option = OPTIONS.get(flag)
        if option is None:
            out[flag] = True
        elif option.many:
            values = [option.read(flag, part) for part in text]
            out[flag] = [item for value in values for item in value] if option.listed else values
        else:
            out[flag] = option.read(flag, text)
    return out


def _guess(message: str) -> str:
    """'unrecognized arguments: --heads 8' -> the flag that is meant."""
    lower = {flag.lower(): flag for flag in (*SWITCHES, *reversed(OPTIONS))}
    for word in (word.split("=")[0] for word in message.split() if word.startswith("-")):
        known = SYNONYMS.get(word.strip("-").lower())
        close = [known] if known else [lower[c] for c in difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.5)]
        if word not in lower.values() and close:
            return f" (did you mean {close[0]}?)"
    return ""


def complete(before: str, text: str) -> list[str]:
    """What may follow `before`, the %% line up to the cursor; `text` is the whole cell."""
    words = before.split()
    word = "" if before[-1:].isspace() else words.pop()
    flag, equals, value = word.partition("=")
    if not (equals and flag in OPTIONS):
        flag, value = (words[-1] if words else ""), word
    option = OPTIONS.get(flag)
    if option is None:
        after = text.partition("\n")[0][len(before) :].split()
        named = {w.partition("=")[0] for w in (*words, *after)}
        taken = {w for w in named if w in SWITCHES or (w in OPTIONS and not OPTIONS[w].many)}
        return [f for f in (*OPTIONS, *SWITCHES) if f.startswith(word) and f not in taken] if word[:1] in ("", "-") else []
    done = value.split(",")[:-1] if option.listed else []
    known = numbers_of(text) if option.read is param else option.values()
    return [name for name in known if name.startswith(fragment(value)) and name not in done]


def fragment(before: str) -> str:
    """The part of the line that a completion replaces."""
    return re.split(r"[\s,=]", before)[-1]


def numbers_of(text: str) -> list[str]:
    """`window=` for each number that the cell sets at its top level."""
    try:
        body = ast.parse(text.partition("\n")[2]).body
    except SyntaxError:
        return []
    numbers = [s for s in body if isinstance(s, ast.Assign) and _is_number(s.value)]
    return [f"{name.id}=" for s in numbers for name in s.targets if isinstance(name, ast.Name)]


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).split(".")[-1] == "slider"
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)
