"""What of a text is words for the model, and what must come back unharmed: addresses, emoji, tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import regex

_ADDRESS = r"""
    (?: https?:// | ftp:// | www\. ) [\p{Latin}\p{Nd}\-._~:/?\#\[\]@!$&'()*+,;=%]* [\p{Latin}\p{Nd}/\#=%_~\-]
  | (?<![\w.+\-]) [\w.+\-]{1,64} @ [\w\-]{1,63} (?: \. [\w\-]{1,63} ){1,8}
"""
_EMOJI = r"""
    \p{Regional_Indicator}{2}
  | [0-9\#*] \uFE0F? \u20E3
  | (?! [©®™] ) \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F\U000E0020-\U000E007F]*
    (?: \u200D \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F]* )*
"""
_UNTRANSLATABLE = regex.compile(f"(?P<address>{_ADDRESS})|(?P<emoji>{_EMOJI})", regex.VERBOSE)


@dataclass(frozen=True)
class Atom:
    """A part of a text that isn't translated."""

    raw: str
    """As it stands in the text and in the answer."""
    stand_in: str
    """What stands for it where sentences are looked for."""
    in_order: bool = False
    """Whether it must stay in its order with others of the kind, as tags must."""


Element: TypeAlias = str | Atom
"""Words, or what is between them."""


def has_words(text: str) -> bool:
    """Whether there is anything to translate: a letter or a digit."""
    return any(map(str.isalnum, text))


def elements_of(text: str) -> Iterator[Element]:
    """The text with its addresses and emoji as atoms; joined again they are the text."""
    end = 0
    for match in _UNTRANSLATABLE.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        found = match.group()
        yield Atom(found, "x" * len(found) if match["address"] else found)
        end = match.end()
    if end < len(text):
        yield text[end:]
