"""Bidirectional prompt, causal continuation."""

TITLE = "Prefix LM"
WORDS = "The prompt sees all of itself, what follows is causal: T5's and PaliGemma's way of reading before writing."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out prefix_lm
prefix = slider(0, 2048, 768, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (kv_idx < prefix) | (q_idx >= kv_idx)
"""
