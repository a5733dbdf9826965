"""Each token sees what came before it."""

TITLE = "Causal"
WORDS = "Each token sees itself and what came before it: the decoder of every language model."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out causal
def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""
