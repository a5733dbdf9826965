"""Noisy blocks and the clean ones before them."""

TITLE = "Block diffusion"
WORDS = "Noisy blocks see themselves and the clean blocks before them: training of block-diffusion language models."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out diffusion
block = slider(16, 256, 64, step=16)
half = 1024  # noisy tokens first, then the same tokens clean

def mask_mod(b, h, q_idx, kv_idx):
    q, kv = q_idx % half // block, kv_idx % half // block
    noisy_q, noisy_kv = q_idx < half, kv_idx < half
    itself = (noisy_q == noisy_kv) & (q == kv)
    before = ~noisy_kv & ((noisy_q & (q > kv)) | (~noisy_q & (q >= kv)))
    return itself | before
"""
