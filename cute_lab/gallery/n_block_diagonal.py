"""Chunks that see only themselves."""

TITLE = "Block diagonal"
WORDS = "Chunks that see only themselves: local attention at its simplest."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out chunks
chunk = slider(64, 1024, 256, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return q_idx // chunk == kv_idx // chunk
"""
