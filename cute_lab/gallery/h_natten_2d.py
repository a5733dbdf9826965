"""Squares of neighbours in an image."""

TITLE = "Neighbourhood 2-D"
WORDS = "Each pixel of an image sees the square around it, moved inwards at the border (NATTEN)."
CELL = """\
%%cute_attention --H 8 --Sq 2304 --out natten
import torch

side = 48  # an image of 48 x 48 tokens, row by row
reach = slider(1, 15, 5)  # the square has 2 reach + 1 tokens a side

def mask_mod(b, h, q_idx, kv_idx):
    row = torch.clamp(q_idx // side, reach, side - 1 - reach)
    column = torch.clamp(q_idx % side, reach, side - 1 - reach)
    near = torch.abs(kv_idx // side - row) <= reach
    return near & (torch.abs(kv_idx % side - column) <= reach)
"""
