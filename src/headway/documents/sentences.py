"""Ends of the sentences in a block, and the list marker before the first one.

sentencex finds the ends. This module corrects them: a dot after a number ends no sentence within a date in figures, nor
in languages that write ordinal numbers with it.
"""

from contextlib import suppress
from functools import cache
from itertools import accumulate

import regex
import sentencex
from babel import Locale, UnknownLocaleError

from headway.languages import read_code
from headway.text.characters import DROPPED, visible, visible_spans
from headway.text.protected import edges

ORDINAL_DOT = frozenset(
    "bar bs cnr cs da de dsb et eu fi fo gsw hr hsb hu is lb lt lv nb nds nn pl rm se sh sk sl sr tr".split()  # noqa: SIM905
)
"""Languages that write ordinal numbers with a dot: `3. Oktober`."""
_ORDINAL = regex.compile(r"(?<![\w.,:/])(?:(?:\d{1,2}\.)?\d{1,3}|[IVXLCⅠ-Ⅿ]+)\.\s*\Z")
_NUMBER = regex.compile(r"\d\.\s*\Z")
_DATE = regex.compile(
    r"(?<![\w.]) (?: \d{4}\.\s*\d{1,2}\.(?:\s*\d{1,2}\b\.?)? | \d{1,2}\.\s+\d{1,2}\.(?!\d)(?:\s+\d{2,4}\b)? )"
    r"| (?<![\w.]) \d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})\b",
    regex.VERBOSE,
)
"""A date in figures whose parts end in dots."""
_HANGUL = "가나다라마바사아자차카타파하"
_HAN = "一二三四五六七八九十"
_KANA = r"\p{Hiragana}\p{Katakana}"
_BLANK = rf"[\s{DROPPED}\u200c\u200d]"
_LETTERS = rf"""
    (?: (?! [\p{{Han}}\p{{Hangul}}] ) \p{{L}} \p{{M}}* | [ivx]{{2,5}} | [IVXLC]{{2,5}} | [Ⅰ-ⅿ]{{1,3}} | [{_HANGUL}] )
"""
_MARKER = regex.compile(
    rf"""
    {_BLANK}*+ (?:
      (?: [-*+]{{1,3}} | \#{{1,6}} | >{{1,3}} | [-=]{{1,2}}> | [»›‐-―−]
        | \[ [\ xX] \]
        | \d{{1,3}} [a-z]? [.)]{{1,2}} | \( \d{{1,3}} \) | \[ \d{{1,3}} \]
        | [1-9]\d? (?: \. [1-9]\d? ){{2,5}} [.)]?
        | \d{{1,2}} \. \d{{1,2}} \. (?= \s++ [^\s\d\p{{Ll}}] )
        | {_LETTERS} \.? \) \.? | \( {_LETTERS} \)
        | (?: [a-hα-θא-וक-ङক-ঙ] | [ivx]{{1,5}} | [IVXLC]{{2,5}} | [Ⅰ-ⅿ]{{1,3}} ) \. (?! \s*+ (?: \p{{L}} \. | \d ) )
        | [A-Z] \. (?= {_BLANK}*+ \Z )
        | [가나다라마바사] \. (?= \s++ \S )
        | \d{{1,3}} ।
      ) (?= {_BLANK} | \Z )
    | [\u2460-\u24ff\u2776-\u2793\u3200-\u321e\u3220-\u3229\u3260-\u327b\u3280-\u3289•‣◦▪▫・]
    | [·‧∙⁃※\u2190-\u21ff\u25a0-\u275a\u2761-\u2767\u2794-\u27bf\u2b00-\u2bff]
    | (?: \d{{1,3}} \.? \) | \( \d{{1,3}} \) ) (?= [\p{{Lu}}\p{{Lo}}] )
    | \d{{1,3}} \. (?= [\p{{Han}}\p{{Hangul}}{_KANA}] )
    | （ (?: \d{{1,3}} | [{_HAN}]{{1,3}} | [a-zA-Z{_KANA}] ) ）
    | \d{{1,3}} [、．）] (?! \d ) | [{_HAN}]{{1,3}} [、．）.] (?! [{_HAN}] ) | [a-zA-Zａ-ｚＡ-Ｚ{_KANA}] [．）]
    ) {_BLANK}*+
    """,
    regex.VERBOSE,
)
"""One list marker, or the sign of a heading or a quotation, with the white space around it."""
_TIGHT = regex.compile(rf"{_BLANK}*+\d{{1,3}}\.(?=[\p{{Lu}}\p{{Lo}}])")
"""A number before the first word, in languages that write no ordinal numbers with a dot."""
_LONE = regex.compile(rf"[\W_]*+(?:\d{{1,3}}\p{{L}}?|(?![\p{{Han}}\p{{Hangul}}{_KANA}])\p{{L}}\p{{M}}*)[.．।]{_BLANK}*")
"""A number or an initial, which is no sentence by itself."""
_CLOSING = regex.compile(r"(?<=\S)\s++\#{2,6}\s*+\Z|(?<=[^\s♩-♬])\s*+(?:[♩-♬]++\s*+)++\Z")
"""End of a heading between number signs, or of a song between signs of music."""


