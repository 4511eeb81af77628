"""Activation patching between two sentences (Meng et al. 2022, "Locating and Editing Factual Associations in GPT",
causal tracing): which place in the model carries the difference between two words?

The measure is that of Wang et al. 2022, "Interpretability in the Wild": a difference of two logits, 0 as for the one
sentence, 1 as for the other. Both have the same number of tokens. The model reads the first one; one place, a layer's
output at one position, is set to its value for the other sentence; the translation so far is the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from headway.errors import UserError
from headway.insight.analyses.analysis import Analysis, Analyst, Pairs, Request, TokenNames, token
from headway.insight.analyses.reading import Reading, output_from, states
from headway.insight.maps import Floats
from headway.insight.terminal import draw_map, layer_name
from headway.model import Transformer, causal_mask


@dataclass(frozen=True)
class Patching(Analysis):
    """The effect of each place on one step: 0: none, 1: as the whole other sentence. Layer 0 is the stack's input."""

    other: str
    """The other sentence."""
    step: int
    """The first step at which the other sentence would have another word."""
    word: int
    other_word: int
    """Ids of the words at the step, for the sentence and for the other."""
    difference: float
    other_difference: float
    """logit(word) - logit(other_word), above 0 for the sentence itself and below 0 for the other."""
    encoder: Floats
    """(layers + 1, source)"""
    decoder: Floats
    """(layers + 1, step + 1): positions that the decoder has read. Row 0 is 0, because the words read are the same."""

    @property
    def flips_above(self) -> float:
        """The effect above which the other word is the likelier one."""
        return self.difference / (self.difference - self.other_difference)

    def document(self, vocabulary: Sequence[str]) -> dict[str, Any]:
        words = {name: token(getattr(self, name), vocabulary) for name in ("word", "other_word")}
        return {**vars(self), **words, "flips_above": self.flips_above}

    def text(self, names: TokenNames) -> Iterator[str]:
        flip = f"{names.of_id(self.word)} -> {names.of_id(self.other_word)}"
        read = ["<sos>", *names.target][: self.step + 1]
        for stack, effect, columns in (("encoder", self.encoder, names.source), ("decoder", self.decoder, read)):
            picture = draw_map(np.clip(effect, 0.0, 1.0), list(map(layer_name, range(len(effect)))), columns)
            yield f"patching from {self.other!r}: how far each place moves {flip}, {stack}\n\n{picture}"


class AskPatching(Request):
    """The places in the model that turn a word into that of another sentence."""

    kind: Literal["patching"] = "patching"
    other: str
    """The other sentence, with as many tokens."""

    @classmethod
    def from_option(cls, text: str | None, read_pairs: Callable[[str | None], Pairs]) -> Self:
        if text is None:
            raise UserError("--analysis patching: needs another sentence, --analysis 'patching=OTHER SENTENCE'")
        return cls(other=text)

    def texts(self) -> tuple[list[str], list[str]]:
        return [self.other], []

    def compute(self, analyst: Analyst) -> Patching:
        other = analyst.reading.source.new_tensor(analyst.source_ids(self.other))
        return patching(analyst.model, analyst.reading, other, self.other)


@torch.inference_mode()
def patching(model: Transformer, reading: Reading, other: Tensor, text: str) -> Patching:
    """other: ids of the other sentence, <eos> last, (source length,); text: the sentence. Raises UserError if the
    sentences differ in length, or the model would go on with the same words."""
    if len(other) != len(reading.source):
        raise UserError(
            f"patching: {text!r} must have as many tokens as the sentence, {reading.words}; it has {len(other) - 1}"
        )
    logits, other_logits = (model(one[None], reading.read[None])[0] for one in (reading.source, other))
    best = other_logits.argmax(dim=1)  # (target,)
    likelier = (logits.gather(1, reading.given[:, None]) > logits.gather(1, best[:, None]))[:, 0]
    steps = torch.nonzero((best != reading.given) & likelier)
    if not len(steps):
        raise UserError(f"patching: the model gives {text!r} the same translation, so that no place can flip a word")
    step = int(steps[0])
    pair = torch.stack([reading.given[step], best[step]])
    here, there = (float(one[step, pair[0]] - one[step, pair[1]]) for one in (logits, other_logits))
    read = reading.read[None, : step + 1]
    y, causal = model.embed_target(read), causal_mask(step + 1, read.device)
    memory, other_memory = (model.encode(one[None]) for one in (reading.source, other))

    def effects(decoded: Tensor) -> Tensor:
        """decoded: the decoder's output, (rows, step + 1, d_model) -> (rows,)"""
        chosen = model.output(decoded[:, -1])[:, pair]
        return (here - (chosen[:, 0] - chosen[:, 1])) / (here - there)

    def from_encoder(layer: int, x: Tensor) -> Tensor:
        changed = output_from(model.encoder, layer, x)
        return effects(model.decoder(y.expand(len(x), -1, -1), changed, causal))

    def from_decoder(layer: int, x: Tensor) -> Tensor:
        return effects(output_from(model.decoder, layer, x, memory.expand(len(x), -1, -1), causal))

    encoder_states = [states(model.encoder, model.embed_source(one[None])) for one in (reading.source, other)]
    decoder_states = [states(model.decoder, y, one, causal) for one in (memory, other_memory)]
    encoder = _patched(encoder_states, from_encoder, reading.rows_at_once)
    decoder = _patched(decoder_states, from_decoder, reading.rows_at_once)
    return Patching(text, step, int(pair[0]), int(pair[1]), here, there, encoder, decoder)


def _patched(both: Sequence[list[Tensor]], rest: Callable[[int, Tensor], Tensor], rows: int) -> Floats:
    """`rest` of each layer's states, (rows, length, d_model), in which each row has one position of the other sentence.
    both: the states for the sentence and for the other. -> (layers + 1, positions)"""
    first = both[0][0]
    places = torch.eye(first.size(1), dtype=torch.bool, device=first.device)[..., None]  # (row, position, 1)
    found = [
        torch.cat([rest(layer, torch.where(some, there, here)).float() for some in places.split(rows)])
        for layer, (here, there) in enumerate(zip(*both, strict=True))
    ]
    return torch.stack(found).cpu().numpy()
