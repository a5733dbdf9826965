"""`pytest --update-golden` writes what is shown now into tests/goldens; without it, a golden that is missing or differs fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["browser"]
GOLDENS = Path(__file__).parent / "goldens"
FLAG = "--update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(FLAG, action="store_true", help="write the goldens anew; read the difference before it is committed")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): `text` is what tests/goldens/<name> holds."""

    def check(name: str, text: str) -> None:
        path = GOLDENS / name
        if request.config.getoption(FLAG):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: pytest {FLAG} writes it"
        assert text == path.read_text(encoding="utf-8"), f"{path} differs"

    return check
