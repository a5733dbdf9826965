"""No stale result: whatever a mod reads may change, the next call follows; and nothing is traced again while nothing has changed."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import cute_lab
from cute_lab import cell, freshness, live

S = 24
BLOCK = (1, 1)  # the positions decide each cell: nothing is compiled, but where a tensor is read
Scope = dict[str, Any]
HEAD = "def mask_mod(b, h, q_idx, kv_idx):\n    d = q_idx - kv_idx\n    return "
NEAR = "class Near:\n    width = 4\n    def __call__(self, b, h, q, k): return self.near(q, k)\n    def near(self, q, k): return q - k < "
CLOSURE = (
    "def make():\n    width = 4\n    def near(d): return d < width\n"
    "    def widen(n):\n        nonlocal width\n        width = n\n    return near, widen\nnear, widen = make()"
)
LATE = "def limit():\n    try: return width\n    except NameError: return 4"
MASKS = (
    "masks = types.ModuleType('masks')\nmasks.__file__ = '/home/me/masks.py'\n"
    "exec('width = 4\\ndef near(d): return d < width', vars(masks))"
)
DATACLASS = "@dataclasses.dataclass\nclass At:\n    width: int = 4\nat = At()"
T = "t = torch.full((64,), 4)"
# name: (the cell above the mask, what the mask returns, the edit). "" for the mask: the cell makes a mask_mod itself.
EDITS: dict[str, tuple[str, str, str]] = {
    "global number": ("width = 4", "d < width", "width = 9"),
    "integer to float": ("width = 4", "d < width", "width = 9.5"),
    "true to one": ("flag = True", "d < (4 if flag is True else 9)", "flag = 1"),
    "string": ("kind = 'near'", "d < {'near': 4, 'far': 9}[kind]", "kind = 'far'"),
    "none": ("width = None", "d < (4 if width is None else width)", "width = 9"),
    "dtype": ("kind = torch.int32", "d < torch.iinfo(kind).bits // 8", "kind = torch.int64"),
    "helper": ("def near(d): return d < 4", "near(d)", "def near(d): return d < 9"),
    "lambda": ("near = lambda d: d < 4", "near(d)", "near = lambda d: d < 9"),
    "helper's global": ("width = 4\ndef near(d): return d < width", "near(d)", "width = 9"),
    "helper of a helper": ("def limit(): return 4\ndef near(d): return d < limit()", "near(d)", "def limit(): return 9"),
    "name that appears": (LATE, "d < limit()", "width = 9"),
    "global of an inner function": ("width = 4", "(lambda d: (lambda: d < width)())(d)", "width = 9"),
    "closure cell": (CLOSURE, "near(d)", "widen(9)"),
    "default": ("def near(d, width=4): return d < width", "near(d)", "near.__defaults__ = (9,)"),
    "keyword default": ("def near(d, *, width=4): return d < width", "near(d)", "near.__kwdefaults__ = {'width': 9}"),
    "code": ("def near(d): return d < 4\ndef far(d): return d < 9", "near(d)", "near.__code__ = far.__code__"),
    "partial": ("def near(w, d): return d < w\nkeep = functools.partial(near, 4)", "keep(d)", "keep = functools.partial(near, 9)"),
    "partial keyword": ("def near(d, w): return d < w\nkeep = functools.partial(near, w=4)", "keep(d)", "keep.keywords['w'] = 9"),
    "list item": ("widths = [1, 4]", "d < widths[-1]", "widths[1] = 9"),
    "list appended": ("widths = [1, 4]", "d < widths[-1]", "widths.append(9)"),
    "list in a list": ("widths = [[1], [4]]", "d < widths[1][0]", "widths[1][0] = 9"),
    "tuple": ("widths = (1, 4)", "d < widths[-1]", "widths = (1, 9)"),
    "list to tuple": ("w = [4]", "d < (4 if isinstance(w, list) else 9)", "w = (4,)"),
    "dict value": ("widths = {'a': 4}", "d < widths['a']", "widths['a'] = 9"),
    "dict key": ("widths = {'a': 4}", "d < widths.get('b', 4)", "widths['b'] = 9"),
    "dict order": ("widths = {4: 0, 9: 0}", "d < next(iter(widths))", "widths[4] = widths.pop(4)"),
    "set": ("widths = {4}", "d < max(widths)", "widths.add(9)"),
    "attribute": ("at = types.SimpleNamespace(width=4)", "d < at.width", "at.width = 9"),
    "attribute of an attribute": ("at = Space(inner=Space(width=4))", "d < at.inner.width", "at.inner.width = 9"),
    "one of two equal lists": ("a, c = [4], [4]", "d < a[0] + c[0] - 4", "c = [9]"),
    "one list in two places": ("a = c = [4]", "d < c[0] + 0 * a[0]", "a[0] = 9"),
    "object that calls": (NEAR + "self.width\nmask_mod = Near()", "", "mask_mod.width = 9"),
    "bound method": (NEAR + "self.width\nnear = Near()\nmask_mod = near.__call__", "", "near.width = 9"),
    "numpy array": ("widths = np.array([4])", "d < int(widths[0])", "widths[0] = 9"),
    "numpy number": ("width = np.float64(4)", "d < float(width)", "width = np.float64(9)"),
    "tensor in place": (T, "d < t[kv_idx]", "t.add_(5)"),
    "tensor item": (T, "d < t[kv_idx]", "t[3] = 9"),
    "tensor by its base": ("base = torch.full((2, 64), 4)\nt = base[1]", "d < t[kv_idx]", "base.add_(5)"),
    "tensor by a view": (T, "d < t[kv_idx]", "t.view(8, 8)[0] = 9"),
    "tensor without gradients": (T + ".float().requires_grad_()", "d < t[kv_idx]", "with torch.no_grad(): t.add_(5)"),
    "tensor in inference mode": ("with torch.inference_mode(): " + T, "d < t[kv_idx]", "with torch.inference_mode(): t.add_(5)"),
    "tensor rebound": (T, "d < t[kv_idx]", "t = torch.full((64,), 9)"),
    "tensor of other strides": ("t = torch.arange(4096).view(64, 64) % 65", "d < t[q_idx, kv_idx]", "t = t.T"),
    "tensor further on in its storage": ("base = torch.arange(128)\nt = base[:64]", "d < t[kv_idx]", "t = base[9:73]"),
    "tensor through .data": (T, "d < t[kv_idx]", "t.data.add_(5)"),
    "tensor through numpy": ("a = np.full(64, 4)\nt = torch.from_numpy(a)", "d < t[kv_idx]", "a[:] = 9"),
    "sign of zero": ("zero = 0.0", "d < (4 if math.copysign(1, zero) > 0 else 9)", "zero = -0.0"),
    "function attribute": ("def at(): pass\nat.width = 4", "d < at.width", "at.width = 9"),
    "class attribute": ("class At: width = 4", "d < At.width", "At.width = 9"),
    "class attribute of an object": (NEAR + "self.width\nmask_mod = Near()", "", "Near.width = 9"),
    "method replaced": (NEAR + "4\nmask_mod = Near()", "", "Near.near = lambda self, q, k: q - k < 9"),
    "method's global": ("width = 4\n" + NEAR + "width\nmask_mod = Near()", "", "width = 9"),
    "method's global, by a global object": ("width = 4\n" + NEAR + "width\nat = Near()", "at.near(q_idx, kv_idx)", "width = 9"),
    "property": ("w = 4\nclass At:\n    @property\n    def width(self): return w\nat = At()", "d < at.width", "w = 9"),
    "module attribute": (MASKS, "d < masks.width", "masks.width = 9"),
    "global of a module's function": (MASKS, "masks.near(d)", "masks.width = 9"),
    "module in a namespace package": (MASKS + "\nown = types.ModuleType('own')\nown.masks = masks", "own.masks.near(d)", "masks.width = 9"),
    "dataclass": (DATACLASS, "d < at.width", "at.width = 9"),
    "class of a module without a file": ("at = {'__name__': 'x'}\nexec('class At: w = 4', at)\nAt = at['At']", "d < At.w", "At.w = 9"),
    "enum": ("class At(enum.Enum): NEAR = 4\nat = At.NEAR", "d < at.value", "at._value_ = 9"),
    "slot of a base class": ("class B: __slots__ = 'w'\nclass At(B): pass\nat = At()\nat.w = 4", "d < at.w", "at.w = 9"),
    "attribute of a list": ("class L(list): pass\nat = L()\nat.width = 4", "d < at.width", "at.width = 9"),
    "method of a captured dict": ("widths = {'a': 4}\nget = widths.get", "d < get('a')", "widths['a'] = 9"),
}
CASES = list(EDITS)


def cell_of(body: str, result: str) -> str:
    return f"{body}\n\n{HEAD}{result}\n" if result else body


def run(text: str) -> tuple[Callable[..., Any], Scope]:
    modules = {m.__name__: m for m in (dataclasses, enum, functools, math, torch, types)}
    given = {**modules, "np": np, "Space": types.SimpleNamespace}
    mods = cell.from_text(text, given)
    assert mods.mask_mod is not None
    return mods.mask_mod, mods.namespace


def lab_of(mask_mod: Callable[..., Any]) -> cute_lab.Lab:
    return cute_lab.attention(mask_mod=mask_mod, H=1, Sq=S, D=64, target="sm_90a")


def kept(mask_mod: Callable[..., Any]) -> int:
    """How many cells the function itself keeps now."""
    zero, at = torch.zeros(1, 1, dtype=torch.int32), torch.arange(S, dtype=torch.int32)
    with torch.no_grad():
        return int(mask_mod(zero, zero, at[:, None], at[None, :]).expand(S, S).sum())


@pytest.mark.parametrize("name", CASES)
def test_every_verb_follows_an_edit(name: str) -> None:
    body, result, change = EDITS[name]
    mask_mod, scope = run(cell_of(body, result))
    lab = lab_of(mask_mod)
    first, state = kept(mask_mod), freshness.state(mask_mod)
    assert lab.blocks(BLOCK).kept_cells == first
    assert state is None or state == freshness.state(mask_mod)
    exec(change, scope)
    now, fresh = kept(mask_mod), lab_of(mask_mod)
    assert now != first, "the edit changes nothing"
    assert (lab.blocks(BLOCK).kept_cells, lab.source, str(lab.graph)) == (now, fresh.source, str(fresh.graph))
    assert state is None or state != freshness.state(mask_mod)
    if lab.graph.tables:
        assert int(lab.apply_mask().sum()) == now


VERBS: dict[str, Callable[[cute_lab.Lab], Any]] = {
    "source": lambda lab: lab.source,
    "graph": lambda lab: str(lab.graph),
    "apply_mask": lambda lab: lab.apply_mask().sum(),
    "blocks": lambda lab: lab.blocks(BLOCK).kept_cells,
    "spec": lambda lab: lab.spec("sm_90a").source,
    "record": lambda lab: lab.record(targets=()).hash,
    "params": lambda lab: lab.params,
    "runtime": lambda lab: lab.runtime,
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_follows_by_itself(verb: str) -> None:
    """No verb leans on another one that was asked before it."""
    mask_mod, scope = run(cell_of("width = 4", "d < width"))
    ask, lab = VERBS[verb], lab_of(mask_mod)
    before = ask(lab)
    scope["width"] = 9.5  # another type: the text changes too
    assert ask(lab) == ask(lab_of(mask_mod)) != before


def test_a_score_and_its_gradient_follow() -> None:
    scope: Scope = {"torch": torch, "slopes": torch.ones(1), "scale": 2.0}
    exec("def score_mod(score, b, h, q_idx, kv_idx):\n    return score * scale + slopes[h]\n", scope)
    lab = cute_lab.attention(scope["score_mod"], Sq=4, H=1, D=64, target="sm_90a")
    ones = torch.ones(1, 1, 4, 4)
    assert (lab.apply_score(ones), lab.apply_score_grad(ones, ones)) == (pytest.approx(3 * ones), pytest.approx(2 * ones))
    scope["scale"] = 5.0
    scope["slopes"].add_(1)
    assert (lab.apply_score(ones), lab.apply_score_grad(ones, ones)) == (pytest.approx(7 * ones), pytest.approx(5 * ones))


def test_a_mod_that_fails_now_has_no_earlier_result() -> None:
    mask_mod, scope = run(cell_of(T, "d < t[kv_idx]"))
    lab = lab_of(mask_mod)
    good = lab.apply_mask()
    scope["t"] = torch.full((8,), 4)
    with pytest.raises(cute_lab.CuteLabError, match="index out of range"):
        lab.blocks(BLOCK)
    scope["t"] = "no table"
    for _ in range(2):
        with pytest.raises(cute_lab.CuteLabError):
            _ = lab.source
    scope["t"] = torch.full((64,), 4)
    assert torch.equal(lab.apply_mask(), good)


# -- nothing changed, nothing done ----------------------------------------------------------------------------------------
@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted: list[int] = []
    build = live.build

    def counting(*given: Any, **options: Any) -> Any:
        counted.append(1)
        return build(*given, **options)

    monkeypatch.setattr(live, "build", counting)
    return counted


UNKNOWN = ("numpy array", "set", "tensor in inference mode")
KINDS = "global number,helper of a helper,closure cell,partial,one list in two places,object that calls,tensor rebound,class attribute"


@pytest.mark.parametrize("name", KINDS.split(","))
def test_no_trace_without_a_change(name: str, traces: list[int]) -> None:
    mask_mod, _ = run(cell_of(*EDITS[name][:2]))
    lab = lab_of(mask_mod)
    assert len(traces) == 1
    first = lab.blocks(BLOCK)
    for _ in range(2):
        _ = lab.source, lab.graph, lab.spec("sm_90a")
    assert lab.blocks(BLOCK) is first
    assert len(traces) == 1


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_unknown_is_traced_every_time(name: str, traces: list[int]) -> None:
    mask_mod, _ = run(cell_of(*EDITS[name][:2]))
    assert freshness.state(mask_mod) is None
    lab = lab_of(mask_mod)
    assert [(lab.source, len(traces))[1] for _ in range(2)] == [2, 3]


def test_one_edit_is_one_trace(traces: list[int]) -> None:
    mask_mod, scope = run(cell_of("width = 4\nunused = 1", "d < width"))
    lab = lab_of(mask_mod)
    first = lab.blocks(BLOCK)
    scope["unused"] = 2  # no mod reads it
    assert lab.blocks(BLOCK) is first
    scope["width"] = 9
    assert lab.blocks(BLOCK).kept_cells == kept(mask_mod)
    assert len(traces) == 2
    assert lab.blocks(BLOCK) is not first
    scope["width"] = 4
    assert lab.blocks(BLOCK).kept_cells == first.kept_cells
    assert len(traces) == 3


def test_maps_of_several_blocks_are_kept_but_not_forever() -> None:
    lab = lab_of(run(cell_of(*EDITS["global number"][:2]))[0])
    sizes = [(8 * i, 16) for i in range(1, live.KEPT + 2)]
    maps = [lab.blocks(size) for size in sizes]
    assert lab.blocks(sizes[-1]) is maps[-1]
    assert len(lab.live.made) <= live.KEPT
    assert lab.blocks(sizes[0]).kept_cells == maps[0].kept_cells


# -- single rules of the state --------------------------------------------------------------------------------------------
def test_a_tensor_that_takes_anothers_address_is_another_one() -> None:
    """A state holds the memory of what it remembers: the allocator can't hand the same address to the next tensor."""
    mask_mod, scope = run(cell_of("t = torch.full((4096,), 0)", "d < t[kv_idx]"))
    states, addresses = [freshness.state(mask_mod)], {scope["t"].data_ptr()}
    for width in range(1, 12):
        scope["t"] = None  # nothing but the states keeps its memory
        scope["t"] = torch.full((4096,), width)  # of equal version, shape and strides
        states.append(freshness.state(mask_mod))
        addresses.add(scope["t"].data_ptr())
    assert not any(a == b for i, a in enumerate(states) for b in states[:i])
    assert len(addresses) == 12
    scope["t"] = scope["t"][:]  # another object on the same memory reads the same
    assert freshness.state(mask_mod) == states[-1]


