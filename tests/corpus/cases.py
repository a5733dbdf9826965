# ruff: noqa: E501, F841
"""The project's corpus: FlexAttention variants and mistakes as people met them, with what a good tool says. Kept as it was collected;
tests/test_corpus.py and tools/conformance.py walk `ALL`, LOG.md has a row for every case.

Test corpus for cute_lab: FlexAttention score_mod / mask_mod variants and failures.

All code here is freshly written; the `source` of each case names the public place where
the idea, the variant or the failure was met, nothing was copied from there.

How to use
----------
    import cases
    for make in cases.ALL:              # every case, as a function
        case = make(device="cpu")       # builds the captures (CPU, seeded) and the callables
    cases.build("alibi_interpolated_slopes", device="cuda")

* `score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b, h, q_idx, kv_idx)` are ordinary
  torch FlexAttention callables, written the way users write them.
* Captured tensors are always drawn on the CPU from a seeded generator and then moved to
  `device`, so that the values do not depend on the machine.
* `kind` is "valid" (torch's eager FlexAttention defines the right answer) or "invalid"
  (then `expect` says what a good tool must report).
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import and_masks, or_masks


@dataclass
class Expect:
    """What a good tool must say about an invalid case."""

    error: str            # the kind of error, in plain words
    construct: str        # the offending construct, as it stands in the user's code
    say: str              # what the message should tell the user (and how to get out of it)
    stage: str            # where torch itself trips: define | scalar-eval | flex-eager | lowering | semantics
    evidence: str         # how torch shows it: raises, or in words
    may_support: bool = False   # True: computing the right result is as good as refusing


@dataclass
class Case:
    name: str
    description: str
    source: str
    wanted: str           # for the log: what the person wanted, or what went wrong
    theme: str
    kind: str             # valid | invalid
    split: str            # open | kept
    B: int
    H: int
    Hkv: int
    Sq: int
    Skv: int
    D: int
    score_mod: Callable | None = None
    mask_mod: Callable | None = None
    dtype: str = "bfloat16"                    # suggested q/k/v dtype
    captures: dict = field(default_factory=dict)
    differentiable_capture: bool = False       # a captured buffer needs a gradient
    grad_captures: tuple = ()                  # names in `captures` that must receive one
    grad_twin: Callable | None = None       # same score_mod, written so that torch's eager vmap can differentiate it
    expect: Expect | None = None
    notes: str = ""
    bug_report: bool = False                   # the source is a public bug report
    probes: tuple = ()                         # (b, h, q, kv) points to check when S is too long for a full grid
    heavy: bool = False                        # building it takes > 1 GB
    siblings: tuple = ()                       # ((label, score_mod, mask_mod), ...): same code, other state; must not be mixed up
    mutate: Callable | None = None          # changes captured state after a first run
    source_text: str | None = None          # user code that cannot even be defined
    small_vectors: bool = False                # the mod holds short vectors in between (a captured row), but returns one number


ALL: list[Callable[..., Case]] = []


def register(fn):
    ALL.append(fn)
    return fn


def build(name: str, device: str = "cpu") -> Case:
    for make in ALL:
        if make.__name__ == name:
            return make(device=device)
    raise KeyError(name)


def rnd(seed: int, *shape, scale: float = 1.0, dtype=torch.float32, device="cpu"):
    """Seeded normal numbers, drawn on the CPU."""
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=g) * scale).to(dtype).to(device)


def rint(seed: int, low: int, high: int, shape, dtype=torch.int64, device="cpu"):
    """Seeded integers in [low, high), drawn on the CPU."""
    g = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, tuple(shape), generator=g).to(dtype).to(device)


# =====================================================================================
# VALID: score biases
# =====================================================================================


@register
def alibi_interpolated_slopes(device="cpu"):
    H = 12
    near = [2.0 ** (-(i + 1)) for i in range(8)]
    far = [2.0 ** (-(i + 1) * 0.5) for i in range(16)][0::2][:4]
    slopes = torch.tensor(near + far, dtype=torch.float32).to(device)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    return Case(
        name="alibi_interpolated_slopes",
        description="ALiBi with per-head slopes for a head count that is not a power of two, plus causal mask.",
        source="ofirpress/attention_with_linear_biases (slope rule); attn_gym mods/alibi.py",
        wanted="Linear distance bias; slopes for 12 heads come from the 8-head and the 16-head series.",
        theme="bias", kind="valid", split="open",
        B=2, H=H, Hkv=H, Sq=384, Skv=384, D=64,
        score_mod=score_mod, mask_mod=mask_mod, captures={"slopes": slopes})


@register
def t5_bucket_lut(device="cpu"):
    H, S = 4, 320
    rel = torch.arange(-(S - 1), S)
    d = rel.clamp(max=0).neg()
    big = 16 + (torch.log(d.clamp(min=1).float() / 16) / math.log(100 / 16) * 16).to(torch.int64)
    lut = torch.where(d < 16, d, big.clamp(max=31)).to(torch.int16).to(device)
    table = rnd(12, 32, H, scale=0.5, dtype=torch.bfloat16, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        bucket = lut[kv_idx - q_idx + (S - 1)].to(torch.int64)
        return score + table[bucket, h]

    return Case(
        name="t5_bucket_lut",
        description="Two-level gather: int16 bucket table looked up by distance, then a bf16 bias table by bucket and head.",
        source="pytorch/pytorch#188871 (index cast to int64); T5 decoder bias",
        wanted="Look up through a cast index; the FLASH codegen stored an Int64 into an Int32 index fragment and failed.",
        theme="bias", kind="valid", split="open", bug_report=True,
        B=1, H=H, Hkv=H, Sq=S, Skv=S, D=64,
        score_mod=score_mod, mask_mod=lambda b, h, q_idx, kv_idx: kv_idx <= q_idx,
        captures={"lut": lut, "table": table})


@register
def decomposed_rel_pos(device="cpu"):
    B, H, gh, gw = 2, 4, 16, 24
    S = gh * gw
    rel_h = rnd(17, B, H, S, gh, scale=0.3, device=device)
    rel_w = rnd(18, B, H, S, gw, scale=0.3, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + rel_h[b, h, q_idx, kv_idx // gw] + rel_w[b, h, q_idx, kv_idx % gw]

    return Case(
        name="decomposed_rel_pos",
        description="Decomposed relative position: query-dependent row and column terms, gathered by kv // W and kv % W on a non-square grid.",
        source="facebookresearch/segment-anything segment_anything/modeling/image_encoder.py",
        wanted="SAM/MViT-style bias without forming the S x S sum.",
        theme="bias", kind="valid", split="open",
        B=B, H=H, Hkv=H, Sq=S, Skv=S, D=64,
        score_mod=score_mod, captures={"rel_h": rel_h, "rel_w": rel_w})


@register
def cpb_gated_minus_one(device="cpu"):
    H, S, regs = 4, 132, 4
    side = 16
    yx = torch.arange(S - regs)
    idx = torch.full((S, S), -1, dtype=torch.int64)
    dy = (yx[:, None] // side - yx[None, :] // side).clamp(-3, 3) + 3
    dx = (yx[:, None] % side - yx[None, :] % side).clamp(-3, 3) + 3
    idx[regs:, regs:] = dy * 7 + dx
    idx = idx.to(device)
    table = rnd(22, 49, H, device=device).requires_grad_(True)
    first = torch.tensor(regs, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        on_grid = (q_idx >= first) & (kv_idx >= first)
        return score + on_grid * table[idx[q_idx, kv_idx], h]

    return Case(
        name="cpb_gated_minus_one",
        description="Position-bias lookup through an index table holding -1 for register tokens; the result is gated by bool * float.",
        source="meta-pytorch/attention-gym#166; pytorch/pytorch#163300",
        wanted="Learned continuous position bias that skips register tokens; eager worked, compiling failed.",
        theme="bias", kind="valid", split="open", bug_report=True,
        B=1, H=H, Hkv=H, Sq=S, Skv=S, D=64,
        score_mod=score_mod, captures={"idx": idx, "table": table, "first": first},
        differentiable_capture=True, grad_captures=("table",),
        notes="-1 is a legal index (last row) and the gate hides the value.")


@register
def rope_like_2d_cos(device="cpu"):
    H, W = 4, 20
    freqs = [1.0, 0.31, 0.1, 0.031]
    amp = rnd(25, H, len(freqs), scale=0.3, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        dx = q_idx % W - kv_idx % W
        dy = q_idx // W - kv_idx // W
        bias = 0.0
        for i, f in enumerate(freqs):
            bias = bias + amp[h, i] * (torch.cos(dx * f) + torch.cos(dy * f))
        return score + bias

    return Case(
        name="rope_like_2d_cos",
        description="2-D rotary-like bias: a sum of cosines of x and y offsets over a Python list of frequencies (loop unrolled).",
        source="attn_gym mods/sandwich.py; naver-ai/rope-vit",
        wanted="Distance bias with the shape of a 2-D rotary embedding on a 20-wide grid.",
        theme="bias", kind="valid", split="open",
        B=1, H=H, Hkv=H, Sq=400, Skv=400, D=64,
        score_mod=score_mod, captures={"amp": amp})


@register
def retnet_pow_decay(device="cpu"):
    H = 4
    gamma = (1.0 - torch.exp2(-5.0 - torch.arange(H, dtype=torch.float32))).to(device)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score * torch.pow(gamma[h], q_idx - kv_idx)

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    return Case(
        name="retnet_pow_decay",
        description="RetNet-like decay: score times gamma ** (q - kv) with an integer tensor as exponent.",
        source="microsoft/torchscale torchscale/architecture/retnet.py",
        wanted="Exponential distance decay of the logits, per head.",
        theme="bias", kind="valid", split="open",
        B=2, H=H, Hkv=H, Sq=320, Skv=320, D=64,
        score_mod=score_mod, mask_mod=mask_mod, captures={"gamma": gamma})


@register
def gaussian_window_sigma(device="cpu"):
    H = 4
    sigma = torch.tensor([6.1, 14.03, 30.2, 77.7]).to(device).requires_grad_(True)

    def score_mod(score, b, h, q_idx, kv_idx):
        s = sigma[h]
        d = (q_idx - kv_idx).to(torch.float32)
        soft = score - 0.5 * d * d / (s * s)
        return torch.where(torch.abs(d) > 4.0 * s, float("-inf"), soft)

    return Case(
        name="gaussian_window_sigma",
        description="Gaussian window with a learned width per head, cut to -inf beyond four sigma inside the score_mod.",
        source="own, after soft local attention with a learned span",
        wanted="Soft local attention; the width is a parameter and needs a gradient through torch.where.",
        theme="bias", kind="valid", split="open",
        B=1, H=H, Hkv=H, Sq=333, Skv=333, D=64,
        score_mod=score_mod, captures={"sigma": sigma},
        differentiable_capture=True, grad_captures=("sigma",))


@register
def forget_gate_cumsum(device="cpu"):
    B, H, S = 2, 4, 256
    gate_logit = (rnd(29, B, H, S, device=device) + 2.0).requires_grad_(True)
    decay = torch.cumsum(F.logsigmoid(gate_logit), dim=-1)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + decay[b, h, q_idx] - decay[b, h, kv_idx]

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    return Case(
        name="forget_gate_cumsum",
        description="Forgetting-transformer bias: difference of cumulated log forget gates; the captured buffer is itself computed from a parameter.",
        source="zhixuan-lin/forgetting-transformer",
        wanted="Data-dependent decay with gradients into the gate logits.",
        theme="bias", kind="valid", split="open",
        B=B, H=H, Hkv=H, Sq=S, Skv=S, D=64,
        score_mod=score_mod, mask_mod=mask_mod, captures={"gate_logit": gate_logit, "decay": decay},
        differentiable_capture=True, grad_captures=("gate_logit",),
        notes="The captured tensor is not a leaf.")


@register
def logsigmoid_scores(device="cpu"):
    def score_mod(score, b, h, q_idx, kv_idx):
        return -F.softplus(-score) - 0.001 * (q_idx - kv_idx)

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx > kv_idx                          # strict: the first row sees nothing

    return Case(
        name="logsigmoid_scores",
        description="Stick-breaking-like logits: log sigmoid of the score with a strict causal mask.",
        source="shawntan/stickbreaking-attention",
        wanted="Replace the raw score by a log probability; row 0 attends to nothing.",
        theme="bias", kind="valid", split="open",
        B=1, H=4, Hkv=4, Sq=256, Skv=256, D=64,
        score_mod=score_mod, mask_mod=mask_mod,
        notes="Row 0 is fully masked: the output row must be zero, and finite.")


@register
def softcap_sliding_gemma(device="cpu"):
    cap, window = 50.0, 100

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    def recent(b, h, q_idx, kv_idx):
        return q_idx - kv_idx < window

    def score_mod(score, b, h, q_idx, kv_idx):
        return cap * torch.tanh(score / cap)

    return Case(
        name="softcap_sliding_gemma",
        description="Gemma-2 layer: tanh soft cap with a causal sliding window built by and_masks, GQA.",
        source="unslothai/unsloth unsloth/kernels/flex_attention.py",
        wanted="Soft-capped local attention for grouped heads.",
        theme="bias", kind="valid", split="open",
        B=1, H=8, Hkv=4, Sq=512, Skv=512, D=128,
        score_mod=score_mod, mask_mod=and_masks(causal, recent))


@register
def fp16_log_capture(device="cpu"):
    B, S = 2, 200
    size = rint(35, 1, 9, (B, S)).to(torch.float16).to(device)
    prior = torch.tensor([3.0], dtype=torch.float16).to(device)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + torch.log(size[b, kv_idx]) - torch.log(prior[0])

    return Case(
        name="fp16_log_capture",
        description="Proportional attention: log of a half-precision merged-token count, and log of a one-element half tensor at a constant index.",
        source="pytorch/pytorch#144869; facebookresearch/ToMe",
        wanted="Add log(size) to the logits; log of an fp16 capture failed to compile.",
        theme="bias", kind="valid", split="open", bug_report=True,
        B=B, H=4, Hkv=4, Sq=S, Skv=S, D=64, dtype="float16",
        score_mod=score_mod, captures={"size": size, "prior": prior})


@register
def ops_medley_a(device="cpu"):
    H = 4
    low = torch.tensor([-6.0, -4.0, -3.0, -1.0]).to(device)

    def score_mod(score, b, h, q_idx, kv_idx):
        x = torch.clamp(score, min=-20.0, max=20.0)
        x = torch.maximum(x, low[h])
        x = torch.minimum(x, 8.0 - 0.01 * kv_idx)
        d = torch.abs(q_idx - kv_idx)
        x = x + torch.sin(0.05 * d) - 0.02 * torch.sqrt(d + 1.0)
        x = x - torch.exp(-0.1 * d) + torch.cos(kv_idx * 0.5)
        return x

    return Case(
        name="ops_medley_a",
        description="Operator coverage: clamp, maximum, minimum, abs, sin, cos, sqrt, exp on mixed int and float operands.",
        source="own, operator coverage",
        wanted="Every ordinary pointwise operator must lower with torch's type promotion.",
        theme="ops", kind="valid", split="open",
        B=1, H=H, Hkv=H, Sq=256, Skv=256, D=64,
        score_mod=score_mod, captures={"low": low})


@register
def lane_pattern_gathers(device="cpu"):
    S = 264
    half = rnd(43, S // 2 + 1, device=device)
    four = rnd(44, 4, dtype=torch.float16, device=device)
    back = rnd(45, S, dtype=torch.bfloat16, device=device)
    ahead = rnd(46, S + 8, device=device)
    by_q = rnd(47, S, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        near = half[kv_idx // 2] + four[kv_idx % 4]
        return score + near + back[S - 1 - kv_idx] - ahead[kv_idx + 8] * by_q[q_idx]

    return Case(
        name="lane_pattern_gathers",
        description="Loads with every lane pattern: kv//2, kv%4, reversed kv, shifted kv, and lane-uniform q, in three dtypes.",
        source="pytorch/pytorch#184438; pytorch/pytorch test/inductor/test_flex_flash.py",
        wanted="Vectorised captured loads must classify contiguous, repeated, reversed and uniform lanes rightly.",
        theme="ops", kind="valid", split="open",
        B=1, H=2, Hkv=2, Sq=S, Skv=S, D=64,
        score_mod=score_mod,
        captures={"half": half, "four": four, "back": back, "ahead": ahead, "by_q": by_q})


@register
def tiered_distance_where_chain(device="cpu"):
    def score_mod(score, b, h, q_idx, kv_idx):
        d = q_idx - kv_idx
        tier = torch.where(d < 0, -8.0,
               torch.where(d == 0, 1.0,
               torch.where(d <= 8, 0.5,
               torch.where(d <= 64, 0.0,
               torch.where(d % 64 == 0, -0.25, -2.0)))))
        return score + tier

    return Case(
        name="tiered_distance_where_chain",
        description="Five nested torch.where with Python float branches choose a bias by distance tier.",
        source="own, torch.where chains as seen in public mods",
        wanted="Piecewise constant distance bias.",
        theme="ops", kind="valid", split="open",
        B=1, H=2, Hkv=1, Sq=256, Skv=256, D=64, score_mod=score_mod)


# =====================================================================================
# VALID: masks
# =====================================================================================


@register
def sliding_offset_asymmetric(device="cpu"):
    Sq, Skv, left, right = 200, 456, 64, 16
    shift = Skv - Sq

    def mask_mod(b, h, q_idx, kv_idx):
        centre = q_idx + shift
        return (kv_idx >= centre - left) & (kv_idx <= centre + right)

    return Case(
        name="sliding_offset_asymmetric",
        description="Sliding window, 64 to the left and 16 to the right, query positions aligned to the end of a longer key sequence.",
        source="Dao-AILab/flash-attention tests/cute/mask_mod_definitions.py",
        wanted="Chunked prefill with a two-sided window; Sq != Skv.",
        theme="window", kind="valid", split="open",
        B=1, H=2, Hkv=2, Sq=Sq, Skv=Skv, D=64, mask_mod=mask_mod)


@register
def dilated_both_directions(device="cpu"):
    def mask_mod(b, h, q_idx, kv_idx):
        return ((q_idx - kv_idx) % 4 <= 1) & (abs(q_idx - kv_idx) <= 96)

    return Case(
        name="dilated_both_directions",
        description="Dilated window in both directions, two of every four keys: q - kv is negative half of the time, and Python's abs() is used.",
        source="attn_gym masks/dilated_sliding_window.py; huggingface/transformers src/transformers/masking_utils.py (abs)",
        wanted="Bidirectional dilated attention; % must follow Python's sign rule.",
        theme="window", kind="valid", split="open",
        B=1, H=2, Hkv=2, Sq=320, Skv=320, D=64, mask_mod=mask_mod)


@register
def prefix_lm_per_batch(device="cpu"):
    prefix = torch.tensor([0, 5, 128, 200], dtype=torch.int32).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return (kv_idx < prefix[b]) | (q_idx >= kv_idx)

    return Case(
        name="prefix_lm_per_batch",
        description="Prefix-LM with a prefix length per batch entry.",
        source="attn_gym masks/prefix_lm.py; Dao-AILab/flash-attention tests/cute/mask_mod_definitions.py",
        wanted="Bidirectional prompt, causal answer, prompts of different length.",
        theme="packing", kind="valid", split="open",
        B=4, H=2, Hkv=2, Sq=200, Skv=200, D=64, mask_mod=mask_mod, captures={"prefix": prefix})


@register
def packed_docs_causal(device="cpu"):
    lens = [13, 200, 64, 1, 128, 94]
    doc = torch.repeat_interleave(torch.arange(len(lens)), torch.tensor(lens)).to(torch.int32).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return (doc[q_idx] == doc[kv_idx]) & (q_idx >= kv_idx)

    return Case(
        name="packed_docs_causal",
        description="Packed documents of uneven length, causal inside each document; total length 500.",
        source="pytorch/torchtitan torchtitan/models/attention.py; attn_gym masks/document_mask.py",
        wanted="Sample packing in training.",
        theme="packing", kind="valid", split="open",
        B=1, H=4, Hkv=2, Sq=500, Skv=500, D=64, mask_mod=mask_mod, captures={"doc": doc})


@register
def cross_docs_different_lengths(device="cpu"):
    q_doc = torch.tensor([0] * 139 + [1] * 161).to(device)
    kv_doc = torch.tensor([0] * 75 + [1] * 105).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return q_doc[q_idx] == kv_doc[kv_idx]

    return Case(
        name="cross_docs_different_lengths",
        description="Cross attention between packed queries (300) and packed keys (180), one id tensor each.",
        source="meta-pytorch/attention-gym#71",
        wanted="A block size that does not divide both lengths made create_block_mask fail.",
        theme="packing", kind="valid", split="open", bug_report=True,
        B=1, H=2, Hkv=2, Sq=300, Skv=180, D=64, mask_mod=mask_mod,
        captures={"q_doc": q_doc, "kv_doc": kv_doc})


@register
def streaming_sink_window(device="cpu"):
    sinks, window = 4, 100

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    def sink(b, h, q_idx, kv_idx):
        return kv_idx < sinks

    def recent(b, h, q_idx, kv_idx):
        return q_idx - kv_idx < window

    return Case(
        name="streaming_sink_window",
        description="StreamingLLM: causal and (first 4 tokens or last 100), written with and_masks / or_masks.",
        source="mit-han-lab/streaming-llm; meta-pytorch/attention-gym#34",
        wanted="Sink tokens plus sliding window.",
        theme="window", kind="valid", split="open",
        B=1, H=2, Hkv=2, Sq=600, Skv=600, D=64,
        mask_mod=and_masks(causal, or_masks(sink, recent)))


@register
def bidirectional_by_comparison(device="cpu"):
    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= 0

    return Case(
        name="bidirectional_by_comparison",
        description="A mask that is always true, but only because an index is never negative.",
        source="vllm-project/vllm vllm/v1/attention/backends/flex_attention.py; huggingface/transformers src/transformers/masking_utils.py",
        wanted="An encoder mask with the usual signature.",
        theme="degenerate", kind="valid", split="open",
        B=1, H=2, Hkv=2, Sq=200, Skv=333, D=64, mask_mod=mask_mod,
        notes="Every tile is full, except for the ragged end of the key range.")


@register
def noop_composition(device="cpu"):
    nothing = or_masks()
    everything = and_masks()
    mask_mod = and_masks(everything, or_masks(nothing, and_masks(lambda b, h, q, k: ~(k > q), everything)))

    return Case(
        name="noop_composition",
        description="and_masks() and or_masks() without arguments (constants made with new_ones / new_zeros) inside a nested composition.",
        source="pytorch/pytorch#131552 (and_masks / or_masks); huggingface/transformers src/transformers/masking_utils.py",
        wanted="Masks assembled from optional parts, some of which are absent.",
        theme="python", kind="valid", split="open",
        B=1, H=1, Hkv=1, Sq=190, Skv=190, D=64, mask_mod=mask_mod)


@register
def natten2d_clamped(device="cpu"):
    gh, gw, kh, kw = 18, 22, 7, 5

    def mask_mod(b, h, q_idx, kv_idx):
        qy, qx = q_idx // gw, q_idx % gw
        ky, kx = kv_idx // gw, kv_idx % gw
        cy = torch.clamp(qy, kh // 2, gh - 1 - kh // 2)
        cx = torch.clamp(qx, kw // 2, gw - 1 - kw // 2)
        return ((cy - ky).abs() <= kh // 2) & ((cx - kx).abs() <= kw // 2)

    return Case(
        name="natten2d_clamped",
        description="2-D neighbourhood attention, window centre clamped at the border so that every query sees 7 x 5 keys.",
        source="attn_gym masks/natten.py; meta-pytorch/attention-gym#11",
        wanted="Exact NATTEN semantics on a grid whose width is no power of two.",
        theme="spatial", kind="valid", split="open",
        B=1, H=2, Hkv=2, Sq=gh * gw, Skv=gh * gw, D=64, mask_mod=mask_mod)


@register
def swin_shifted_regions(device="cpu"):
    side, win, shift = 24, 8, 4

    def band(r):
        return torch.where(r < side - win, 0, torch.where(r < side - shift, 1, 2))

    def mask_mod(b, h, q_idx, kv_idx):
        qy, qx = q_idx // side, q_idx % side
        ky, kx = kv_idx // side, kv_idx % side
        same_window = (qy // win == ky // win) & (qx // win == kx // win)
        same_region = (band(qy) == band(ky)) & (band(qx) == band(kx))
        return same_window & same_region

    return Case(
        name="swin_shifted_regions",
        description="Swin shifted windows on a rolled 24 x 24 image: same window and same wrap-around region.",
        source="microsoft/Swin-Transformer models/swin_transformer.py; microsoft/Swin-Transformer#38",
        wanted="The attention mask of shifted windows as a mask_mod over the whole image.",
        theme="spatial", kind="valid", split="open",
        B=1, H=3, Hkv=3, Sq=side * side, Skv=side * side, D=32, mask_mod=mask_mod)


@register
def bigbird_random_blocks(device="cpu"):
    H, S, blk, picks = 2, 576, 64, 2
    nb = S // blk
    chosen = rint(60, 0, nb, (H, nb, picks), dtype=torch.int32, device=device)

    def mask_mod(b, h, q_idx, kv_idx):
        qb, kb = q_idx // blk, kv_idx // blk
        hit = (qb - kb).abs() <= 1
        hit = hit | (qb == 0) | (kb == 0) | (qb == nb - 1) | (kb == nb - 1)
        for r in range(picks):
            hit = hit | (chosen[h, qb, r] == kb)
        return hit

    return Case(
        name="bigbird_random_blocks",
        description="BigBird: three-block band, first and last block global, two random blocks per head and query block from a table.",
        source="google-research/bigbird bigbird/core/attention.py",
        wanted="Block sparse attention with a captured table of random blocks.",
        theme="window", kind="valid", split="open",
        B=1, H=H, Hkv=H, Sq=S, Skv=S, D=64, mask_mod=mask_mod, captures={"chosen": chosen})


@register
def mm_prefix_static_ranges(device="cpu"):
    spans = {0: [(5, 40), (60, 90)], 1: [(100, 131)], 2: []}

    def mask_mod(b, h, q_idx, kv_idx):
        full = torch.zeros_like(q_idx, dtype=torch.bool)
        for row, pairs in spans.items():
            for lo, hi in pairs:
                inside = (q_idx >= lo) & (q_idx <= hi) & (kv_idx >= lo) & (kv_idx <= hi)
                full = full | ((b == row) & inside)
        return full | (q_idx >= kv_idx)

    return Case(
        name="mm_prefix_static_ranges",
        description="Image spans see themselves in both directions, text is causal; spans come from a Python dict, loops unroll.",
        source="vllm-project/vllm vllm/v1/attention/backends/flex_attention.py (prefix ranges)",
        wanted="Vision-language prefix mask from ranges known on the host.",
        theme="multimodal", kind="valid", split="open",
        B=3, H=2, Hkv=2, Sq=160, Skv=160, D=64, mask_mod=mask_mod)


@register
def tree_bool_matrix_clamped(device="cpu"):
    past, T = 200, 24
    parent = [-1, 0, 0, 1, 1, 2, 3, 3, 5, 6, 6, 8, 9, 10, 10, 11, 12, 14, 15, 16, 17, 18, 18, 21]
    anc = torch.eye(T, dtype=torch.bool)
    for i, p in enumerate(parent):
        if p >= 0:
            anc[i] |= anc[p]
    anc = anc.to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        node = kv_idx - past
        in_tree = (node >= 0) & (node < T)
        safe = node.clamp(0, T - 1)
        return (kv_idx < past) | (in_tree & anc[q_idx.clamp(0, T - 1), safe])

    return Case(
        name="tree_bool_matrix_clamped",
        description="Speculative verification: draft tokens see the past and their ancestors, looked up in a bool matrix with clamped indices.",
        source="attn_gym masks/jetspec.py; public speculative-decoding score_mods",
        wanted="Verify a draft tree in one pass; Sq = 24, Skv = 224.",
        theme="tree", kind="valid", split="open",
        B=1, H=4, Hkv=2, Sq=T, Skv=past + T, D=128, mask_mod=mask_mod, captures={"anc": anc})


@register
def kv_any_order_positions(device="cpu"):
    Sq, Skv = 48, 300
    pos = torch.randperm(Skv, generator=torch.Generator().manual_seed(62))
    pos[pos >= 280] = -1                                # empty slots
    pos = pos.to(device)
    start = torch.tensor(240).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        where = pos[kv_idx]
        return (where >= 0) & (q_idx + start >= where)

    return Case(
        name="kv_any_order_positions",
        description="Cache slots in any order: causality tested on a captured position vector, query start is a 0-dim tensor.",
        source="pytorch/pytorch#174878; pytorch/pytorch#175545; pytorch/pytorch#177813 (0-dim capture)",
        wanted="Causal mask over a cache whose slots are overwritten in arbitrary order; gave errors or wrong results.",
        theme="paged", kind="valid", split="open", bug_report=True,
        B=1, H=2, Hkv=2, Sq=Sq, Skv=Skv, D=64, mask_mod=mask_mod, captures={"pos": pos, "start": start})


@register
def per_head_windows(device="cpu"):
    width = torch.tensor([16, 32, 64, 128, 200, 300, 1, 7], dtype=torch.int32).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx < width[h])

    return Case(
        name="per_head_windows",
        description="Causal sliding window with a different width per head from a captured int32 tensor.",
        source="own, after head-wise window models; Dao-AILab/flash-attention tests/cute/mask_mod_definitions.py",
        wanted="Head-specific windows in one call.",
        theme="window", kind="valid", split="open",
        B=1, H=8, Hkv=2, Sq=300, Skv=300, D=64, mask_mod=mask_mod, captures={"width": width})


@register
def decode_per_batch_lengths(device="cpu"):
    used = torch.tensor([1000, 1, 0, 513, 128], dtype=torch.int32).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return kv_idx < used[b]

    return Case(
        name="decode_per_batch_lengths",
        description="One query token per sequence against a static cache; used length per batch entry, one of them zero.",
        source="vllm-project/vllm#7315; meta-pytorch/gpt-fast#233",
        wanted="Batched decoding; unwritten cache slots must not be read as keys.",
        theme="decode", kind="valid", split="open", bug_report=True,
        B=5, H=8, Hkv=2, Sq=1, Skv=1000, D=128, mask_mod=mask_mod, captures={"used": used},
        notes="Batch entry 2 is fully masked: zeros.")


@register
def bd3lm_partial(device="cpu"):
    def block_diffusion(b, h, q_idx, kv_idx, n, block_size):
        q_clean, k_clean = q_idx >= n, kv_idx >= n
        qb = torch.where(q_clean, q_idx - n, q_idx) // block_size
        kb = torch.where(k_clean, kv_idx - n, kv_idx) // block_size
        own = (qb == kb) & (q_clean == k_clean)
        earlier = (qb > kb) & k_clean & ~q_clean
        causal = (qb >= kb) & k_clean & q_clean
        return own | earlier | causal

    mask_mod = functools.partial(block_diffusion, n=200, block_size=16)

    return Case(
        name="bd3lm_partial",
        description="Block diffusion: noisy half and clean half, three-part mask, sizes bound with functools.partial.",
        source="kuleshov-group/bd3lms#23 (models/dit.py); attn_gym masks/block_diffusion.py",
        wanted="The author feared that the default block size of 128 made the mask wrong for blocks of 16.",
        theme="multimodal", kind="valid", split="open", bug_report=True,
        B=1, H=2, Hkv=2, Sq=400, Skv=400, D=64, mask_mod=mask_mod)


@register
def video_frame_block_ends(device="cpu"):
    frame, frames, per_block, S = 60, 6, 2, 384
    ends = torch.zeros(S, dtype=torch.int64)
    for start in range(0, frame * frames, frame * per_block):
        ends[start:start + frame * per_block] = start + frame * per_block
    ends = ends.to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return (ends[q_idx] > kv_idx) | (kv_idx == q_idx)

    return Case(
        name="video_frame_block_ends",
        description="Causal video model: frames in blocks of two see everything up to the end of their block; the padded tail sees only itself.",
        source="guandeh17/Self-Forcing wan/modules/causal_model.py",
        wanted="Block-wise causal attention with the sequence padded to a multiple of 128.",
        theme="multimodal", kind="valid", split="open",
        B=1, H=2, Hkv=2, Sq=S, Skv=S, D=128, mask_mod=mask_mod, captures={"ends": ends})


@register
def single_token(device="cpu"):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score * 2

    return Case(
        name="single_token",
        description="One query, one key.",
        source="own, smallest shape",
        wanted="The first decoding step.",
        theme="degenerate", kind="valid", split="open",
        B=1, H=1, Hkv=1, Sq=1, Skv=1, D=64,
        score_mod=score_mod, mask_mod=lambda b, h, q_idx, kv_idx: q_idx >= kv_idx)


@register
def all_false(device="cpu"):
    def mask_mod(b, h, q_idx, kv_idx):
        return kv_idx < 0

    return Case(
        name="all_false",
        description="Nothing is attended: no block at all.",
        source="pytorch/pytorch#131552 (fully masked rows give 0)",
        wanted="An empty batch after filtering.",
        theme="degenerate", kind="valid", split="open",
        B=2, H=2, Hkv=2, Sq=130, Skv=257, D=64, mask_mod=mask_mod,
        notes="Output zero, log-sum-exp -inf, no NaN; block lists are empty.")


@register
def million_sliding_sink(device="cpu"):
    S, window, sinks = 1 << 20, 4096, 64

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & ((q_idx - kv_idx < window) | (kv_idx < sinks))

    return Case(
        name="million_sliding_sink",
        description="One million tokens, window 4096, 64 sinks: the block analysis must not build S x S.",
        source="pytorch/pytorch#134756; meta-pytorch/attention-gym#32",
        wanted="create_block_mask ran out of memory at 96 000 tokens.",
        theme="long", kind="valid", split="open", bug_report=True,
        B=1, H=1, Hkv=1, Sq=S, Skv=S, D=64, mask_mod=mask_mod,
        probes=((0, 0, 0, 0), (0, 0, S - 1, S - 1), (0, 0, S - 1, S - window), (0, 0, S - 1, S - window - 1),
                (0, 0, S - 1, 63), (0, 0, S - 1, 64), (0, 0, 700_000, 699_000), (0, 0, 5, 6)))


@register
def unix_ms_window(device="cpu"):
    B, S = 2, 180
    g = torch.Generator().manual_seed(69)
    gap = torch.randint(1, 400_000_000, (B, S), generator=g)
    at = (1_650_000_000_000 + torch.cumsum(gap, 1)).to(device)
    ninety_days = 90 * 24 * 3600 * 1000                 # 7_776_000_000, beyond int32

    def mask_mod(b, h, q_idx, kv_idx):
        age = at[b, q_idx] - at[b, kv_idx]
        return (age >= 0) & (age <= ninety_days)

    return Case(
        name="unix_ms_window",
        description="Events of the last 90 days: int64 millisecond stamps and a Python constant beyond 32 bits.",
        source="own, after event-sequence models (meta-recsys/generative-recommenders)",
        wanted="Time window instead of an index window.",
        theme="dtype", kind="valid", split="open",
        B=B, H=2, Hkv=2, Sq=S, Skv=S, D=64, mask_mod=mask_mod, captures={"at": at})


@register
def bool_table_query_major(device="cpu"):
    B, Sq, Skv = 2, 128, 250
    rules = rint(71, 0, 3, (Sq, B, Skv)) > 0
    prefix = rint(72, 0, 4, (B, Skv)) > 0
    table = (rules & prefix.unsqueeze(0)).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return table[q_idx, b, kv_idx]

    return Case(
        name="bool_table_query_major",
        description="Dense bool mask stored [Sq, B, Skv], computed from two other tensors just before.",
        source="pytorch/pytorch#181800",
        wanted="A captured mask that other operators also use; the generated wrapper freed it too early.",
        theme="packing", kind="valid", split="open", bug_report=True,
        B=B, H=4, Hkv=4, Sq=Sq, Skv=Skv, D=128, mask_mod=mask_mod, captures={"table": table})


# =====================================================================================
# INVALID: the tool must refuse, and say why
# =====================================================================================


def bad(name, description, source, wanted, split, expect, *, score_mod=None, mask_mod=None, captures=None,
        B=1, H=2, Hkv=2, Sq=64, Skv=64, D=64, theme="invalid", bug=False, notes="", **more):
    """Short form for an invalid case."""
    return Case(name=name, description=description, source=source, wanted=wanted, theme=theme, kind="invalid",
                split=split, B=B, H=H, Hkv=Hkv, Sq=Sq, Skv=Skv, D=D, score_mod=score_mod, mask_mod=mask_mod,
                captures=captures or {}, expect=expect, bug_report=bug, notes=notes, **more)


@register
def if_on_tensor(device="cpu"):
    def score_mod(score, b, h, q_idx, kv_idx):
        if q_idx >= kv_idx:
            return score
        return score * 0 + float("-inf")

    return bad(
        "if_on_tensor", "Python if on a comparison of indices.", "meta-pytorch/attention-gym#25",
        "Wrote the causal rule as an if statement.", "open",
        Expect("data-dependent control flow", "if q_idx >= kv_idx:",
               "A mod is traced once for all positions, so Python cannot branch on index values; use torch.where(q_idx >= kv_idx, score, -inf) or a mask_mod.",
               "scalar-eval", "raises"),
        score_mod=score_mod, bug=True)


@register
def item_call(device="cpu"):
    width = torch.tensor([16, 32]).to(device)

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx - kv_idx < width[h].item()

    return bad(
        "item_call", ".item() on an indexed capture.", "meta-pytorch/attention-gym#97",
        "Took a per-head number out of a tensor with .item().", "open",
        Expect("tensor turned into a Python number", "width[h].item()",
               "The value differs per head and is not known while tracing; drop .item(), width[h] can be compared as it is.",
               "scalar-eval", "raises"),
        mask_mod=mask_mod, captures={"width": width}, bug=True)


@register
def write_captured_buffer(device="cpu"):
    seen = torch.zeros(1, 2, 64, 64).to(device)

    def score_mod(score, b, h, q_idx, kv_idx):
        seen[b, h, q_idx, kv_idx] = score
        return score

    return bad(
        "write_captured_buffer", "The mod writes scores into a captured tensor.", "meta-pytorch/attention-gym#19",
        "Wanted to get the attention scores out for plotting.", "open",
        Expect("write to a captured tensor", "seen[b, h, q_idx, kv_idx] = score",
               "Mods must be free of side effects; captured buffers are read only. Compute what you need outside.",
               "scalar-eval", "raises"),
        score_mod=score_mod, captures={"seen": seen}, bug=True)


@register
def score_mod_returns_bool(device="cpu"):
    near = rint(80, 0, 2, (64, 64)).to(torch.bool).to(device)

    def score_mod(score, b, h, q_idx, kv_idx):
        return near[q_idx, kv_idx] & (q_idx >= kv_idx)

    return bad(
        "score_mod_returns_bool", "A mask passed as score_mod: it returns bool.", "pytorch/pytorch#139548; pytorch/pytorch#139507",
        "Passed the mask function in the score_mod argument; torch takes 0 and 1 as scores, without a word.", "open",
        Expect("wrong result type of score_mod", "return near[q_idx, kv_idx] & (q_idx >= kv_idx)",
               "score_mod must return a floating-point score, this one returns bool; did you mean mask_mod=?",
               "semantics", "score-dtype"),
        score_mod=score_mod, captures={"near": near}, bug=True)


@register
def mask_mod_returns_float(device="cpu"):
    def mask_mod(b, h, q_idx, kv_idx):
        return torch.where(q_idx >= kv_idx, 0.0, float("-inf"))

    return bad(
        "mask_mod_returns_float", "Additive mask (0 / -inf) returned from mask_mod.", "HKUSTDial/flash-sparse-attention#146 (mask formats mixed up)",
        "Carried an additive mask over to mask_mod.", "open",
        Expect("wrong result type of mask_mod", "torch.where(q_idx >= kv_idx, 0.0, float('-inf'))",
               "mask_mod must return bool (True = attend), this one returns float32; return the condition itself.",
               "flex-eager", "raises"),
        mask_mod=mask_mod, bug=True)


@register
def returns_none(device="cpu"):
    bias = rnd(81, 64, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        biased = score + bias[kv_idx]                   # the return is missing

    return bad(
        "returns_none", "The return statement is missing.", "own, common slip",
        "Forgot to return the new score.", "open",
        Expect("mod returns None", "def score_mod(...): no return statement",
               "score_mod returned None; it must return the new score.",
               "scalar-eval", "raises"),
        score_mod=score_mod, captures={"bias": bias})


@register
def wrong_arity(device="cpu"):
    def score_mod(score, h, q_idx, kv_idx):
        return score + 0.1 * (kv_idx - q_idx) * h

    return bad(
        "wrong_arity", "score_mod with four parameters.", "pytorch/pytorch#130415 (signatures told apart by counting)",
        "Left out the batch index.", "open",
        Expect("wrong number of parameters", "def score_mod(score, h, q_idx, kv_idx)",
               "score_mod takes (score, b, h, q_idx, kv_idx), this function takes 4 parameters and b is missing.",
               "scalar-eval", "raises"),
        score_mod=score_mod)


@register
def dropout_inside(device="cpu"):
    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.where(torch.rand_like(score) < 0.1, float("-inf"), score)

    return bad(
        "dropout_inside", "Random dropout inside the mod.", "meta-pytorch/attention-gym#77; pytorch/pytorch#141784",
        "Wanted attention dropout; forward and backward would draw different masks.", "open",
        Expect("random numbers inside a mod", "torch.rand_like(score)",
               "Mods are evaluated again in the backward pass and must be deterministic; draw the mask outside and capture it, or hash the indices.",
               "scalar-eval", "raises"),
        score_mod=score_mod, bug=True)


@register
def numpy_call(device="cpu"):
    import numpy as np

    def score_mod(score, b, h, q_idx, kv_idx):
        return np.tanh(score / 20.0) * 20.0

    return bad(
        "numpy_call", "numpy applied to the score.", "own, common slip",
        "Used np.tanh out of habit.", "open",
        Expect("call that leaves torch", "np.tanh(score / 20.0)",
               "numpy cannot be traced into the kernel; use torch.tanh.",
               "scalar-eval", "raises"),
        score_mod=score_mod)


@register
def capture_on_other_device(device="cpu"):
    here = rnd(82, 64, device=device)
    there = torch.zeros(64, device="meta")              # stands in for another GPU

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + here[kv_idx] + there[kv_idx]

    return bad(
        "capture_on_other_device", "Two captured tensors on two devices.", "meta-pytorch/attention-gym#135; pytorch/pytorch#169224",
        "Pipeline stages on several GPUs shared one mask tensor.", "open",
        Expect("captured tensor on the wrong device", "there (device meta), here (device of q)",
               "Captured tensor `there` lives on another device than q/k/v; name both devices and say to move it.",
               "scalar-eval", "raises"),
        score_mod=score_mod, captures={"here": here, "there": there}, bug=True)


@register
def table_too_short(device="cpu"):
    table = rnd(83, 50, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + table[kv_idx]

    return bad(
        "table_too_short", "Bias table with 50 entries for 64 keys.", "pytorch/pytorch#172225 (out-of-bounds reads, partly silent)",
        "Built the table for the unpadded length.", "open",
        Expect("index out of range of a captured tensor", "table[kv_idx], table has 50 entries, kv_idx reaches 63",
               "The index range 0..63 exceeds the size 50 of captured tensor `table` in dimension 0; a GPU kernel would read foreign memory.",
               "scalar-eval", "raises"),
        score_mod=score_mod, captures={"table": table}, bug=True)


@register
def sort_inside(device="cpu"):
    prior = rnd(84, 64, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        ranked = torch.sort(prior, descending=True).values
        return score + ranked[kv_idx]

    return bad(
        "sort_inside", "torch.sort of a captured tensor inside the mod.", "own, unsupported operator",
        "Wanted to add a rank-based prior.", "open",
        Expect("operator that is not elementwise", "torch.sort(prior, descending=True)",
               "Sorting cannot be done per score inside the kernel; sort once outside and capture the result.",
               "lowering", "non-pointwise", may_support=True),
        score_mod=score_mod, captures={"prior": prior},
        notes="The sorted tensor does not depend on the indices, so hoisting it out of the kernel is a correct answer too.")


@register
def undefined_name(device="cpu"):
    slopes = rnd(85, 2, device=device)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + slope[h] * (kv_idx - q_idx)      # noqa: F821  (the variable is called slopes)

    return bad(
        "undefined_name", "A misspelt captured variable.", "own, common slip",
        "Typed slope for slopes.", "open",
        Expect("undefined name", "slope[h]",
               "name 'slope' is not defined in score_mod (did you mean 'slopes'?); report the user's file and line.",
               "scalar-eval", "raises"),
        score_mod=score_mod, captures={"slopes": slopes})


@register
def syntax_error(device="cpu"):
    text = (
        "def score_mod(score, b, h, q_idx, kv_idx):\n"
        "    bias = 0.1 * (q_idx - kv_idx\n"
        "    return score + bias\n"
    )
    return bad(
        "syntax_error", "Source text with an unclosed parenthesis.", "own, common slip",
        "Typed the mod into a form or file.", "open",
        Expect("syntax error", "bias = 0.1 * (q_idx - kv_idx",
               "'(' was never closed, line 2; do not show a trace of the tool.",
               "define", "raises"),
        source_text=text)


@register
def print_inside(device="cpu"):
    def score_mod(score, b, h, q_idx, kv_idx):
        print("score is", score)
        return score * 0.5

    return bad(
        "print_inside", "print() of a score inside the mod.", "pytorch/pytorch#158534",
        "Wanted to debug the mod.", "open",
        Expect("side effect inside a mod", "print('score is', score)",
               "The mod runs once, on symbols, and not per score: print shows no values. Remove it, or evaluate the mod eagerly for debugging.",
               "flex-eager", "side-effect"),
        score_mod=score_mod, bug=True)


assert len({m.__name__ for m in ALL}) == len(ALL)
