"""`Translator.translate_document`: texts of many sentences, or HTML documents, through a model."""

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from headway.documents.parsing import (
    MOST_TOKENS,
    NBest,
    PendingDocuments,
    SentenceRequest,
    TextFormat,
    n_best_of,
    parse_document,
)
from headway.errors import UserError
from headway.text.characters import as_texts
from headway.translator.glossary import Glossary
from headway.translator.translation import TranslatedDocument
from headway.translator.translator import Translator


def translate_document(
    translator: Translator,
    text: str,
    *,
    format: TextFormat = "text",
    beam_size: int | None = None,
    n_best: int = 1,
    glossary: Glossary | None = None,
) -> TranslatedDocument:
    """Translates a text of many sentences, or an HTML document, as `POST /translate` of a server does: sentence by
    sentence, while white space, markup, addresses and emoji stay as they are (docs/serving.md).

    For a model with several target languages the text begins with a tag, as in `translate`. Needs the extra
    `documents`. Raises UserError.
    """
    options: dict[str, Any] = {"format": format, "beam_size": beam_size, "n_best": n_best, "glossary": glossary}
    return translate_documents(translator, [text], **options)[0]


def translate_documents(
    translator: Translator,
    texts: Iterable[str],
    *,
    format: TextFormat = "text",
    n_best: int = 1,
    glossary: Glossary | None = None,
    **search: Any,
) -> list[TranslatedDocument]:
    """`translate_document` for many texts, whose sentences share batches. search: options of `SearchOptions`."""
    if format not in get_args(TextFormat):
        raise UserError(f"format {format!r} is unknown; there are {' and '.join(get_args(TextFormat))}")
    width = translator.search_options(**search).beam_size
    if n_best > width and search.get("sample") is None:  # as a server widens it
        search = {**search, "beam_size": n_best}
    most = MOST_TOKENS // max(width, n_best)
    documents, prefixes = [], []
    for text in as_texts(texts, "text"):
        tag, _ = translator.info.source_tokenizer.split_tag(text)
        prefix = f"{tag} " if tag else ""
        body = text.partition(tag)[2].removeprefix(" ") if tag else text
        language = translator.info.source_language
        documents.append(
            parse_document(
                body, format, language, lambda part, prefix=prefix: translator.is_readable(prefix + part, most)
            )
        )
        prefixes.append(prefix)

    def found(asked: Sequence[SentenceRequest]) -> list[NBest[str]]:
        every = translator.translate([one.text for one in asked], n_best=n_best, glossary=glossary, **search)
        translator.texts.align_together([one for part, one in zip(asked, every, strict=True) if part.aligned])
        return [n_best_of(one, aligned=part.aligned) for part, one in zip(asked, every, strict=True)]

    pending = PendingDocuments(documents, prefixes)
    pending.take_wholes(found(pending.wholes))
    joined = pending.joined(found(pending.runs), n_best)
    return [TranslatedDocument(whole.texts[0], whole.texts[1:], whole.truncated) for whole in joined]