@pytest.mark.parametrize(
    "value", [np.arange(3), iter([1]), (x for x in "a"), {1}, range(3), np.int64(3), object()], ids=lambda value: type(value).__name__
)
def test_what_can_not_be_compared_is_unknown(value: Any) -> None:
    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return q_idx >= kv_idx if value is not None else None

    assert freshness.state(mask_mod) is None


def test_recursion_and_depth_end() -> None:
    loop: list[Any] = [4]
    loop.append(loop)
    deep: Any = 4
    for _ in range(40):
        deep = [deep]

    def around(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return q_idx - kv_idx < loop[0] if loop else around

    def down(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return q_idx >= kv_idx if deep else None

    first = freshness.state(around)
    assert first is not None
    assert first == freshness.state(around)
    loop[0] = 9
    assert freshness.state(around) != first
    assert freshness.state(down) is None


ODD = [torch.eye(64).to_sparse(), torch.ones(64, dtype=torch.complex64).conj()]


@pytest.mark.parametrize("table", ODD, ids=["sparse", "conjugated"])
def test_an_odd_table_is_a_users_mistake(table: torch.Tensor) -> None:
    scope: Scope = {"torch": torch, "t": table}
    exec(cell_of("", "d < t[kv_idx]"), scope)
    with pytest.raises(cute_lab.CuteLabError):
        lab_of(scope["mask_mod"])


def test_two_mods_share_a_state() -> None:
    mask_mod, scope = run(cell_of("width = 4", "d < width"))
    score: Callable[..., Any] = lambda score, b, h, q_idx, kv_idx: score * 2  # noqa: E731
    assert freshness.state(score, mask_mod) == freshness.state(score, mask_mod)
    assert freshness.state(score, mask_mod) != freshness.state(None, mask_mod)
    before = freshness.state(score, mask_mod)
    scope["width"] = 9
    assert freshness.state(score, mask_mod) != before