def marker_length(block: str, language: str) -> int:
    """Characters of the list markers at the beginning of a block, with their white space. A date is no marker."""
    end, is_ordinal = 0, read_code(language).language in ORDINAL_DOT
    while match := _MARKER.match(block, end) or (None if is_ordinal else _TIGHT.match(block, end)):
        rest = edges(block[end:])[1]
        if _DATE.match(rest) or _days(language).match(rest):
            break
        end = match.end()
    return end


def sentence_ends(block: str, language: str) -> list[int]:
    """The end of each sentence, after the white space that follows it."""
    main = read_code(language).language
    ends: list[int] = []
    start = 0
    dates = [match.span() for match in _DATE.finditer(block)]
    for end in _ends(block, main):
        while dates and end > dates[0][1] and block[dates[0][1] : end].strip():
            dates.pop(0)
        in_date = dates and end > dates[0][0]
        if end == len(block) or not (
            in_date or _LONE.fullmatch(block, start, end) or _ends_in_ordinal(block, start, end, main)
        ):
            ends.append(end)
            start = end
    closing = _CLOSING.search(block)
    return sorted({*ends, closing.start()}) if closing else ends


def _ends(block: str, language: str) -> list[int]:
    """The ends of sentences that sentencex finds."""
    # Without `visible` it would panic at a white space of several bytes after an initial, as in "Plan B .", end a
    # sentence at a line break, and take an invisible character for a letter.
    shown = visible(block)
    starts = range(len(block) + 1) if shown == block else [*(start for start, _ in visible_spans(block)), len(block)]
    try:
        segments: list[str] = list(sentencex.segment(language, shown))  # type: ignore[attr-defined]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of Rust is no Exception
        return [len(block)]
    return [starts[end] for end in accumulate(map(len, segments))] or [len(block)]


def _ends_in_ordinal(block: str, start: int, end: int, language: str) -> bool:
    """Whether block[start:end] ends in a number that belongs to the next word."""
    start = max(start, end - 40)
    return language in ORDINAL_DOT and bool(
        _ORDINAL.search(block, start, end) or (block[end].islower() and _NUMBER.search(block, start, end))
    )


@cache
def _days(language: str) -> regex.Pattern[str]:
    """Pattern of the beginning of dates such as `3. Oktober`, `3. Okt.` or `1. bis 5. Mai`, with the endings that the
    name of a month may take; it matches nothing in a language without such dates."""
    main = read_code(language).language
    forms: set[str] = set()
    for code in (main, f"{main}_Latn", language.replace("-", "_")) if main in ORDINAL_DOT else ():
        with suppress(UnknownLocaleError, ValueError):
            for contexts in Locale.parse(code).months.values():
                for name in contexts.get("wide", {}).values():
                    stem, letters = name, 1  # as in Oktobers
                    if name.islower():
                        stem, letters = name[: 3 if len(name) < 6 else 4], len(name)
                    forms |= {rf"(?i:{regex.escape(name)})\b", rf"{regex.escape(stem)}\p{{L}}{{0,{letters}}}\b"}
                for name in contexts.get("abbreviated", {}).values():
                    forms.add(rf"(?i:{regex.escape(name.rstrip('.'))})(?:\.|\s+\d|\s*\Z)")
    any_form = "|".join(sorted(forms))
    return regex.compile(rf"\d{{1,2}}\.\s*(?:{any_form}|(?:\p{{Ll}}+|[-–])\s*\d{{1,2}}\.)" if forms else r"(?!)")
