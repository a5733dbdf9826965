"""A tree of guesses, checked at once."""

TITLE = "Speculative tree"
WORDS = "Drafted tokens see the context and their own branch: one call checks a whole tree of guesses."
CELL = """\
%%cute_attention --H 16 --Sq 64 --Skv 2048 --out tree
import torch

parent = [-1] + [(i - 1) // 3 for i in range(1, 64)]  # a tree of 64 guesses, three after each
context = 2048 - 64

above = torch.zeros(64, 64, dtype=torch.bool)  # does guess q descend from guess kv?
for q in range(64):
    above[q, q] = True
    if parent[q] >= 0:
        above[q] |= above[parent[q]]

def mask_mod(b, h, q_idx, kv_idx):
    guess = torch.clamp(kv_idx - context, min=0)
    return (kv_idx < context) | above[q_idx, guess]
"""
