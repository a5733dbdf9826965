"""A table of biases by distance."""

TITLE = "Relative position table"
WORDS = "A learned bias for each head and distance, as Swin and many vision models have it."
CELL = """\
%%cute_attention --H 8 --Sq 1024 --out relative
import torch

distances = torch.arange(-1023, 1024)
table = -0.01 * distances.abs() * torch.linspace(0.5, 2.0, 8)[:, None]  # [head, distance]; yours is learned

def score_mod(score, b, h, q_idx, kv_idx):
    return score + table[h, kv_idx - q_idx + 1023]
"""
