"""`Translator.translate_document`: texts of many sentences, HTML documents and files through a model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

from headway.documents.kinds import open_file
from headway.documents.parsing import (
    MOST_TOKENS,
    NBest,
    PendingDocuments,
    SentenceRequest,
    TextFormat,
    n_best_of,
    parse_document,
)
from headway.documents.segments import Languages, Segment
from headway.errors import UserError
from headway.text.characters import as_texts
from headway.text.protected import has_words
from headway.translator.codec import languages_of
from headway.translator.glossary import Glossary
from headway.translator.lines import language_prefix
from headway.translator.translation import TranslatedDocument
from headway.translator.translator import Translator

AT_ONCE = 512
"""Sentences of a file that are translated between two reports of progress."""
Progress: TypeAlias = Callable[[int, int], None]


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
    segments = [Segment(text, format) for text in as_texts(texts, "text")]
    joined = _translated(translator, segments, n_best=n_best, glossary=glossary, **search)
    return [TranslatedDocument(whole.texts[0], whole.texts[1:], whole.truncated) for whole in joined]


class TranslatedFile(NamedTuple):
    """The translation of a file."""

    data: bytes
    truncated: int
    """Its segments in which the translation of a sentence was cut off at the model's length limit."""


def translate_file(
    translator: Translator,
    kind: str,
    data: bytes,
    *,
    name: str,
    target_language: str | None = None,
    glossary: Glossary | None = None,
    progress: Progress = lambda *_: None,
    **search: Any,
) -> TranslatedFile:
    """Translates a file of one of the `KINDS`. name: the file in messages. progress: called with the number of
    sentences that are translated, and of all. search: options of `SearchOptions`. Raises UserError."""
    prefix = language_prefix(translator, target_language)
    if translator.lacks_tag(f"{prefix}x"):
        raise UserError(f"{name}: choose --target-language, one of {', '.join(translator.target_languages)}")
    languages = Languages(*languages_of(translator.info, target_language or ""))
    opened = open_file(kind, data, languages, name)
    segments = [one._replace(text=prefix + one.text) if has_words(one.text) else one for one in opened.segments]
    found = _translated(translator, segments, glossary=glossary, progress=progress, of_file=True, **search)
    texts = [one.texts[0] for one in found]
    return TranslatedFile(opened.written(texts), sum(one.truncated for one in found))


def _translated(
    translator: Translator,
    segments: Iterable[Segment],
    *,
    n_best: int = 1,
    glossary: Glossary | None = None,
    progress: Progress = lambda *_: None,
    of_file: bool = False,
    **search: Any,
) -> list[NBest[str]]:
    """The translations of the segments, whose sentences share batches; the same sentence is translated once. of_file:
    as for `parse_document`."""
    width = translator.search_options(**search).beam_size
    if n_best > width and search.get("sample") is None:  # as a server widens it
        search = {**search, "beam_size": n_best}
    most = MOST_TOKENS // max(width, n_best)
    documents, prefixes, language = [], [], translator.info.source_language
    for text, format_ in segments:
        tag, _ = translator.info.source_tokenizer.split_tag(text)
        prefix = f"{tag} " if tag else ""
        body = text.partition(tag)[2].removeprefix(" ") if tag else text

        def is_readable(part: str, prefix: str = prefix) -> bool:
            return translator.is_readable(prefix + part, most)

        documents.append(parse_document(body, format_, language, is_readable, of_file=of_file))
        prefixes.append(prefix)

    def found(asked: Sequence[SentenceRequest], told: Progress) -> Iterator[NBest[str]]:
        known: dict[tuple[str, bool], NBest[str]] = {}
        missing = list(dict.fromkeys((one.text, one.aligned) for one in asked))
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            every = translator.translate([text for text, _ in some], n_best=n_best, glossary=glossary, **search)
            translator.texts.align_together([one for (_, aligned), one in zip(some, every, strict=True) if aligned])
            known |= {key: n_best_of(one, aligned=key[1]) for key, one in zip(some, every, strict=True)}
            told(min(start + AT_ONCE, len(missing)), len(missing))
        return (known[one.text, one.aligned] for one in asked)

    pending = PendingDocuments(documents, prefixes)
    pending.take_wholes(found(pending.wholes, progress))
    return pending.joined(found(pending.runs, lambda *_: None), n_best)
