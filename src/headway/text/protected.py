"""Protected text: placeholders, code and addresses, which a translation has exactly as its source does.

The model gets it as it stands, and its translation is searched among those that have it. If there is none, the words
between are translated by themselves, so that nothing protected gets lost, whatever a model does.
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from headway.text.characters import DROPPED, is_blank

_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_IN_URL = rf"{_LATIN}\d\-._~:/?\#\[\]@!$&'*+,;=%"
_ADDRESS = rf"""
    (?i: https?:// | ftp:// | www\. ) (?: [{_IN_URL}] | \( [{_IN_URL}]* (?: \( [{_IN_URL}]* \) [{_IN_URL}]* )* \) )+
    (?: \( [{_IN_URL}]* )? (?<= [{_LATIN}\d/\#=%_~\-)] )
  | (?<![\w.+\-]) [\w.+\-]{{1,64}} @ [{_LATIN}\d\-]{{1,63}} (?: \. [{_LATIN}\d\-]{{1,63}} ){{1,8}}
"""
"""URLs, with the parentheses that are closed in them, and e-mail addresses."""
_WORD = "[A-Za-z_][A-Za-z0-9_]*+"
_NAME = rf"{_WORD} (?: (?: \. | -> ) {_WORD} )*+"
_PLACEHOLDER = rf"""
    (?<! ` ) (?P<ticks> `++ ) [^\n]+? (?<! ` ) (?P=ticks) (?! ` )
  | [$\#%]? \{{{{1,2}} \{{ [^{{}}\n]*+ \}} \}}{{1,2}} | [$\#%]? \{{ [ ]? [^{{}}\s]*+ [ ]? \}}
  | \{{ \s*+ [\w.]++ \s*+ , \s*+ (?: number | date | time | spellout | ordinal | duration | list ) \s*+
        (?: , [^{{}}\n]*+ )? \}}
  | \{{% [^{{}}%\n]*+ %\}} | <% [^<>\n]*+ (?<= % ) > | <\? [^<>\n]*+ (?<= \? ) >
  | < (?: https?:// | ftp:// | mailto: ) [^<>\s]*+ >
  | \*\| \w++ (?: : \w++ )? \|\* | & (?: [A-Za-z]\w{{1,30}} | \# (?: \d{{1,7}} | [xX][\dA-Fa-f]{{1,6}} ) ) ;
  | \[\[ [ ]? [^\[\]\s]++ [ ]? \]\] | \[\^ [^\[\]\s]++ \]
  | %% (?: {_NAME} %% )?
  | (?<! \d ) % [a-z] % (?! [{_LATIN}\d%] )
  | (?<! \d ) % (?: \d+\$ | \( [\w.\-]++ \) | <\w++> )? (?: , (?! \w\.\w ) )? [\-+\#0']* (?: \d+ | \* )?
        (?: \. (?: \d+ | \* )? )? (?: hh? | ll? | [qjztL] | I64 )? [@A-Za-z] (?: (?<= %[ds] ) [smhx] )?
        (?! [{_LATIN}\d] )
  | (?<! \d ) % {_NAME} (?: - {_NAME} )*+ (?: \(\w+\) )? %
  | (?<! \d ) % L? (?P<percent> [1-9]\d? ) (?! [\d.,]*\d ) (?: % (?! [{_LATIN}\d] ) )?
  | (?<![A-Z]) \$ (?P<dollar> [1-9]\d? ) (?! [\d.,]*\d | \s? (?i: hundred | thousand | tausend | [mb]illi | trilli ) )
  | (?<! [{_LATIN}\d_$] ) \$ (?: t? \( [^()\s]*+ \) | {_NAME} \$? )
  | (?<! [{_LATIN}\d_@] ) @ (?: (?: \.[a-z]+ )? : (?: \( [\w.\-]++ \) | {_NAME} ) | {_WORD} )
  | (?<! [^\s("'] ) : [a-z][a-z\d_]++ :? (?! [{_LATIN}\d:] )
  | (?<! [{_LATIN}\d_#] ) (?: __ [A-Za-z0-9]++ (?: _ [A-Za-z0-9]++ )*+ __ | (?P<hashes> \#++ ) {_NAME} (?P=hashes) )
        (?! [{_LATIN}\d_#] )
  | (?<! [{_LATIN}\d_\-] ) [a-z][a-z\d]{{2,}}+ (?: _ [a-z\d]{{3,}}+ )++ (?! [{_LATIN}\d_] )
  | (?<! [{_LATIN}\d_\-] ) [A-Za-z][A-Za-z\d]*+ (?<= [a-z\d][a-z] ) _ [A-Z][A-Z\d]++ (?! [{_LATIN}\d_^] )
  | (?<! [{_LATIN}\d_] ) [a-z_][A-Za-z\d_]*+ \(\)
  | (?<! [{_LATIN}\d_*] ) \*\.[A-Za-z][a-z\d]{{0,7}}+ (?! [{_LATIN}\d_] )
  | (?<! [{_LATIN}\d_\#&] ) \# (?! [{_LATIN}\d_\#] )
  | (?P<path> (?<! \w ) (?: [A-Za-z]: | \\ ) \\ \S*+ ) | (?<! \\ ) (?: \\ (?: [nrt"'] | u [\dA-Fa-f]{{4}} ) )++
"""
"""Code in backticks; {name}, {{name}}, ${name}; {n, number}; {% if x %}, <%= x %>; [[name]]; %name%; %s, %(x)d, %1$s,
%ld; %1; $1, but not $1.50, US$1 or $1 million; $name; @name, @:name; :name, but not 1:2 or :-); __name__, #name#;
long_name and Any_ID, but not accelerators such as Sa_ve, fo_r and P_DF; name(); *.odt; # of plurals; \\n, but
not in C:\\new."""
_TAG = r"(?: \d+ | [A-Za-z] [\w:.\-]*+ )"
_ATTRIBUTES = r"""(?: \s++ [\w:.\-]++ = (?: \\?"[^"<>]*+" | '[^'<>]*+' | [\w\-\#%.]++ ) )*+ \s*+"""
_SYNTAX = rf"""
    (?P<syntax>
        \{{ \s*+ [\w.]++ \s*+ , \s*+ (?: plural | selectordinal | select ) \s*+ ,
            (?: \s*+ offset: \d+ )?+ (?: \s*+ (?: =\d+ | \w+ ) \s*+ \{{ )?
      | \}} \s*+ (?: (?: =\d+ | \w+ ) \s*+ \{{ | \}} )
      | (?<! < ) < (?: / {_TAG} \s*+ | {_TAG} {_ATTRIBUTES} / ) > (?! > )
      | \] \( (?: <[^<>\n]*+> | [^\s()<>]*+ (?: \( [^\s()]*+ \) [^\s()]*+ )*+ )
            (?: [ ] (?: "[^"\n]*+" | '[^'\n]*+' ) )? \)
      | \] \[ [^\[\]\n]*+ \]
    )
  | (?<! < ) < (?P<tag> {_TAG} ) {_ATTRIBUTES} > (?! > )
  | (?P<opening> !? \[ ) | (?P<closing> \] )
"""
"""Syntax with words to translate inside: {n, plural, one {...} other {...}} of ICU, <0>...</0> and other tags, links of
Markdown, [...](address)."""
_PROTECTED = re.compile(f"{_ADDRESS}|{_PLACEHOLDER}|{_SYNTAX}", re.VERBOSE)
_LIKELY = re.compile(
    r"[@{}%$`<\\\[\]#&*(:_wW]"
    r"(?:(?<![&*(:_wW])|(?<=\*)[|.]|(?<=\()\)|(?<=&)[#A-Za-z]|(?<=:)(?://|[a-z])|(?<=_)[_A-Za-z\d]|(?<=[wW])[wW]{2}\.)"
)
"""Matches in every protected text, a quick test."""
_EDGE = re.compile(rf"\A[\s{DROPPED}]*+")
_ENDS = tuple(".!?\u2026\u3002\uff01\uff1f\u0964")
"""Punctuation that ends a sentence, and is translated with it."""


@dataclass(frozen=True)
class Atom:
    """A part of a text that isn't translated."""

    raw: str
    """Its form in the text and in the translation."""
    stand_in: str
    """Its form for the search for sentences."""
    words: str | None = None
    """Protected text, which the model gets and a translator keeps; None if the model doesn't get the atom."""
    is_syntax: bool = False
    """Whether it begins or ends something with words to translate inside, such as a tag."""


Element: TypeAlias = str | Atom
"""Words, or an atom between them."""


def may_hold_protected(text: str) -> bool:
    """Whether the text has a character that protected text has; most sentences have none."""
    return _LIKELY.search(text) is not None


def split_protected(text: str) -> list[Element]:
    """The text with its protected parts as atoms; joined again they are the text."""
    elements: list[Element] = []
    end = 0
    for match in _matches(text) if may_hold_protected(text) else ():
        elements += [text[end : match.start()]] if match.start() > end else []
        found = match.group()
        is_syntax = match.lastgroup in ("syntax", "opening") or bool(match["tag"] and f"</{match['tag']}" in text)
        stand_in = found if len(found) == 1 else "x" * len(found)  # [ and #, which may be a list's marker
        elements.append(Atom(found, stand_in, words=found, is_syntax=is_syntax))
        end = match.end()
    return [*elements, text[end:]] if end < len(text) else elements


def with_nulls(text: str) -> str:
    """The text with \\0 for each character that is protected."""
    return "".join(one if isinstance(one, str) else "\0" * len(one.raw) for one in split_protected(text))


def _matches(text: str) -> list[re.Match[str]]:
    """Matches of protected text. Placeholders like $1 count from 1; a number without its predecessors is a price. A
    bracket is left out if its pair is no link's."""
    found = list(_PROTECTED.finditer(text))
    left_out = {match for match in found if match.lastgroup in ("path", "closing")}
    for kind in ("dollar", "percent"):
        numbered = [match for match in found if match.lastgroup == kind]
        numbers = {int(match[kind]) for match in numbered}
        missing = min({*range(1, len(numbers) + 2)} - numbers)
        left_out |= {match for match in numbered if int(match[kind]) > missing}
    opened: list[re.Match[str]] = []
    for match in found:
        if match.lastgroup == "opening":
            opened.append(match)
        elif match.group()[0] == "]" and opened:
            opening = opened.pop()
            if match.lastgroup == "closing":
                left_out.add(opening)
    return [match for match in found if match not in left_out]


def with_protected(elements: Iterable[Element], is_apart: Callable[[Atom], bool]) -> list[Element]:
    """The elements, with protected text joined to the words around it, except atoms that are apart."""
    made: list[Element] = []
    for apart, group in itertools.groupby(elements, lambda one: isinstance(one, Atom) and is_apart(one)):
        if apart:
            made += group
        else:
            made.append("".join(one if isinstance(one, str) else one.words or one.raw for one in group))
    return made


def syntax_name(syntax: Atom) -> tuple[str, bool]:
    """The name that both ends of a link or a tag share, empty for other syntax, and whether this is the end."""
    if syntax.raw.startswith(("[", "![", "]")):
        return "[", syntax.raw[0] == "]"
    tag = re.match(r"<(/?)([\w:.\-]+)", syntax.raw)
    return (tag[2], bool(tag[1])) if tag and not syntax.raw.endswith("/>") else ("", False)


def has_words(text: str) -> bool:
    """Whether the text has anything to translate: a visible letter or digit."""
    return any(char.isalnum() and not is_blank(char) for char in text)


def has_letters(element: Element) -> bool:
    """Whether words have a visible letter; an atom has none."""
    return isinstance(element, str) and any(char.isalpha() and not is_blank(char) for char in element)


def joined(elements: Iterable[Element]) -> str:
    """The text of these elements."""
    return "".join(one.raw if isinstance(one, Atom) else one for one in elements)


def runs_of(elements: Iterable[Element]) -> list[str]:
    """The text between atoms that is translated: from its first word to its last one, with the punctuation that ends a
    sentence there. Other punctuation around it stays as it is."""
    return [core for _, core, _ in map(_part, elements) if core]


def with_runs(
    elements: Iterable[Element], translations: Iterable[str], kept_ends: tuple[str, ...] = ()
) -> list[Element]:
    """The elements with translations in place of their runs. A full stop that the model adds to a run without one is
    left out, unless the translation ends in one of `kept_ends`."""
    following = iter(translations)
    made: list[Element] = []
    for element in elements:
        before, core, after = _part(element)
        if not core:
            made.append(element)
            continue
        translation = next(following)
        if not has_end(core) and not translation.endswith(kept_ends):
            translation = without_stop(translation)
        made.append(f"{before}{translation}{after}")
    return made


def has_end(text: str) -> bool:
    """Whether the last character ends a sentence."""
    return text.endswith(_ENDS)


def without_stop(text: str) -> str:
    """The text without the full stop at its end, if it has other characters."""
    return text.rstrip(" .\u3002") or text


def _part(element: Element) -> tuple[str, str, str]:
    """Text before the words of an element, the words, and text after them; all empty for an atom or an element without
    words. Protected text counts as words, because the elements of a document are parted at its tags alone."""
    if isinstance(element, Atom) or not has_words(element):
        return "", "", ""
    shown = "".join(one.stand_in if isinstance(one, Atom) else one for one in split_protected(element))
    of_words = [place for place, char in enumerate(shown) if unicodedata.category(char)[0] in "LMN"]
    start, end = of_words[0], of_words[-1] + 1
    while end < len(element) and element[end] in _ENDS:
        end += 1
    return element[:start], element[start:end], element[end:]


def edges(words: str) -> tuple[str, str, str]:
    """White space and dropped characters before words, the words, and such characters after them."""
    start, end = (len(words) - len(_EDGE.sub("", one)) for one in (words, words[::-1]))
    end = max(start, len(words) - end)
    return words[:start], words[start:end], words[end:]
