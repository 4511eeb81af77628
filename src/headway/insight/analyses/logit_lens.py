"""The logit lens: logits of the output of each decoder layer, after the stack's last norm (nostalgebraist 2020,
"interpreting GPT: the logit lens")."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from headway.insight.analyses.analysis import Analysis, Analyst, Request, TokenNames, token
from headway.insight.analyses.reading import Reading, states
from headway.insight.maps import Floats
from headway.insight.terminal import draw_table, layer_name
from headway.model import Transformer, causal_mask

LIKELIEST = 5
"""Tokens of each layer and step."""


@dataclass(frozen=True)
class LogitLens(Analysis):
    """The prediction of each decoder layer. Layer 0 is the decoder's input."""

    log_probability: Floats
    """Log-probability of the translation's token, (layers + 1, target)."""
    ids: list[list[list[int]]]
    """The likeliest tokens, best first, [layer][step]."""
    probabilities: list[list[list[float]]]

    def document(self, vocabulary: Sequence[str]) -> dict[str, Any]:
        top = [
            [
                [{**token(id_, vocabulary), "probability": share} for id_, share in zip(*step, strict=True)]
                for step in zip(*layer, strict=True)
            ]
            for layer in zip(self.ids, self.probabilities, strict=True)
        ]
        return {"top": top}

    def text(self, names: TokenNames) -> Iterator[str]:
        rows = [[layer_name(i), *(names.of_id(step[0]) for step in layer)] for i, layer in enumerate(self.ids)]
        yield f"logit lens: the likeliest token after each decoder layer\n\n{draw_table(rows)}"


class AskLogitLens(Request):
    """The likeliest tokens after each decoder layer."""

    kind: Literal["logit_lens"] = "logit_lens"

    def compute(self, analyst: Analyst) -> LogitLens:
        return logit_lens(analyst.model, analyst.reading)


@torch.inference_mode()
def logit_lens(model: Transformer, reading: Reading) -> LogitLens:
    memory, y = model.encode(reading.source[None]), model.embed_target(reading.read[None])
    given, ids, probabilities = [], [], []
    for state in states(model.decoder, y, memory, causal_mask(y.size(1), y.device)):
        logarithms = model.output(model.decoder.norm(state[0])).log_softmax(dim=-1)  # (target, vocabulary)
        best = logarithms.topk(min(LIKELIEST, logarithms.size(1)))
        given.append(logarithms.gather(1, reading.given[:, None])[:, 0])
        ids.append(best.indices.tolist())
        probabilities.append(best.values.exp().tolist())
    return LogitLens(torch.stack(given).float().cpu().numpy(), ids, probabilities)
