"""One source and its translation, read again by a model with some of the source's tokens erased.

A token is erased as word dropout does it in training: its embedding is zero, its position stays, so that the sequence
keeps its length. Passes are teacher-forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.model import Transformer, causal_mask

TOKENS_AT_ONCE = 1 << 13
"""Of both sides, that are read together, at most, unless one row has more."""


@dataclass(frozen=True)
class Reading:
    """What is read, on the device of the model: ids, without padding."""

    source: Tensor
    """<eos> last, (source length,)"""
    read: Tensor
    """What the decoder reads: <bos> and the target without its last token, (target length,)"""
    given: Tensor
    """What the steps give: the target, <eos> last, (target length,)"""

    @classmethod
    def of(cls, model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int]) -> Reading:
        """Ids are with <eos>."""
        device = next(model.parameters()).device
        source, given = (torch.tensor(list(ids), device=device) for ids in (source_ids, target_ids))
        return cls(source, torch.cat([given.new_tensor([model.config.bos_id]), given[:-1]]), given)

    @property
    def words(self) -> int:
        """The source's tokens before <eos>."""
        return len(self.source) - 1


def source_embeddings(model: Transformer, reading: Reading, erased: Tensor) -> Tensor:
    """What the encoder adds positions to: 0 where erased. erased: bool, (rows, source length)
    -> (rows, source length, d_model)"""
    return model.source_embedding(reading.source).masked_fill(erased[..., None], 0.0)


def decoded_from(model: Transformer, reading: Reading, embeddings: Tensor) -> Tensor:
    """The decoder's output over the whole target, for each row of source embeddings. (rows, source length, d_model)
    -> (rows, target length, d_model)"""
    memory = model.encoder(embeddings + model.source_positions(len(reading.source)))
    return decoded_with(model, reading, memory)


def decoded_with(model: Transformer, reading: Reading, memory: Tensor) -> Tensor:
    """The same from the encoder's output, (rows, source length, d_model)."""
    y = model.embed_target(reading.read[None]).expand(len(memory), -1, -1)  # (rows, target length, d_model)
    return model.decoder(y, memory, causal_mask(len(reading.read), y.device))


@torch.inference_mode()
def hidden_without(model: Transformer, reading: Reading, erased: Tensor) -> Tensor:
    """`decoded_from` of the source with tokens erased. erased: bool, (rows, source length)
    -> (rows, target length, d_model)"""
    rows = max(1, TOKENS_AT_ONCE // (len(reading.source) + len(reading.read)))
    return torch.cat(
        [decoded_from(model, reading, source_embeddings(model, reading, some)) for some in erased.split(rows)]
    )


def nothing_erased(reading: Reading) -> Tensor:
    """-> (1, source length)"""
    return torch.zeros(1, len(reading.source), dtype=torch.bool, device=reading.source.device)


def words_erased(reading: Reading) -> Tensor:
    """All but <eos>. -> (1, source length)"""
    erased = ~nothing_erased(reading)
    erased[:, -1] = False
    return erased


def each_erased(reading: Reading) -> Tensor:
    """Row j has token j of the source erased. -> (source length, source length)"""
    return torch.eye(len(reading.source), dtype=torch.bool, device=reading.source.device)
