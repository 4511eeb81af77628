"""Asking for analyses of a translation, and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from headway.insight.analyses.contributions import Contributions
from headway.insight.analyses.erasing import Contrast, Erasure, Faithfulness
from headway.insight.analyses.head_importance import HeadImportance
from headway.insight.analyses.layers import DecoderLens, LogitLens, Patching
from headway.insight.what_if import read_as

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


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def sources(self) -> list[str]:
        """Those that come with the question."""
        return []

    @property
    def targets(self) -> list[str]:
        """The translations that come with the question."""
        return []


class Plain(_Asked):
    """An analysis that needs nothing but the translation."""

    kind: Literal["contributions", "erasure", "logit_lens", "decoder_lens", "faithfulness"]


class AskContrast(_Asked):
    """Why this word, and not another one."""

    kind: Literal["contrast"] = "contrast"
    instead: str | None = None
    """Another translation: where it first differs, its token is the foil. All other steps, or all where it isn't given,
    are compared with the likeliest other token."""

    @property
    def targets(self) -> list[str]:
        return [] if self.instead is None else [self.instead]


class AskPatching(_Asked):
    """Which place in the model makes the word another that another sentence has."""

    kind: Literal["patching"] = "patching"
    other: str
    """The other sentence, of as many tokens."""

    @property
    def sources(self) -> list[str]:
        return [self.other]


class AskHeadImportance(_Asked):
    """How much the model needs each of its heads, over many sentences."""

    kind: Literal["head_importance"] = "head_importance"
    pairs: list[tuple[str, str]] = Field(min_length=1, max_length=MOST_PAIRS)
    """Sources and their translations."""

    @property
    def sources(self) -> list[str]:
        return [source for source, _ in self.pairs]

    @property
    def targets(self) -> list[str]:
        return [target for _, target in self.pairs]


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
