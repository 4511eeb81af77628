"""A source and its translation, read again by a model or by some of its layers. Passes are teacher-forced."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor

from headway.model import Decoder, Encoder, Transformer, causal_mask

TOKENS_AT_ONCE = 1 << 13
"""Maximum number of tokens of both sides that are read together, unless one row has more."""


@dataclass(frozen=True)
class Reading:
    """Ids on the device of the model, without padding."""

    source: Tensor  # <eos> last, (source length,)
    read: Tensor  # the decoder's input: <bos> and the target without its last token, (target length,)
    given: Tensor  # the target, a token for each step, <eos> last, (target length,)

    @classmethod
    def of(cls, model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int]) -> Self:
        """Ids are with <eos>."""
        device = next(model.parameters()).device
        source, given = (torch.tensor(list(ids), device=device) for ids in (source_ids, target_ids))
        return cls(source, torch.cat([given.new_tensor([model.config.bos_id]), given[:-1]]), given)

    @property
    def words(self) -> int:
        """Number of source tokens before <eos>."""
        return len(self.source) - 1

    @property
    def rows_at_once(self) -> int:
        """Number of variants of the source that are read together."""
        return max(1, TOKENS_AT_ONCE // (len(self.source) + len(self.read)))


def decoded_from(model: Transformer, reading: Reading, embeddings: Tensor) -> Tensor:
    """The decoder's output over the whole target, for each row of source embeddings. (rows, source length, d_model)
    -> (rows, target length, d_model)"""
    memory = model.encoder(model.source_norm(embeddings + model.source_positions(len(reading.source))))
    y = model.embed_target(reading.read[None]).expand(len(memory), -1, -1)  # (rows, target length, d_model)
    return model.decoder(y, memory, causal_mask(len(reading.read), y.device))


def log_probabilities_of_given(model: Transformer, reading: Reading, hidden: Tensor) -> Tensor:
    """Log-probabilities of the target's tokens. hidden: the decoder's output, (target length, d_model)
    -> (target length,)"""
    return model.output(hidden).log_softmax(dim=-1).gather(1, reading.given[:, None])[:, 0]


@torch.inference_mode()
def hidden_without(model: Transformer, reading: Reading, erased: Tensor) -> Tensor:
    """`decoded_from` of the source with tokens erased. erased: bool, (rows, source length)
    -> (rows, target length, d_model)"""
    words = model.source_embedding(reading.source)  # (source length, d_model)
    some = erased[..., None].split(reading.rows_at_once)
    return torch.cat([decoded_from(model, reading, words.masked_fill(rows, 0.0)) for rows in some])


def erasures(reading: Reading) -> Tensor:
    """Nothing erased; then all but <eos>; then each token by itself. -> bool, (2 + source length, source length)"""
    each = torch.eye(len(reading.source), dtype=torch.bool, device=reading.source.device)
    return torch.cat([torch.zeros_like(each[:1]), ~each[-1:], each])


def states(stack: Encoder | Decoder, x: Tensor, *others: Tensor, first: int = 0) -> list[Tensor]:
    """The input of layer `first` and the output of each layer from there on. others: the layer's inputs besides x."""
    return list(accumulate(stack.layers[first:], lambda x, layer: layer(x, *others), initial=x))


def output_from(stack: Encoder | Decoder, first: int, x: Tensor, *others: Tensor) -> Tensor:
    """The output of the stack from the input of layer `first` on."""
    return stack.norm(states(stack, x, *others, first=first)[-1])
