"""Analyses of a translation that go beyond attention: what it needs, where it comes from, what each layer would say.

Here they are asked for, and gathered; the modules compute them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from headway.insight.what_if import StrictForm, read_as
from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.insight.analyses.contributing import Contributions, contributions
    from headway.insight.analyses.erasing import Contrast, Erasure, Faithfulness, contrast, erasure, faithfulness
    from headway.insight.analyses.importance import HeadImportance, head_importance
    from headway.insight.analyses.layers import (
        DecoderLens,
        LogitLens,
        Patching,
        cut_encoders,
        given_by_encoder_layer,
        logit_lens,
        patching,
    )
    from headway.insight.analyses.reading import Reading

__all__ = [
    "LONGEST_ANALYSED",
    "MOST_PAIRS",
    "NAMES",
    "Analyses",
    "AnalysisName",
    "AskContrast",
    "AskHeadImportance",
    "AskPatching",
    "AskedAnalysis",
    "Contrast",
    "Contributions",
    "DecoderLens",
    "Erasure",
    "Faithfulness",
    "HeadImportance",
    "LogitLens",
    "Patching",
    "Reading",
    "contrast",
    "contributions",
    "cut_encoders",
    "erasure",
    "faithfulness",
    "given_by_encoder_layer",
    "head_importance",
    "logit_lens",
    "patching",
    "read_analyses",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    contributing="Contributions contributions",
    erasing="Contrast Erasure Faithfulness contrast erasure faithfulness",
    importance="HeadImportance head_importance",
    layers="DecoderLens LogitLens Patching cut_encoders given_by_encoder_layer logit_lens patching",
    reading="Reading",
)

AnalysisName = Literal[
    "contributions",
    "erasure",
    "contrast",
    "logit_lens",
    "decoder_lens",
    "patching",
    "head_importance",
    "faithfulness",
]
NAMES: tuple[AnalysisName, ...] = get_args(AnalysisName)
MOST_PAIRS = 100
"""Over which the importance of heads is measured."""
LONGEST_ANALYSED = 40
"""Tokens of a text that is analysed for a page; the work grows with their cube."""


class Plain(StrictForm):
    """An analysis that needs nothing but the translation."""

    kind: Literal["contributions", "erasure", "logit_lens", "decoder_lens", "faithfulness"]


class AskContrast(StrictForm):
    """Why this word, and not another one."""

    kind: Literal["contrast"] = "contrast"
    instead: str | None = None
    """Another translation: where it first differs, its token is the foil. All other steps, or all where it isn't given,
    are compared with the likeliest other token."""


class AskPatching(StrictForm):
    """Which place in the model makes the word another that another sentence has."""

    kind: Literal["patching"] = "patching"
    other: str
    """The other sentence, of as many tokens."""


class AskHeadImportance(StrictForm):
    """How much the model needs each of its heads, over many sentences."""

    kind: Literal["head_importance"] = "head_importance"
    pairs: list[tuple[str, str]] = Field(min_length=1, max_length=MOST_PAIRS)
    """Sources and their translations."""


AskedAnalysis = Annotated[Plain | AskContrast | AskPatching | AskHeadImportance, Field(discriminator="kind")]
_ASKED: TypeAdapter[list[AskedAnalysis]] = TypeAdapter(list[AskedAnalysis])


@dataclass(frozen=True)
class Analyses:
    """What was asked for; None for the others."""

    contributions: Contributions | None = None
    erasure: Erasure | None = None
    contrast: Contrast | None = None
    logit_lens: LogitLens | None = None
    decoder_lens: DecoderLens | None = None
    patching: Patching | None = None
    head_importance: HeadImportance | None = None
    faithfulness: Faithfulness | None = None

    def found(self) -> dict[AnalysisName, Any]:
        """Those that there are."""
        return {name: one for name in NAMES if (one := getattr(self, name)) is not None}

    def arrays(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Every array with its name in a record, such as `analyses.contributions.source`."""
        for name, one in self.found().items():
            for field, value in vars(one).items():
                for kind, array in value.items() if isinstance(value, Mapping) else [("", value)]:
                    if isinstance(array, np.ndarray):
                        yield ".".join(filter(None, ("analyses", name, field, kind))), array


def read_analyses(document: Any) -> list[AskedAnalysis]:
    """Analyses from their JSON form, a list of names, or of objects with `kind`. Raises UserError."""
    if isinstance(document, Sequence) and not isinstance(document, str):
        document = [{"kind": one} if isinstance(one, str) else one for one in document]
    return read_as(_ASKED, document, "analyses")
