"""What the inspector says of a mask is what the mask does: counted anew by hand, and the rewritten or reordered mask is the same one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import cute_lab
from cute_lab import inspector, offsets, orders
from cute_lab.evaluate import Inputs, evaluate
from cute_lab.ir import Program

IDS = torch.repeat_interleave(torch.arange(5), torch.tensor([300, 20, 500, 1, 203])).to(torch.int32)
S, WIDTH = len(IDS), 64


def documents(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (IDS[q_idx] == IDS[kv_idx]) & (q_idx >= kv_idx)


def image(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    near_row = (q_idx // WIDTH - kv_idx // WIDTH).abs() <= 2
    return near_row & ((q_idx % WIDTH - kv_idx % WIDTH).abs() <= 2)


def lab_of(mask_mod: Callable[..., Any], **shape: int) -> cute_lab.Lab:
    return cute_lab.attention(mask_mod=mask_mod, **{"B": 2, "H": 3, "Sq": S, "D": 64, **shape}, target="sm_90a")


def values(program: Program, n: int) -> torch.Tensor:
    """The mask [n, n] by torch, from the graph."""
    assert program.mask is not None
    q, kv = torch.meshgrid(torch.arange(n, dtype=torch.int32), torch.arange(n, dtype=torch.int32), indexing="ij")
    zero = torch.zeros((), dtype=torch.int32)
    found: torch.Tensor = evaluate(
        program.mask.output, Inputs({"b": zero, "h": zero, "q_idx": q, "kv_idx": kv}, program.tables, program.scalars)
    )
    return found


def test_useful_and_issued_cells() -> None:
    lab = lab_of(documents)
    found = lab.inspect()
    kinds, cells = lab.blocks(128).kinds[0, 0], lab.apply_mask()
    assert found.kept == int(cells.sum())
    assert found.issued == 6 * 128 * 128 * int((kinds > 0).sum())
    assert found.useful == found.kept / found.issued
    rows = sorted((kinds > 0).sum(1).tolist())
    assert found.per_row == (rows[0], (rows[3] + rows[4]) // 2, rows[-1])


def test_documents_by_id_are_rewritten_to_offsets() -> None:
    lab = lab_of(documents)
    program, words = offsets.rewritten(lab.program)
    assert program is not None and "`IDS`" in words
    assert torch.equal(values(program, S), values(lab.program, S))
    assert {t.name for t in program.tables} == {"IDS", "IDS_first", "IDS_end"}
    found = lab.inspect()
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[(found.line or 0) - 1]
    assert "IDS[q_idx] == IDS[kv_idx]" in line
    assert "per lane: `IDS[q_idx] == IDS[kv_idx]`" in found.packing


@pytest.mark.parametrize(
    "mask_mod",
    [
        lambda b, h, q, k: q >= k,
        lambda b, h, q, k: IDS[q] >= IDS[k],
        lambda b, h, q, k: IDS[q] == IDS[q],
        lambda b, h, q, k: IDS[q] == IDS[(k + 1) % 1024],
        lambda b, h, q, k: IDS.flip(0)[q] == IDS.flip(0)[k],
        lambda b, h, q, k: (IDS / 2)[q].to(torch.int32) == (IDS / 2)[k].to(torch.int32),
        lambda b, h, q, k: (IDS.long() << 32)[q].to(torch.int32) == (IDS.long() << 32)[k].to(torch.int32),
    ],
)
def test_nothing_else_is_rewritten(mask_mod: Callable[..., Any]) -> None:
    assert offsets.rewritten(lab_of(mask_mod).program) == (None, "")


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_ids_of_any_dtype(dtype: torch.dtype) -> None:
    ids = (IDS > 2).to(dtype)
    lab = lab_of(lambda b, h, q, k: ids[q] == ids[k])
    program, _ = offsets.rewritten(lab.program)
    assert program is not None and torch.equal(values(program, S), values(lab.program, S))


@pytest.mark.parametrize(
    "given",
    [
        {"mask_mod": lambda b, h, q, k: q > k + S},
        {"mask_mod": lambda b, h, q, k: q >= 0},
        {"score_mod": lambda score, b, h, q, k: score * 2},
        {"mask_mod": documents, "D": 7},
        {"mask_mod": documents, "target": "none"},
        {"mask_mod": documents, "D": 512, "block": (64, 64)},
        {"mask_mod": documents, "B": 256, "H": 256},
        {"mask_mod": lambda b, h, q, k: q >= k, "Sq": 1, "Skv": 1 << 20},
        {"mask_mod": lambda b, h, q, k: q >= k, "Sq": 2**31 - 1, "Skv": 1},
    ],
    ids=["empty", "full", "score", "odd D", "no target", "large D", "many heads", "one query", "longest"],
)
def test_there_is_always_an_answer(given: dict[str, Any]) -> None:
    found = cute_lab.attention(**{"H": 2, "Sq": S, "D": 64, "target": "sm_90a", **given}).inspect()
    text = str(found)
    assert "useful" in text and "nan" not in text and " 0.00 times" not in text


@pytest.mark.parametrize(("costs", "sms", "in_order", "longest"), [([1, 1, 1, 3], 2, 4, 3), ([3, 1, 1, 1], 2, 3, 3), ([1, 2, 3], 3, 3, 3)])
def test_the_schedule(costs: list[int], sms: int, in_order: int, longest: int) -> None:
    """CTAs take the next free SM, in their order or the longest first."""
    kv = 128 * torch.tensor(costs, dtype=torch.int32)
    lab = lab_of(lambda b, h, q, k: k < kv[q // 128], B=1, H=1, Sq=128 * len(costs), Skv=512)
    found = inspector.schedule(lab.blocks(128), sms, partial=7.0)  # there is no partial block
    assert found is not None
    assert (found.ctas, found.in_order, found.longest_first, found.ideal) == (len(costs), in_order, longest, sum(costs) / sms)


def test_partial_blocks_weigh_what_they_cost() -> None:
    found = inspector.schedule(lab_of(lambda b, h, q, k: q >= k, B=1, H=1, Sq=256).blocks(128), 1, partial=1.5)
    assert found is not None and found.in_order == 1.5 + 2.5


def test_which_maps_there_are() -> None:
    width = torch.tensor([10, 10, 10])
    assert lab_of(documents).inspect().depends == "one for all batch entries and heads: the mask reads neither"
    assert lab_of(lambda b, h, q, k: q - k < width[h]).inspect().depends == "1: the mask reads the head, and no block depends on it"
    assert lab_of(lambda b, h, q, k: q - k < 200 * h + b).inspect().depends == "3: the mask reads the batch entry and the head"


def test_other_blocks_and_one_more_token() -> None:
    lab = lab_of(lambda b, h, q, k: q >= k)
    options = {o.what: o for o in lab.inspect().options}
    assert list(options) == ["+1 token", "64×32", "64×128", "128×32"]
    for what, option in options.items():
        if what != "+1 token":
            q, kv = map(int, what.split("×"))
            assert option.issued == 6 * q * kv * int((lab.blocks((q, kv)).kinds > 0).sum())
    assert options["+1 token"].note == "9 more blocks are issued"
    assert "captured tensor ends there" in lab_of(documents).inspect().options[0].note


def test_orders_of_an_image() -> None:
    lab = lab_of(image, Sq=32 * WIDTH)
    found = dict(orders.of(lab))
    assert list(found) == ["tiles 8×16", "tiles 16×8", "Morton"]
    dense = lab.apply_mask()[0, 0]
    for name, order in found.items():
        assert sorted(order.tolist()) == list(range(32 * WIDTH))
        again = orders.reordered(lab, order)
        assert torch.equal(again.apply_mask()[0, 0], dense[order.long()][:, order.long()]), name
    assert found["tiles 8×16"][:17].tolist() == [*range(16), WIDTH]
    assert found["Morton"][:8].tolist() == [0, 1, WIDTH, WIDTH + 1, 2, 3, WIDTH + 2, WIDTH + 3]
    words = str(lab.inspect())
    assert "tiles 8×16" in words and "Morton" in words


def test_morton_of_oblong_images() -> None:
    for height, width in itertools.product((1, 2, 8), (1, 4, 16)):
        order = orders.morton(height, width)
        assert sorted(order.tolist()) == list(range(height * width))


@pytest.mark.parametrize("mask_mod", [documents, lambda b, h, q, k: q // 64 == k // 64, lambda b, h, q, k: q // 64 <= k % 32])
def test_no_image(mask_mod: Callable[..., Any]) -> None:
    assert orders.widths(lab_of(mask_mod)) == []


def test_predicted_shares() -> None:
    """Masked tiles cost more; on Blackwell offsets are packed into words, ids are not."""
    lab = lab_of(documents)
    found = lab.inspect("sm_100a", compile=True)
    assert found.mask_share is not None and found.rewritten_share is not None
    assert 0 <= found.rewritten_share < found.mask_share < 0.5
    assert "rewrite" in found._repr_markdown_() and "the mask then takes about" in str(found)
    again = lab.inspect("sm_100a")  # from the cache
    assert again.mask_share == found.mask_share


READS: dict[str, tuple[Callable[..., Any], int, str]] = {
    "a row": (lambda b, h, q, k: IDS[q] == IDS[k], 1 << 20, f"q_idx={S}, kv_idx=0"),
    "a difference": (lambda b, h, q, k: IDS[(q - k).abs()] > 3, 1 << 20, f"q_idx=0, kv_idx={S}"),
    "by what was read": (lambda b, h, q, k: IDS[IDS[q % S] + k] > 3, 6000, "kv_idx=1024"),
    "one cell": (lambda b, h, q, k: IDS[torch.where((q == 5000) & (k == 5100), 5000, 3)] > 3, 6000, "q_idx=5000, kv_idx=5100"),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_outside_is_found_at_any_length(name: str) -> None:
    """Also where there are too many positions to look at each."""
    mask_mod, length, place = READS[name]
    with pytest.raises(cute_lab.CuteLabError, match="index out of range") as caught:
        lab_of(mask_mod, B=1, H=1, Sq=length)
    assert place in str(caught.value)
    lab_of(lambda b, h, q, k: IDS[q % S] == IDS[k.clamp(0, S - 1)], B=1, H=1, Sq=1 << 20)
