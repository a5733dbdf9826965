"""Writes the gallery's block maps: cute_lab/gallery/maps.json, and labextension/src/lab/gallery.json, which needs no kernel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from cute_lab import gallery
from cute_lab.cell import from_text
from cute_lab.codec import encode
from cute_lab.lab import Lab, attention
from cute_lab.options import SHAPE, parse

FRONT = ROOT / "labextension" / "src" / "lab" / "gallery.json"
BLOCK = 64  # tokens: a thumbnail's pixel


def lab_of(cell: str) -> Lab:
    """What running the cell gives, but for machine code."""
    line = cell.partition("\n")[0]
    given = parse(line.removeprefix("%%cute_attention"))
    mods = from_text(f"# {cell}", {})
    shape: dict[str, Any] = {flag.strip("-"): given[flag] for flag in SHAPE if flag in given}
    return attention(mods.score_mod, mods.mask_mod, params=mods.params, target="none", name=given["--out"], **shape)


def blocks_of(cell: str) -> Any:
    """The map in blocks of 64, without how long it took: the same on each machine."""
    lab = lab_of(cell)
    if lab.mask_mod is None:
        return None
    return {**encode(lab.blocks(BLOCK).summary()), "seconds": 0.0}


def texts() -> dict[Path, str]:
    maps = {v.name: blocks_of(v.cell) for v in gallery.variants()}
    rows = [{"name": v.name, "title": v.title, "words": v.words, "cell": v.cell, "blocks": maps[v.name]} for v in gallery.variants()]
    return {path: json.dumps(value, ensure_ascii=False, indent=1) + "\n" for path, value in ((gallery.MAPS, maps), (FRONT, rows))}


if __name__ == "__main__":
    for path, text in texts().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(text):,} bytes")
