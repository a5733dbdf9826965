"""The tables of user_python: valid rows agree with torch's eager evaluation, invalid ones say what is wrong, where, and what to write."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from cute_lab import errors, host, lower, reference
from cute_lab.lab import Lab, attention
from cute_lab.verify import tolerance
from user_python import INVALID, SKV, SQ, VALID, B, H

Factory = Callable[[], Callable[..., Any]]


def lab_of(mod: Callable[..., Any]) -> Lab:
    """A mask_mod takes four positional parameters and no score."""
    names = [p.name for p in inspect.signature(mod).parameters.values() if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    mask = len(names) == 4 and "score" not in names
    return attention(None if mask else mod, mod if mask else None, B=B, H=H, Sq=SQ, Skv=SKV, D=64)


def values() -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(7)
    return torch.randn(B, H, SQ, SKV, generator=g) * 3, torch.randn(B, H, SQ, SKV, generator=g)


def error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return float(((got - expected).abs() / expected.abs().clamp(min=1.0)).max())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VALID)
def test_valid_python_is_followed(name: str) -> None:
    mod = VALID[name]()
    lab = lab_of(mod)
    rows, kv = host.grid_rows(range(B), range(H), range(SQ)), torch.arange(SKV, dtype=torch.int32)
    if lab.mask_mod is not None:
        keep = lab.apply_mask()
        assert torch.equal(keep, reference.mask(mod, rows, kv).view(keep.shape))
        return
    scores, grads = values()
    program = lab.program
    assert program.score is not None and program.score_bwd is not None
    got = lab.apply_score(scores)
    assert error(got, reference.score(mod, scores.view(-1, SKV), rows, kv).view(got.shape)) <= tolerance(program.score)
    back = lab.apply_score_grad(grads, scores)
    assert error(back, reference.grad(mod, grads.view(-1, SKV), scores.view(-1, SKV), rows, kv).view(got.shape)) <= tolerance(
        program.score_bwd
    )


def use(mod: object) -> None:
    lab = lab_of(mod)
    lab.apply_mask() if lab.mask_mod is not None else lab.apply_score(values()[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "kind", "words"), INVALID, ids=[make.__name__ for make, _, _ in INVALID])
def test_invalid_python_is_explained(make: Factory, kind: str, words: tuple[str, ...]) -> None:
    mod = make()
    with pytest.raises(errors.CuteLabError) as caught:
        use(mod)
    text, first = inspect.getsourcelines(make)
    line = first + next(i for i, source in enumerate(text) if "# <-" in source)
    assert type(caught.value).__name__ == kind
    assert (caught.value.line, bool(caught.value.column)) == (line, True)
    for word in words:
        assert word in str(caught.value)


def test_a_defect_of_ours_is_no_mistake_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("ours")

    broken.__code__ = broken.__code__.replace(co_filename=lower.__file__)
    monkeypatch.setitem(lower.RULES, "tanh", broken)
    with pytest.raises(KeyError, match="ours"):
        lab_of(lambda s, b, h, q, k: torch.tanh(s))


def test_changed_captures_are_followed_and_siblings_stay_apart() -> None:
    """One code object, several states: numbers, lists, dicts, attributes and tensors, changed between calls."""

    class State:
        scale, table = 2.0, torch.randn(SKV)

    numbers, more, state = [0.5], {"shift": 3}, State()

    def score_mod(score, b, h, q_idx, kv_idx):  # type: ignore[no-untyped-def]
        return score * numbers[0] + more["shift"] + state.table[kv_idx] * state.scale

    def made(scale, table, flag):  # type: ignore[no-untyped-def]
        return lambda s, b, h, q, k: s * scale + table[k] if flag else s - scale

    rows, kv = host.grid_rows(range(B), range(H), range(SQ)), torch.arange(SKV, dtype=torch.int32)
    scores, _ = values()

    def agrees(lab: Lab, mod: Callable[..., Any]) -> None:
        got = lab.apply_score(scores)
        assert error(got, reference.score(mod, scores.view(-1, SKV), rows, kv).view(got.shape)) <= 2e-6

    lab = lab_of(score_mod)
    changes: tuple[Callable[[], Any], ...] = (
        lambda: numbers.__setitem__(0, 0.25),
        lambda: more.update(shift=9),
        lambda: setattr(state, "scale", -1.0),
        lambda: state.table.mul_(2),
        lambda: setattr(state, "table", torch.randn(2 * SKV)),
        lambda: setattr(state, "table", torch.randn(SKV).half()),
        lambda: setattr(state, "table", torch.randn(SKV, 2)[:, 1]),
    )
    agrees(lab, score_mod)
    for change in changes:
        change()
        agrees(lab, score_mod)
    mods = [
        made(1.0, torch.randn(SKV), True),
        made(2.0, torch.randn(SKV), True),
        made(2, torch.randn(SKV).double(), True),
        made(2.0, torch.randn(SKV), False),
    ]
    labs = [lab_of(m) for m in mods]
    for one, mod in [*zip(labs, mods, strict=True), *zip(labs, mods, strict=True)]:
        agrees(one, mod)
