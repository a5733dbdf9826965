"""Masks that keep every document of a sequence to itself, by its tokens' ids or by where it starts and ends."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Masks = dict[tuple[str, str], MaskMod]  # (kind, by)


def one_sequence(ids: Tensor, starts: Tensor, ends: Tensor) -> Masks:
    """Over tables int32 [S]."""

    def causal_documents(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx >= kv_idx) & (kv_idx >= starts[q_idx])

    def full_documents(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (kv_idx >= starts[q_idx]) & (kv_idx < ends[q_idx])

    def causal_documents_by_id(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx >= kv_idx) & (ids[q_idx] == ids[kv_idx])

    def full_documents_by_id(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return ids[q_idx] == ids[kv_idx]

    return _table(causal_documents, full_documents, causal_documents_by_id, full_documents_by_id)


def batch(ids: Tensor, starts: Tensor, ends: Tensor) -> Masks:
    """Over tables int32 [B, S]."""

    def causal_documents(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx >= kv_idx) & (kv_idx >= starts[b, q_idx])

    def full_documents(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (kv_idx >= starts[b, q_idx]) & (kv_idx < ends[b, q_idx])

    def causal_documents_by_id(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx >= kv_idx) & (ids[b, q_idx] == ids[b, kv_idx])

    def full_documents_by_id(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return ids[b, q_idx] == ids[b, kv_idx]

    return _table(causal_documents, full_documents, causal_documents_by_id, full_documents_by_id)


def _table(causal: MaskMod, full: MaskMod, causal_by_id: MaskMod, full_by_id: MaskMod) -> Masks:
    return {("causal", "starts"): causal, ("full", "starts"): full, ("causal", "ids"): causal_by_id, ("full", "ids"): full_by_id}
