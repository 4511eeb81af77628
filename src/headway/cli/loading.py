"""Models for the commands that use one, and what they read with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.translator import Translator


LINES_AT_ONCE, CHARACTERS_AT_ONCE = 2048, 1 << 24
"""Read, sorted by length and worked on together; bound memory."""
Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: Callable[[Item], int], at_most: int = LINES_AT_ONCE) -> Iterator[list[Item]]:
    """The items in lists of `at_most`, fewer where their sizes, in characters, reach CHARACTERS_AT_ONCE."""
    chunk: list[Item] = []
    characters = 0
    for item in items:
        chunk.append(item)
        characters += size(item)
        if len(chunk) == at_most or characters >= CHARACTERS_AT_ONCE:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def load_translator(
    model: Path,
    device: str,
    precision: str = "auto",
    ensemble: Sequence[Path] | None = None,
    engine: str = "torch",
) -> Translator:
    """As the options say. Raises UserError."""
    from headway.devices import EngineName, TranslatingPrecision
    from headway.translator import Translator

    for name, value, known in (
        ("precision", precision, get_args(TranslatingPrecision)),
        ("engine", engine, get_args(EngineName)),
    ):
        if value not in known:
            raise UserError(f"--{name} {value}: there are {', '.join(known)}")
    return Translator.load(model, device=device, precision=precision, ensemble=ensemble or [], engine=engine)  # type: ignore[arg-type]


def language_prefix(translator: Translator, language: str | None) -> str:
    """What stands in front of each text so that it is translated into the language. Raises UserError."""
    from headway.text.tokenizer import language_tag

    if language is None:
        return ""
    if language not in translator.target_languages:
        known = ", ".join(translator.target_languages)
        known = known or f"{translator.stored.target_language} alone, without the option"
        raise UserError(f"--target-language {language}: the model translates into {known}")
    return f"{language_tag(language)} "
