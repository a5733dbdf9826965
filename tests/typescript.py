"""TypeScript of the front end, run by Node: what `make test` has built the front end with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FRONT = Path(__file__).parent.parent / "labextension"
PATH = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])


def tool(name: str) -> str:
    found = shutil.which(name, path=PATH)
    assert found, f"{name} is missing: `make front` brings it"
    return found


def bundled(source: str, folder: Path) -> Path:
    """A module of src as a script that Node can require."""
    out = folder / f"{Path(source).stem}.cjs"
    builder = FRONT / "node_modules" / ".bin" / "esbuild"
    assert builder.exists(), "the front end's packages are missing: `make front` brings them"
    words = [str(builder), str(FRONT / "src" / source), "--bundle", "--format=cjs", "--platform=node", f"--outfile={out}"]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "PATH": PATH})
    return out
