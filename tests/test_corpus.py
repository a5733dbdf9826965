"""Every case of the corpus: generated code, block map and attention equal torch's; every mistake is answered where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from corpus import cases
from corpus.cases import Case
from cute_lab import reference, verify
from cute_lab.cell import from_text
from cute_lab.errors import CuteLabError
from cute_lab.lab import Lab, attention


@pytest.fixture(autouse=True)
def plain_eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Eager flex_attention is called as it stands, not through Dynamo, and torch takes one thread: half of the time."""
    monkeypatch.setattr(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


CASES = {make.__name__: make() for make in cases.ALL}
LONG = 1 << 16  # no S x S grid
VALID = [c for c in CASES.values() if c.kind == "valid" or (c.expect is not None and c.expect.may_support)]
GRIDS = [c.name for c in VALID if max(c.Sq, c.Skv) < LONG]
MASKS = [name for name in GRIDS if CASES[name].mask_mod is not None]
PROBED = [c.name for c in VALID if max(c.Sq, c.Skv) >= LONG]
BLOCKS = (128, (64, 96))
BLOCK_TENSORS = [f"{full}{side}_{what}" for full in ("", "full_") for side in ("kv", "q") for what in ("num_blocks", "indices")]


def lab_of(case: Case) -> Lab:
    shape = {name: getattr(case, name) for name in ("B", "H", "Hkv", "Sq", "Skv", "D", "dtype")}
    return attention(case.score_mod, case.mask_mod, **shape)


def variants(case: Case) -> Iterator[tuple[str, Case, Lab]]:
    """The case, its siblings (the same code over other state) after it, and the very same lab again once its state has changed."""
    lab = lab_of(case)
    yield "first", case, lab
    for label, score_mod, mask_mod in case.siblings:
        other = replace(case, score_mod=score_mod, mask_mod=mask_mod)
        yield label, other, lab_of(other)
    if case.mutate is not None:
        case.mutate()
        yield "mutated", case, lab


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def assert_close(got: torch.Tensor, expected: torch.Tensor, limit: float, what: str) -> None:
    """Equal bits, both NaN, or an error of at most limit * max(1, |expected|)."""
    got, expected = got.double(), expected.double()
    equal = (got == expected) | (got.isnan() & expected.isnan())
    error = (got - expected).abs() / expected.abs().clamp(min=1.0)
    bad = ~(equal | (error <= limit))
    at = bad.nonzero()[:3].tolist()
    assert not bad.any(), f"{what}: {int(bad.sum())} of {bad.numel()} differ, largest {error[bad].max():.3g}, first at {at}"


def functions_equal_eager_torch(case: Case) -> None:
    """On the case's own shape, every position."""
    rows = torch.cartesian_prod(*(torch.arange(n, dtype=torch.int32) for n in (case.B, case.H, case.Sq)))
    kv = torch.arange(case.Skv, dtype=torch.int32)
    full = (case.B, case.H, case.Sq, case.Skv)
    scores, grads = normal(1, *full) * 3, normal(2, *full)
    for label, now, lab in variants(case):
        program = lab.graph
        if now.score_mod is not None:
            assert program.score is not None
            assert program.score_bwd is not None
            expected = reference.score(now.score_mod, scores.view(-1, case.Skv), rows, kv).view(full)
            assert_close(lab.apply_score(scores), expected, verify.tolerance(program.score), f"{label} score_mod")
            expected = reference.grad(now.score_mod, grads.view(-1, case.Skv), scores.view(-1, case.Skv), rows, kv).view(full)
            assert_close(lab.apply_score_grad(grads, scores), expected, verify.tolerance(program.score_bwd), f"{label} score_mod_bwd")
        if now.mask_mod is not None:
            differ = lab.apply_mask() != reference.mask(now.mask_mod, rows, kv).view(full)
            assert not differ.any(), f"{label} mask_mod differs at {differ.nonzero()[:3].tolist()}"
        proof = lab.verify()
        assert proof.ok, f"{label}: {proof}"


@pytest.mark.parametrize("name", PROBED)
def test_long_case_at_its_probes(name: str) -> None:
    case = CASES[name]
    lab = lab_of(case)
    assert case.mask_mod is not None
    assert case.probes
    for b, h, q, kv in case.probes:
        got = lab.apply_mask(slice(q, q + 1), slice(kv, kv + 1))[b, h, 0, 0]
        assert got == case.mask_mod(*map(torch.tensor, (b, h, q, kv))), (b, h, q, kv)
    assert lab.verify().ok
    row = lab.blocks(1024).kinds[0, 0, 600]  # sinks in the first of 1024 blocks, a window of four whole ones up to the diagonal
    assert {int(i): int(row[i]) for i in row.nonzero()[0]} == {0: 1, 596: 1, 597: 2, 598: 2, 599: 2, 600: 1}


def block_map_is_torchs(case: Case) -> None:
    for label, now, lab in variants(case):
        for block in BLOCKS:
            ours = lab.blocks(block).to_block_mask()
            torchs = create_block_mask(now.mask_mod, case.B, case.H, case.Sq, case.Skv, device="cpu", BLOCK_SIZE=block)
            assert ours.shape == torchs.shape
            assert ours.BLOCK_SIZE == torchs.BLOCK_SIZE
            for name in BLOCK_TENSORS:
                got, expected = getattr(ours, name), getattr(torchs, name)
                assert got.dtype == expected.dtype, name
                assert torch.equal(got, expected), f"{label}, block {block}: {name}"


def over_positions(mod: Callable[..., torch.Tensor], case: Case, scores: torch.Tensor | None) -> torch.Tensor:
    """A mod over [B, H, Sq, Skv] as FlexAttention's eager path calls it."""
    lead: tuple[Any, ...] = () if scores is None else (0,)
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        mod = torch.vmap(mod, in_dims=(*lead, *dims))
    positions = [torch.arange(n, dtype=torch.int32) for n in (case.B, case.H, case.Sq, case.Skv)]
    with TransformGetItemToIndex():
        return mod(*([] if scores is None else [scores]), *positions)


def dense(case: Case, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(mod(q k^T / sqrt(D))) v, the whole matrix at once; rows without a key give 0."""
    group = case.H // case.Hkv
    scores = q @ k.repeat_interleave(group, 1).mT / case.D**0.5
    score_mod = case.grad_twin or case.score_mod
    if score_mod is not None:
        scores = over_positions(score_mod, case, scores).to(scores.dtype)
    keep = torch.ones(scores.shape, dtype=torch.bool)
    if case.mask_mod is not None:
        keep = over_positions(case.mask_mod, case, None).expand(scores.shape)
    seen = keep.any(-1, keepdim=True)
    weights = torch.where(keep, scores, float("-inf")).masked_fill(~seen, 0.0).softmax(-1).masked_fill(~seen, 0.0)
    return weights @ v.repeat_interleave(group, 1)


def attention_is_torchs(case: Case) -> None:
    """Output against eager FlexAttention and a dense formula, gradients of q, k and v against autograd through that formula."""
    q = normal(3, case.B, case.H, case.Sq, case.D).requires_grad_()
    k, v = (normal(seed, case.B, case.Hkv, case.Skv, case.D).requires_grad_() for seed in (4, 5))
    slope = normal(6, *q.shape)
    for label, now, lab in variants(case):
        out = lab.run(q, k, v)
        assert isinstance(out, torch.Tensor)
        blocks = now.mask_mod and create_block_mask(now.mask_mod, case.B, case.H, case.Sq, case.Skv, device="cpu")
        with torch.no_grad():
            inputs = (q.detach(), k.detach(), v.detach())  # on a CPU, eager refuses tensors that want a gradient
            eager = flex_attention(*inputs, score_mod=now.score_mod, block_mask=blocks, enable_gqa=case.Hkv != case.H)
        assert isinstance(eager, torch.Tensor)
        assert_close(out, eager, 5e-6, f"{label} output")
        expected = dense(now, q, k, v)
        assert_close(out, expected, 5e-6, f"{label} output against the formula")
        ours = torch.autograd.grad(out, (q, k, v), slope)
        theirs = torch.autograd.grad(expected, (q, k, v), slope)
        for name, a, b in zip("qkv", ours, theirs, strict=True):
            assert_close(a, b, 1e-5, f"{label} d{name}")


class Answer(NamedTuple):
    """What the marked text is, and words that the message has, in any case of letters."""

    error: str
    marked: str
    words: tuple[str, ...]


SAYS = {
    "if_on_tensor": Answer(
        "BranchOnTensor",
        "q_idx >= kv_idx",
        ("traced once for all positions", "cannot branch", "torch.where(q_idx >= kv_idx, score,", "-inf", "mask_mod"),
    ),
    "item_call": Answer(
        "TensorToNumber",
        "width[h].item()",
        ("not known while tracing", "differs per", "width[h]    #", "without item()"),
    ),
    "write_captured_buffer": Answer(
        "WritesTensor",
        "seen[b, h, q_idx, kv_idx]",
        ("`seen[b, h, q_idx, kv_idx] = score`", "captured tensor `seen`", "free of side effects", "read only", "outside"),
    ),
    "score_mod_returns_bool": Answer(
        "WrongResultType",
        "return near[q_idx, kv_idx] & (q_idx >= kv_idx)",
        ("floating-point score", "returns bool", "did you mean mask_mod=?"),
    ),
    "mask_mod_returns_float": Answer(
        "WrongResultType",
        'return torch.where(q_idx >= kv_idx, 0.0, float("-inf"))',
        ("must return bool (true = attend)", "returns float32", "return the condition itself", "return q_idx >= kv_idx"),
    ),
    "returns_none": Answer(
        "ReturnsNone",
        "def score_mod(score, b, h, q_idx, kv_idx):",
        ("score_mod returned none", "must return the new score", "return biased"),
    ),
    "wrong_arity": Answer(
        "WrongArity",
        "def score_mod(score, h, q_idx, kv_idx):",
        ("(score, b, h, q_idx, kv_idx)", "4 parameters", "b is missing"),
    ),
    "dropout_inside": Answer(
        "RandomInMod",
        "torch.rand_like(score)",
        ("evaluated again in the backward pass", "deterministic", "outside", "capture", "hash the indices"),
    ),
    "numpy_call": Answer(
        "LeavesTorch",
        "np.tanh(score / 20.0)",
        ("numpy", "cannot be traced into the kernel", "torch.tanh(score / 20.0)"),
    ),
    "capture_on_other_device": Answer(
        "CaptureDevice",
        "there[kv_idx]",
        ("captured tensor `there`", "device meta", "cpu", "q/k/v", "there = there.to("),
    ),
    "table_too_short": Answer(
        "IndexOutOfRange",
        "table[kv_idx]",
        ("index range 0..63", "exceeds the size 50", "captured tensor `table`", "dimension 0", "foreign memory", "kv_idx=50"),
    ),
    "undefined_name": Answer(
        "UndefinedName",
        "slope",
        ("name 'slope' is not defined in score_mod", "did you mean 'slopes'?"),
    ),
    "syntax_error": Answer(
        "CellSyntaxError",
        "(",
        ("'(' was never closed", "line 2"),
    ),
    "print_inside": Answer(
        "SideEffect",
        'print("score is", score)',
        ("side effect", "runs once, on symbols", "not per score", "print", "shows", "remove it", "eagerly"),
    ),
}


def defined(case: Case) -> Case:
    """With functions, also where the case is a text."""
    if case.source_text is None:
        return case
    mods = from_text(case.source_text, {"torch": torch, **case.captures})
    return replace(case, score_mod=mods.score_mod, mask_mod=mods.mask_mod)


@pytest.mark.parametrize("name", [c.name for c in CASES.values() if c.kind == "invalid" and not (c.expect and c.expect.may_support)])
def test_mistakes_are_answered_where_they_stand(name: str) -> None:
    case, (error, marked, words) = CASES[name], SAYS[name]
    with pytest.raises(CuteLabError) as caught:
        lab_of(defined(case))
    found = caught.value
    text = str(found)
    assert type(found).__name__ == error
    assert [word for word in words if word.lower() not in text.lower()] == []
    assert found.loc is not None
    assert found.line is not None
    assert found.line >= 1
    assert found.column is not None
    assert found.loc.text[found.column - 1 :].startswith(marked)
    assert found.loc.snippet.rstrip() == marked
    assert "Traceback" not in text
    assert case.source_text is not None or f"cases.py line {found.line}" in text


def test_every_mistake_has_an_answer() -> None:
    supported = {c.name for c in CASES.values() if c.expect is not None and c.expect.may_support}
    assert SAYS.keys() | supported == {c.name for c in CASES.values() if c.kind == "invalid"}


def test_the_log_has_a_row_for_every_case() -> None:
    log = Path(cases.__file__).with_name("LOG.md").read_text(encoding="utf-8")
    assert [name for name in CASES if f"\n| {name} | {CASES[name].kind} |" not in log] == []


def planted() -> list[Case]:
    """Cases whose state differs between equal texts, or changes: what would show stale code."""
    base = replace(CASES["single_token"], name="scale", Sq=9, Skv=11, H=2, Hkv=1, mask_mod=None)

    def scaled(scale: float) -> Callable[..., torch.Tensor]:
        return lambda score, b, h, q_idx, kv_idx: score * scale

    def within(width: torch.Tensor | int) -> Callable[..., torch.Tensor]:
        return lambda b, h, q_idx, kv_idx: q_idx - kv_idx < width

    table, spans = torch.arange(11.0), [(0, 4), (6, 8)]

    def by_table(score: torch.Tensor, b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
        return score + table[kv_idx]

    def in_spans(b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
        inside = kv_idx < 0
        for low, high in spans:
            inside = inside | ((kv_idx >= low) & (kv_idx < high))
        return inside

    wider = (("wider", None, within(7)), ("tensor", None, within(torch.tensor(5))))
    return [
        replace(base, name="closure_number", score_mod=scaled(2.0), siblings=(("half", scaled(0.5), None), ("integer", scaled(2), None))),
        replace(base, name="closure_mask", score_mod=None, mask_mod=within(3), siblings=wider),
        replace(base, name="table_written", score_mod=by_table, mutate=lambda: table.mul_(-3.0)),
        replace(base, name="list_changed", score_mod=None, mask_mod=in_spans, mutate=lambda: spans.append((8, 9))),
    ]


CHECKS = (functions_equal_eager_torch, block_map_is_torchs, attention_is_torchs)


@pytest.mark.filterwarnings("ignore:captured tensors get no gradient")
@pytest.mark.parametrize(("name", "check"), [(n, c) for n in GRIDS for c in CHECKS if n in MASKS or c is not block_map_is_torchs])
def test_case(name: str, check: Callable[[Case], None]) -> None:
    check(cases.build(name))  # built anew: a case may hold an autograd graph, and change its state


@pytest.mark.parametrize("at", range(4), ids=lambda at: planted()[at].name)
@pytest.mark.parametrize("check", CHECKS)
def test_no_stale_code(check: Callable[[Case], None], at: int) -> None:
    case = planted()[at]
    if case.mask_mod is not None or check is not block_map_is_torchs:
        check(case)
