"""The rules of targets.py against FlashAttention-4: `check` refuses what FA4 refuses before it compiles, no more."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import itertools
import types
from pathlib import Path
from typing import Any

import pytest

from cute_lab import targets
from cute_lab.errors import GeometryError
from cute_lab.targets import DIRECTIONS, TARGETS, block_for, check, tile_rule

pytestmark = pytest.mark.filterwarnings("ignore")  # FA4 and quack warn when they are imported
HEAD_DIMS = ((64, 64), (96, 96), (128, 128), (192, 128), (192, 192), (256, 256))
TILE_FIELDS = (("tile_m", "tile_n"), ("m_block_size", "n_block_size"), ("tile_m_dkdv", "tile_n_dkdv"))
BLOCKS = (
    *((128, kv) for kv in (24, 64, 80, 96, 112, 128, 256)),
    *((64, 64), (80, 128), (96, 128), (192, 128), (192, 144), (256, 128), (256, 256)),
)


class ReachedCompiler(Exception):
    pass


@pytest.fixture(scope="module")
def fa4() -> Any:
    return importlib.import_module("flash_attn.cute.interface")


def ask_fa4(fa4: Any, patch: pytest.MonkeyPatch, target: str, direction: str, spec: dict[str, Any]) -> tuple[int, int] | str:
    """The tile with which FA4 starts to compile, or why it doesn't."""
    torch, cutlass = importlib.import_module("torch"), importlib.import_module("cutlass")
    row = TARGETS[target]
    tile: list[tuple[int, int]] = []

    def reached(kernel: Any, *args: Any, **kwargs: Any) -> None:
        if "Preprocess" not in type(kernel).__name__:
            fields = vars(kernel)
            m, n = next(names for names in TILE_FIELDS if names[0] in fields)
            tile.append((fields[m], fields[n]))
            raise ReachedCompiler

    def mod(*args: Any) -> None:
        raise AssertionError("never traced")

    mod.__cute_hash__ = repr(spec)  # type: ignore[attr-defined]
    importlib.import_module("cutlass.base_dsl.dsl").BaseDSL._get_dsl().envar.arch = row.cute_arch
    patch.setattr(fa4, "_get_device_arch", lambda: row.fa_arch)
    patch.setenv("FLASH_ATTENTION_NUM_SMS", str(row.num_sms))
    patch.setattr(fa4.cute, "compile", reached)
    hardware = types.SimpleNamespace(get_max_active_clusters=lambda *a: 1)
    patch.setattr(cutlass.utils, "HardwareInfo", lambda *a: hardware)
    B, S, H, D, Dv = 1, spec["Sq"], 2, spec["D"], spec["Dv"]
    with importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode():

        def empty(*shape: int, dtype: Any = torch.bfloat16) -> Any:
            return torch.empty(*shape, dtype=dtype, device="cuda")

        extra: dict[str, Any] = {"score_mod": mod if spec["score"] else None, "mask_mod": mod if spec["mask"] else None}
        if spec["block"] is not None:
            rows, columns = (-(-S // n) for n in (spec["block"] if direction == "forward" else spec["block"][::-1]))
            lists = [empty(B, 1, rows, dtype=torch.int32), empty(B, 1, rows, columns, dtype=torch.int32)] * 2
            extra["block_sparse_tensors"] = fa4.BlockSparseTensorsTorch(*lists, block_size=spec["block"])
        q, k, v = empty(B, S, H, D), empty(B, S, H, D), empty(B, S, H, Dv)
        try:
            if direction == "forward":
                fa4._flash_attn_fwd(q, k, v, **extra)
            else:
                o, lse = empty(B, S, H, Dv), empty(B, H, S, dtype=torch.float32)
                fa4._flash_attn_bwd(q, k, v, o, o, lse, score_mod_bwd=extra["score_mod"], **extra)
        except ReachedCompiler:
            return tile[0]
        except (AssertionError, ValueError, NotImplementedError) as error:
            return f"{type(error).__name__}: {error}"
    raise AssertionError("FA4 did not compile anything")


def refused(target: str, direction: str, spec: dict[str, Any]) -> list[str]:
    sparse = spec["block"] is not None
    flags = {"has_score": spec["score"], "has_mask": spec["mask"], "block": spec["block"], "block_sparse": sparse}
    advice = check(target, spec["D"], spec["Sq"], Dv=spec["Dv"], direction=direction, **flags)
    return [row.message for row in advice if row.level == "refused"]


PACKED = {"has_mask": True, "mask_vec": 32}
BOOLS = (False, True)
CASES: list[dict[str, Any]] = [
    *({"score": score, "mask": mask, "block": None, "Sq": 1024} for score, mask in itertools.product(BOOLS, BOOLS)),
    *({"score": False, "mask": True, "block": block, "Sq": Sq} for block, Sq in itertools.product(BLOCKS, (128, 1024))),
]


# sm_120a's limits on head dims are ours: for lack of shared memory a larger kernel fails, but at its launch.
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("target", list(TARGETS))
def test_check_refuses_what_fa4_refuses(fa4: Any, monkeypatch: pytest.MonkeyPatch, target: str, direction: str) -> None:
    wrong = []
    for (D, Dv), case in itertools.product(HEAD_DIMS, CASES):
        spec = {**case, "D": D, "Dv": Dv}
        if target == "sm_120a" and not any(rule.covers(D, Dv) for rule in TARGETS[target].rules(DIRECTIONS[direction])):
            assert refused(target, direction, spec)
            continue
        theirs, ours = ask_fa4(fa4, monkeypatch, target, direction, spec), refused(target, direction, spec)
        if isinstance(theirs, str) != bool(ours):
            wrong.append((spec, theirs, ours))
    assert wrong == []


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("target", list(TARGETS))
def test_dense_tile_is_fa4s(fa4: Any, monkeypatch: pytest.MonkeyPatch, target: str, direction: str) -> None:
    for D, Dv in HEAD_DIMS:
        try:
            rule = tile_rule(TARGETS[target], D, 1024, Dv, DIRECTIONS[direction])
        except GeometryError:
            continue
        spec = {"score": False, "mask": False, "block": None, "Sq": 1024, "D": D, "Dv": Dv}
        assert ask_fa4(fa4, monkeypatch, target, direction, spec) == rule.tile, (target, direction, D, Dv)


@pytest.mark.parametrize(
    ("target", "D", "Dv", "Sq", "direction", "group", "block"),
    [
        ("sm_90a", 128, None, 1024, "forward", 1, (128, 128)),
        ("sm_90a", 64, None, 1024, "both", 1, (128, 128)),
        ("sm_90a", 192, 128, 1024, "both", 1, (128, 96)),
        ("sm_90a", 256, None, 1024, "forward", 1, (128, 80)),
        ("sm_90a", 256, None, 1024, "both", 1, (128, 64)),
        ("sm_100a", 128, None, 1024, "forward", 1, (256, 128)),
        ("sm_100a", 128, None, 128, "forward", 1, (128, 128)),
        ("sm_100a", 128, None, 128, "forward", 4, (128, 128)),  # a head fills its tile: heads are not packed
        ("sm_100a", 128, None, 64, "forward", 4, (256, 128)),  # four heads packed into 256 rows
        ("sm_100a", 192, 128, 1024, "both", 1, (256, 256)),
        ("sm_103a", 256, None, 1024, "forward", 1, (128, 128)),
    ],
)
def test_block_for(target: str, D: int, Dv: int | None, Sq: int, direction: str, group: int, block: tuple[int, int]) -> None:
    assert block_for(target, D, Sq, Dv, direction, group) == block


@pytest.mark.parametrize(
    ("target", "options", "message", "fix"),
    [
        ("sm_90a", {"has_score": True, "score_vec": 32}, "only 1, 2", "use 2"),
        ("sm_90a", {"has_mask": True, "mask_vec": 32}, "only 1", "use 1"),
        ("sm_100a", {"has_mask": True, "block": (128, 128)}, "q a multiple of 256", "use block=(256, 128)"),
        ("sm_90a", {"has_mask": True, "block": (128, 256)}, "up to 128", "use block=(128, 128)"),
        ("sm_120a", {"has_mask": True}, "no block sparsity", "use block_sparse=False"),
        ("sm_120a", {"has_score": True, "direction": "backward"}, "no score_mod", "another target"),
        ("sm_90a", {"has_score": True, "has_score_bwd": False, "direction": "backward"}, "score_mod_bwd", "generate"),
        ("sm_100a", {**PACKED, "direction": "backward", "block": (128, 256)}, "packed", "mask_vec=None"),
        ("sm_90a", {"H": 8, "Hkv": 3}, "share", "multiple of Hkv"),
    ],
)
def test_refusal_says_what_and_what_to_do(target: str, options: dict[str, Any], message: str, fix: str) -> None:
    (advice,) = check(target, 128, 1024, **options)
    assert (advice.level, message in advice.message, fix in advice.fix) == ("refused", True, True), advice


def test_notes_do_not_refuse() -> None:
    (one_tile,) = check("sm_100a", 128, 1024, has_mask=True, block=(128, 128), direction="backward")
    assert (one_tile.level, one_tile.fix) == ("note", "use block=(128, 256)")
    assert check("sm_100a", 128, 1024, has_mask=True, block=(128, 256), direction="backward") == []
    assert [row.level for row in check("sm_90a", 128, 1024, has_mask=True, block_sparse=False)] == ["note"]


def test_wide_vectors_pass_where_the_hardware_takes_them() -> None:
    assert check("sm_100a", 128, 1024, has_score=True, has_mask=True, score_vec=128, mask_vec=32) == []


def test_unknown_names_are_geometry_errors() -> None:
    with pytest.raises(GeometryError, match="sm_90a, sm_100a"):
        block_for("sm_70", 128, 1024)
    with pytest.raises(GeometryError, match="sideways"):
        block_for("sm_90a", 128, 1024, direction="sideways")
    with pytest.raises(GeometryError, match="no kernel for D = "):
        block_for("sm_100a", 192, 1024)


def test_a_wrong_row_does_not_load() -> None:
    row = TARGETS["sm_90a"]
    for change in ({"fa_arch": 100}, {"features": frozenset({"warp_speed"})}, {"score_vecs": (1, 4)}, {"notes": ()}):
        with pytest.raises(AssertionError):
            dataclasses.replace(row, **change)
    bad = dataclasses.replace(row.fwd[0], block=(100, 128))
    with pytest.raises(AssertionError):
        dataclasses.replace(row, fwd=(bad,))


def test_no_code_asks_for_an_architecture() -> None:
    """Rule 7: hardware is data. No comparison in these files names a target."""
    folder = Path(targets.__file__).parent
    for name in ("targets.py", "build.py", "worker.py", "sass.py"):
        for node in ast.walk(ast.parse((folder / name).read_text())):
            if isinstance(node, ast.Compare):
                strings = [leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)]
                assert not [s for s in strings if isinstance(s, str) and s.startswith("sm_")], f"{name}:{node.lineno}"
