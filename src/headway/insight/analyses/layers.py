"""Lenses and patching: what the layers in the middle carry. Layer 0 is what the first layer reads.

The logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens") makes logits of what each decoder layer gives,
as if it were the last. DecoderLens (Langedijk et al. 2023, "DecoderLens: Layerwise Interpretation of Encoder-Decoder
Transformers") lets the whole decoder read what each encoder layer gives, as if it were the last. With `norm: pre` the
stack's last norm stands in between, as it does after the last layer.

Activation patching between two sentences (Meng et al. 2022, "Locating and Editing Factual Associations in GPT", causal
tracing): which place in the model carries what makes a word another? The measure is that of Wang et al. 2022,
"Interpretability in the Wild": a difference of two logits, 0 as the one sentence has it, 1 as the other. Both sentences
have the same number of tokens. The model reads the first one; one place, a layer's output at one position, is put to
what it is when the model reads the other; the translation up to there is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.errors import UserError
from headway.insight.analyses.reading import Reading, decoded_with, log_probabilities_of_given, output_from, states
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
    for state in states(model.encoder, model.embed_source(reading.source[None])):
        [hidden] = decoded_with(model, reading, model.encoder.norm(state))
        rows.append(log_probabilities_of_given(model, reading, hidden))
    return torch.stack(rows).float().cpu().numpy()


def cut_encoders(model: Transformer) -> list[Transformer]:
    """Copies that share the weights and end the encoder after 0, 1, ..., all of its layers."""
    cut = [sharing_copy(model) for _ in range(len(model.encoder.layers) + 1)]
    for count, one in enumerate(cut):
        one.encoder.layers = one.encoder.layers[:count]
    return cut


@dataclass(frozen=True)
class Patching:
    """How far each place moves one step from the first sentence's word to the other sentence's. Layer 0 is the input
    of the stack. 0: nothing changes, 1: as with the whole other sentence; above 0.5 or so the word flips."""

    other: str
    """The other sentence."""
    step: int
    """The first step at which the other sentence would have another word."""
    word: int
    """The id that the step gives."""
    other_word: int
    """The id that it would give for the other sentence."""
    difference: float
    """logit(word) - logit(other_word) of the sentence itself, above 0."""
    other_difference: float
    """The same of the other sentence, below 0."""
    encoder: Floats
    """(layers + 1, source)"""
    decoder: Floats
    """(layers + 1, step + 1): positions that the decoder has read. Row 0 is 0, because the words read are the same."""

    @property
    def flips_above(self) -> float:
        """The share from which on the other word is the likelier of the two."""
        return self.difference / (self.difference - self.other_difference)


@torch.inference_mode()
def patching(model: Transformer, reading: Reading, other: Tensor, text: str) -> Patching:
    """other: ids of the other sentence, <eos> last, (source length,); text: the sentence. Raises UserError where the
    sentences differ in length, or the model would go on with the same words."""
    if len(other) != len(reading.source):
        raise UserError(
            f"patching: {text!r} must have as many tokens as the sentence, {reading.words}; it has {len(other) - 1}"
        )
    logits, theirs = (model(one[None], reading.read[None])[0] for one in (reading.source, other))
    best = theirs.argmax(dim=1)  # (target,)
    likelier = (logits.gather(1, reading.given[:, None]) > logits.gather(1, best[:, None]))[:, 0]
    steps = torch.nonzero((best != reading.given) & likelier)
    if not len(steps):
        raise UserError(f"patching: the model gives {text!r} the same translation, so that no place can flip a word")
    step = int(steps[0])
    pair = torch.stack([reading.given[step], best[step]])
    here, there = (float(one[step, pair[0]] - one[step, pair[1]]) for one in (logits, theirs))

    def share(hidden: Tensor) -> Tensor:
        """hidden: the decoder's output at the step, (rows, d_model) -> (rows,)"""
        chosen = model.output(hidden)[:, pair]
        return (here - (chosen[:, 0] - chosen[:, 1])) / (here - there)

    read = reading.read[None, : step + 1]
    y, causal = model.embed_target(read), causal_mask(step + 1, read.device)
    mine, others = (model.encode(one[None]) for one in (reading.source, other))

    def share_from(memory: Tensor) -> Tensor:
        return share(model.decoder(y.expand(len(memory), -1, -1), memory, causal)[:, -1])

    encoder = _patched(
        states(model.encoder, model.embed_source(reading.source[None])),
        states(model.encoder, model.embed_source(other[None])),
        lambda layer, x: share_from(output_from(model.encoder, layer, x)),
        reading.rows_at_once,
    )
    decoder = _patched(
        states(model.decoder, y, mine, causal),
        states(model.decoder, y, others, causal),
        lambda layer, x: share(output_from(model.decoder, layer, x, mine.expand(len(x), -1, -1), causal)[:, -1]),
        reading.rows_at_once,
    )
    word, other_word = pair.tolist()
    return Patching(text, step, word, other_word, here, there, encoder.cpu().numpy(), decoder.cpu().numpy())


def _patched(mine: list[Tensor], theirs: list[Tensor], rest: Callable[[int, Tensor], Tensor], rows: int) -> Tensor:
    """`rest` of each state with one position put to the other's; it gets so many at once, (rows, length, d_model).
    -> (states, positions)"""
    places = torch.eye(mine[0].size(1), dtype=torch.bool, device=mine[0].device)[..., None]  # (row, position, 1)
    return torch.stack(
        [
            torch.cat([rest(layer, torch.where(some, other, one)).float() for some in places.split(rows)])
            for layer, (one, other) in enumerate(zip(mine, theirs, strict=True))
        ]
    )
