"""The front end reads block maps as Python does: the same blocks of what is right, a refusal of the same wrong data."""

from __future__ import annotations

import base64
import dataclasses
import json
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_lab.block_summary import BY_BLOCK, BlockSummary
from cute_lab.codec import encode
from cute_lab.runs import Runs
from typescript import bundled, tool

RUN = """
const { blockMap } = require(process.argv[1]);
const read = blocks => {
  try {
    const map = blockMap(blocks);
    const runs = Array.from(map.start, (start, n) => [start, map.kind[n]]);
    return { rows: Array.from({ length: map.groups * map.rows }, (_, line) => runs.slice(map.offsets[line], map.offsets[line + 1])) };
  } catch (error) {
    return { refused: error.message };
  }
};
process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map(read)));
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundled("mask/maps.ts", tmp_path_factory.mktemp("maps"))


def browser(script: Path, maps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run([tool("node"), "-e", RUN, script], input=json.dumps(maps), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def rows_of(runs: Runs) -> list[list[list[int]]]:
    spans = zip(runs.offsets[:-1], runs.offsets[1:], strict=True)
    return [[[int(s), int(k)] for s, k in zip(runs.start[a:z], runs.kind[a:z], strict=True)] for a, z in spans]


def summary(runs: Runs, Hm: int = 1, by_runs: bool = False) -> BlockSummary:
    made = BlockSummary.from_runs(runs, Hm, (128, 64), 5, 9, 0.5)
    if by_runs:
        made = dataclasses.replace(made, encoding="zlib-runs-b64", data=base64.b64encode(runs.pack()).decode())
    return made


def maps() -> list[BlockSummary]:
    rng = np.random.default_rng(11)
    found = []
    for groups, rows, width in ((1, 1, 1), (1, 7, 9), (6, 5, 33), (2, 64, 64), (1, 300, 3)):
        for busy in (0.02, 0.5, 1.0):
            steps = rng.random((groups, rows, width)) < busy
            kinds = (np.cumsum(steps, axis=2) % 3).astype(np.uint8)
            found += [summary(Runs.of_dense(kinds), Hm=groups, by_runs=by_runs) for by_runs in (False, True)]
    side = 1100
    causal = np.tril(np.full((1, side, side), 2, np.uint8), -1) + np.eye(side, dtype=np.uint8)
    found.append(summary(Runs.of_dense(causal)))
    assert side * side > BY_BLOCK and found[-1].encoding == "zlib-runs-b64"
    return found


def test_the_same_blocks(script: Path) -> None:
    given = maps()
    for one, found in zip(given, browser(script, [encode(m) for m in given]), strict=True):
        assert found == {"rows": rows_of(one.runs)}


def test_the_same_damage_is_refused(script: Path) -> None:
    """What Python refuses the browser refuses; what Python reads is the same in the browser."""
    rng = np.random.default_rng(12)
    kinds = (np.cumsum(rng.random((2, 6, 11)) < 0.3, axis=2) % 3).astype(np.uint8)
    damaged = []
    for by_runs in (False, True):
        good = encode(summary(Runs.of_dense(kinds), Hm=2, by_runs=by_runs))
        raw = zlib.decompress(base64.b64decode(good["data"]))
        for _ in range(300):
            bad = bytearray(raw)
            for at in rng.integers(0, len(raw), rng.integers(1, 3)):
                bad[at] = rng.choice([0, 1, 2, 3, 7, 127, 128, 255, bad[at] ^ 1])
            cut = bytes(bad)[: len(bad) - (rng.integers(0, 9) if rng.random() < 0.1 else 0)]
            damaged.append({**good, "data": base64.b64encode(zlib.compress(cut)).decode()})
        for name in ("full", "partial", "empty", "Hm", "nq", "nkv"):
            damaged += [{**good, name: good[name] + 1}, {**good, name: 0}, {**good, name: good[name] * 1000}]
    refused = 0
    for one, found in zip(damaged, browser(script, damaged), strict=True):
        try:
            expected = {"rows": rows_of(BlockSummary(**one).runs)}
        except ValueError:
            refused += 1
            assert "refused" in found, one
        else:
            assert found == expected, one
    assert refused > 300 and len(damaged) - refused > 20
