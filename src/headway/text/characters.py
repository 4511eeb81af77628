"""The characters of a text that a model sees: no invisible ones, and one space for white space of any kind. Also what
is a text at all, for programs that give lists of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

DROPPED = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that are no white space
    r"\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
)
"""For a regular expression: invisible characters without meaning for a model, that is controls, zero-width spaces, byte
order marks, soft hyphens and marks of direction. Joiners (U+200C, U+200D) and variation selectors aren't among them:
words and emoji differ by them."""
_UNSEEN = (
    rf"{DROPPED}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0000-\U000e0fff"
)
"""Characters that show nothing where they stand alone."""

CHARACTERS_PER_PIECE = 64
"""No text has so many for each piece, except by white space or words without end."""

HALF_PAIR = "holds half of a surrogate pair, which is no character"
"""The fault of a text that isn't Unicode, in messages."""
_INVISIBLE = re.compile(rf"(?<!\S)[{_UNSEEN}]++(?!\S)|[{DROPPED}]++")
_SPACES = re.compile(r"\s+")
_MAY_CHANGE = re.compile(rf"[^\S ]|[{_UNSEEN}]")
_BLANK = re.compile(rf"[\s{_UNSEEN}]*")


def is_blank(text: str) -> bool:
    """Whether the text shows nothing: it is empty, or has only white space and invisible characters."""
    return not text.strip() or _BLANK.fullmatch(text) is not None


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold the text: it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def has_invisible(text: str) -> bool:
    """Whether the text has characters that `visible` drops."""
    return _INVISIBLE.search(text) is not None


def visible(text: str) -> str:
    """The text as a model sees it. Invisible characters are dropped. Then each run of white space is one space, unless
    it is of plain spaces, which the tokenizer treats as it was trained to."""
    if _MAY_CHANGE.search(text) is None:
        return text
    return _SPACES.sub(lambda run: run.group() if set(run.group()) == {" "} else " ", _INVISIBLE.sub("", text))


def visible_spans(text: str) -> list[tuple[int, int]]:
    """For each character of `visible(text)` the part of the text that it stands for, (start, end)."""
    dropped = {place for run in _INVISIBLE.finditer(text) for place in range(*run.span())}
    kept = [place for place in range(len(text)) if place not in dropped]
    shown = _INVISIBLE.sub("", text)
    ends = {run.start(): run.end() for run in _SPACES.finditer(shown) if set(run.group()) != {" "}}
    spans: list[tuple[int, int]] = []
    place = 0
    while place < len(shown):
        end = ends.get(place, place + 1)
        spans.append((kept[place], kept[end - 1] + 1))
        place = end
    return spans


def is_too_long(text: str, max_length: int) -> bool:
    """Whether the text has too many characters for a model of `max_length` pieces, whatever its pieces are. Such a
    text is never tokenised: one without end would take time and memory without end."""
    return len(text) > CHARACTERS_PER_PIECE * max_length


def as_texts(given: Any, name: str) -> list[str]:
    """The texts as plain strings. name: what messages call one of them. Raises TypeError for an item that isn't text,
    for a text in place of a list, and for collections without order or that would give keys (set, dict, data frame)."""
    kind = type(given).__name__
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: a list of texts is needed, not {kind}; for one text, give [text]")
    is_list = isinstance(given, Iterable) and not isinstance(given, (Mapping, set, frozenset))
    if not is_list or getattr(given, "ndim", 1) != 1:
        raise TypeError(f"{name}: a list of texts is needed, not {kind}")
    return [as_text(one, f"{name} {number}") for number, one in enumerate(given, start=1)]


def as_text(given: Any, name: str) -> str:
    """The text as a plain string. Raises TypeError for what isn't text, such as NaN for a missing value."""
    if not isinstance(given, str):
        raise TypeError(f"{name} is not text ({type(given).__name__})")
    return str.__str__(given)  # a subclass may join, split and show itself in its own way
