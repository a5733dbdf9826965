"""What names a person, a machine or a folder in a notebook: found in texts and left out of them, each time said where.

`hostname`, `user` and `path` are sought in every text; any other name is a field of a record's environment, and its value is left
out of the record and of the texts of its output.
"""

from __future__ import annotations

import base64
import getpass
import re
import socket
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KINDS = ("hostname", "user", "path")
DEFAULT = KINDS
LEFT_OUT = "left out"
KEYS = {
    "hostname": ("host", "hostname", "node"),
    "user": ("user", "username", "login"),
    "path": ("cwd", "folder", "directory", "executable", "home"),
}
SHORTEST = 4  # characters of a name that is sought: `pc` and `me` stand in other words
NAME = r"[^/\\\s:'\"<>|*?`,;)\]}\x1b]+"
HOMES = re.compile(rf"(?:/home/|/Users/|/export/home/|[A-Za-z]:\\{{1,2}}Users\\{{1,2}}){NAME}|(?<![\w./-])/root(?=[/\s:'\"]|$)")
# Keys of a record whose texts are its meaning: the hash is made of them, or they are the person's own.
OWN = frozenset(("source", "cell", "hash", "shape", "stages", "data", "blocks", "cells", "name"))
COMMON = frozenset(("root", "user", "home", "runner", "jovyan", "ubuntu", "admin", "localhost", "jupyter"))  # name nobody


@dataclass
class Scrubber:
    """Texts without what is private; `found` counts what was left out: (what, in words) -> times."""

    private: tuple[str, ...] = DEFAULT
    found: dict[str, int] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)  # of environment fields, in the texts of this output

    def __post_init__(self) -> None:
        self.patterns: list[tuple[re.Pattern[str], str, str]] = []
        if "path" in self.private:
            homes = {str(Path.home()), str(Path.home().resolve())} - {"/", "/root"}
            mine = "|".join(re.escape(home) for home in sorted(homes, key=len, reverse=True))
            self.patterns.append((re.compile(f"{HOMES.pattern}|(?:{mine})(?![\\w-])" if mine else HOMES.pattern), "~", "a home directory"))
        if "hostname" in self.private:
            self._name(socket.gethostname().partition(".")[0], "host", "this machine's name")
        if "user" in self.private:
            self._name(_user(), "user", "this person's user name")

    def _name(self, name: str, instead: str, what: str) -> None:
        if len(name) >= SHORTEST and name.lower() not in COMMON:
            self.patterns.append((re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])"), instead, what))

    def text(self, text: str) -> str:
        for pattern, instead, what in self.patterns:
            text, times = pattern.subn(instead, text)
            self._count(what, times)
        for value in self.values:
            if value in text:
                self._count("a value that an environment field has", text.count(value))
                text = text.replace(value, LEFT_OUT)
        return text

    def names(self, text: str) -> list[str]:
        """What is private in a text that stays as it is."""
        return [f"{what} ({found[0]})" for pattern, _, what in self.patterns if (found := pattern.search(text))]

    def tree(self, value: Any, key: str = "") -> Any:
        """The same for every text of a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.tree(item, key) for item in value]
        if isinstance(value, dict):
            return {name: self.tree(item, name) for name, item in value.items()}
        return value

    def record(self, value: Any, key: str = "") -> Any:
        """A record's JSON: its environment's fields too, and packed listings; the code and the person's cell stay as they are."""
        if isinstance(value, dict):
            if key in ("environment", "versions"):
                return {name: self._field(name, item) for name, item in value.items()}
            if value.get("encoding") == "zlib-b64" and key in ("sass", "ptx"):
                return self._packed(value)
            return {name: item if name in OWN else self.record(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.record(item, key) for item in value]
        return self._field(key, value) if key in self.private and isinstance(value, str) else self.tree(value)

    def _field(self, name: str, value: Any) -> Any:
        hidden = name in self.private or any(name.lower() in KEYS[kind] for kind in KINDS if kind in self.private)
        if not hidden or not isinstance(value, str) or value == LEFT_OUT:
            return self.tree(value)
        self._count(f"the environment's {name}", 1)
        if len(value) >= SHORTEST:
            self.values.append(value)
        return LEFT_OUT

    def _packed(self, value: dict[str, Any]) -> dict[str, Any]:
        try:
            text = zlib.decompressobj().decompress(base64.b64decode(value["data"], validate=True), 1 << 24).decode()
        except (ValueError, KeyError, TypeError, zlib.error):
            return value
        kept = self.text(text)
        return value if kept == text else {**value, "data": base64.b64encode(zlib.compress(kept.encode(), 9)).decode()}

    def _count(self, what: str, times: int) -> None:
        if times:
            self.found[what] = self.found.get(what, 0) + times


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in containers
        return ""


def listed(text: str | Iterable[str]) -> tuple[str, ...]:
    """`hostname,path` as the command line and the settings write it; empty: nothing is private."""
    words = text.split(",") if isinstance(text, str) else text
    return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
