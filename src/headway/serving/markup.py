"""HTML: its text in blocks, its tags kept as they stand.

No tree is made: the markup is cut at its tags, and every piece but text comes back as it was. Python's own HTML parser
can do that, too, but takes a second for 5,000 hostile characters.
"""

from __future__ import annotations

import html
import re

from headway.serving.elements import Atom, Element, elements_of


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span strike "
    "strong sub sup time tt u var wbr"
)
"""Tags inside a sentence; every other one ends it."""
VOID = _names("area base br col embed hr img input link meta param source track wbr")
RAW = _names("script style textarea iframe xmp")
"""Elements in which nothing is markup but their own end."""
VERBATIM = _names("code pre svg math kbd samp var noscript template object") | RAW
"""Elements whose inside isn't translated."""

_MARKUP = re.compile(
    r"""
      <!--.*?(?:-->|\Z)
    | <[!?][^>]*+>
    | <(?P<end>/?)(?P<name>[a-z][^\s<>/]*+)
      (?P<attributes>(?: [^<>"'=]++ | =\s*+(?: "[^"]*+" | '[^']*+' | [^\s<>"']*+ ) | ["'] )*+)>
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_NOT_TRANSLATED = re.compile(
    r"""
      \stranslate\s*=\s*["']?no\b
    | \sclass\s*=\s*(?: "[^"]*?\bnotranslate\b | '[^']*?\bnotranslate\b | notranslate\b )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def blocks_of(text: str) -> list[str | list[Element]]:
    """The markup between blocks of text as it stands, and each block as its elements: text without entities, and tags
    as atoms. Nothing is lost: tags, comments and whatever is no text are slices of the given one."""
    cutter = _Cutter()
    place = 0
    while match := _MARKUP.search(text, place):
        cutter.take_text(text[place : match.start()])
        cutter.take_markup(match)
        place = match.end()
        if cutter.raw is not None:  # only its end tag is markup
            end = re.compile(f"</{re.escape(cutter.raw)}", re.IGNORECASE).search(text, place)
            until = len(text) if end is None else end.start()
            cutter.take_text(text[place:until])
            place = until
    cutter.take_text(text[place:])
    return cutter.blocks


def escape(text: str) -> str:
    """Text as it may stand in HTML, whatever it is."""
    return html.escape(text, quote=False)


class _Cutter:
    """Collects the pieces; knows whether they are inside of an element that isn't translated."""

    def __init__(self) -> None:
        self.blocks: list[str | list[Element]] = []
        self._open: list[str] = []
        """The element that isn't translated, and those of its name in it."""

    @property
    def raw(self) -> str | None:
        """The element that is open, where nothing in it is markup but its end."""
        return self._open[0] if self._open and self._open[0] in RAW else None

    def take_text(self, raw: str) -> None:
        if not raw:
            return
        if self._open:
            self._block().append(Atom(raw, "x", in_order=True))
            return
        self._block().extend(
            Atom(escape(one.raw), one.stand_in) if isinstance(one, Atom) else one
            for one in elements_of(html.unescape(raw))
        )

    def take_markup(self, match: re.Match[str]) -> None:
        name = (match["name"] or "").lower()
        if name in INLINE or match.group().startswith("<!--"):
            self._block().append(Atom(match.group(), "", in_order=True))
        else:
            self.blocks.append(match.group())
        if not name or name in VOID:
            return
        if self._open:
            if name == self._open[0]:
                self._open.pop() if match["end"] else self._open.append(name)
        elif not match["end"] and (name in VERBATIM or _NOT_TRANSLATED.search(match["attributes"])):
            self._open.append(name)

    def _block(self) -> list[Element]:
        """The block that is being filled."""
        if not self.blocks or isinstance(self.blocks[-1], str):
            self.blocks.append([])
        block = self.blocks[-1]
        assert isinstance(block, list)
        return block
