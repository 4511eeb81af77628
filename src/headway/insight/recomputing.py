"""An engine that reads all tokens anew at each step, by the model's own `decode`: for models whose earlier positions
see later ones, so that nothing of a step can be kept for the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.model import Transformer, padding_mask, target_mask


@dataclass
class Prefixes:
    """Where translations stand."""

    memory: Tensor
    """(rows, source length, d_model)"""
    memory_mask: Tensor
    """(rows, 1, 1, source length)"""
    tokens: Tensor
    """What was read so far, (rows, length)"""


class RecomputingEngine:
    """An `Engine` of a model, without caches."""

    def __init__(self, model: Transformer, never: Sequence[int] = ()) -> None:
        """`never`: as of `TorchEngine`."""
        self._model = model
        self.bos_id, self.eos_id = model.config.bos_id, model.config.eos_id
        self._never = [id_ for id_ in (model.config.pad_id, self.bos_id, *never) if id_ != self.eos_id]

    @torch.inference_mode()
    def start(self, source: Tensor) -> Prefixes:
        mask = padding_mask(source, self._model.config.pad_id)
        return Prefixes(self._model.encode(source, mask), mask, source.new_zeros(len(source), 0))

    @torch.inference_mode()
    def step(self, state: Prefixes, tokens: Tensor) -> Tensor:
        state.tokens = torch.cat([state.tokens, tokens[:, None]], dim=1)
        logits = _next_logits(self._model, state.tokens, state.memory, state.memory_mask)
        log_probabilities = logits.float().log_softmax(dim=-1)
        log_probabilities[:, self._never] = -torch.inf
        return log_probabilities

    @torch.inference_mode()
    def select(self, state: Prefixes, rows: Tensor) -> None:
        kept = rows.flatten()
        state.memory, state.memory_mask, state.tokens = state.memory[kept], state.memory_mask[kept], state.tokens[kept]

    @torch.inference_mode()
    def score(self, source: Tensor, target: Tensor) -> Tensor:
        log_probabilities = prefix_logits(self._model, source, target[:, :-1]).float().log_softmax(dim=-1)
        given = target[:, 1:]
        scores = log_probabilities.gather(2, given[:, :, None])[:, :, 0]  # (batch, target length)
        return scores.masked_fill(given == self._model.config.pad_id, 0.0)


@torch.inference_mode()
def prefix_logits(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """What the model gives after each token, having read the target up to that token alone. source: (batch, source
    length); target: (batch, length), <bos> first -> (batch, length, vocabulary)"""
    mask = padding_mask(source, model.config.pad_id)
    memory = model.encode(source, mask)
    steps = [_next_logits(model, target[:, :end], memory, mask) for end in range(1, target.size(1) + 1)]
    return torch.stack(steps, dim=1)


def _next_logits(model: Transformer, read: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
    """read: (rows, length) -> (rows, vocabulary)"""
    mask = target_mask(read, model.config.pad_id)
    return model.output(model.decode(read, memory, mask, memory_mask)[:, -1])
