"""What search needs of a model, and torch's way to give it. Search knows ids and this protocol, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from headway.decoding.cache import GrowingCache, MemoryCache
from headway.model import Transformer, padding_mask
from headway.model.layers import LayerCache


class Engine(Protocol):
    """A model that translates step by step. A row is one translation in the making."""

    bos_id: int
    eos_id: int

    def start(self, source: Tensor) -> DecoderState:
        """Encodes source (rows, source length), padded and with <eos>; the state before the first step."""
        ...

    def step(self, state: DecoderState, tokens: Tensor) -> Tensor:
        """Reads one token a row (rows,), and gives the log-probabilities of the next (rows, vocabulary); changes the
        state. What is never a next token, the start symbol and padding, has -inf."""
        ...

    def select(self, state: DecoderState, rows: Tensor) -> None:
        """Keeps the given rows of the state, in their order."""
        ...


@dataclass
class DecoderState:
    """Where the translations of a batch stand."""

    memory: Tensor
    """(batch, source length, d_model); its keys and values are in the caches, so it is never read again."""
    memory_mask: Tensor
    """(rows, 1, 1, source length)"""
    layers: list[tuple[GrowingCache, MemoryCache]]
    position: int = 0
    """Tokens that every row has read."""


class TorchEngine:
    """The model itself, with key-value caches."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._device = next(model.parameters()).device
        self.bos_id = model.config.bos_id
        self.eos_id = model.config.eos_id
        self._never = [model.config.pad_id, model.config.bos_id]

    @torch.inference_mode()
    def start(self, source: Tensor) -> DecoderState:
        source = source.to(self._device)
        mask = padding_mask(source, self._model.config.pad_id)
        memory = self._model.encode(source, mask)
        layers = [(GrowingCache(), MemoryCache(*pair)) for pair in self._model.decoder.project_memory(memory)]
        return DecoderState(memory, mask, layers)

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: Tensor) -> Tensor:
        hidden = self._model.decode(
            tokens[:, None],
            state.memory,
            memory_mask=state.memory_mask,
            start=state.position,
            cache=[LayerCache(*caches) for caches in state.layers],
        )  # (rows, 1, d_model)
        state.position += 1
        log_probabilities = self._model.output(hidden[:, 0]).float().log_softmax(dim=-1)
        log_probabilities[:, self._never] = -torch.inf
        return log_probabilities

    @torch.inference_mode()
    def select(self, state: DecoderState, rows: Tensor) -> None:
        state.memory_mask = state.memory_mask[rows]
        for caches in state.layers:
            for cache in caches:
                cache.select(rows)
