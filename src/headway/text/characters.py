"""The characters of a text that a model sees: no invisible ones, and one space for white space of any kind. Also checks
that programs pass texts."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

DROPPED = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that are no white space
    r"\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
)
"""For a regular expression: controls, zero-width spaces, byte order marks, soft hyphens and marks of direction. These
mean nothing to a model. Joiners (U+200C, U+200D) and variation selectors do: words and emoji differ by them."""
_UNSEEN = (
    rf"{DROPPED}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0000-\U000e0fff"
)
"""Characters that show nothing where they stand alone."""

CHARACTERS_PER_PIECE = 64
"""Upper bound for ordinary text; only endless white space or words exceed it."""
HALF_PAIR = "holds half of a surrogate pair, which is no character"
"""The fault of a text that isn't Unicode, in messages."""
_INVISIBLE = re.compile(rf"(?<!\S)[{_UNSEEN}]++(?!\S)|[{DROPPED}]++")
_SPACES = re.compile(r"\s+")
_MAY_CHANGE = re.compile(rf"[^\S ]|[{_UNSEEN}]")
_BLANK = re.compile(rf"[\s{_UNSEEN}]*+")


def is_blank(text: str) -> bool:
    """Whether the text shows nothing: it is empty, or has only white space and invisible characters."""
    return _BLANK.fullmatch(text) is not None


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
    """The text as a model sees it: without invisible characters, then with one space for each run of white space. A run
    of plain spaces stays, which the tokenizer treats as it was trained to."""
    if _MAY_CHANGE.search(text) is None:
        return text
    return _SPACES.sub(lambda run: run.group() if set(run.group()) == {" "} else " ", _INVISIBLE.sub("", text))


def visible_spans(text: str) -> list[tuple[int, int]]:
    """For each character of `visible(text)` the part of the text that it stands for, (start, end)."""
    dropped = {place for run in _INVISIBLE.finditer(text) for place in range(*run.span())}
    kept = [place for place in range(len(text)) if place not in dropped]
    spans: list[tuple[int, int]] = []
    for run in re.finditer(r"\s+|\S+", "".join(text[place] for place in kept)):
        if run[0].isspace() and set(run[0]) != {" "}:
            spans.append((kept[run.start()], kept[run.end() - 1] + 1))
        else:
            spans += [(place, place + 1) for place in kept[run.start() : run.end()]]
    return spans


def is_too_long(text: str, max_length: int) -> bool:
    """Whether the text has too many characters for a model of `max_length` pieces, whatever its pieces are. Such a text
    is never tokenised, because an endless one would take endless time and memory."""
    return len(text) > CHARACTERS_PER_PIECE * max_length


def as_texts(given: Any, name: str) -> list[str]:
    """The texts as plain strings. name: what messages call one of them. Raises TypeError for an item that isn't text,
    for a text in place of a list, and for collections without order or that would give keys (set, dict, data frame)."""
    hint = "; for one text, give [text]" if isinstance(given, (str, bytes)) else ""
    is_list = isinstance(given, Iterable) and not isinstance(given, (Mapping, set, frozenset))
    if hint or not is_list or getattr(given, "ndim", 1) != 1:
        raise TypeError(f"{name}: a list of texts is needed, not {type(given).__name__}{hint}")
    return [as_text(one, f"{name} {number}") for number, one in enumerate(given, start=1)]


def as_text(given: Any, name: str) -> str:
    """The text as a plain string. Raises TypeError for other objects, such as NaN for a missing value."""
    if not isinstance(given, str):
        raise TypeError(f"{name} is not text ({type(given).__name__})")
    return str.__str__(given)  # a subclass may override join, split and its own form
