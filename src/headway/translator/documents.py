"""Translating texts of many sentences, or HTML documents: in sentences, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from headway.errors import UserError
from headway.translator.translation import TranslatedDocument, Translation

if TYPE_CHECKING:
    from headway.documents import Document

DocumentFormat = Literal["text", "html"]


def require_documents() -> None:
    """Raises UserError where the extra `documents` is missing."""
    try:
        import headway.documents  # noqa: F401
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'headway[documents]'") from None


def translate_documents(
    texts: Sequence[str],
    format_: DocumentFormat,
    language: str,
    prefixes: Sequence[str],
    *,
    is_readable: Callable[[str], bool],
    translate: Callable[[Sequence[str]], list[Translation]],
    n_best: int,
) -> list[TranslatedDocument]:
    """language: of the texts. prefixes: for each text, what stands before each of its sentences. translate: gives
    `n_best` translations of each sentence. Raises UserError."""
    require_documents()
    from headway.documents import Drafts, Found, parse_document

    if format_ not in get_args(DocumentFormat):
        raise UserError(f"format {format_!r} is unknown; there are {' and '.join(get_args(DocumentFormat))}")

    def found(parts: Sequence[tuple[int, str]]) -> list[Found]:
        return [
            Found([one.text, *(other.text for other in one.alternatives)], one.stopped == "max_length")
            for one in translate([prefixes[number] + part for number, part in parts])
        ]

    def parsed(text: str, prefix: str) -> Document:
        return parse_document(text, format_, language, lambda part: is_readable(prefix + part))

    drafts = Drafts([parsed(text, prefix) for text, prefix in zip(texts, prefixes, strict=True)])
    drafts.take_wholes(found(drafts.wholes))
    drafts.take_runs(found(drafts.runs))
    return [TranslatedDocument(whole.texts[0], whole.texts[1:], whole.truncated) for whole in drafts.joined(n_best)]
