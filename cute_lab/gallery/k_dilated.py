"""Keys at regular distances."""

TITLE = "Dilated window"
WORDS = "Every second, third, … key of a long window: reach for the price of a short one (LongNet)."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out dilated
stride = slider(1, 16, 4)
window = slider(128, 2048, 1024, step=128)

def mask_mod(b, h, q_idx, kv_idx):
    distance = q_idx - kv_idx
    return (distance >= 0) & (distance < window) & (distance % stride == 0)
"""
