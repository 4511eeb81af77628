"""Files that are translated as a whole: read within the limits of a server, and kept until they are downloaded."""

import re
import secrets
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import PurePath
from typing import NamedTuple

from headway.documents.kinds import DAMAGED, KINDS, OTHER_ENDS, kind_of, open_file
from headway.documents.markup import escape
from headway.documents.segments import Languages, OpenedFile, Segment, decode_text
from headway.errors import UserError
from headway.languages import same_language
from headway.serving import units
from headway.serving.pairs import AskedText
from headway.serving.schemas import FileRequest, TranslateRequest, UploadedFile
from headway.serving.service import AUTO, SentenceProgress, Service
from headway.serving.settings import Settings

TEXT = "txt"
SUPPORTED = [f".{end}" for end in (TEXT, *KINDS, *OTHER_ENDS) if end != "android"]  # that is known by a whole name
MOST_UNPACKED, MOST_MARKUP = 16, 10
"""Bytes that an archive may unpack to for each byte of a request's body, and bytes of its pages for each character."""
_PAGE = re.compile(r".*\.(xml|x?html?|ncx|opf)", re.IGNORECASE | re.DOTALL)
SAMPLE = 5_000
"""Characters from which the language is detected."""
KEPT_SECONDS = 600.0
MOST_KEPT = 64 * 2**20
"""Bytes of all translated files that are kept. A client may have an eighth of them."""


class NamedFile(NamedTuple):
    """A file to download."""

    name: str
    data: bytes
    truncated: int = 0
    """Its texts in which the translation of a sentence was cut off at the model's length limit."""


class _FileOfClient(NamedTuple):
    file: NamedFile
    client: str
    until: float


class KeptFiles:
    """Translated files by unguessable tokens, for ten minutes. When there are too many, the oldest goes first."""

    def __init__(self, most: int = MOST_KEPT, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._kept: dict[str, _FileOfClient] = {}

    def keep(self, file: NamedFile, client: str) -> str:
        """Keeps a file of a client, and returns its token."""
        token = secrets.token_urlsafe(24)
        self._kept[token] = _FileOfClient(file, client, self._clock() + KEPT_SECONDS)
        self._forget([one for one, kept in self._kept.items() if kept.client == client], self._most // 8)
        self._forget(list(self._kept), self._most)
        return token

    def _forget(self, tokens: Sequence[str], most: int) -> None:
        """Forgets what is too old of these, and the oldest while they have more bytes; never the last."""
        size = sum(len(self._kept[one].file.data) for one in tokens)
        for one in tokens[:-1]:
            if size > most or self._kept[one].until < self._clock():
                size -= len(self._kept.pop(one).file.data)

    def get(self, token: str) -> NamedFile | None:
        kept = self._kept.get(token)
        return None if kept is None or kept.until < self._clock() else kept.file


async def translated_file(
    service: Service, wanted: FileRequest, client: str, charge: Callable[[int], None], progress: SentenceProgress
) -> NamedFile:
    """The translation of a file. charge: takes the units of the request. Raises UserError, HTTPException."""
    settings, file = service.settings, wanted.file
    charge(units.of_file(file.data) - 1)  # a request has paid one already
    target = same_language(wanted.target, service.pairs.codes) or wanted.target
    sources = service.pairs.sources(target) if wanted.source.lower() == AUTO else [wanted.source]
    languages = Languages(sources[0] if len(sources) == 1 else "", target)
    opened = await service.files.call(client, _opened, file, languages, settings)
    sample = _sample(opened.segments)
    asked = TranslateRequest.model_validate({**vars(wanted), "q": sample, "format": "html"})
    [pair], _ = await service.choose(asked, [sample], client)
    if pair is not None and (pair.source, pair.target) != languages:
        languages = Languages(pair.source, pair.target)
        opened = await service.files.call(client, _opened, file, languages, settings)
    texts = [AskedText(one.text, pair, one.format) for one in opened.segments]
    charge(units.of_translation(asked, texts))
    found = await service.translate(asked, texts, client, progress, of_file=True)
    data = await service.files.call(client, opened.written, [one.texts[0] for one in found])
    path = PurePath(file.name)
    name = f"{path.stem}.{languages.target}{path.suffix}"
    return NamedFile(name, data, sum(one.truncated for one in found))


def _opened(file: UploadedFile, languages: Languages, settings: Settings) -> OpenedFile:
    """Raises UserError for a file that can't be read, or has more text than a request may have."""
    kind, most = kind_of(file.name), settings.max_characters * settings.max_texts
    if kind is None and PurePath(file.name).suffix.lower() != f".{TEXT}":
        raise UserError(f"file: {file.name} can't be translated; its name must end in {', '.join(SUPPORTED)}")
    if not file.data:
        raise UserError(f"file: {file.name} is empty")
    every: list[zipfile.ZipInfo] = []
    with suppress(*DAMAGED), zipfile.ZipFile(BytesIO(file.data)) as archive:  # `open_file` tells of damage
        every = archive.infolist()
    for of_what, some, limit in (
        ("when unpacked", every, MOST_UNPACKED * settings.max_body),
        ("in its pages", (one for one in every if _PAGE.fullmatch(one.filename)), MOST_MARKUP * most),
    ):
        if (unpacked := sum(one.file_size for one in some)) > limit:
            raise UserError(f"file: {file.name} has {unpacked:,} bytes {of_what}, the limit is {limit:,}")
    opened = _as_text(file) if kind is None else open_file(kind, file.data, languages, file.name)
    if (size := sum(len(one.text) for one in opened.segments)) > most:
        raise UserError(f"file: {file.name} has {size:,} characters to translate, the limit is {most:,}")
    return opened


def _as_text(file: UploadedFile) -> OpenedFile:
    try:
        found = decode_text(file.data)
    except UserError as error:
        raise UserError(f"{file.name}: {error}") from None
    return OpenedFile([Segment(found.text)], lambda translations: found.encoded(translations[0]))


def _sample(segments: Sequence[Segment]) -> str:
    """The beginning of the file as HTML."""
    texts = (one.text if one.format == "html" else escape(one.text) for one in segments)
    return "\n".join(texts)[:SAMPLE] or " "
