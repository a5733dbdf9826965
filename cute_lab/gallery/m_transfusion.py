"""Causal text with images that see all of themselves."""

TITLE = "Transfusion"
WORDS = "Text is causal, the tokens of one image see each other: language and pictures in one sequence."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out transfusion
import torch

end = torch.zeros(2048, dtype=torch.int32)  # one past the last token of a token's image; 0 in text
for first, size in [(200, 256), (700, 400), (1500, 256)]:
    end[first : first + size] = first + size

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) | (kv_idx < end[q_idx])
"""
