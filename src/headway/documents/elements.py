"""What of a text is words for the model, and what must come back unharmed: protected text and emoji."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from headway.text.protected import Atom, Element, split_protected

_EMOJI = r"""
    \p{Regional_Indicator}{2}
  | [0-9\#*] \uFE0F? \u20E3
  | (?! [©®™] ) \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F\U000E0020-\U000E007F]*
    (?: \u200D \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F]* )*
"""
_PATTERN = regex.compile(_EMOJI, regex.VERBOSE)


def elements_of(text: str) -> Iterator[Element]:
    """The text with its emoji and what is protected as atoms; joined again they are the text."""
    for element in split_protected(text):
        if isinstance(element, Atom):
            yield element
            continue
        end = 0
        for match in _PATTERN.finditer(element):
            if match.start() > end:
                yield element[end : match.start()]
            yield Atom(match.group(), match.group())
            end = match.end()
        if end < len(element):
            yield element[end:]
