"""Text with marks in it: formatting, links and the like of any kind of file, as the tags of an HTML segment.

A mark that encloses words is two tags, another is one; a break, such as that of a line, ends a sentence. In a
translation each mark comes back once, and those that enclose words are nested as they were, or beside each other.
"""

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from headway.documents.markup import escape
from headway.documents.segments import Segment

Thing = TypeVar("Thing")
_TAG = re.compile(r"(</?(?:br )?x\d+/?>)")
_Place: TypeAlias = Literal["begin", "end", "alone", "break"]


@dataclass(frozen=True)
class Mark(Generic[Thing]):
    """The beginning or the end of something that encloses words, or something without words."""

    thing: Thing
    place: _Place = "alone"


Piece: TypeAlias = str | Mark[Thing]
"""Words, or a mark between them."""


@dataclass(eq=False)
class Tag:
    """Markup in front of words, and behind them if it encloses some."""

    begin: str
    end: str = ""


def shown(pieces: Iterable[Piece[Tag]], escaped: Callable[[str], str]) -> str:
    """Words and the markup between them. escaped: words as they stand in the file."""
    return "".join(
        escaped(one) if isinstance(one, str) else one.thing.end if one.place == "end" else one.thing.begin
        for one in pieces
    )


class MarkedText(Generic[Thing]):
    """Words and marks as a segment. The things must be different; the marks that begin and end one hold the same."""

    def __init__(self, pieces: Iterable[Piece[Thing]]) -> None:
        self._things: list[Thing] = []
        numbers: dict[int, int] = {}
        text = ""
        for one in pieces:
            if isinstance(one, str):
                text += escape(one)
                continue
            number = numbers.setdefault(id(one.thing), len(self._things))
            self._things += [one.thing] if number == len(self._things) else []
            begin = {"end": "/", "break": "br "}.get(one.place, "")
            text += f"<{begin}x{number}{'/' * (one.place in ('alone', 'break'))}>"
        self.segment = Segment(text, "html")

    def restored(self, translation: str) -> list[Piece[Thing]]:
        """The words and marks of a translation of the segment."""
        pieces: list[Piece[Thing]] = []
        for place, part in enumerate(_TAG.split(translation)):
            if place % 2:
                is_tag = part[-2] != "/"  # in front of words or behind them
                kind: _Place = (
                    "end" if part[1] == "/" else "begin" if is_tag else "break" if part[1] == "b" else "alone"
                )
                pieces.append(Mark(self._things[int(re.sub(r"\D", "", part))], kind))
            elif part:
                pieces.append(html.unescape(part))
        return pieces
