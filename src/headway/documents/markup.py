"""Separates the words of a text or of HTML from the parts that must come back unharmed: protected text, emoji, tags.

HTML is cut at its tags into blocks of text. No tree is made, and every piece but text comes back as it was. Python's
own HTML parser can do that, too, but takes a second for 5,000 hostile characters.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import regex

from headway.text.protected import Atom, Element, split_protected
from headway.translator.placing import tag_pairs

_EMOJI = regex.compile(
    r"""(
    \p{Regional_Indicator}{2}
  | [0-9\#*] \uFE0F? \u20E3
  | (?! [©®™] ) \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F\U000E0020-\U000E007F]*
    (?: \u200D \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F]* )*
    )""",
    regex.VERBOSE,
)


escape = partial(html.escape, quote=False)
"""Escapes text that is to stand in HTML."""


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


VOID = _names("area base br col embed hr img input link meta param source track wbr")
RAW = _names("script style textarea iframe xmp")
"""Elements that hold text without markup up to their end tag."""
VERBATIM = _names("code pre svg math kbd samp var noscript template object") | RAW
"""Elements whose content isn't translated."""

_MARKUP = re.compile(
    r"""
      <!--.*?(?:-->|\Z)
    | <[!?][^>]*+>
    | <(?P<end>/?)(?P<name>[a-z][^\s<>/]*+)
      (?P<attributes>(?: [^<>"'=]++ | =\s*+(?: "[^"]*+" | '[^']*+' | [^\s<>"']*+ ) | ["'] )*+)>
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_SELF_CLOSING = re.compile(r"""(?:<[^\s<>/]++|["'\s])/>\Z""")
_ATTRIBUTE = re.compile(r"""([^\s"'=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"']*+)))?""")
_BLOCKS = _names(
    "address article aside blockquote details dialog dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 "
    "h5 h6 header hgroup hr li main menu nav ol p pre search section table ul"
)
"""Elements that end a paragraph whose end tag is left out."""
BETWEEN_SENTENCES = _BLOCKS | _names(
    "base body br caption center col colgroup dir frame frameset head html iframe legend link listing meta noframes "
    "noscript optgroup option plaintext script select style summary tbody td template textarea tfoot th thead title tr "
    "xmp"
)
"""Tags that end a sentence; any other tag may stand in one."""
_ENDED_BY = {
    "p": _BLOCKS,
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "option": _names("option optgroup"),
    **dict.fromkeys(("td", "th"), _names("td th tr tbody tfoot")),
    "tr": _names("tr tbody tfoot"),
}
"""Elements whose end tag may be left out, and the tags that end them in that case."""
_WALLS = _names("ul ol menu dl select table")
"""Elements whose content ends no element around them."""


def elements_of(text: str) -> Iterator[Element]:
    """The text with its emoji and protected parts as atoms; joined again they are the text."""
    for element in split_protected(text):
        if isinstance(element, Atom):
            yield element
        else:
            parts = enumerate(_EMOJI.split(element))
            yield from (Atom(part, part) if place % 2 else part for place, part in parts if part)


def blocks_of(text: str) -> list[str | list[Element]]:
    """The markup between blocks of text as it stands, and each block as its elements: text without entities, and tags
    as atoms. Nothing is lost: tags, comments and other markup are slices of the given text."""
    cutter = _Cutter()
    place = 0
    while match := _MARKUP.search(text, place):
        cutter.take_text(text[place : match.start()])
        cutter.take_markup(match)
        place = match.end()
        if cutter.raw is not None:  # only its end tag is markup
            end = re.compile(f"</{re.escape(cutter.raw)}", re.IGNORECASE).search(text, place)
            start, place = place, end.start() if end else len(text)
            cutter.take_text(text[start:place])
    cutter.take_text(text[place:])
    for block in cutter.blocks:
        if isinstance(block, list):
            _close_notes(block)
    return [block for block in cutter.blocks if block]


def tag_name(atom: Atom) -> tuple[str, bool]:
    """The name of a tag that begins or ends an element, empty for `<x/>` and others, and whether it is an end tag."""
    tag = _MARKUP.fullmatch(atom.raw)
    name = (tag["name"] or "").lower() if tag else ""
    return ("" if name in VOID or _SELF_CLOSING.search(atom.raw) else name), bool(tag and tag["end"])


def _close_notes(block: list[Element]) -> None:
    """Makes atoms of the numbers of notes, such as `<sup>[1]</sup>`: they aren't words of a sentence."""
    for opening, closing in tag_pairs(block, tag_name):
        tag, inside = block[opening], block[opening + 1 : closing]
        letters = (char.isalpha() for one in inside if isinstance(one, str) for char in one)
        if isinstance(tag, Atom) and tag_name(tag)[0] == "sup" and not any(letters):
            block[opening + 1 : closing] = [Atom(escape(one), "") if isinstance(one, str) else one for one in inside]


class _Cutter:
    """Collects the pieces and tracks whether they are inside an element that isn't translated."""

    def __init__(self) -> None:
        self._block: list[Element] = []
        """The last block, which is being filled."""
        self.blocks: list[str | list[Element]] = [self._block]
        self._open: list[str] = []
        """The element that isn't translated, then the elements in it that delay its end: of its name, or walls."""
        self._around: Counter[str] = Counter()
        """The elements that are open around it."""

    @property
    def raw(self) -> str | None:
        """The open element of `RAW`, if any."""
        return self._open[0] if self._open and self._open[0] in RAW else None

    def take_text(self, raw: str) -> None:
        if self._open and raw:
            self._block.append(Atom(raw, "x"))
        elif raw:
            elements = elements_of(html.unescape(raw))
            self._block += [replace(one, raw=escape(one.raw)) if isinstance(one, Atom) else one for one in elements]

    def take_markup(self, match: re.Match[str]) -> None:
        name = (match["name"] or "").lower()
        if (name and name not in BETWEEN_SENTENCES) or match.group().startswith("<!--"):
            self._block.append(Atom(match.group(), ""))
        else:
            self._block = []
            self.blocks += [match.group(), self._block]
        if not name or name in VOID:
            return
        if match["end"]:
            self._end(name)
        elif name not in ("svg", "math") or not match["attributes"].endswith("/"):
            self._start(name, match["attributes"])

    def _start(self, name: str, attributes: str) -> None:
        if len(self._open) == 1 and name in _ENDED_BY.get(self._open[0], ()):
            self._open.clear()
        if not self._open and name not in VERBATIM and not _is_verbatim(attributes):
            self._around[name] += 1
        elif not self._open or name == self._open[0] or name in _WALLS:
            self._open.append(name)

    def _end(self, name: str) -> None:
        if name in self._open:
            while self._open.pop() != name:
                pass
        elif self._around[name] > 0 and not (
            self._open and (name not in BETWEEN_SENTENCES or name == "p" or "table" in self._open)
        ):
            self._around[name] -= 1
            self._open.clear()  # an element that ends, ends the elements in it


def _is_verbatim(attributes: str) -> bool:
    """Whether the attributes say that the element isn't translated."""
    found = [(match[1], match[2] or match[3] or match[4] or "") for match in _ATTRIBUTE.finditer(attributes.lower())]
    is_class = any(name == "class" and "notranslate" in value.split() for name, value in found)
    return is_class or ("translate", "no") in found
