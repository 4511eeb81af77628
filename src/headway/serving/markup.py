"""HTML: its text in blocks, its tags kept as they stand."""

from __future__ import annotations

import html
from html.parser import HTMLParser

from headway.serving.elements import Atom, Element, elements_of


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span strike "
    "strong sub sup time tt u var wbr"
)
"""Tags inside a sentence; every other one ends it."""
VOID = _names("area base br col embed hr img input link meta param source track wbr")
VERBATIM = _names("script style code pre textarea svg math kbd samp var noscript template iframe object")
"""Elements whose inside isn't translated."""


def blocks_of(text: str) -> list[str | list[Element]]:
    """The markup between blocks of text as it stands, and each block as its elements: text without entities, and tags
    as atoms. Nothing is lost: tags, comments and whatever is no HTML are slices of the text."""
    splitter = _Splitter(text)
    splitter.feed(text)
    splitter.close()
    splitter.end()
    return splitter.blocks


def escape(text: str) -> str:
    """Text as it may stand in HTML, whatever it is."""
    return html.escape(text, quote=False)


class _Splitter(HTMLParser):
    """Notes where each tag, comment or text begins, and cuts there."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[str | list[Element]] = []
        self._text = text
        self._line_starts = [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]
        self._start, self._kind = 0, "block"
        self._verbatim: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._cut("inline" if tag in INLINE and not self._verbatim else "block")
        if tag in VOID:
            return
        if self._verbatim:
            if tag == self._verbatim[0]:
                self._verbatim.append(tag)
        elif tag in VERBATIM or _is_marked(dict(attrs)):
            self._verbatim.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._cut("inline" if tag in INLINE and not self._verbatim else "block")

    def handle_endtag(self, tag: str) -> None:
        self._cut("inline" if tag in INLINE else "block")
        if self._verbatim and tag == self._verbatim[0]:
            self._verbatim.pop()

    def handle_data(self, data: str) -> None:
        self._cut("verbatim" if self._verbatim else "text")

    def handle_comment(self, data: str) -> None:
        self._cut("inline")

    def handle_decl(self, decl: str) -> None:
        self._cut("block")

    def unknown_decl(self, data: str) -> None:
        self._cut("block")

    def handle_pi(self, data: str) -> None:
        self._cut("block")

    def end(self) -> None:
        """Takes what is left."""
        self._take(len(self._text))

    def _cut(self, kind: str) -> None:
        if kind == self._kind == "text":
            return  # one text in two pieces
        line, column = self.getpos()
        self._take(self._line_starts[line - 1] + column)
        self._kind = kind

    def _take(self, place: int) -> None:
        """What began at the last cut ends here."""
        raw, self._start = self._text[self._start : place], place
        if not raw:
            return
        if self._kind == "block":
            self.blocks.append(raw)
            return
        if not self.blocks or isinstance(self.blocks[-1], str):
            self.blocks.append([])
        block = self.blocks[-1]
        assert isinstance(block, list)
        if self._kind == "text":
            block.extend(
                Atom(escape(one.raw), one.stand_in) if isinstance(one, Atom) else one
                for one in elements_of(html.unescape(raw))
            )
        elif self._kind == "inline":
            block.append(Atom(raw, "", in_order=True))
        else:
            block.append(Atom(raw, "x", in_order=True))


def _is_marked(attributes: dict[str, str | None]) -> bool:
    """Whether the author asks that it be left alone."""
    return attributes.get("translate") == "no" or "notranslate" in (attributes.get("class") or "").split()
