"""A window that never loses the first tokens."""

TITLE = "Sinks and window"
WORDS = "The first tokens stay in sight of a moving window: StreamingLLM decodes without end."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out sinks_lab
sinks = slider(0, 64, 4)
window = slider(64, 1024, 256, step=64)

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & ((kv_idx < sinks) | (q_idx - kv_idx < window))
"""
