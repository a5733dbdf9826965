"""Documents that are packed into one sequence."""

TITLE = "Packed documents"
WORDS = "Documents of one sequence do not see each other; offsets instead of ids let blocks be decided at once."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out packed
import torch

lengths = torch.tensor([310, 122, 640, 57, 505, 414])  # tokens of each document; they fill the sequence
start = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths).to(torch.int32)  # where a token's document starts

def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (kv_idx >= start[q_idx])
"""
