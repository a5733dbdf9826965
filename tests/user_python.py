"""What people write around torch: Python of every kind in and around a mod, valid (torch evaluates it) and invalid (`# <-` marks the line).

A row is a factory; it returns a score_mod (5 parameters) or a mask_mod (4). An invalid row names the error and words of its message.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
import functools
import math
import operator
import random
import time
from collections import namedtuple
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.attention.flex_attention import and_masks, noop_mask, or_masks

B, H, SQ, SKV = 2, 3, 37, 53


def rnd(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


TABLE, ROWS = rnd(1, H, SQ, SKV), rnd(2, SKV)
WINDOW, CAP = 9, 12.5
VALID: dict[str, Any] = {}
INVALID: list[tuple[Any, str, tuple[str, ...]]] = []


def valid(f: Any) -> Any:
    VALID[f.__name__] = f
    return f


def invalid(error: str, *words: str) -> Any:
    def register(f: Any) -> Any:
        INVALID.append((f, error, words))
        return f

    return register


# -- valid ------------------------------------------------------------------------------------------------------------


@valid
def global_numbers():
    return lambda s, b, h, q, k: CAP * torch.tanh(s / CAP) + (q - k) / WINDOW


@valid
def two_lambdas_on_a_line():
    first, second = (lambda s, b, h, q, k: s * 2), (lambda s, b, h, q, k: s * 3 + ROWS[k])
    return second if first else first


@valid
def lambda_in_a_dict():
    return {"causal": lambda b, h, q, k: q >= k, "full": lambda b, h, q, k: q >= 0}["causal"]


@valid
def nested_helper():
    def distance(q, k):
        def size(x):
            return x.abs()

        return size(q - k)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score - 0.1 * distance(q_idx, kv_idx)

    return score_mod


@valid
def default_arguments():
    def score_mod(score, b, h, q_idx, kv_idx, scale=0.5, table=ROWS):
        return score * scale + table[kv_idx]

    return score_mod


@valid
def keyword_only_defaults():
    def score_mod(score, b, h, q_idx, kv_idx, *, scale=0.5):
        return score * scale

    return score_mod


@valid
def star_arguments():
    def score_mod(score, *where):
        b, h, q_idx, kv_idx = where
        return score + ROWS[kv_idx]

    return score_mod


@valid
def partial_keyword():
    def biased(score, b, h, q_idx, kv_idx, scale, table):
        return score * scale + table[kv_idx]

    return functools.partial(biased, scale=0.25, table=ROWS)


@valid
def partial_positional():
    def biased(scale, table, score, b, h, q_idx, kv_idx):
        return score * scale + table[kv_idx]

    return functools.partial(biased, 0.25, ROWS)


@valid
def partial_of_partial():
    def biased(scale, score, b, h, q_idx, kv_idx, shift):
        return score * scale + shift

    return functools.partial(functools.partial(biased, 0.25), shift=3)


@valid
def callable_object():
    class Alibi:
        def __init__(self, slopes, cap):
            self.slopes, self.cap = slopes, cap

        def __call__(self, score, b, h, q_idx, kv_idx):
            return self.cap * torch.tanh(score / self.cap) + self.slopes[h] * (kv_idx - q_idx)

    return Alibi(rnd(3, H), 7.0)


@valid
def bound_method():
    class Config:
        window = 5

        def keep(self, b, h, q_idx, kv_idx):
            return (q_idx - kv_idx).abs() <= self.window

    return Config().keep


@valid
def static_and_class_methods():
    class Mods:
        scale = 0.5

        @staticmethod
        def twice(x):
            return 2 * x

        @classmethod
        def mod(cls, score, b, h, q_idx, kv_idx):
            return cls.twice(score) * cls.scale

    return Mods.mod


@valid
def module_callable():
    class Bias(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(rnd(4, H, 8))
            self.register_buffer("shift", torch.tensor(0.5))

        def forward(self, score, b, h, q_idx, kv_idx):
            return score + self.table[h, (q_idx - kv_idx).clamp(0, 7)] * self.shift

    return Bias()


@valid
def module_inside():
    embedding, net = nn.Embedding(8, H), nn.Sequential(nn.Linear(2, 4), nn.GELU(), nn.Linear(4, 1))

    def score_mod(score, b, h, q_idx, kv_idx):
        x = torch.stack([(q_idx - kv_idx) / 50, h.float()])
        return score + embedding((q_idx - kv_idx).clamp(0, 7))[h] + net(x)[0]

    return score_mod


@valid
def parameter_and_requires_grad():
    table, weight = nn.Parameter(rnd(5, SKV)), rnd(6, H).requires_grad_()
    return lambda s, b, h, q, k: s * weight[h] + table[k]


@valid
def no_grad_decorated():
    @torch.no_grad()
    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    return mask_mod


@valid
def wraps_decorated():
    def twice(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return 2 * f(*args, **kwargs)

        return inner

    @twice
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + ROWS[kv_idx]

    return score_mod


@valid
def cached_helper():
    @functools.lru_cache
    def slope(n):
        return 2.0**-n

    return lambda s, b, h, q, k: s * slope(3)


@valid
def and_or_masks():
    return or_masks(and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < WINDOW), lambda b, h, q, k: k < 2)


@valid
def masks_from_a_loop():
    def window(n):
        return lambda b, h, q, k: (q - k).abs() != n

    return and_masks(*[window(n) for n in (1, 3, 5)])


@valid
def noop():
    return noop_mask


@valid
def dataclass_config():
    @dataclasses.dataclass(frozen=True)
    class Config:
        cap: float = 9.0
        table: torch.Tensor = dataclasses.field(default_factory=lambda: rnd(7, SKV))

        @property
        def half(self):
            return self.cap / 2

    config = Config()
    return lambda s, b, h, q, k: config.cap * torch.tanh(s / config.cap) + config.half + config.table[k]


@valid
def named_tuple_and_enum():
    Pair = namedtuple("Pair", "near far")
    pair = Pair(1.0, -2.0)

    class Kind(enum.IntEnum):
        NEAR = 4

    return lambda s, b, h, q, k: s + torch.where(q - k < Kind.NEAR, pair.near, pair.far)


@valid
def dict_and_list_of_tensors():
    tables, more = {"q": rnd(8, SQ), "k": rnd(9, SKV)}, [rnd(10, H), [rnd(11, SKV)]]
    return lambda s, b, h, q, k: s + tables["q"][q] + tables["k"][k] + more[0][h] + more[1][0][k]


@valid
def loop_over_rows():
    rows = rnd(12, 4, SKV)

    def score_mod(score, b, h, q_idx, kv_idx):
        for row in rows:
            score = score + row[kv_idx]
        for i, row in enumerate(rows):
            score = score - row[kv_idx] / (i + 1)
        return score

    return score_mod


@valid
def loops_and_comprehensions():
    freqs = [1.0, 0.5, 0.25]

    def score_mod(score, b, h, q_idx, kv_idx):
        d = q_idx - kv_idx
        total = sum(torch.cos(d * f) for f in freqs) + sum([torch.sin(d * f) for f in freqs])
        parts = {i: f * d for i, f in enumerate(freqs)}
        i = 0
        while i < 3:
            total, i = total + parts[i] * 0.01, i + 1
        return score + total / len(freqs)

    return score_mod


@valid
def branches_on_captured():
    causal, mode, table = True, "soft", rnd(13, SKV)

    def score_mod(score, b, h, q_idx, kv_idx):
        if causal and mode != "hard" and table.dim() == 1 and table.shape[0] == SKV and len(table) > 3:
            score = score + table[kv_idx]
        else:
            score = score * 0
        match mode:
            case "soft":
                score = score * 0.5
            case _:
                score = score * 2
        return score if causal else -score

    return score_mod


@valid
def branch_on_a_captured_value():
    scale = torch.tensor(2.0)

    def score_mod(score, b, h, q_idx, kv_idx):
        if scale > 1:
            return score * scale
        return score

    return score_mod


@valid
def number_of_a_captured_tensor():
    cap, sizes = torch.tensor(11.0), torch.tensor([4, 8])
    return lambda s, b, h, q, k: s / cap.item() + float(cap) * int(sizes[1]) + sizes.tolist()[0] + sizes.numel() + sizes.size(0)


@valid
def math_on_captured():
    dim, base = 64, 10000.0
    return lambda s, b, h, q, k: s / math.sqrt(dim) + math.log(base) + math.pi + math.inf * 0.0 if False else s * math.floor(dim / 10)


@valid
def numpy_scalars():
    scale, shift, on, row = np.float32(0.3), np.int64(4), np.bool_(True), np.arange(3)
    return lambda s, b, h, q, k: s * float(scale) + int(shift) + bool(on) + row[1].item()


@valid
def numpy_scalars_directly():
    scale, shift = np.float64(0.3), np.int64(4)
    return lambda s, b, h, q, k: s * scale + shift * k


@valid
def dtype_and_bool_captured():
    dtype, on, off = torch.float32, True, None
    return lambda s, b, h, q, k: (s.to(dtype) + on * 2 + torch.tensor(1, dtype=dtype)) if off is None else s


@valid
def recursion():
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    return lambda s, b, h, q, k: power(s * 0.1, 5)


@valid
def walrus_fstring_assert_try():
    n = 3

    def score_mod(score, b, h, q_idx, kv_idx):
        assert n > 0, f"n is {n}"
        try:
            if (m := n * 2) > 5:
                score = score + m
        except ValueError:
            score = score * 0
        finally:
            label = f"{n:03d} of {score.dtype}"
        with contextlib.suppress(KeyError):
            score = score + len(label)
        return score

    return score_mod


@valid
def operator_module():
    return lambda b, h, q, k: operator.and_(operator.ge(q, k), operator.lt(operator.sub(q, k), WINDOW))


@valid
def builtins_on_tensors():
    return lambda s, b, h, q, k: abs(s) + pow(s, 2) + sum([s, k])


@valid
def max_of_numbers():
    sizes = [3, 9, 4]
    return lambda b, h, q, k: (q - k).abs() < max(sizes) + min(2, 5)


@valid
def vmap_inside():
    rows = rnd(14, SKV, 4)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + torch.vmap(lambda x: x * 2)(rows[kv_idx]).sum()

    return score_mod


@valid
def in_place_on_temporaries():
    def score_mod(score, b, h, q_idx, kv_idx):
        out = score * 1
        out += ROWS[kv_idx]
        out *= 2
        out -= 1
        out /= 3
        keep = q_idx >= kv_idx
        keep &= kv_idx != 3
        return out.masked_fill_(~keep, -5.0)

    return score_mod


@valid
def rebinding_the_score():
    def score_mod(score, b, h, q_idx, kv_idx):
        score = score * 2
        score += 1
        q_idx = q_idx + 1
        q_idx += 1
        return score + q_idx

    return score_mod


@valid
def tuple_index_and_star():
    where = (slice(None), 3)

    def score_mod(score, b, h, q_idx, kv_idx):
        at = (h, q_idx, kv_idx)
        return score + TABLE[at] + TABLE[where][h, kv_idx] + TABLE[h, *at[1:]]

    return score_mod


@valid
def two_steps_and_slices():
    return lambda s, b, h, q, k: s + TABLE[h][q][k] + TABLE[h, q][k] + TABLE[:, q, k][h] + TABLE[..., k][h, q] + TABLE[h, 1:, :][q - 1, k]


@valid
def constant_result():
    return lambda b, h, q, k: torch.ones((), dtype=torch.bool)


@valid
def mask_number_of_python():
    return lambda b, h, q, k: (q >= k) & True | False


@valid
def score_is_a_capture():
    return lambda s, b, h, q, k: TABLE[h, q, k]


@valid
def closure_cell_filled_later():
    def score_mod(score, b, h, q_idx, kv_idx):
        return score * later

    later = 0.75
    return score_mod


@valid
def shape_from_a_captured_number():
    heads, width = 3, 53
    flat = TABLE.reshape(-1)
    return lambda s, b, h, q, k: s + flat.view(heads, -1)[h, q * width + k] + ROWS.view(1, width)[0, k]


@valid
def loop_count_captured():
    steps = 4

    def score_mod(score, b, h, q_idx, kv_idx):
        for _ in range(steps):
            score = torch.tanh(score) + ROWS.chunk(steps)[0][0]
        return score

    return score_mod


@valid
def list_index_by_captured_number():
    tables, which = [rnd(15, SKV), rnd(16, SKV)], 1
    return lambda s, b, h, q, k: s + tables[which][k]


@valid
def positions_modulo_captured():
    side = 8
    return lambda b, h, q, k: ((q % side - k % side).abs() <= 1) & ((q // side - k // side).abs() <= 1)


@valid
def enumerate_heads():
    slopes = [0.5, 0.25, 0.125]

    def score_mod(score, b, h, q_idx, kv_idx):
        bias = torch.zeros(())
        for i, m in enumerate(slopes):
            bias = torch.where(h == i, m, bias)
        return score + bias * (kv_idx - q_idx)

    return score_mod


@valid
def functional_of_torch_func():
    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.func.vmap(lambda x: x + 1)(ROWS[:3])[0] + score

    return score_mod


# -- invalid ----------------------------------------------------------------------------------------------------------


@invalid("BranchOnTensor", "torch.where(q_idx >= kv_idx, score, float('-inf'))")
def if_on_index():
    def score_mod(score, b, h, q_idx, kv_idx):
        if q_idx >= kv_idx:  # <-
            return score
        return float("-inf")

    return score_mod


@invalid("BranchOnTensor", "and/or", "(q_idx >= kv_idx) & (q_idx - kv_idx < 9)")
def and_on_tensors():
    return lambda b, h, q_idx, kv_idx: q_idx >= kv_idx and q_idx - kv_idx < 9  # <-


@invalid("BranchOnTensor", "not", "~(q_idx >= kv_idx)")
def not_on_tensor():
    return lambda b, h, q_idx, kv_idx: not (q_idx >= kv_idx)  # <-


@invalid("BranchOnTensor", "chained comparison", "(0 <= q_idx - kv_idx) & (q_idx - kv_idx < 9)")
def chained_comparison():
    return lambda b, h, q_idx, kv_idx: 0 <= q_idx - kv_idx < 9  # <-


@invalid("BranchOnTensor", "torch.where(q_idx > kv_idx, score, 0.0)")
def conditional_expression():
    return lambda score, b, h, q_idx, kv_idx: score if q_idx > kv_idx else 0.0  # <-


@invalid("BranchOnTensor", "torch.maximum(q_idx, kv_idx)")
def builtin_max():
    return lambda score, b, h, q_idx, kv_idx: score + max(q_idx, kv_idx)  # <-


@invalid("BranchOnTensor", "while")
def while_on_score():
    def score_mod(score, b, h, q_idx, kv_idx):
        while score > 1:  # <-
            score = score / 2
        return score

    return score_mod


@invalid("BranchOnTensor", "assert", "remove the assert")
def assert_on_tensor():
    def score_mod(score, b, h, q_idx, kv_idx):
        assert q_idx >= 0  # <-
        return score

    return score_mod


@invalid("BranchOnTensor", "match")
def match_on_head():
    def score_mod(score, b, h, q_idx, kv_idx):
        match h:
            case 0:  # <-
                return score
        return score * 2

    return score_mod


@invalid("BranchOnTensor", "torch.isin(kv_idx")
def in_a_list():
    globals_ = [0, 1, 5]
    return lambda b, h, q_idx, kv_idx: kv_idx in globals_  # <-


@invalid("TensorToNumber", "h.item()", "without item()")
def item():
    return lambda s, b, h, q, k: s * h.item()  # <-


@invalid("TensorToNumber", "int(h)", "without int()")
def int_of_head():
    return lambda s, b, h, q, k: s * int(h)  # <-


@invalid("TensorToNumber", "float(s)")
def float_of_score():
    return lambda s, b, h, q, k: s + float(s)  # <-


@invalid("BranchOnTensor", "bool()")
def bool_of_index():
    return lambda b, h, q, k: bool(q >= k)  # <-


@invalid("TensorToNumber", "range(h)")
def range_of_head():
    def score_mod(score, b, h, q_idx, kv_idx):
        for _ in range(h):  # <-
            score = score * 2
        return score

    return score_mod


@invalid("TensorToNumber", "slopes[h]", "torch.tensor(slopes)")
def list_by_head():
    slopes = [0.5, 0.25, 0.125]
    return lambda s, b, h, q, k: s * slopes[h]  # <-


@invalid("TensorToNumber", "torch.stack(")
def list_of_tensors_by_head():
    tables = [ROWS, ROWS * 2, ROWS * 3]
    return lambda s, b, h, q, k: s + tables[h][k]  # <-


@invalid("TensorToNumber", "torch.tensor(list(slopes.values()))")
def dict_by_head():
    slopes = {0: 0.5, 1: 0.25, 2: 0.125}
    return lambda s, b, h, q, k: s * slopes[h]  # <-


@invalid("TensorToNumber", "ROWS[:k]", "torch.where")
def slice_by_index():
    return lambda s, b, h, q, k: s + ROWS[:k].sum()  # <-


@invalid("TensorToNumber", "torch.arange(q)")
def arange_of_index():
    return lambda s, b, h, q, k: s + torch.arange(q).sum()  # <-


@invalid("LeavesTorch", "np.exp(s)", "torch.exp(s)")
def numpy_function():
    return lambda s, b, h, q, k: np.exp(s)  # <-


@invalid("LeavesTorch", "math.sqrt(k)", "torch.sqrt(k)")
def math_function():
    return lambda s, b, h, q, k: s + math.sqrt(k)  # <-


@invalid("LeavesTorch", "s.numpy()")
def to_numpy():
    return lambda s, b, h, q, k: s + torch.tensor(s.numpy())  # <-


@invalid("LeavesTorch", "s.tolist()")
def to_list():
    return lambda s, b, h, q, k: s + s.tolist()  # <-


@invalid("RandomInMod", "torch.rand(())")
def random_torch():
    return lambda s, b, h, q, k: s + torch.rand(())  # <-


@invalid("RandomInMod", "random.random()")
def random_python():
    return lambda s, b, h, q, k: s + random.random()  # <-


@invalid("RandomInMod", "np.random.rand()")
def random_numpy():
    return lambda s, b, h, q, k: s + np.random.rand()  # <-


@invalid("RandomInMod", "torch.manual_seed(0)")
def seed_inside():
    def score_mod(score, b, h, q_idx, kv_idx):
        torch.manual_seed(0)  # <-
        return score

    return score_mod


@invalid("RandomInMod", "dropout")
def dropout():
    return lambda s, b, h, q, k: torch.nn.functional.dropout(s, 0.1)  # <-


@invalid("SideEffect", "time.time()")
def clock():
    return lambda s, b, h, q, k: s + time.time()  # <-


@invalid("SideEffect", "print")
def print_inside():
    def score_mod(score, b, h, q_idx, kv_idx):
        print(score)  # <-
        return score

    return score_mod


@invalid("SideEffect", "append")
def append_outside():
    seen: list[Any] = []

    def score_mod(score, b, h, q_idx, kv_idx):
        seen.append(score)  # <-
        return score

    return score_mod


@invalid("SideEffect", "nonlocal")
def counts_calls():
    calls = 0

    def score_mod(score, b, h, q_idx, kv_idx):
        nonlocal calls  # <-
        calls += 1
        return score

    return score_mod


@invalid("WritesTensor", "seen", "captured tensor")
def writes_capture():
    seen = torch.zeros(SKV)

    def score_mod(score, b, h, q_idx, kv_idx):
        seen[kv_idx] = score  # <-
        return score

    return score_mod


@invalid("WritesTensor", "seen", "captured tensor")
def adds_to_capture():
    seen = torch.zeros(SKV)

    def score_mod(score, b, h, q_idx, kv_idx):
        seen.index_add_(0, kv_idx.reshape(1), score.reshape(1))  # <-
        return score

    return score_mod


@invalid("WritesTensor", "`score`", "Write\n      score = score * 2", "Inputs are read only")
def writes_input():
    def score_mod(score, b, h, q_idx, kv_idx):
        score *= 2  # <-
        return score

    return score_mod


@invalid("WrongResultType", "float32", "bool")
def mask_returns_float():
    return lambda b, h, q_idx, kv_idx: torch.where(q_idx >= kv_idx, 0.0, 1.0)  # <-


@invalid("WrongResultType", "Python bool True")
def mask_returns_python_bool():
    return lambda b, h, q_idx, kv_idx: True  # <-


@invalid("WrongResultType", "Python float 0.0")
def score_returns_number():
    def score_mod(score, b, h, q_idx, kv_idx):
        return 0.0  # <-

    return score_mod


@invalid("WrongResultType", "int32", "floating-point")
def score_returns_int():
    def score_mod(score, b, h, q_idx, kv_idx):
        return q_idx - kv_idx  # <-

    return score_mod


@invalid("WrongResultType", "shape [4]", ".sum()")
def score_returns_row():
    rows = rnd(20, SKV, 4)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + rows[kv_idx]  # <-

    return score_mod


@invalid("WrongResultType", "tuple")
def score_returns_tuple():
    def score_mod(score, b, h, q_idx, kv_idx):
        return score, q_idx  # <-

    return score_mod


@invalid("ReturnsNone", "None", "return")
def returns_nothing():
    def score_mod(score, b, h, q_idx, kv_idx):  # <-
        score = score * 2

    return score_mod


@invalid("WrongArity", "q_idx", "missing")
def too_few_parameters():
    def score_mod(score, b, h, kv_idx):  # <-
        return score

    return score_mod


@invalid("WrongArity", "7 parameters")
def too_many_parameters():
    def score_mod(score, b, h, q_idx, kv_idx, more, still):  # <-
        return score

    return score_mod


@invalid("WrongResultType", "coroutine", "async")
def async_mod():
    async def score_mod(score, b, h, q_idx, kv_idx):  # <-
        await asyncio.sleep(0)
        return score

    return score_mod


@invalid("WrongResultType", "generator", "return")
def generator_mod():
    def score_mod(score, b, h, q_idx, kv_idx):  # <-
        yield score

    return score_mod


@invalid("UndefinedName", "did you mean 'ROWS'")
def misspelt():
    return lambda s, b, h, q, k: s + ROWSS[k]  # noqa: F821  # <-


@invalid("UserCodeError", "has no attribute", "abss")
def misspelt_method():
    return lambda s, b, h, q, k: s.abss()  # <-


@invalid("UserCodeError", "has no attribute", "tanhh")
def misspelt_function():
    return lambda s, b, h, q, k: torch.tanhh(s)  # <-


@invalid("UserCodeError", "too many indices")
def too_many_indices():
    return lambda s, b, h, q, k: s + ROWS[q, k]  # <-


@invalid("IndexOutOfRange", "ROWS", "53")
def index_out_of_range():
    return lambda s, b, h, q, k: s + ROWS[k + 1]  # <-


@invalid("IndexOutOfRange", "short", "4")
def row_index_out_of_range():
    short = rnd(21, SQ, 4)
    return lambda s, b, h, q, k: s + short[q][k]  # <-


@invalid("UserCodeError", "ZeroDivisionError", "integer division by zero")
def integer_division_by_zero():
    return lambda s, b, h, q, k: s + q // k  # <-


@invalid("UserCodeError", "ZeroDivisionError")
def python_division_by_zero():
    n = 0
    return lambda s, b, h, q, k: s + 1 / n  # <-


@invalid("UnsupportedOp", "bool mask")
def bool_mask_index():
    return lambda s, b, h, q, k: s + ROWS[s < ROWS].sum()  # <-


@invalid("UnsupportedOp", "unique")
def unique():
    return lambda s, b, h, q, k: torch.unique(torch.stack([s, s])).sum()  # <-


@invalid("UnsupportedOp", "complex")
def complex_numbers():
    return lambda s, b, h, q, k: torch.exp(1j * s).real  # <-


@invalid("UserCodeError", "ValueError", "no good")
def raises():
    def score_mod(score, b, h, q_idx, kv_idx):
        raise ValueError("no good")  # <-

    return score_mod


@invalid("UserCodeError", "RecursionError")
def endless_recursion():
    def again(x):
        return again(x + 1)  # <-

    return lambda s, b, h, q, k: again(s)


@invalid("CaptureTooLarge", "unrolled")
def huge_row():
    table = rnd(22, SKV, 5000)
    return lambda s, b, h, q, k: s + table[k].sum()  # <-


@invalid("TensorToNumber", "format")
def formats_tensor():
    return lambda s, b, h, q, k: s + len(f"{s:.3f}")  # <-


@invalid("BranchOnTensor", "(q_idx - kv_idx).clamp(min=4)")
def max_with_a_number():
    return lambda score, b, h, q_idx, kv_idx: score + max(q_idx - kv_idx, 4)  # <-


@invalid("BranchOnTensor", "torch.minimum(q_idx, kv_idx).clamp(max=3)")
def min_of_three():
    return lambda score, b, h, q_idx, kv_idx: score + min(q_idx, 3, kv_idx)  # <-


@invalid("BranchOnTensor", "torch.stack([q_idx >= kv_idx, kv_idx < 3]).any()")
def builtin_any():
    return lambda b, h, q_idx, kv_idx: any([q_idx >= kv_idx, kv_idx < 3])  # <-


@invalid("BranchOnTensor", "~torch.isin(kv_idx, torch.tensor(list((1, 2, 3))))")
def not_in_a_tuple():
    return lambda b, h, q_idx, kv_idx: kv_idx not in (1, 2, 3)  # <-


@invalid("TensorToNumber", "for i in range(most)", "i < q_idx")
def range_of_query():
    def score_mod(score, b, h, q_idx, kv_idx):
        for _ in range(q_idx):  # <-
            score = score + 1
        return score

    return score_mod


@invalid("TensorToNumber", "one Python number for all positions")
def size_by_query():
    return lambda s, b, h, q, k: s + torch.zeros(q).sum()  # <-


@invalid("TensorToNumber", "torch.tensor([1.0, 2.0])[h]")
def literal_dict_by_head():
    return lambda s, b, h, q, k: s + {0: 1.0, 1: 2.0}[h]  # <-


@invalid("TensorToNumber", "torch.where(i < x, value, other)")
def comprehension_filter():
    return lambda s, b, h, q, k: s + sum(m for m in (0.5, 0.25) if m < h)  # <-


@invalid("LeavesTorch", "torch.log(q + 1) / math.log(2)")
def logarithm_with_base():
    return lambda s, b, h, q, k: s + math.log(q + 1, 2)  # <-


@invalid("LeavesTorch", "(q).to(torch.int64)")
def numpy_type():
    return lambda b, h, q, k: np.int64(q) > k  # <-


@invalid("WritesTensor", "s = torch.where(q < k, 0.0, s)")
def masks_input():
    def score_mod(s, b, h, q, k):
        s[q < k] = 0.0  # <-
        return s

    return score_mod


@invalid("WrongResultType", "return q_idx < 0")
def one_path_returns_false():
    def mask_mod(b, h, q_idx, kv_idx):
        if b is None:
            return q_idx >= kv_idx
        return False  # <-

    return mask_mod


@invalid("WrongResultType", "a tuple of 2", "return s")
def lambda_returns_tuple():
    return lambda s, b, h, q, k: (s, q)  # <-


@invalid("WrongArity", "nobody passes scale", "functools.partial")
def keyword_only_parameter():
    def score_mod(score, b, h, q_idx, kv_idx, *, scale):  # <-
        return score * scale

    return score_mod


@invalid("SideEffect", "self")
def writes_attribute():
    class Counting:
        calls = 0

        def __call__(self, score, b, h, q_idx, kv_idx):
            self.calls += 1  # <-
            return score

    return Counting()


@invalid("SideEffect", "open")
def writes_file():
    def score_mod(score, b, h, q_idx, kv_idx):
        open("scores.txt", "a").write("here")  # noqa: SIM115  # <-
        return score

    return score_mod


@invalid("UserCodeError", "Subtraction", "bool")
def minus_of_bools():
    return lambda b, h, q, k: (q >= k) - (q < 3)  # <-


@invalid("UserCodeError", "broadcast")
def rows_of_two_lengths():
    rows = rnd(23, SKV, 4)
    return lambda s, b, h, q, k: s + (rows[k] * ROWS[:3]).sum()  # <-


@invalid("UserCodeError", "indices must be long")
def int8_index():
    at = torch.zeros(SKV, dtype=torch.int8)
    return lambda s, b, h, q, k: s + ROWS[at[k]]  # <-


@invalid("UnsupportedOp", "torch.cond", "torch.where(")
def torch_cond():
    return lambda s, b, h, q, k: torch.cond(q >= k, lambda: s, lambda: -s)  # <-


@invalid("UserCodeError", "IndexError", "goes up to 52")
def own_row_is_too_short():
    return lambda s, b, h, q, k: torch.stack([s, s * 2])[k]  # <-
