"""Causal, and no further back than a window."""

TITLE = "Sliding window"
WORDS = "Each token sees the newest tokens only, as in Mistral and Gemma; the slider is how many."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out window_lab
window = slider(64, 2048, 512, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
"""
