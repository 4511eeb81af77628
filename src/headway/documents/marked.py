"""Text with marks in it: formatting, links and the like of any kind of file, as the tags of an HTML segment.

A mark that encloses words is two tags, another is one; a break, such as that of a line, ends a sentence. In a
translation each mark comes back once, and those that enclose words are nested as they were, or beside each other.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from headway.documents.markup import escape
from headway.documents.segments import Segment

Thing = TypeVar("Thing")
_TAG = re.compile(r"<(/?)(br )?x(\d+)(/?)>")
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


class MarkedText(Generic[Thing]):
    """Words and marks as a segment. The things must be different; the marks that begin and end one hold the same."""

    def __init__(self, pieces: Iterable[Piece[Thing]]) -> None:
        self.pieces = list(pieces)
        self._things: list[Thing] = []
        numbers: dict[int, int] = {}
        text = ""
        for one in self.pieces:
            if isinstance(one, str):
                text += escape(one)
                continue
            if id(one.thing) not in numbers:
                numbers[id(one.thing)] = len(self._things)
                self._things.append(one.thing)
            number = numbers[id(one.thing)]
            begin = {"end": "/", "break": "br "}.get(one.place, "")
            text += f"<{begin}x{number}{'/' * (one.place in ('alone', 'break'))}>"
        self.segment = Segment(text, "html")

    def restored(self, translation: str) -> list[Piece[Thing]]:
        """The words and marks of a translation of the segment."""
        pieces: list[Piece[Thing]] = []
        place = 0
        for match in _TAG.finditer(translation):
            pieces += [html.unescape(translation[place : match.start()])] if match.start() > place else []
            kind: _Place = "end" if match[1] else "break" if match[2] else "alone" if match[4] else "begin"
            pieces.append(Mark(self._things[int(match[3])], kind))
            place = match.end()
        return [*pieces, html.unescape(translation[place:])] if place < len(translation) else pieces
