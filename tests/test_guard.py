"""The texts for GPU kernels, fed on the CPU by FlashAttention-4's own code: folded heads, rows of several queries, tiles beyond the end."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cutlass
import pytest
import torch
from cutlass import cute
from flash_attn.cute.softmax import apply_score_mod_bwd_inner, apply_score_mod_inner
from flash_attn.cute.utils import AuxData

import cute_lab
import cute_lab.record
from cute_lab import cutedsl, fa4, host, host_kernels, reports
from cute_lab.cutedsl import Guard
from cute_lab.tables import as_stored, moved
from cute_lab.targets import DIRECTIONS, TARGETS, tile_rule

pytestmark = pytest.mark.host
SQ, SKV, B, H, D = 37, 29, 2, 8, 64
M, N = 8, 4  # a thread's scores: 8 queries, 4 keys
FAR = 8  # positions beyond the end that are looked at


@cute.jit
def tile(
    mod: cutlass.Constexpr,
    grads,
    scores: cute.Tensor,
    captures,
    at,
    keys_first: cutlass.Constexpr,
    group: cutlass.Constexpr,
    lanes: cutlass.Constexpr,
):
    """FlashAttention-4's loop over a thread's M x N scores (and gradients), in the order of the one or of the other axis."""
    n = cutlass.const_expr(M * N)
    b, h, q, kv = at
    part, out = cute.make_rmem_tensor((n,), cutlass.Float32), cute.make_rmem_tensor((n,), cutlass.Float32)
    for i in cutlass.range_constexpr(n):
        part[i] = scores[i]
        if cutlass.const_expr(grads is not None):
            out[i] = grads[i]
    shape, first = ((N, M), (kv, q)) if cutlass.const_expr(keys_first) else ((M, N), (q, kv))
    index = cute.domain_offset(first, cute.make_identity_tensor(shape))
    rest = (mod, b, h, 1.0, lanes, cutlass.Float32, AuxData(None, captures), (None, None), None, None, group, keys_first)
    if cutlass.const_expr(grads is None):
        apply_score_mod_inner(part, index, *rest)
        out.store(part.load())
    else:
        apply_score_mod_bwd_inner(out, part, index, *rest)
    for i in cutlass.range_constexpr(n):
        scores[i] = out[i]


@dataclass(frozen=True)
class Fed:
    """What a kernel hands over: rows are query positions of head h, or packed rows (q, head in the group) of kv head h."""

    text: str
    packed: bool  # rows of all heads of a group, as the forward kernels take them
    group: int  # the group that FlashAttention-4's loop divides by
    keys_first: bool
    lanes: int


def padded(values: torch.Tensor, poison: float) -> torch.Tensor:
    """The same tensor, with poison behind its last entry in memory."""
    behind = torch.full((4 * FAR + 64, *values.shape[1:]), poison).to(values.dtype)
    return torch.cat([values, behind])[: len(values)]


NAN = float("nan")
ROW, KEY = padded(torch.linspace(1, 2, SQ), NAN), padded(torch.linspace(-1, 1, SKV), NAN)
HEAD, BATCH = padded(torch.linspace(0.5, 1, H), NAN), padded(torch.tensor([1.0, 3.0]), NAN)
PAIR = padded(torch.randn(H * (SQ + SKV), generator=torch.Generator().manual_seed(1)), NAN).view(H, SQ + SKV)
START = padded(torch.arange(SQ, dtype=torch.int32) // 2, SQ + 3)  # poison leads into the poison of ROW
FLAGS = padded(torch.arange(SKV) % 3 != 0, 0)
Mod = Callable[..., torch.Tensor]
# name: (score_mod, the positions at which it reads a tensor)
MODS: dict[str, tuple[Mod, str]] = {
    "positions": (lambda score, b, h, q, k: score * (1 + 0.25 * (q - k).abs()) + q * (h + 1), ""),
    "head": (lambda score, b, h, q, k: score * h - score, ""),
    "slopes": (lambda score, b, h, q, k: score * HEAD[h] * (k - q), ""),
    "batch": (lambda score, b, h, q, k: score * BATCH[b], ""),
    "rows": (lambda score, b, h, q, k: score * ROW[q], "q"),
    "keys": (lambda score, b, h, q, k: score * KEY[k] - q, "k"),
    "relative": (lambda score, b, h, q, k: score * PAIR[h, q - k + SKV - 1], "qk"),
    "chained": (lambda score, b, h, q, k: score * score * ROW[START[q]] * HEAD[h] + b, "q"),
    "flags": (lambda score, b, h, q, k: torch.where(FLAGS[k], score * score, -score * h), "k"),
}


def lab_of(score_mod: Mod | None, mask_mod: Mod | None = None, group: int = 1) -> cute_lab.Lab:
    return cute_lab.attention(score_mod, mask_mod, B=B, H=H, Hkv=H // group, Sq=SQ, Skv=SKV, D=D, target="sm_90a")


def expected(mod: Mod, grad: bool, at: tuple[torch.Tensor, ...], data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """By torch, at true positions."""
    score = data[0].clone().requires_grad_()
    out = mod(score, *at).expand_as(score)
    return torch.autograd.grad(out, score, data[1])[0] if grad else out.detach()


def worst(lab: cute_lab.Lab, fed: Fed, kind: str, mod: Mod, reads: str) -> float:
    """The largest error over tiles that cover everything and FAR positions beyond both ends."""
    grad, group = kind == "score_mod_bwd", H // lab.shape.Hkv
    function = getattr(host.load(fed.text), kind)
    captures = host.captures(lab.graph.tables, lab.graph.scalars)
    rows = group * SQ if fed.packed else SQ
    g = torch.Generator().manual_seed(0)
    largest, run, buffer, upstream = 0.0, None, torch.empty(M * N), torch.empty(M * N)
    order = (1, 0) if fed.keys_first else (0, 1)  # the memory's inner axis is the first of these
    ends = ([x for x in range(0, n + FAR, step) if not step < x < n - 2 * step] for n, step in ((rows, M), (SKV, N)))
    for (b, h), q0, k0 in itertools.product(((0, 1), (B - 1, H // group - 1)), *ends):
        row, key = torch.arange(q0, q0 + M)[:, None], torch.arange(k0, k0 + N)[None, :]
        q, head = (row // group, h * group + row % group) if fed.packed else (row, torch.tensor(h * group + b % group))
        q = q.clamp(max=SQ - 1) if "q" in reads else q
        key = key.clamp(max=SKV - 1) if "k" in reads else key
        data = (torch.randn(M, N, generator=g), torch.randn(M, N, generator=g))
        right = expected(mod, grad, (torch.tensor(b), head, q, key), data)
        for store, values in ((buffer, data[0]), (upstream, data[1])):
            store.copy_(values.permute(order[::-1]).reshape(-1))
        where = tuple(cutlass.Int32(int(x)) for x in (b, h if fed.packed else int(head), q0, k0))
        given = (host.argument(upstream) if grad else None, host.argument(buffer), captures, where)
        run = run or cute.compile(tile, function, *given, fed.keys_first, fed.group, fed.lanes)
        run(*given)
        got = buffer.view(*(right.permute(order[::-1]).shape)).permute(order[::-1])
        error = (got - right).abs() / right.abs().clamp(min=1)
        largest = max(largest, float(error.nan_to_num(float("inf")).max()))
    return largest


def backward(lab: cute_lab.Lab, target: str, keys_first: bool) -> Fed:
    folded = "folded_heads_bwd" in TARGETS[target].features
    return Fed(lab.spec(target, "backward").source, False, H // lab.shape.Hkv if folded else 1, keys_first, 4)


FEW = ("positions", "chained")  # where a text differs from another case's in its guard alone
CASES = [(n, "sm_90a", 4) for n in MODS] + [(n, *at) for n in FEW for at in (("sm_90a", 1), ("sm_100a", 4))]


@pytest.mark.parametrize(("name", "target", "group"), CASES)
def test_backward_kernels(name: str, target: str, group: int) -> None:
    """They call score_mod and score_mod_bwd with four queries or four keys at once; SM90's takes its rows for packed ones."""
    mod, reads = MODS[name]
    lab = lab_of(mod, group=group)
    for kind, keys_first in itertools.product(("score_mod", "score_mod_bwd"), (False, True)):
        assert worst(lab, backward(lab, target, keys_first), kind, mod, reads) < 2e-6, (kind, keys_first)


