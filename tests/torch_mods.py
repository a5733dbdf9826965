"""What torch offers on single scores, as mods: (name, kind, function). Torch's eager evaluation defines each one's meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Mod = Callable[..., Any]
B, H, SQ, SKV = 2, 3, 37, 53
INF, NAN = float("inf"), float("nan")


def rnd(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def rint(seed: int, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


bias = rnd(1, H, SQ, SKV)
by_k, by_q, by_h = rnd(2, SKV), rnd(3, SQ), rnd(4, H)
rows_q, rows_k = rnd(5, SQ, 4), rnd(6, SKV, 4)
halves, brains, doubles = rnd(7, SKV, dtype=torch.float16), rnd(8, SKV, dtype=torch.bfloat16), rnd(9, SKV, dtype=torch.float64)
bytes_, small, shorts = (
    rint(10, 0, 256, SKV, dtype=torch.uint8),
    rint(11, -128, 128, SKV, dtype=torch.int8),
    rint(12, -999, 999, SKV, dtype=torch.int16),
)
ints, longs = rint(13, -99, 99, SKV, dtype=torch.int32), rint(14, -(2**40), 2**40, SKV)
flags, grid = rint(15, 0, 2, SKV).bool(), rint(16, 0, 2, SQ, SKV).bool()
docs, starts = rint(17, 0, 4, SKV), torch.tensor([0, 7, 19, 20, 44])
ends = torch.tensor([[3, 9, 9, 40], [0, 1, 2, 53], [10, 20, 30, 40]])
zero_dim, one_one, flag0 = torch.tensor(0.37), torch.tensor([[1.25]]), torch.tensor(True)
order = torch.randperm(SKV, generator=torch.Generator().manual_seed(18))
edges = torch.tensor([-3.0, -1.0, 0.0, 0.5, 2.0, 7.0])
specials = torch.tensor([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 0.5, -2.5])
matrix = rnd(19, 4, 4)
embedding = torch.nn.Embedding(8, H)
linear = torch.nn.Linear(3, 1)
special_k = specials[torch.arange(SKV) % len(specials)].contiguous()
big_ints = torch.tensor([2**31 - 1, -(2**31), 2**30, -1, 0, 1, 7], dtype=torch.int32)[torch.arange(SKV) % 7].contiguous()

# functions of one float, with the range in which the score is taken (the rest of the line is torch's name)
UNARY: dict[str, tuple[float, float]] = {
    **dict.fromkeys(
        """abs absolute neg negative positive sign sgn square floor ceil round trunc fix frac exp exp2 expm1 sin cos tan atan arctan
    sinh cosh tanh asinh arcsinh sigmoid relu erf erfc isnan isinf isfinite isneginf isposinf isreal signbit deg2rad rad2deg sinc nan_to_num
    reciprocal logical_not i0 special.i0e special.i1 special.i1e special.expit special.sinc special.ndtr special.erf special.erfc special.exp2
    special.expm1 special.erfcx special.entr special.round special.i0
    nn.functional.silu nn.functional.mish nn.functional.elu nn.functional.selu nn.functional.celu nn.functional.gelu nn.functional.relu
    nn.functional.relu6 nn.functional.leaky_relu nn.functional.hardtanh nn.functional.hardswish nn.functional.hardsigmoid nn.functional.softplus
    nn.functional.softsign nn.functional.logsigmoid nn.functional.tanhshrink nn.functional.hardshrink nn.functional.softshrink nn.functional.sigmoid
    nn.functional.tanh special.log_ndtr selu celu clone detach angle real
    """.split(),
        (-6.0, 6.0),
    ),
    **dict.fromkeys("asin acos arcsin arccos atanh arctanh erfinv special.erfinv".split(), (-1.1, 1.1)),
    **dict.fromkeys("logit special.logit".split(), (-0.05, 1.05)),
    **dict.fromkeys("sqrt rsqrt log log2 log10".split(), (-0.1, 8.0)),
    **dict.fromkeys("digamma lgamma special.gammaln special.digamma special.psi".split(), (0.02, 6.0)),
    **dict.fromkeys("log1p special.log1p".split(), (-1.1, 6.0)),
    **dict.fromkeys("acosh arccosh".split(), (0.5, 8.0)),
}
BINARY = """add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow float_power maximum minimum fmax fmin atan2 arctan2 hypot
copysign heaviside xlogy special.xlogy special.xlog1py logaddexp logaddexp2 eq ne lt le gt ge greater less_equal not_equal logical_and logical_or
logical_xor isclose ldexp dist rsub""".split()
INT_BINARY = """add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor bitwise_left_shift
bitwise_right_shift gcd eq ne lt le gt ge logical_and logical_or logical_xor true_divide float_power atan2 copysign""".split()


def named(path: str) -> Any:
    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part)
    return found


def unary(path: str, low: float, high: float) -> Mod:
    f = named(path)

    def mod(score, b, h, q_idx, kv_idx):  # type: ignore[no-untyped-def]
        return f(torch.frac(score * 0.37).abs() * (high - low) + low) * 1.0

    return mod


def on_index(path: str) -> Mod:
    f = named(path)
    return lambda s, b, h, q, k: s * 0 + f(k - q) * 0.5


def on_specials(path: str) -> Mod:
    f = named(path)
    return lambda s, b, h, q, k: f(special_k[k] + 0 * s) * 1.0


def binary(path: str) -> Mod:
    f = named(path)
    return lambda s, b, h, q, k: f(s, by_k[k] * 3) * 1.0


def binary_specials(path: str) -> Mod:
    f = named(path)
    return lambda s, b, h, q, k: f(special_k[k], specials[(q + k // 9) % 9]) * 1.0


def int_binary(path: str) -> Mod:
    f = named(path)
    return lambda s, b, h, q, k: s * 0 + f(k - q, (q * 7 + k * 3) % 11 + 1)


def int_wrap(path: str) -> Mod:
    f = named(path)
    return lambda s, b, h, q, k: s * 0 + f(big_ints[k], (q * 7 + k * 3) % 11 + 1)


# torch itself refuses these of an index; cute_lab has no formula for those after them
FLOATS_ONLY = """frac special.round nn.functional.silu nn.functional.mish nn.functional.elu nn.functional.selu nn.functional.celu nn.functional.gelu
nn.functional.leaky_relu nn.functional.hardswish nn.functional.hardsigmoid nn.functional.softplus nn.functional.logsigmoid nn.functional.hardshrink
nn.functional.softshrink selu celu""".split()
# torch's own gradient: not implemented (the derivative of a step is 0), or only right for one score at a time
EAGER_GRADIENT = {
    **dict.fromkeys(
        ["floor_divide of floats", "heaviside of floats", "heaviside", "float // int", "number % float", "operators", "in place others"],
        "none",
    ),
    **dict.fromkeys(["prelu", "row linear module", "row scatter", "stack softmax", "stack index", "setitem temp"], "one by one"),
}

SCORE: dict[str, Mod] = {f"{name} of a float": unary(name, *ends) for name, ends in UNARY.items()}
SCORE |= {f"{name} of an index": on_index(name) for name in UNARY if name not in FLOATS_ONLY}
SCORE |= {f"{name} of specials": on_specials(name) for name in UNARY}
SCORE |= {f"{name} of floats": binary(name) for name in BINARY}
SCORE |= {f"{name} of special floats": binary_specials(name) for name in BINARY}
SCORE |= {f"{name} of ints": int_binary(name) for name in INT_BINARY}
SCORE |= {f"{name} of large ints": int_wrap(name) for name in INT_BINARY}
SCORE["lcm of ints"] = int_binary("lcm")
SCORE |= {
    "gelu tanh": lambda s, b, h, q, k: F.gelu(s, approximate="tanh"),
    "elu alpha": lambda s, b, h, q, k: F.elu(s, 0.7),
    "softplus beta threshold": lambda s, b, h, q, k: F.softplus(s, beta=2.0, threshold=3.0),
    "hardtanh ends": lambda s, b, h, q, k: F.hardtanh(s, -0.5, 2.0),
    "threshold": lambda s, b, h, q, k: F.threshold(s, 0.3, -2.0),
    "leaky relu slope": lambda s, b, h, q, k: F.leaky_relu(s, 0.2),
    "hardshrink": lambda s, b, h, q, k: F.hardshrink(s, 0.7),
    "softshrink": lambda s, b, h, q, k: F.softshrink(s, 0.7),
    "prelu": lambda s, b, h, q, k: torch.prelu(s.reshape(1), torch.tensor([0.3]))[0],
    "dropout eval": lambda s, b, h, q, k: F.dropout(s, 0.5, training=False),
    "logit eps": lambda s, b, h, q, k: torch.logit(torch.sigmoid(s), eps=1e-3),
    "nan_to_num given": lambda s, b, h, q, k: torch.nan_to_num(special_k[k] * s, nan=0.5, posinf=9.0, neginf=-9.0),
    "heaviside": lambda s, b, h, q, k: torch.heaviside(torch.round(s), zero_dim),
    "lerp number": lambda s, b, h, q, k: torch.lerp(s, by_k[k], 0.3),
    "lerp": lambda s, b, h, q, k: torch.lerp(s, by_k[k], torch.sigmoid(by_q[q])),
    "lerp method": lambda s, b, h, q, k: s.lerp(by_k[k], 0.8),
    "addcmul": lambda s, b, h, q, k: torch.addcmul(s, by_k[k], by_q[q], value=0.5),
    "addcdiv": lambda s, b, h, q, k: torch.addcdiv(s, by_k[k], by_q[q].abs() + 1, value=0.5),
    "add alpha": lambda s, b, h, q, k: torch.add(s, by_k[k], alpha=2),
    "sub alpha": lambda s, b, h, q, k: s.sub(k, alpha=0.25),
    "rsub": lambda s, b, h, q, k: torch.rsub(s, 1.5),
    "rsub alpha": lambda s, b, h, q, k: torch.rsub(s, 1.5, alpha=2),
    "clamp both": lambda s, b, h, q, k: s.clamp(-1.0, 2.0),
    "clamp min": lambda s, b, h, q, k: s.clamp(min=-1.0),
    "clamp max int": lambda s, b, h, q, k: s.clamp(max=2),
    "clamp tensors": lambda s, b, h, q, k: s.clamp(by_k[k], by_q[q]),
    "clamp min by tensor": lambda s, b, h, q, k: torch.clamp(s, min=by_k[k]),
    "clip": lambda s, b, h, q, k: torch.clip(s, -1, 1),
    "clamp int by float": lambda s, b, h, q, k: s + (k - q).clamp(-2.5, 7.5),
    "clamp nan": lambda s, b, h, q, k: special_k[k].clamp(-1.0, 1.0),
    "clamp_min_ on temp": lambda s, b, h, q, k: (s * 1).clamp_(0.0, 2.0),
    "round decimals": lambda s, b, h, q, k: torch.round(s, decimals=1),
    "round decimals neg": lambda s, b, h, q, k: torch.round(s * 50, decimals=-1),
    "builtin round": lambda s, b, h, q, k: s.round() + abs(s),
    "div trunc": lambda s, b, h, q, k: torch.div(s, by_k[k], rounding_mode="trunc"),
    "div floor": lambda s, b, h, q, k: torch.div(s, by_k[k], rounding_mode="floor"),
    "div none": lambda s, b, h, q, k: torch.div(s, by_k[k], rounding_mode=None),
    "int div trunc": lambda s, b, h, q, k: s + torch.div(q - k, 5, rounding_mode="trunc"),
    "int div floor": lambda s, b, h, q, k: s + torch.div(q - k, 5, rounding_mode="floor"),
    "int // float": lambda s, b, h, q, k: s + (q - k) // 2.5,
    "int % float": lambda s, b, h, q, k: s + (q - k) % 2.5,
    "float // int": lambda s, b, h, q, k: s // 2 + s % 3,
    "number //": lambda s, b, h, q, k: s + 100 // (k + 1) + 100 % (k + 1),
    "number % float": lambda s, b, h, q, k: 7.5 % (s.abs() + 0.5),
    "number -": lambda s, b, h, q, k: 1 - s,
    "number /": lambda s, b, h, q, k: 1 / (k + 1) + s,
    "number **": lambda s, b, h, q, k: 2 ** (s.clamp(-5, 5)),
    "int ** int": lambda s, b, h, q, k: s + (k - q) ** (q % 4),
    "int ** 5": lambda s, b, h, q, k: s + ((k - q) ** 5) * 1e-6,
    "2 ** int": lambda s, b, h, q, k: s + 2 ** (k % 12),
    "int ** 0.5": lambda s, b, h, q, k: s + k**0.5,
    "float ** int": lambda s, b, h, q, k: s ** (k % 4),
    "float ** 3": lambda s, b, h, q, k: s**3 + s**-1 + s**-2,
    "float ** 2.5": lambda s, b, h, q, k: s.abs() ** 2.5,
    "float ** 0": lambda s, b, h, q, k: s**0,
    "pow_ temp": lambda s, b, h, q, k: (s * 1).pow_(2),
    "ipow wraps": lambda s, b, h, q, k: s + (k + 100) ** 7,
    "float power": lambda s, b, h, q, k: torch.float_power(s.abs(), 1.5).float(),
    "ldexp": lambda s, b, h, q, k: torch.ldexp(s, k % 5 - 2),
    "frexp mantissa": lambda s, b, h, q, k: torch.frexp(s)[0],
    "frexp exponent": lambda s, b, h, q, k: s + torch.frexp(s).exponent,
    "isin": lambda s, b, h, q, k: torch.where(torch.isin(k, starts), s, -1.0),
    "allclose free isclose": lambda s, b, h, q, k: torch.where(torch.isclose(s, by_k[k], atol=0.5), s, 0.0),
    "masked_fill": lambda s, b, h, q, k: s.masked_fill(q < k, float("-inf")),
    "masked_fill by tensor": lambda s, b, h, q, k: s.masked_fill(q < k, zero_dim),
    "masked_fill_ temp": lambda s, b, h, q, k: (s + 0).masked_fill_(flags[k], -3),
    "where two numbers": lambda s, b, h, q, k: s + torch.where(q > k, 1.0, 0.0),
    "where int numbers": lambda s, b, h, q, k: s * torch.where(q > k, 1, 0),
    "where bool numbers": lambda s, b, h, q, k: s * torch.where(q > k, True, False),
    "where mixed": lambda s, b, h, q, k: torch.where(q > k, s, 0),
    "where number": lambda s, b, h, q, k: torch.where(q > k, k, 0.5) + s,
    "where method": lambda s, b, h, q, k: s.where(q > k, by_k[k]),
    "where half number": lambda s, b, h, q, k: torch.where(flags[k], halves[k], 1.1) + s,
    "where on uint8": lambda s, b, h, q, k: torch.where(bytes_[k] > 100, bytes_[k], 3) + s,
    "bool arithmetic": lambda s, b, h, q, k: s + (q > k) * 2 + (q < k) * 0.5 + ((q > k) + (q < k)),
    "bool times float": lambda s, b, h, q, k: (q > k) * s,
    "bool xor not": lambda s, b, h, q, k: s * (~(q > k) ^ flags[k]),
    "bool lt": lambda s, b, h, q, k: s * ((q > k) < flags[k]),
    "bool max": lambda s, b, h, q, k: s * torch.maximum(q > k, flags[k]),
    "bool abs cumul": lambda s, b, h, q, k: s + (flags[k].int() - 1).abs(),
    "bool pow": lambda s, b, h, q, k: s + flags[k] ** 2,
    "bool div": lambda s, b, h, q, k: s + flags[k] / 4,
    "bool mod": lambda s, b, h, q, k: s + flags[k] % 2,
    "bool shift": lambda s, b, h, q, k: s + (flags[k].long() << 3),
    "and or with ints": lambda s, b, h, q, k: s + ((q & 5) | (k ^ 3)),
    "not int": lambda s, b, h, q, k: s + ~k,
    "shift int": lambda s, b, h, q, k: s + (k << 2) + (k >> 1) + (1 << (q % 5)),
    "shift by": lambda s, b, h, q, k: s + ((q - 20) >> (k % 40)),
    "shift left wide": lambda s, b, h, q, k: s + ((q - 20) << (k % 40)),
    "shift neg count": lambda s, b, h, q, k: s + ((q - 20) << (k % 4 - 2)) + ((q - 20) >> (k % 4 - 2)),
    "shift uint8": lambda s, b, h, q, k: s + (bytes_[k] << 1) + (bytes_[k] >> 1),
    "shift int8": lambda s, b, h, q, k: s + (small[k] << 3) + (small[k] >> 9),
    "shift int64": lambda s, b, h, q, k: s + ((longs[k] >> 33) + (longs[k] << 20 >> 20)),
    "type_as": lambda s, b, h, q, k: s + (k * 0.3).type_as(q),
    "to other": lambda s, b, h, q, k: s + k.to(s) / 7,
    "type method": lambda s, b, h, q, k: s + k.type(torch.float64) * 0.1,
    "float()": lambda s, b, h, q, k: k.float() + q.double() + s,
    "half()": lambda s, b, h, q, k: (s.half() + 0.1).float(),
    "bfloat16()": lambda s, b, h, q, k: s.bfloat16() * 1.1,
    "int()": lambda s, b, h, q, k: s.int() + 0.5,
    "long short char byte": lambda s, b, h, q, k: k.long() + (k * 9).short() + (k * 9).char() + (k * 9).byte() + s,
    "bool()": lambda s, b, h, q, k: s.round().bool() * 2.0,
    "to dtype": lambda s, b, h, q, k: s.to(torch.float16).to(torch.float32),
    "to device dtype": lambda s, b, h, q, k: k.to(s.device, torch.float32) + s,
    "new tensors": lambda s, b, h, q, k: (
        s + torch.zeros_like(s) + torch.ones_like(k) + torch.full_like(s, 0.5) + s.new_zeros(()) + s.new_tensor(3.0)
    ),
    "tensor made inside": lambda s, b, h, q, k: s + torch.tensor([0.1, 0.2, 0.3])[h],
    "tensor of number": lambda s, b, h, q, k: s + torch.tensor(0.25) * torch.tensor(3),
    "arange inside": lambda s, b, h, q, k: s + (torch.arange(8) == k % 8).float().argmax(),
    "linspace inside": lambda s, b, h, q, k: s + torch.linspace(0, 1, 5)[k % 5],
    "captured sum of row": lambda s, b, h, q, k: s + rows_q[q].sum(),
    "captured mean": lambda s, b, h, q, k: s + rows_q[q].mean() + rows_k[k].amax() - rows_k[k].min(),
    "row var std": lambda s, b, h, q, k: s + rows_q[q].var() + rows_q[q].std(),
    "row norm": lambda s, b, h, q, k: s + rows_q[q].norm() + torch.linalg.vector_norm(rows_k[k] - rows_q[q]),
    "row norm p1": lambda s, b, h, q, k: s + (rows_k[k] - rows_q[q]).norm(p=1) + (rows_k[k]).norm(p=float("inf")),
    "row prod": lambda s, b, h, q, k: s + rows_q[q].prod(),
    "row median": lambda s, b, h, q, k: s + rows_q[q].median(),
    "row dot": lambda s, b, h, q, k: s + torch.dot(rows_q[q], rows_k[k]),
    "row @": lambda s, b, h, q, k: s + rows_q[q] @ rows_k[k],
    "row matmul matrix": lambda s, b, h, q, k: s + rows_q[q] @ matrix @ rows_k[k],
    "row inner": lambda s, b, h, q, k: s + torch.inner(rows_q[q], rows_k[k]),
    "row outer": lambda s, b, h, q, k: s + torch.outer(rows_q[q], rows_k[k]).trace(),
    "row einsum": lambda s, b, h, q, k: s + torch.einsum("d,d->", rows_q[q], rows_k[k]),
    "row einsum 3": lambda s, b, h, q, k: s + torch.einsum("i,ij,j->", rows_q[q], matrix, rows_k[k]),
    "row cdist": lambda s, b, h, q, k: s - torch.cdist(rows_q[q][None], rows_k[k][None])[0, 0],
    "row pairwise distance": lambda s, b, h, q, k: s - F.pairwise_distance(rows_q[q], rows_k[k]),
    "row cosine": lambda s, b, h, q, k: s + F.cosine_similarity(rows_q[q], rows_k[k], dim=0),
    "row normalize": lambda s, b, h, q, k: s + (F.normalize(rows_q[q], dim=0) * rows_k[k]).sum(),
    "row softmax": lambda s, b, h, q, k: s + rows_q[q].softmax(0)[k % 4],
    "row log_softmax": lambda s, b, h, q, k: s + F.log_softmax(rows_q[q], -1)[2],
    "row logsumexp": lambda s, b, h, q, k: s + torch.logsumexp(rows_q[q], 0),
    "row cumsum": lambda s, b, h, q, k: s + rows_q[q].cumsum(0)[k % 4] + rows_k[k].cumprod(0)[1],
    "row argmax": lambda s, b, h, q, k: s + rows_q[q].argmax() + rows_k[k].argmin(),
    "row max dim": lambda s, b, h, q, k: s + rows_q[q].max(0).values + rows_q[q].max(dim=0).indices,
    "row topk": lambda s, b, h, q, k: s + rows_q[q].topk(2).values.sum(),
    "row sort": lambda s, b, h, q, k: s + rows_q[q].sort().values[1],
    "row any all": lambda s, b, h, q, k: s * (rows_q[q] > 1).any() + (rows_k[k] < 1.5).all(),
    "row layer_norm": lambda s, b, h, q, k: s + F.layer_norm(rows_q[q], (4,))[1],
    "row clamp flip": lambda s, b, h, q, k: s + (rows_q[q].flip(0).clamp(-1, 1) * rows_k[k].roll(1)).sum(),
    "row unbind": lambda s, b, h, q, k: s + sum(a * c for a, c in zip(rows_q[q].unbind(), rows_k[k].unbind(), strict=True)),
    "row iter": lambda s, b, h, q, k: s + sum(x for x in rows_q[q]),
    "row split chunk": lambda s, b, h, q, k: s + rows_q[q].split(2)[1].sum() - rows_k[k].chunk(2)[0].sum(),
    "row slices": lambda s, b, h, q, k: s + (rows_q[q][:2] * rows_k[k][2:]).sum() + rows_q[q, 1:3].sum() + rows_q[q][::2].sum(),
    "row count_nonzero": lambda s, b, h, q, k: s + torch.count_nonzero(rows_q[q] > 0),
    "row diff": lambda s, b, h, q, k: s + rows_q[q].diff().abs().sum(),
    "row cross": lambda s, b, h, q, k: s + torch.linalg.cross(rows_q[q][:3], rows_k[k][:3])[0],
    "row linear": lambda s, b, h, q, k: s + F.linear(rows_q[q], matrix, rows_k[k]).sum(),
    "row linear module": lambda s, b, h, q, k: s + linear(torch.stack([s, k.float(), q.float()]))[0] * 0.1,
    "row l1_loss": lambda s, b, h, q, k: s - F.l1_loss(rows_q[q], rows_k[k]),
    "row bmm": lambda s, b, h, q, k: s + torch.bmm(rows_q[q].view(1, 1, 4), rows_k[k].view(1, 4, 1)).squeeze(),
    "row addmm": lambda s, b, h, q, k: s + torch.addmv(rows_k[k], matrix, rows_q[q]).sum(),
    "row baddbmm tensordot": lambda s, b, h, q, k: s + torch.tensordot(rows_q[q], rows_k[k], dims=1),
    "row kron": lambda s, b, h, q, k: s + torch.kron(rows_q[q], rows_k[k])[5],
    "row pad": lambda s, b, h, q, k: s + F.pad(rows_q[q], (1, 1))[k % 6],
    "row scatter": lambda s, b, h, q, k: s + torch.zeros(4).scatter(0, (k % 4).reshape(1), s.reshape(1))[2],
    "row where any": lambda s, b, h, q, k: s + torch.where(rows_q[q] > 0, rows_k[k], 0.0).sum(),
    "row masked sum": lambda s, b, h, q, k: s + (rows_q[q] * (torch.arange(4) < k % 5)).sum(),
    "row nanmean": lambda s, b, h, q, k: s + torch.nanmean(rows_q[q]) + torch.nansum(rows_k[k]),
    "row quantile": lambda s, b, h, q, k: s + rows_q[q].aminmax().max,
    "stack scalars": lambda s, b, h, q, k: torch.stack([s, by_k[k], by_q[q]]).amax(),
    "stack softmax": lambda s, b, h, q, k: torch.softmax(torch.stack([s, by_k[k]]), 0)[0],
    "stack logsumexp": lambda s, b, h, q, k: torch.logsumexp(torch.stack([s, by_k[k]]), 0),
    "stack index": lambda s, b, h, q, k: torch.stack([s, -s, s * 2])[h],
    "cat": lambda s, b, h, q, k: torch.cat([s.reshape(1), by_k[k].view(1)]).sum(),
    "max of two": lambda s, b, h, q, k: torch.max(s, by_k[k]) + torch.min(s, by_q[q]),
    "one hot": lambda s, b, h, q, k: s + (F.one_hot((k % 4).long(), 4) * rows_q[q]).sum(),
    "index_select": lambda s, b, h, q, k: s + torch.index_select(by_k, 0, k.reshape(1))[0],
    "gather": lambda s, b, h, q, k: s + rows_q[q].gather(0, (k % 4).long().reshape(1))[0],
    "gather 0-dim": lambda s, b, h, q, k: s + torch.gather(by_k, 0, k.long()),
    "take": lambda s, b, h, q, k: s + torch.take(bias, (q * SKV + k).long()),
    "take_along_dim": lambda s, b, h, q, k: s + torch.take_along_dim(by_k, k.long().reshape(1), 0)[0],
    "embedding": lambda s, b, h, q, k: s + F.embedding(k % 8, embedding.weight)[h],
    "embedding module": lambda s, b, h, q, k: s + embedding((q - k).clamp(0, 7))[h],
    "searchsorted": lambda s, b, h, q, k: s + torch.searchsorted(starts, k, right=True),
    "searchsorted in a row": lambda s, b, h, q, k: s + torch.searchsorted(ends[h], k, right=True) + torch.bucketize(q, ends[h] + 1),
    "row bilinear": lambda s, b, h, q, k: s + F.bilinear(rows_q[q][None], rows_k[k][None], matrix[None]).sum(),
    "bucketize": lambda s, b, h, q, k: s + torch.bucketize(s, edges),
    "bucketize right": lambda s, b, h, q, k: s + torch.bucketize(s, edges, right=True),
    "digitize by sum": lambda s, b, h, q, k: s + (s > edges).sum(),
    "table[q][k]": lambda s, b, h, q, k: s + bias[h][q][k],
    "table[..., k]": lambda s, b, h, q, k: s + bias[..., k][h, q],
    "table[:, q][h, k]": lambda s, b, h, q, k: s + bias[:, q][h, k],
    "table[:, :, k][h][q]": lambda s, b, h, q, k: s + bias[:, :, k][h][q],
    "table.T": lambda s, b, h, q, k: (
        s + rows_k.T[k % 4, k] + rows_k.mT[1][k] + bias.transpose(1, 2)[h, k, q] + bias.permute(2, 0, 1)[k, h, q]
    ),
    "table row exp": lambda s, b, h, q, k: s + by_h[h].exp() + by_k.exp()[k],
    "table none": lambda s, b, h, q, k: s + by_k[None, k][0] + by_k[None][0, k] + by_k[k, None][0] + by_k[..., None][k, 0],
    "table negative": lambda s, b, h, q, k: s + by_k[-1] + by_k[-k - 1] + bias[-1, q, k] + by_k.flip(0)[k],
    "table step": lambda s, b, h, q, k: s + by_k[::2][k // 2] + by_k[1:][k % 50] + bias[h, 1::3][q // 4 % 10, k],
    "table slice whole": lambda s, b, h, q, k: s + bias[h, :, k][q] + bias[h, q, :][k] + bias[h, q][k],
    "table sum in mod": lambda s, b, h, q, k: s + by_k.sum() + by_k[:4].mean() + by_k.max(),
    "table cumsum in mod": lambda s, b, h, q, k: s + by_k.cumsum(0)[k] + torch.sort(by_k).values[k],
    "table view": lambda s, b, h, q, k: s + bias.view(-1)[(h * SQ + q) * SKV + k] + bias.reshape(3, -1)[h, q * 53 + k] + bias.flatten()[k],
    "table expand": lambda s, b, h, q, k: (
        s + by_k.expand(5, 53)[q % 5, k] + by_k.repeat(2)[k + SKV] + one_one[0, 0] + one_one[b * 0, h * 0]
    ),
    "table unsqueeze": lambda s, b, h, q, k: s + by_k.unsqueeze(0)[0, k] + by_k[:, None].squeeze(-1)[k] + by_k.view(1, -1, 1)[0, k, 0],
    "table strided": lambda s, b, h, q, k: s + rows_k[:, 1][k] + rows_k[::3, 2][k // 3] + bias[:, 3:20, 1::2][h, q % 17, k // 2 % 20],
    "table index of table": lambda s, b, h, q, k: s + by_k[order[k]] + by_k[order][k] + by_h[docs[k] % 3],
    "table index const": lambda s, b, h, q, k: s + by_k[torch.tensor(3)] + by_k[torch.tensor([1, 2])].sum(),
    "table diag": lambda s, b, h, q, k: s + matrix.diagonal()[k % 4] + torch.diag(matrix)[q % 4] + matrix.tril()[k % 4, q % 4],
    "table select": lambda s, b, h, q, k: s + by_k.select(0, 3) + bias.select(0, 1)[q, k] + bias.narrow(2, 3, 40)[h, q, k % 40],
    "table unfold": lambda s, b, h, q, k: s + by_k.unfold(0, 3, 1)[k % 50].sum() + torch.movedim(bias, 0, 2)[q, k, h],
    "halves": lambda s, b, h, q, k: s + halves[k] + halves[k] * halves[q] + halves[k].exp(),
    "brains": lambda s, b, h, q, k: (
        s + brains[k] * 3 + brains[k] / brains[q] + brains[k].tanh() + brains[k].floor() + brains[k] // 1 + brains[k] % 0.3
    ),
    "halves with number": lambda s, b, h, q, k: (halves[k] + 0.1) * 3.3 + s,
    "half sum": lambda s, b, h, q, k: s + torch.stack([halves[k], halves[q], halves[3]]).sum() + torch.stack([brains[k], brains[q]]).mean(),
    "half returned": lambda s, b, h, q, k: (s * 0.3).half(),
    "doubles": lambda s, b, h, q, k: s + doubles[k] * 1e-3 + doubles[q].exp() + torch.sin(doubles[k]),
    "double returned": lambda s, b, h, q, k: s.double() * doubles[k] + 1e-9,
    "double erf lgamma": lambda s, b, h, q, k: (
        s + torch.erf(doubles[k]) + torch.lgamma(doubles[k].abs() + 1) + torch.expm1(doubles[k]) + torch.pow(doubles[k].abs(), 1.3)
    ),
    "uint8 wrap": lambda s, b, h, q, k: (
        s + bytes_[k] + (bytes_[k] + 200) + (bytes_[k] * bytes_[q]) - (bytes_[k] - bytes_[q]) + (-bytes_[k]) + ~bytes_[k]
    ),
    "uint8 div": lambda s, b, h, q, k: s + bytes_[k] / 3 + bytes_[k] // 7 + bytes_[k] % 7 + bytes_[k] ** 2,
    "int8 wrap": lambda s, b, h, q, k: (
        s + (small[k] + 100) + small[k] * small[q] + small[k] // 3 + small[k] % 5 + abs(small[k]) + small[k] ** 3
    ),
    "int16": lambda s, b, h, q, k: s + shorts[k] * shorts[q] + shorts[k].float() / 7 + shorts[k] // 10,
    "int32 wrap": lambda s, b, h, q, k: s + big_ints[k] + big_ints[k] * 3 + (big_ints[k] - big_ints[q]) + abs(big_ints[k]) - (-big_ints[k]),
    "int32 times index": lambda s, b, h, q, k: s + (q * 123456789 + k * 987654321) % 1000,
    "int32 hash": lambda s, b, h, q, k: s + (((q * 374761393 + k * 668265263) ^ 1274126177) >> 7 & 255),
    "int32 number too large": lambda s, b, h, q, k: s + ((k.long() * 7_776_000_000) // 1_000_000_007),
    "int64": lambda s, b, h, q, k: s + (longs[k] // 1000 % 97) + longs[k] * 1e-12 + (longs[k] - longs[q]).sign() + longs[k].float() * 1e-10,
    "int64 wrap": lambda s, b, h, q, k: s + (longs[k] * longs[q]) * 1e-18,
    "int mixed with 0-dim": lambda s, b, h, q, k: s + k * zero_dim + q * flag0 + one_one[0].sum(),
    "float to int cast": lambda s, b, h, q, k: s + (s * 3).to(torch.int32) + (s * 100).to(torch.int64) % 7 + (s * 10).to(torch.uint8),
    "float nan to int": lambda s, b, h, q, k: s + special_k[k].nan_to_num(0, 5, -5).int(),
    "nan max": lambda s, b, h, q, k: torch.maximum(special_k[k], s) + torch.minimum(s, specials[q % 9]),
    "nan fmax": lambda s, b, h, q, k: torch.fmax(special_k[k], s) + torch.fmin(s, specials[q % 9]),
    "nan compare": lambda s, b, h, q, k: (
        (special_k[k] < specials[q % 9]) * 1.0 + (special_k[k] >= specials[q % 9]) * 2 + (special_k[k] != specials[q % 9]) * 4
    ),
    "nan where": lambda s, b, h, q, k: torch.where(special_k[k].isnan(), s, special_k[k]),
    "nan relu sign": lambda s, b, h, q, k: F.relu(special_k[k]) + torch.sign(special_k[k]) + F.leaky_relu(special_k[k]),
    "nan any": lambda s, b, h, q, k: torch.stack([special_k[k], s]).amax() + torch.stack([special_k[k], s]).max(0).values,
    "nan bool": lambda s, b, h, q, k: special_k[k].bool() * 2.0 + special_k[k].logical_not(),
    "minus zero": lambda s, b, h, q, k: (
        1 / (special_k[k] * -1) + 1 / (0.0 - special_k[k]) + torch.copysign(s, special_k[k]) + torch.copysign(s, -0.0)
    ),
    "minus zero add": lambda s, b, h, q, k: 1 / (special_k[k] + 0.0),
    "minus zero sub": lambda s, b, h, q, k: 1 / (special_k[k] - 0.0) + 1 / (-special_k[k]),
    "minus zero mul": lambda s, b, h, q, k: 1 / (special_k[k] * 1.0),
    "inf minus inf": lambda s, b, h, q, k: special_k[k] - specials[q % 9],
    "division by zero": lambda s, b, h, q, k: s / (k - q),
    "remainder by zero": lambda s, b, h, q, k: s % (k - q).float() + torch.fmod(s, special_k[k]),
    "log of negative": lambda s, b, h, q, k: torch.log(s) + torch.sqrt(by_k[k]),
    "huge numbers": lambda s, b, h, q, k: (s * 1e30) * 1e30 + torch.exp(s * 100),
    "in place temp": lambda s, b, h, q, k: s.clone().mul_(2).add_(k, alpha=0.5).sub_(1).div_(3).neg_().abs_().sqrt_(),
    "in place others": lambda s, b, h, q, k: (s * 1.0).exp_().clamp_(max=5.0).tanh_().sigmoid_().floor_divide_(0.1).remainder_(3.0),
    "einops free": lambda s, b, h, q, k: s.view(1, 1).expand(2, 3).sum() / s.reshape(-1).numel(),
    "detach": lambda s, b, h, q, k: s * s.detach(),
    "no grad part": lambda s, b, h, q, k: s + torch.special.xlogy(by_k[k], s.abs() + 1),
    "tensor methods": lambda s, b, h, q, k: (
        s.mul(2).add(1).sub(3).div(2).pow(2).sqrt().neg().exp().log().abs().clamp_min(0.1).clamp_max(3.0)
    ),
    "operators": lambda s, b, h, q, k: -(+s) + abs(s) * s / 2 - s // 1 + s % 0.7,
    "square add sqrt": lambda s, b, h, q, k: torch.sqrt(s.square() + (k - q).square()),
    "logaddexp": lambda s, b, h, q, k: torch.logaddexp(s, by_k[k]) - torch.logaddexp2(s, by_q[q]),
    "trapz": lambda s, b, h, q, k: s + torch.trapezoid(rows_q[q]),
    "tri": lambda s, b, h, q, k: s + torch.tril(torch.ones(4, 4))[q % 4, k % 4] + torch.eye(4)[q % 4, k % 4],
    "meshgrid": lambda s, b, h, q, k: s + torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij")[0][k % 3, q % 3],
    "unflatten index": lambda s, b, h, q, k: s + sum(torch.unravel_index(k, (6, 9))),
    "divmod": lambda s, b, h, q, k: s + divmod(k, 7)[0] + divmod(k, 7)[1] if hasattr(torch.Tensor, "__divmod__") else s + k // 7 + k % 7,
    "scatter_add temp": lambda s, b, h, q, k: s + torch.zeros(3).index_add(0, h.reshape(1), s.reshape(1)).sum(),
    "setitem temp": lambda s, b, h, q, k: _setitem(s, h, k),
    "vander": lambda s, b, h, q, k: s + (s.clamp(-2, 2) ** torch.arange(4)).sum(),
    "polyval": lambda s, b, h, q, k: s + (torch.tensor([0.5, -0.25, 0.125]) * torch.stack([s.tanh() ** 0, s.tanh(), s.tanh() ** 2])).sum(),
    "rotary": lambda s, b, h, q, k: s + (torch.cos((q - k) * 10000.0 ** (-torch.arange(0, 8, 2) / 8)) * 0.1).sum(),
    "gaussian mix": lambda s, b, h, q, k: s + (rows_q[q].softmax(-1) * torch.exp(-((k / SKV - edges[:4]) ** 2))).sum(),
}


def _setitem(s, h, k):  # type: ignore[no-untyped-def]
    row = torch.zeros(4)
    row = row + s
    row[2] = by_k[k]
    row[0] += 1.0
    row[1:3] *= 2.0
    return row.sum() + row[h]


MASK: dict[str, Mod] = {
    "chained by and": lambda b, h, q, k: (q - k >= 0) & (q - k < 9),
    "bool table": lambda b, h, q, k: grid[q, k],
    "bool row": lambda b, h, q, k: flags[k] | flags[q],
    "not bool": lambda b, h, q, k: ~flags[k],
    "invert by ==": lambda b, h, q, k: flags[k] == False,  # noqa: E712
    "bool less": lambda b, h, q, k: flags[k] <= flags[q],
    "bool of int": lambda b, h, q, k: (q - k).bool(),
    "bool of float": lambda b, h, q, k: by_k[k].to(torch.bool) & ((q - k) * 0.5).bool(),
    "bool of double": lambda b, h, q, k: doubles[k].bool() & halves[k].bool(),
    "bool of bytes": lambda b, h, q, k: bytes_[k].bool() & small[k].bool(),
    "logical ints": lambda b, h, q, k: torch.logical_and(q % 3, k % 2) | torch.logical_xor(q, k),
    "isin starts": lambda b, h, q, k: torch.isin(k, starts) | (q == k),
    "any of table": lambda b, h, q, k: (starts == k).any(),
    "all of table": lambda b, h, q, k: (starts <= k).all() | (starts[None] != q).all(),
    "searchsorted docs": lambda b, h, q, k: torch.searchsorted(starts, q, right=True) == torch.searchsorted(starts, k, right=True),
    "bucketize docs": lambda b, h, q, k: torch.bucketize(q, starts) == torch.bucketize(k, starts, right=True),
    "docs": lambda b, h, q, k: docs[q] == docs[k],
    "int64 far": lambda b, h, q, k: longs[q] - longs[k] > 2**35,
    "int64 against big number": lambda b, h, q, k: longs[k] > 3_000_000_000,
    "int32 overflow": lambda b, h, q, k: (k + 1) * 1_000_000_000 > 0,
    "index against big number": lambda b, h, q, k: k < 2**31,
    "index against fraction": lambda b, h, q, k: (k > 3.5) & (q * 0.5 < k),
    "uint8 compare": lambda b, h, q, k: (bytes_[k] > bytes_[q]) | (bytes_[k] - bytes_[q] < 10),
    "uint8 against number": lambda b, h, q, k: (bytes_[k] < 300) & (bytes_[k] > -1),
    "int8 against number": lambda b, h, q, k: (small[k] < 200) & (small[k] > -100),
    "half compare": lambda b, h, q, k: (halves[k] > 0.1) | (brains[k] <= brains[q]),
    "double compare": lambda b, h, q, k: (doubles[k] > by_k[k]) | (doubles[k] == by_k[k]),
    "float32 against 0.1": lambda b, h, q, k: by_k[k] < 0.1,
    "nan compare": lambda b, h, q, k: (special_k[k] > specials[q % 9]) | ~(special_k[k] <= specials[q % 9]),
    "isnan": lambda b, h, q, k: special_k[k].isnan() | special_k[k].isinf() | torch.isneginf(special_k[k]),
    "signbit": lambda b, h, q, k: torch.signbit(special_k[k]) ^ torch.signbit(k - q),
    "isclose": lambda b, h, q, k: torch.isclose(by_k[k], by_q[q], atol=0.3),
    "isclose nan": lambda b, h, q, k: torch.isclose(special_k[k], specials[q % 9], equal_nan=True),
    "isclose ints": lambda b, h, q, k: torch.isclose(q, k),
    "eq float index": lambda b, h, q, k: (q / 2) == k,
    "mod negative": lambda b, h, q, k: (q - k) % 5 == 2,
    "mod by negative": lambda b, h, q, k: (q - k) % -5 == -2,
    "fmod": lambda b, h, q, k: torch.fmod(q - k, 5) == -2,
    "floor division": lambda b, h, q, k: (q - k) // 3 == -2,
    "trunc division": lambda b, h, q, k: torch.div(q - k, 3, rounding_mode="trunc") == -2,
    "shift": lambda b, h, q, k: (q >> 2) == (k >> 2),
    "xor bits": lambda b, h, q, k: ((q ^ k) & (q ^ k) - 1) == 0,
    "gcd": lambda b, h, q, k: torch.gcd(q, k) == 1,
    "popcount": lambda b, h, q, k: ((q ^ k).unsqueeze(-1) >> torch.arange(6) & 1).sum(-1) <= 2,
    "where of bools": lambda b, h, q, k: torch.where(flags[k], q >= k, q == k),
    "bool times bool": lambda b, h, q, k: (q >= k) * flags[k],
    "bool plus bool": lambda b, h, q, k: (q == k) + flags[k],
    "sum of bools": lambda b, h, q, k: torch.stack([q >= k, flags[k], flags[q]]).sum() >= 2,
    "0-dim bool": lambda b, h, q, k: flag0 & (q >= k),
    "new ones": lambda b, h, q, k: q.new_ones((), dtype=torch.bool),
    "ones_like": lambda b, h, q, k: torch.ones_like(q, dtype=torch.bool) & (k != 3),
    "tensor True": lambda b, h, q, k: torch.tensor(True),
    "full_like": lambda b, h, q, k: torch.full_like(k, False, dtype=torch.bool) | (k < 5),
    "abs distance": lambda b, h, q, k: (q - k).abs() <= 4,
    "max of window": lambda b, h, q, k: torch.maximum(q, k) - torch.minimum(q, k) < 6,
    "sqrt distance": lambda b, h, q, k: ((q % 8 - k % 8) ** 2 + (q // 8 - k // 8) ** 2).sqrt() < 3,
    "float division": lambda b, h, q, k: (q / 7).floor() == (k / 7).floor(),
    "round": lambda b, h, q, k: torch.round(q * 0.5) == k,
    "pow two": lambda b, h, q, k: 2 ** (q % 6) > k,
    "row of bools": lambda b, h, q, k: grid[q][k] & grid[q, :4].any(),
    "T of bools": lambda b, h, q, k: grid.T[k, q],
    "bool scalar index": lambda b, h, q, k: flags[docs[k]],
    "not_": lambda b, h, q, k: torch.logical_not(docs[k]),
    "isreal": lambda b, h, q, k: (k < q) & torch.isfinite(by_k[k]),
    "clone or_": lambda b, h, q, k: (q >= k).clone().logical_or_(flags[k]),
    "iand": lambda b, h, q, k: _iand(q, k),
    "float table as mask": lambda b, h, q, k: bias[h, q, k] > 0,
    "sigmoid gate": lambda b, h, q, k: torch.sigmoid(bias[h, q, k]) >= 0.5,
    "equal rows": lambda b, h, q, k: (rows_q[q] > 0)[k % 4] | ((rows_q[q] > 0) == (rows_k[k] > 0)).all(),
    "argmax rows": lambda b, h, q, k: rows_q[q].argmax() == rows_k[k].argmax(),
    "cosine over": lambda b, h, q, k: F.cosine_similarity(rows_q[q], rows_k[k], dim=-1) > 0.1,
    "cumsum of docs": lambda b, h, q, k: (torch.cumsum(flags, 0)[q] - torch.cumsum(flags, 0)[k]) <= 1,
    "math constant": lambda b, h, q, k: q * math.pi > k * math.e,
}


def _iand(q, k):  # type: ignore[no-untyped-def]
    keep = q >= k
    keep &= flags[k]
    keep |= q == k
    return keep


MODS: list[tuple[str, str, Mod]] = [(name, "score", f) for name, f in SCORE.items()] + [(name, "mask", f) for name, f in MASK.items()]
