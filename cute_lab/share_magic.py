"""%cute_share: its options, and which file the notebook that runs it lies in. The front end's command asks `checked` instead."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import UsageError

from cute_lab.errors import OptionError
from cute_lab.private import DEFAULT
from cute_lab.share import share

USAGE = "%cute_share [NOTEBOOK.ipynb] [--out FILE] [--check] [--in-place] [--keep-environment] [--private hostname,user,path]"
NAMES = ("__vsc_ipynb_file__", "__session__")  # variables of the kernel: VS Code's, ipykernel's
SESSION = "JPY_SESSION_NAME"  # Jupyter Server's, in the kernel's environment


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; {USAGE}")


def own_path(scope: Mapping[str, Any]) -> Path:
    """The notebook that this kernel belongs to, as its front end names it."""
    told = [str(scope[name]) for name in NAMES if isinstance(scope.get(name), str)] + [os.environ.get(SESSION, "")]
    for text in filter(None, told):
        path = Path(text)
        if path.suffix == ".ipynb" and path.is_file():
            return path
    gone = next(filter(None, told), "")
    detail = f"The front end named {gone!r}, and there is no such notebook now." if gone else "The front end does not tell the kernel."
    raise OptionError("which file this notebook lies in is not known", detail=detail, example="%cute_share NOTEBOOK.ipynb")


def run(line: str, scope: Mapping[str, Any]) -> str:
    parser = Parser(prog="%cute_share", usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("notebook", nargs="?")
    parser.add_argument("--out")
    parser.add_argument("--private", default=",".join(DEFAULT))
    for flag in ("--check", "--in-place", "--keep-environment"):
        parser.add_argument(flag, action="store_true")
    try:
        given = vars(parser.parse_args(shlex.split(line)))
    except ValueError as error:
        raise OptionError(f"the options can't be read: {error}", example="%cute_share NOTEBOOK.ipynb") from None
    path = given.pop("notebook")
    report = share(Path(path).expanduser() if path else own_path(scope), **given)
    said = f"This is the file as it was saved at {report.saved}. What you did since is not in it: save first, and run this again."
    if not report.ok:  # a notebook that runs without a person must not go on as if it could be shared
        raise OptionError(f"{report.source.name} is not fit to be shared", detail=f"{report}\n\n{said}")
    return f"{report}\n\n{said}"


def checked(notebook: str, private: str, write: bool = False) -> str:
    """The report on a notebook as JSON, fit to be shared or not: a person has asked and reads it, so neither is an error.

    `write`: makes the copy too.
    """
    return json.dumps(share(Path(notebook), check=not write, private=private).to_json())
