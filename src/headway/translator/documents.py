"""Translating a text of many sentences, or an HTML document: in sentences, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

from headway.errors import UserError
from headway.translator.translation import TranslatedDocument, Translation

DocumentFormat = Literal["text", "html"]


def translate_document(
    text: str,
    format_: DocumentFormat,
    language: str,
    *,
    is_readable: Callable[[str], bool],
    translate: Callable[[Sequence[str]], list[Translation]],
    n_best: int,
) -> TranslatedDocument:
    """language: of the text. translate: gives `n_best` translations of each sentence. Raises UserError."""
    try:
        from headway.documents import Drafts, Found, parse_document
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'headway[documents]'") from None
    if format_ not in get_args(DocumentFormat):
        raise UserError(f"format {format_!r} is unknown; there are {' and '.join(get_args(DocumentFormat))}")

    def found(parts: Sequence[tuple[int, str]]) -> list[Found]:
        return [
            Found([one.text, *(other.text for other in one.alternatives)], one.stopped == "max_length")
            for one in translate([part for _, part in parts])
        ]

    drafts = Drafts([parse_document(text, format_, language, is_readable)])
    drafts.take_wholes(found(drafts.wholes))
    drafts.take_runs(found(drafts.runs))
    [whole] = drafts.joined(n_best)
    best, *others = whole.texts
    return TranslatedDocument(best, others, whole.truncated)
