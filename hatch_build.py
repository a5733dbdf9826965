"""The wheel carries the built front end, made here if it is missing; who installs a wheel needs no Node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE, BUNDLE, STATIC = "labextension", "cute_lab/labextension", "cute_lab/static"
SHARED = "share/jupyter/labextensions/cute-lab"


class FrontEnd(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # the Makefile builds it and links to it, so that it is never older than its source
        root = Path(self.root)
        if not self._is_built():
            npm = shutil.which("npm")
            if npm is None:
                raise RuntimeError("the front end is not built, and building it needs Node 20 or newer with npm; `make front` builds it")
            subprocess.run([npm, "ci"], cwd=root / PACKAGE, check=True)
            subprocess.run([npm, "run", "build"], cwd=root / PACKAGE, check=True)
        build_data["artifacts"] += [f"{STATIC}/**"]
        if self.target_name == "sdist":
            build_data["artifacts"] += [f"{BUNDLE}/**"]
        else:
            build_data["shared_data"] |= {BUNDLE: SHARED, f"{PACKAGE}/install.json": f"{SHARED}/install.json"}

    def dependencies(self) -> list[str]:
        return [] if self._is_built() else ["jupyter-builder>=1.2,<2"]

    def _is_built(self) -> bool:
        return all((Path(self.root) / file).exists() for file in (f"{BUNDLE}/package.json", f"{STATIC}/widget.js", f"{STATIC}/page.js"))
