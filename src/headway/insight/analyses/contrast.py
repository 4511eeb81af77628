"""Contrast: why this token, and not that one? (Yin and Neubig 2022, "Interpreting Language Models with Contrastive
Explanations", section 3.3) It explains the difference between the logits of the translation's token and of a foil: how
much of it is lost if a source token is erased. Shared evidence (that a noun must come) cancels out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch

from headway.errors import UserError
from headway.insight.analyses.analysis import Analysis, Analyst, Pairs, Request, TokenNames, token
from headway.insight.analyses.reading import Reading, erasures, hidden_without
from headway.insight.maps import Floats
from headway.insight.terminal import draw_table, shown
from headway.model import Transformer


@dataclass(frozen=True)
class Contrast(Analysis):
    """Evidence in the source for each token and against its foil."""

    foils: list[int]
    """The id that each token is compared with."""
    difference: list[float]
    """log p(token) - log p(foil) of each step, in nats; below 0 if the foil was likelier."""
    erasure: Floats
    """The loss of the difference when a source token is erased, (target, source)."""

    def document(self, vocabulary: Sequence[str]) -> dict[str, Any]:
        return {**vars(self), "foils": [token(id_, vocabulary) for id_ in self.foils]}

    def text(self, names: TokenNames) -> Iterator[str]:
        rows = []
        for piece, foil, difference, row in zip(names.target, self.foils, self.difference, self.erasure, strict=True):
            best = int(row.argmax())  # the source token that speaks most for the token and against its foil
            pair = [shown(piece), "rather than", names.of_id(foil), f"{difference:+.2f}"]
            rows.append([*pair, "because of", shown(names.source[best]), f"{row[best]:+.2f}"])
        title = "contrast: log-probability over a foil, and what it falls by without a source token"
        yield f"{title}\n\n{draw_table(rows)}"


class AskContrast(Request):
    """The source tokens that decide for a word and against another."""

    kind: Literal["contrast"] = "contrast"
    instead: str | None = None
    """Another translation: where it first differs, its token is the foil. All other steps are compared with the
    likeliest other token, and all steps if None."""

    @classmethod
    def from_option(cls, text: str | None, read_pairs: Callable[[str | None], Pairs]) -> Self:
        return cls(instead=text)

    def texts(self) -> tuple[list[str], list[str]]:
        return [], [] if self.instead is None else [self.instead]

    def compute(self, analyst: Analyst) -> Contrast:
        if self.instead is None:
            return contrast(analyst.model, analyst.reading, {})
        pairs = zip(analyst.reading.given.tolist(), analyst.target_ids(self.instead), strict=False)
        for step, (given, foil) in enumerate(pairs):
            if given != foil:  # at the latest where one of them ends, since <eos> stands there alone
                return contrast(analyst.model, analyst.reading, {step: foil})
        raise UserError(
            f"contrast: {self.instead!r} is the translation itself, so that there is no other word to ask about"
        )


@torch.inference_mode()
def contrast(model: Transformer, reading: Reading, chosen: Mapping[int, int]) -> Contrast:
    """chosen: foils by the number of their step. The foil of any other step is the likeliest other token."""
    nothing, _, *each = erasures(reading)
    hidden = hidden_without(model, reading, torch.stack([nothing, *each]))  # (1 + source, target, d_model)
    foils = model.output(hidden[0]).scatter(1, reading.given[:, None], -torch.inf).argmax(dim=1)  # (target,)
    for step, foil in chosen.items():
        foils[step] = foil
    pairs = torch.stack([reading.given, foils], dim=1)
    logits = torch.stack([model.output(one).gather(1, pairs) for one in hidden])  # (1 + source, target, 2)
    differences = logits[..., 0] - logits[..., 1]  # (1 + source, target)
    effect = (differences[0] - differences[1:]).T.float().cpu().numpy()
    return Contrast(foils.tolist(), differences[0].tolist(), effect)