@pytest.mark.parametrize(("name", "target", "group"), [case for case in CASES if case[0] in (*FEW, "keys")])
def test_forward_kernels(name: str, target: str, group: int) -> None:
    """Their lanes are keys of one row; rows of a group's heads are packed."""
    mod, reads = MODS[name]
    lab = lab_of(mod, group=group)
    fed = Fed(lab.spec(target, "forward").source, group > 1, group, True, 4 if target == "sm_100a" else 2)
    assert worst(lab, fed, "score_mod", mod, reads) < 2e-6


# -- what it is for: each part of the guard, left out -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "without", "keys_first"),
    [
        ("head", Guard(SQ - 1, SKV - 1, 1, False), True),  # heads stay folded
        ("positions", Guard(SQ - 1, SKV - 1, 1, False), True),
        ("rows", Guard(None, SKV - 1, 4, False), True),  # rows beyond the end
        ("keys", Guard(SQ - 1, None, 4, False), True),
        ("chained", Guard(SQ - 1, SKV - 1, 4, True), False),  # lanes of several queries are read as one
    ],
)
def test_without_a_part_of_the_guard_the_values_are_wrong(name: str, without: Guard, keys_first: bool) -> None:
    mod, reads = MODS[name]
    lab = lab_of(mod, group=4)
    whole = reports.guard_for(lab.shape, TARGETS["sm_90a"], "backward")
    assert whole == Guard(SQ - 1, SKV - 1, 4, False)
    fed = backward(lab, "sm_90a", keys_first)
    planted = Fed(cutedsl.emit(lab.graph, guard=without).text, fed.packed, fed.group, fed.keys_first, fed.lanes)
    assert worst(lab, planted, "score_mod", mod, reads) > 1e-3


