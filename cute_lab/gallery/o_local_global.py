"""Heads of two kinds."""

TITLE = "Local and global heads"
WORDS = "Three heads of four look at a window, the fourth at everything before it."
CELL = """\
%%cute_attention --H 8 --Sq 2048 --out local_global
window = slider(64, 1024, 256, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & ((h % 4 == 3) | (q_idx - kv_idx < window))
"""
