"""A bias by buckets of distance."""

TITLE = "T5 relative bias"
WORDS = "A learned bias per head for 32 buckets of distance, fine near the query and coarse far away."
CELL = """\
%%cute_attention --H 8 --Sq 2048 --out t5
import math

import torch

distance = torch.arange(2048)
far = 16 + (torch.log(distance.clamp(min=1) / 16) / math.log(128 / 16) * 16).to(torch.int32)
bucket = torch.where(distance < 16, distance, far.clamp(max=31)).to(torch.int32)  # of each distance
bias = torch.linspace(1.0, -3.0, 32)[:, None] * torch.linspace(0.5, 1.5, 8)  # [bucket, head]; yours is learned

def score_mod(score, b, h, q_idx, kv_idx):
    return score + bias[bucket[torch.clamp(q_idx - kv_idx, min=0)], h]

def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""
