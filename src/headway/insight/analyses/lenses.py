"""Lenses: what a layer in the middle would already say.

The logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens") makes logits of what each decoder layer gives,
as if it were the last. DecoderLens (Langedijk et al. 2023, "DecoderLens: Layerwise Interpretation of Encoder-Decoder
Transformers") lets the whole decoder read what each encoder layer gives, as if it were the last. Layer 0 is what the
first layer reads. With `norm: pre` the stack's last norm stands in between, as it does after the last layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.insight.analyses.reading import Reading, decoded_with, log_probabilities_of_given, states
from headway.insight.maps import Floats
from headway.insight.sharing import sharing_copy
from headway.insight.what_if import Outcome
from headway.model import Transformer, causal_mask

LIKELIEST = 5
"""Tokens of each layer and step."""


@dataclass(frozen=True)
class LogitLens:
    """What each decoder layer would say. Layer 0 is the decoder's input."""

    log_probability: Floats
    """Of the token that was given, (layers + 1, target)."""
    ids: list[list[list[int]]]
    """The likeliest tokens, best first, [layer][step]."""
    probabilities: list[list[list[float]]]
    """Theirs."""


@dataclass(frozen=True)
class DecoderLens:
    """What the decoder would say of each encoder layer. Layer 0 is the encoder's input."""

    log_probability: Floats
    """Of the token that was given, (layers + 1, target)."""
    translations: list[Outcome]
    """What greedy search finds, for each layer."""


@torch.inference_mode()
def logit_lens(model: Transformer, reading: Reading) -> LogitLens:
    """Every layer's output through the decoder's last norm, where it has one, and the output layer."""
    memory, y = model.encode(reading.source[None]), model.embed_target(reading.read[None])
    given, ids, probabilities = [], [], []
    for state in states(model.decoder, y, memory, causal_mask(y.size(1), y.device)):
        logarithms = model.output(model.decoder.norm(state[0])).log_softmax(dim=-1)  # (target, vocabulary)
        best = logarithms.topk(min(LIKELIEST, logarithms.size(1)))
        given.append(logarithms.gather(1, reading.given[:, None])[:, 0])
        ids.append(best.indices.tolist())
        probabilities.append(best.values.exp().tolist())
    return LogitLens(torch.stack(given).float().cpu().numpy(), ids, probabilities)


@torch.inference_mode()
def given_by_encoder_layer(model: Transformer, reading: Reading) -> Floats:
    """Log-probabilities of the translation's tokens, the decoder reading each encoder layer's output.
    -> (layers + 1, target)"""
    rows = []
    for cut in cut_encoders(model):
        [hidden] = decoded_with(cut, reading, cut.encode(reading.source[None]))
        rows.append(log_probabilities_of_given(cut, reading, hidden))
    return torch.stack(rows).float().cpu().numpy()


def cut_encoders(model: Transformer) -> list[Transformer]:
    """Copies that share the weights and end the encoder after 0, 1, ..., all of its layers."""
    cut = [sharing_copy(model) for _ in range(len(model.encoder.layers) + 1)]
    for count, one in enumerate(cut):
        one.encoder.layers = one.encoder.layers[:count]
    return cut
