"""Translating texts of many sentences, or HTML documents: in sentences, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from headway.errors import UserError
from headway.translator.alignments import character_links
from headway.translator.translation import TranslatedDocument, Translation

if TYPE_CHECKING:
    from headway.documents import Asked, Document, Found

DocumentFormat = Literal["text", "html"]


def require_documents() -> None:
    """Raises UserError where the extra `documents` is missing."""
    try:
        import headway.documents  # noqa: F401
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'headway[documents]'") from None


def found_in(translation: Translation, *, aligned: bool) -> Found:
    """The translation in the form that documents need."""
    from headway.documents import Found

    every = [translation, *translation.alternatives]
    return Found(
        [one.text for one in every],
        translation.stopped == "max_length",
        translation.confidence,
        bool(translation.out_of_domain),
        [character_links(one.source_tokens, one.tokens, one.alignment) for one in every] if aligned else (),
    )


def translate_documents(
    texts: Sequence[str],
    format_: DocumentFormat,
    language: str,
    prefixes: Sequence[str],
    *,
    is_readable: Callable[[str], bool],
    translate: Callable[[Sequence[Asked]], list[Translation]],
    n_best: int,
) -> list[TranslatedDocument]:
    """language: of the texts. prefixes: for each text, what stands before each of its sentences. translate: gives
    `n_best` translations of each sentence. Raises UserError."""
    require_documents()
    from headway.documents import Drafts, parse_document

    if format_ not in get_args(DocumentFormat):
        raise UserError(f"format {format_!r} is unknown; there are {' and '.join(get_args(DocumentFormat))}")

    def found(asked: Sequence[Asked]) -> list[Found]:
        return [found_in(one, aligned=part.aligned) for part, one in zip(asked, translate(asked), strict=True)]

    def parsed(text: str, prefix: str) -> Document:
        return parse_document(text, format_, language, lambda part: is_readable(prefix + part))

    drafts = Drafts([parsed(text, prefix) for text, prefix in zip(texts, prefixes, strict=True)], prefixes)
    drafts.take_wholes(found(drafts.wholes))
    drafts.take_runs(found(drafts.runs))
    return [TranslatedDocument(whole.texts[0], whole.texts[1:], whole.truncated) for whole in drafts.joined(n_best)]
