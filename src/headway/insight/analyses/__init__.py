"""Analyses of a translation that go beyond attention: what it needs, where it comes from, what each layer would say.

Each is a module of this package with its request, its result (which knows its JSON form and its text for the terminal)
and its computation. `Analyses` lists them all; everything else finds them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, TypeAdapter

from headway.devices import need_torch
from headway.errors import UserError
from headway.insight.analyses.analysis import LONGEST_ANALYSED, MOST_PAIRS, Analysis, Request, TokenNames
from headway.insight.maps import Floats
from headway.insight.what_if import read_as
from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.insight.analyses.contrast import Contrast
    from headway.insight.analyses.contributions import Contributions
    from headway.insight.analyses.decoder_lens import DecoderLens
    from headway.insight.analyses.erasure import Erasure
    from headway.insight.analyses.faithfulness import Faithfulness
    from headway.insight.analyses.head_importance import HeadImportance
    from headway.insight.analyses.logit_lens import LogitLens
    from headway.insight.analyses.patching import Patching

__all__ = [
    "LONGEST_ANALYSED",
    "MOST_PAIRS",
    "NAMES",
    "Analyses",
    "Request",
    "TokenNames",
    "names_by_sentence",
    "read_analyses",
    "request_class",
]


@dataclass(frozen=True)
class Analyses:
    """The result of each analysis, None if it wasn't requested. A field is named for its module, whose classes are
    named for it: `HeadImportance`, and `AskHeadImportance` for the request."""

    contributions: Contributions | None = None
    erasure: Erasure | None = None
    contrast: Contrast | None = None
    logit_lens: LogitLens | None = None
    decoder_lens: DecoderLens | None = None
    patching: Patching | None = None
    head_importance: HeadImportance | None = None
    faithfulness: Faithfulness | None = None

    def found(self) -> dict[str, Analysis]:
        """The results that there are."""
        return {name: one for name, one in vars(self).items() if one is not None}

    def arrays(self) -> Iterator[tuple[str, Floats]]:
        """Every array with its name in a record, such as `analyses.contributions.source`."""
        for name, one in self.found().items():
            yield from ((f"analyses.{name}.{part}", array) for part, array in one.arrays())


NAMES = tuple(field.name for field in fields(Analyses))
_REQUESTS = {name: f"Ask{name.title().replace('_', '')}" for name in NAMES}
__getattr__, __dir__ = lazy_names(__name__, **_REQUESTS)


def request_class(name: str) -> type[Request]:
    """The form in which an analysis is requested. Raises UserError without torch."""
    need_torch("inspect")
    return __getattr__(_REQUESTS[name])


def names_by_sentence() -> list[str]:
    """The analyses that need nothing besides the translation."""
    return [name for name in NAMES if not any(one.is_required() for one in request_class(name).model_fields.values())]


def read_analyses(document: Any) -> list[Request]:
    """Requests from their JSON form, a list of names, or of objects with `kind`. Raises UserError."""
    if isinstance(document, Sequence) and not isinstance(document, str):
        document = [{"kind": one} if isinstance(one, str) else one for one in document]
    requests = read_as(_requests(), document, "analyses") if document else []
    if len({request.kind for request in requests}) < len(requests):
        raise UserError("analyses: each can be asked for once")
    return requests


@cache
def _requests() -> TypeAdapter[list[Request]]:
    one = Union[tuple(map(request_class, NAMES))]  # noqa: UP007
    return TypeAdapter(list[Annotated[one, Field(discriminator="kind")]])  # type: ignore[valid-type]
