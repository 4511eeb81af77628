"""Forward passes for alignments and confidence: the attention to the source for a given translation, and scores of its
tokens. `TorchReader` computes them with torch, `PlainReader` with numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from headway.decoding.searcher import batches_by_length
from headway.model.config import ModelConfig
from headway.plain import Ids, PlainTransformer

if TYPE_CHECKING:
    from torch import Tensor

    from headway.model import Transformer

Floats = NDArray[np.float32]
Tokens = Sequence[Sequence[int]]
"""The ids of several sources or targets, without <eos>."""


class TorchReader:
    """A model of torch, on its device. Reads sources with their translations: (batch, length), <eos> at the end of a
    source, <bos> at the beginning of a target, padding at the end of a row."""

    def __init__(self, model: Transformer) -> None:
        self.config = model.config
        self._model = model

    def cross_attention(self, source: Ids, target: Ids) -> Floats:
        """The attention to the source. (batch, layers, heads, target length, source length), with a layer at least"""
        import torch

        from headway.model import DecoderLayer
        from headway.model.sharing import sharing_copy

        copied, seen = sharing_copy(self._model), []  # of each layer, (batch, heads, target length, source length)
        for layer in copied.decoder.layers:
            core = cast(DecoderLayer, layer).cross_attention.core
            core.register_forward_pre_hook(_with_weights, with_kwargs=True)
            core.register_forward_hook(lambda _, inputs, output: seen.append(output[1]))
        with torch.inference_mode():
            copied.hidden_states(*self._tensors(source, target))
            return torch.stack(seen, dim=1).float().cpu().numpy()

    def token_scores(self, source: Ids, target: Ids) -> tuple[Floats, Floats]:
        """The log-probability of each token after the first, and the entropy of what was expected in its place.
        (batch, target length - 1) each"""
        import torch

        with torch.inference_mode():
            sources, targets = self._tensors(source, target)
            hidden = self._model.hidden_states(sources, targets[:, :-1])
            log_probabilities = self._model.output(hidden).float().log_softmax(dim=-1)
            entropies = -(log_probabilities.exp() * log_probabilities).sum(dim=-1)
            chosen = log_probabilities.gather(2, targets[:, 1:, None])[:, :, 0]
            return chosen.cpu().numpy(), entropies.cpu().numpy()

    def _tensors(self, *sides: Ids) -> list[Tensor]:
        import torch

        device = next(self._model.parameters()).device
        return [torch.from_numpy(side).to(device) for side in sides]


class PlainReader(PlainTransformer):
    """The same in numpy, of a model's weights by name."""

    def cross_attention(self, source: Ids, target: Ids) -> Floats:
        return np.stack(self.hidden_states(source, target)[1], axis=1)

    def token_scores(self, source: Ids, target: Ids) -> tuple[Floats, Floats]:
        logits = self.logits(source, target[:, :-1])
        logits -= logits.max(axis=-1, keepdims=True)
        powers = np.exp(logits)  # (batch, target length - 1, vocabulary)
        totals = powers.sum(axis=-1)
        chosen = np.take_along_axis(logits, target[:, 1:, None], axis=-1)[:, :, 0]
        return chosen - np.log(totals), np.log(totals) - np.einsum("btv,btv->bt", powers, logits) / totals


Reader: TypeAlias = TorchReader | PlainReader


def batches_of_pairs(
    config: ModelConfig, sources: Tokens, targets: Tokens, size_of: Callable[[int, int], int], most: int
) -> Iterator[tuple[list[int], Ids, Ids]]:
    """Batches of pairs of similar length: their numbers, sources with <eos>, and targets with <bos> and <eos>, padded.
    size_of: the size of a pair of these lengths; most: that of a batch, unless one pair has more."""
    batches = batches_by_length(
        range(len(sources)),
        lambda i: (len(sources[i]) + 1, len(targets[i]) + 1),
        lambda count, lengths: count * size_of(*lengths) <= most,
    )

    def padded(rows: Sequence[Sequence[int]]) -> Ids:
        length = max(map(len, rows))
        return np.array([[*row, *[config.pad_id] * (length - len(row))] for row in rows], dtype=np.int64)

    for batch in batches:
        source = padded([[*sources[i], config.eos_id] for i in batch])
        yield batch, source, padded([[config.bos_id, *targets[i], config.eos_id] for i in batch])


def _with_weights(_: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A hook for a core of attention: it returns its weights."""
    return inputs, {**options, "return_weights": True}
