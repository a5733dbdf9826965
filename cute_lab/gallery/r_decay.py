"""Scores that fade with the distance."""

TITLE = "Decay per head"
WORDS = "Scores fade with the distance at a rate per head, as in RetNet."
CELL = """\
%%cute_attention --H 8 --Sq 2048 --out decay
import torch

rate = torch.log2(1 - torch.exp2(-5.0 - torch.arange(8)))

def score_mod(score, b, h, q_idx, kv_idx):
    return score + rate[h] * (q_idx - kv_idx)

def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""
