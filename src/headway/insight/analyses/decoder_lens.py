"""DecoderLens: the whole decoder reads the output of each encoder layer, after the stack's last norm (Langedijk et al.
2023, "DecoderLens: Layerwise Interpretation of Encoder-Decoder Transformers")."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from headway.insight.analyses.analysis import Analysis, Analyst, Request, TokenNames
from headway.insight.analyses.reading import Reading, decoded_from, log_probabilities_of_given
from headway.insight.maps import Floats
from headway.insight.terminal import draw_table, layer_name
from headway.insight.what_if import Outcome
from headway.model import Transformer
from headway.model.sharing import sharing_copy


@dataclass(frozen=True)
class DecoderLens(Analysis):
    """Predictions of the decoder from each encoder layer. Layer 0 is the encoder's input."""

    log_probability: Floats
    """Log-probability of the translation's token, (layers + 1, target)."""
    translations: list[Outcome]
    """The result of greedy search, for each layer."""

    def text(self, names: TokenNames) -> Iterator[str]:
        rows = [[layer_name(i), one.text, f"{one.score:.2f}"] for i, one in enumerate(self.translations)]
        yield f"DecoderLens: what the decoder makes of each encoder layer\n\n{draw_table(rows)}"


class AskDecoderLens(Request):
    """A translation from each encoder layer."""

    kind: Literal["decoder_lens"] = "decoder_lens"

    def compute(self, analyst: Analyst) -> DecoderLens:
        given = given_by_encoder_layer(analyst.model, analyst.reading)
        return DecoderLens(given, [analyst.greedy(cut) for cut in cut_encoders(analyst.model)])


@torch.inference_mode()
def given_by_encoder_layer(model: Transformer, reading: Reading) -> Floats:
    """Log-probabilities of the translation's tokens, (layers + 1, target)."""
    hidden = [decoded_from(cut, reading, cut.source_embedding(reading.source)[None])[0] for cut in cut_encoders(model)]
    rows = [log_probabilities_of_given(model, reading, one) for one in hidden]
    return torch.stack(rows).float().cpu().numpy()


def cut_encoders(model: Transformer) -> list[Transformer]:
    """Copies that share the weights and end the encoder after 0, 1, ..., all of its layers."""
    cut = [sharing_copy(model) for _ in range(len(model.encoder.layers) + 1)]
    for count, one in enumerate(cut):
        one.encoder.layers = one.encoder.layers[:count]
    return cut
