"""Lenses: what a layer in the middle would already say.

The logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens") makes logits of what each decoder layer gives,
as if it were the last. DecoderLens (Langedijk et al. 2023, "DecoderLens: Layerwise Interpretation of Encoder-Decoder
Transformers") lets the whole decoder read what each encoder layer gives, as if it were the last. Layer 0 is what the
first layer reads. With `norm: pre` the stack's last norm stands in between, as it does after the last layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor, nn

from headway.insight.analyses.reading import Reading, decoded_with
from headway.insight.maps import Floats
from headway.insight.what_if import Outcome
from headway.model import Transformer, causal_mask
from headway.model.sharing import sharing_copy

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
    memory = model.encode(reading.source[None])
    x = model.embed_target(reading.read[None])
    mask = causal_mask(x.size(1), x.device)
    outputs = [x]
    for layer in model.decoder.layers:
        outputs.append(layer(outputs[-1], memory, mask))
    given, ids, probabilities = [], [], []
    for output in outputs:
        logarithms = model.output(model.decoder.norm(output[0])).log_softmax(dim=-1)  # (target, vocabulary)
        best = logarithms.topk(min(LIKELIEST, logarithms.size(1)))
        given.append(logarithms.gather(1, reading.given[:, None])[:, 0])
        ids.append(best.indices.tolist())
        probabilities.append(best.values.exp().tolist())
    return LogitLens(torch.stack(given).float().cpu().numpy(), ids, probabilities)


@torch.inference_mode()
def given_by_encoder_layer(model: Transformer, reading: Reading) -> Floats:
    """Log-probabilities of the translation's tokens, the decoder reading each encoder layer's output.
    -> (layers + 1, target)"""
    rows = [_given(model, reading, cut.encode(reading.source[None])) for cut in cut_encoders(model)]
    return torch.stack(rows).float().cpu().numpy()


def cut_encoders(model: Transformer) -> list[Transformer]:
    """Copies that share the weights and end the encoder after 0, 1, ..., all of its layers."""
    cut = []
    for count in range(len(model.encoder.layers) + 1):
        copied = sharing_copy(model)
        copied.encoder.layers = nn.ModuleList(islice(copied.encoder.layers, count))
        cut.append(copied)
    return cut


def _given(model: Transformer, reading: Reading, memory: Tensor) -> Tensor:
    """memory: (1, source, d_model) -> (target,)"""
    logits = model.output(decoded_with(model, reading, memory)[0])
    return logits.log_softmax(dim=-1).gather(1, reading.given[:, None])[:, 0]
