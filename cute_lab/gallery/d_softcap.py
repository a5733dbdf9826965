"""Scores that stay within a cap."""

TITLE = "Soft cap"
WORDS = "tanh keeps the scores within a cap, as in Gemma 2: no score runs away in training."
CELL = """\
%%cute_attention --H 16 --Sq 2048 --out softcap
import torch

cap = slider(5.0, 100.0, 30.0, step=5.0)

def score_mod(score, b, h, q_idx, kv_idx):
    return cap * torch.tanh(score / cap)

def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""
