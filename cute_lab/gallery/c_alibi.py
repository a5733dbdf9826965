"""A bias that grows with the distance, per head."""

TITLE = "ALiBi"
WORDS = "Far keys are pushed down linearly, at another slope in each head: length without position embeddings."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out alibi
import torch

slopes = torch.exp2(-8 * torch.arange(1, 17) / 16)

def score_mod(score, b, h, q_idx, kv_idx):
    return score - slopes[h] * (q_idx - kv_idx)

def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""
