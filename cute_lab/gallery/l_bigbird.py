"""Band, global tokens and random blocks."""

TITLE = "BigBird"
WORDS = "A band, some tokens that see all and are seen by all, and a few random blocks."
CELL = """\
%%cute_attention --H 8 --Sq 2048 --out bigbird
import torch

block, band, seen_by_all = 64, 1, 2  # sizes in tokens and in blocks
draw = torch.Generator().manual_seed(1)
random = torch.rand(32, 32, generator=draw) < 0.1  # [block of queries, block of keys]

def mask_mod(b, h, q_idx, kv_idx):
    q, kv = q_idx // block, kv_idx // block
    near = torch.abs(q - kv) <= band
    return near | (q < seen_by_all) | (kv < seen_by_all) | random[q, kv]
"""