# -- masks ----------------------------------------------------------------------------------------------------------------
MASKS: dict[str, tuple[Mod, str]] = {
    "causal": (lambda b, h, q, k: q >= k, ""),
    "rows": (lambda b, h, q, k: k < START[q] * 2, "q"),
    "keys": (lambda b, h, q, k: FLAGS[k] & (q >= k), "k"),
    "both": (lambda b, h, q, k: PAIR[h, q - k + SKV - 1] * BATCH[b] > 0, "qk"),
}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", MASKS)
def test_masks(name: str, target: str, direction: str) -> None:
    """True positions, never folded heads; packed words of 32 keys in SM100's forward, whose last word reaches beyond the end."""
    mod, reads = MASKS[name]
    lab = lab_of(None, mod, group=4)
    spec = lab.spec(target, direction)
    rows, keys = host.grid_rows(range(B), range(H), range(SQ + FAR)), torch.arange(64, dtype=torch.int32)
    given = (lab.graph.tables, lab.graph.scalars)
    if spec.mask_vec:
        words = torch.zeros((len(rows), len(keys) // 32), dtype=torch.int32)
        host.over_rows(host_kernels.packed_rows, spec.source, "mask_mod", (words,), rows, keys, *given, 32)
        got = (words[:, :, None] >> torch.arange(32) & 1).bool().view(len(rows), -1)
    else:
        got = host.mask(spec.source, rows, keys, *given)
    b, h, q = (rows[:, k, None].long() for k in range(3))
    q = q.clamp(max=SQ - 1) if "q" in reads else q
    right = mod(b, h, q, keys.long().clamp(max=SKV - 1) if "k" in reads else keys).expand_as(got)
    seen = slice(None) if not spec.mask_vec else slice(0, SKV)  # FlashAttention-4 drops the lanes beyond the end itself
    assert torch.equal(got[:, seen], right[:, seen])


# -- when it is needed ----------------------------------------------------------------------------------------------------
def guard(target: str, direction: str, Sq: int, Skv: int, D: int = 64, Hkv: int = 8) -> Guard:
    return reports.guard_for(cute_lab.record.Shape(B, 8, Hkv, Sq, Skv, D, "bf16"), TARGETS[target], direction)


GUARDS = [
    # covered by whole tiles: nothing to say but how heads and rows come
    (("sm_90a", "forward", 384, 256), Guard()),  # tiles of 192 x 128, sparse blocks of 128
    (("sm_90a", "backward", 256, 256), Guard(one_row=False)),
    (("sm_100a", "forward", 512, 256), Guard()),
    (("sm_100a", "backward", 256, 256), Guard(one_row=False)),
    # one more, one less
    (("sm_90a", "forward", 256, 256), Guard(q=255)),
    (("sm_90a", "forward", 384, 257), Guard(kv=256)),
    (("sm_90a", "backward", 255, 127), Guard(q=254, kv=126, one_row=False)),
    (("sm_90a", "backward", 256, 256, 128), Guard(q=255, one_row=False)),  # tiles of 80 rows
    (("sm_100a", "forward", 1, 1), Guard(q=0, kv=0)),
    # grouped heads
    (("sm_90a", "forward", 384, 256, 64, 2), Guard()),
    (("sm_90a", "backward", 256, 256, 64, 2), Guard(heads=4, one_row=False)),
    (("sm_100a", "backward", 256, 256, 64, 2), Guard(one_row=False)),
]
# a pair of CTAs takes two tiles: the second may lie beyond the end
PAIRS = [
    (("sm_100a", "backward", 256, 384, 128), Guard(kv=383, one_row=False)),
    (("sm_100a", "forward", 768, 256, 128), Guard(q=767)),
]


@pytest.mark.parametrize(("at", "found"), [*GUARDS, *PAIRS])
def test_which_guard(at: tuple[Any, ...], found: Guard) -> None:
    assert guard(*at) == found


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_no_guard_only_where_every_tile_fits(target: str, direction: str) -> None:
    for D in (64, 96, 128):
        if direction == "backward" and target == "sm_120a" and D == 128:
            continue
        for n in (*range(64, 1600, 16), 63, 65):
            rule = tile_rule(TARGETS[target], D, n, None, DIRECTIONS[direction])
            found = guard(target, direction, n, n, D)
            rows, keys = (rule.tile[0] * rule.stages, rule.block[0]), (rule.tile[1], rule.block[1])
            assert found.q == n - 1 or (found.q is None and not any(n % r for r in rows)), (D, n)
            assert found.kv == n - 1 or (found.kv is None and not any(n % k for k in keys)), (D, n)


def test_a_text_says_only_what_it_needs() -> None:
    def text(mod: Mod, Sq: int) -> str:
        lab = cute_lab.attention(mod, H=8, Hkv=2, Sq=Sq, D=64, target="sm_90a")
        return lab.spec("sm_90a", "backward").source

    long = torch.ones(384)
    keyed: Mod = lambda score, b, h, q, k: score * long[k]  # noqa: E731
    rowed: Mod = lambda score, b, h, q, k: score * q  # noqa: E731
    assert "cute.where" not in text(keyed, 384)
    assert "cute.where" not in text(rowed, 383)  # it reads no tensor
    assert text(keyed, 383).count("kv_idx = cute.where(kv_idx > 382") == 2  # in each of two functions
    assert "q_idx = " not in text(keyed, 383)
    assert text(rowed, 384).count("h = h // 4\n") == 2


# -- what the addresses point to --------------------------------------------------------------------------------------------
BASE = torch.arange(4096.0).view(2, 8, 16, 16)
VIEWS = {
    "whole": BASE,
    "transposed": BASE.transpose(1, 3),
    "every third": BASE[:, ::3, 1:, ::5],
    "expanded": BASE[:, :1].expand(2, 7, 16, 16),
    "overlapping": BASE.view(-1).as_strided((60, 9), (2, 3), 11),
    "one number": BASE[1, 2, 3, 4],
    "one entry": BASE[1:, 2:3, 3:4, 4:5],
    "last row": BASE[1, 7, 15],
    "of bools": (BASE > 100)[:, :, 3],
    "of bf16": BASE.to(torch.bfloat16)[1, ::2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_moved_view_keeps_its_strides_and_values(name: str) -> None:
    x = VIEWS[name]
    here, there = moved(x, "cpu"), moved(x, "meta")
    assert torch.equal(here, x)
    for found in (here, there):
        assert (found.shape, found.stride(), found.dtype) == (x.shape, x.stride(), x.dtype)
    reach = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
    assert there.untyped_storage().nbytes() == reach * x.dtype.itemsize  # no more than the view reaches
    assert there.is_meta
    assert as_stored(there).stride() == as_stored(x).stride()


def test_addresses_and_numbers_are_passed_in_the_order_of_the_text() -> None:
    cap, width = 30.0, 7
    lab = lab_of(
        lambda score, b, h, q, k: cap * torch.tanh(score / cap) + BASE[0, h, 3, 2:][k % 8] + HEAD[h], lambda b, h, q, k: q - k < width
    )
    program = lab.graph
    values, held = fa4.captures(program, torch.device("cpu"))
    assert [x.data_ptr() for x in held] == [t.tensor.data_ptr() for t in program.tables]
    assert [int(v.value) for v in values[: len(held)]] == [x.data_ptr() for x in held]
    assert [(type(v).__name__, v.value) for v in values[len(held) :]] == [
        ({"i32": "Int32", "f32": "Float32"}[s.dtype], pytest.approx(s.value)) for s in program.scalars
    ]
    assert {s.name for s in program.scalars} == {"cap", "inv_cap", "width"}


def test_which_score_mods_change_nothing() -> None:
    same: Mod = lambda score, b, h, q, k: score  # noqa: E731
    assert fa4.is_identity(lab_of(same).graph)
    assert fa4.is_identity(lab_of(lambda score, b, h, q, k: score * 1).graph)
    assert fa4.is_identity(lab_of(None, MASKS["causal"][0]).graph)
    assert not fa4.is_identity(lab_of(lambda score, b, h, q, k: score * 2).graph)
    assert not fa4.is_identity(lab_of(lambda score, b, h, q, k: q * 1.0).graph)


def test_a_kernel_is_found_by_its_text() -> None:
    """FlashAttention-4 compiles once per __cute_hash__: equal for equal texts, another for another text or function."""
    hashes: set[str] = set()
    for width in (3, 4, 3):
        lab = cute_lab.attention(lambda score, b, h, q, k: score * 2, lambda b, h, q, k, w=width: q - k < w + 0 * k, Sq=64, D=64)
        found = fa4.load(lab.source, ("score_mod", "mask_mod"), 2, None)
        assert (found["score_mod"].__vec_size__, hasattr(found["mask_mod"], "__vec_size__")) == (2, False)
        hashes |= {f.__cute_hash__ for f in found.values()}
    assert len(hashes) == 2
