"""What of a text or of HTML is words for the model, and what must come back unharmed: protected text, emoji, tags.

HTML comes in blocks of text, its tags kept as they stand. No tree is made: the markup is cut at its tags, and every
piece but text comes back as it was. Python's own HTML parser can do that, too, but takes a second for 5,000 hostile
characters.
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
    r"""
    \p{Regional_Indicator}{2}
  | [0-9\#*] \uFE0F? \u20E3
  | (?! [©®™] ) \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F\U000E0020-\U000E007F]*
    (?: \u200D \p{Extended_Pictographic} [\p{Emoji_Modifier}\uFE0F]* )*
    """,
    regex.VERBOSE,
)


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


escape = partial(html.escape, quote=False)
"""Makes any text one that may stand in HTML."""
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
"""Tags that end a sentence; any other one may stand inside."""
_ENDED_BY = {
    "p": _BLOCKS,
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "option": _names("option optgroup"),
    **dict.fromkeys(("td", "th"), _names("td th tr tbody tfoot")),
    "tr": _names("tr tbody tfoot"),
}
"""Elements whose end tag may be left out, and the tags that end them then."""
_WALLS = _names("ul ol menu dl select table")
"""Elements whose inside ends nothing outside."""


def elements_of(text: str) -> Iterator[Element]:
    """The text with its emoji and what is protected as atoms; joined again they are the text."""
    for element in split_protected(text):
        if isinstance(element, Atom):
            yield element
            continue
        end = 0
        for match in _EMOJI.finditer(element):
            if match.start() > end:
                yield element[end : match.start()]
            yield Atom(match.group(), match.group())
            end = match.end()
        if end < len(element):
            yield element[end:]


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
            start, place = place, end.start() if end else len(text)
            cutter.take_text(text[start:place])
    cutter.take_text(text[place:])
    for block in cutter.blocks:
        if isinstance(block, list):
            _close_notes(block)
    return [block for block in cutter.blocks if block]


def tag_name(atom: Atom) -> tuple[str, bool]:
    """The name of a tag that begins or ends an element, empty for others, such as `<x/>`, and whether it is an end
    tag."""
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
    """Collects the pieces; knows whether they are inside of an element that isn't translated."""

    def __init__(self) -> None:
        self._block: list[Element] = []
        """The block that is being filled, the last one."""
        self.blocks: list[str | list[Element]] = [self._block]
        self._open: list[str] = []
        """The element that isn't translated, and what in it keeps it from being ended: those of its name, and walls."""
        self._around: Counter[str] = Counter()
        """The elements that are open outside of it."""

    @property
    def raw(self) -> str | None:
        """The element that is open, where nothing in it is markup but its end."""
        return self._open[0] if self._open and self._open[0] in RAW else None

    def take_text(self, raw: str) -> None:
        if not raw:
            return
        if self._open:
            self._block.append(Atom(raw, "x"))
            return
        for one in elements_of(html.unescape(raw)):
            self._block.append(replace(one, raw=escape(one.raw)) if isinstance(one, Atom) else one)

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
        if not self._open and (name in VERBATIM or _is_verbatim(attributes)):
            self._open.append(name)
        elif not self._open:
            self._around[name] += 1
        elif name == self._open[0] or name in _WALLS:
            self._open.append(name)

    def _end(self, name: str) -> None:
        if name in self._open:
            while self._open.pop() != name:
                pass
        elif self._around[name] > 0 and not (
            self._open and (name not in BETWEEN_SENTENCES or name == "p" or "table" in self._open)
        ):
            self._around[name] -= 1
            self._open.clear()  # what is inside ends with what is around it


def _is_verbatim(attributes: str) -> bool:
    """Whether they say that the element isn't translated."""
    found = [(match[1], match[2] or match[3] or match[4] or "") for match in _ATTRIBUTE.finditer(attributes.lower())]
    classes = [value.split() for name, value in found if name == "class"]
    return ("translate", "no") in found or any("notranslate" in one for one in classes)
