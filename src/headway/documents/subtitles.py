"""Subtitles, SubRip and WebVTT: the lines of a cue are translated together, its times and tags stay."""

import html
import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from headway.documents.marked import Mark, MarkedText, Piece, Tag, shown
from headway.documents.markup import escape
from headway.documents.segments import LINE, Languages, OpenedFile, Put, Segment, decode_text
from headway.errors import UserError
from headway.text.protected import Atom
from headway.translator.glossary import begins_anywhere
from headway.translator.placing import tag_pairs

_TIMES = re.compile(r"\s*(?:\d+:)?\d+:\d+[.,]\d+\s*-->\s*(?:\d+:)?\d+:\d+[.,]\d+")
_TAG = re.compile(r"(</?[a-zA-Z]+[^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\})")
_SPEECH = re.compile(r"(?:<[^<>]*>|\{[^{}]*\})*\s*[-‐-―]")
"""The beginning of a line where another person speaks."""
_WORD = re.compile(r"(?:<[^<>]*>|\{\\[^{}]*\}|\S)+")
WIDTH = 40
"""Characters that a line may have, if none of its cue has more."""


def open_srt(data: bytes, _: Languages) -> OpenedFile:
    """SubRip. Words are as they stand, `<` and `&` too."""
    return _opened(data, is_web=False)


def open_vtt(data: bytes, _: Languages) -> OpenedFile:
    """WebVTT, whose words have entities as those of HTML. Notes and styles stay."""
    return _opened(data, is_web=True)


def _opened(data: bytes, *, is_web: bool) -> OpenedFile:
    found = decode_text(data)
    lines = LINE.findall(found.text)[:-1]
    if is_web and not found.text.startswith("WEBVTT"):
        raise UserError("a WebVTT file begins with WEBVTT")
    if found.text.strip() and not any(map(_TIMES.match, lines)) and not is_web:
        raise UserError("has no times such as 00:00:01,000 --> 00:00:02,500")
    speeches = [_speech(lines, group, is_web=is_web) for group in _groups(lines, is_web=is_web)]
    return OpenedFile.of(speeches, lambda: found.encoded("".join(lines)))


def _groups(lines: Sequence[str], *, is_web: bool) -> Iterator[range]:
    """The lines of each speech. In SubRip a blank line may stand within a cue."""
    times = [number for number, line in enumerate(lines) if _TIMES.match(line)]
    for start, stop in pairwise([*times, len(lines)]):
        end = stop
        if not is_web and stop < len(lines) and lines[stop - 1].strip().isdigit():
            end -= 1  # the number of the next cue
        first = start + 1
        for number in range(start + 1, end + 1):
            is_blank = number == end or not lines[number].strip()
            if number > first and (is_blank or _SPEECH.match(lines[number])):
                yield range(first, number)
                first = number
            if is_blank:
                first = number + 1
                if is_web:
                    break


def _speech(lines: list[str], group: range, *, is_web: bool) -> tuple[Segment, Put]:
    """Lines that are translated together. Their translation takes their place."""
    text = ""
    for line in (lines[number].rstrip("\r\n") for number in group):
        text += line if not text or begins_anywhere(text[-1]) else f" {line}"
    width = max(len(_TAG.sub("", lines[number].strip())) for number in group)
    last = lines[group[-1]]
    end = last[len(last.rstrip("\r\n")) :]
    marked = MarkedText(_pieces(text, is_web=is_web))

    def put(translation: str) -> None:
        text = shown(marked.restored(translation), escape if is_web else str)
        made = (end or "\n").join(_wrapped(text, width)) + end
        lines[group.start : group.stop] = [made, *[""] * (len(group) - 1)]

    return marked.segment, put


def _pieces(text: str, *, is_web: bool) -> list[Piece[Tag]]:
    words = html.unescape if is_web else str
    parts = [Atom(part, "") if place % 2 else words(part) for place, part in enumerate(_TAG.split(text)) if part]
    marks: dict[int, Mark[Tag]] = {}
    for begin, end in tag_pairs(parts, _name):
        tag = Tag(*(part.raw for part in (parts[begin], parts[end]) if isinstance(part, Atom)))
        marks |= {begin: Mark(tag, "begin"), end: Mark(tag, "end")}
    return [
        part if isinstance(part, str) else marks.get(place) or Mark(Tag(part.raw)) for place, part in enumerate(parts)
    ]


def _name(tag: Atom) -> tuple[str, bool]:
    found = re.match(r"<(/?)([a-zA-Z]+)", tag.raw)
    return (found[2], bool(found[1])) if found else ("", False)


def _wrapped(text: str, longest: int) -> list[str]:
    """The text in lines of similar length, as few as these widths allow."""
    words = _WORD.findall(text)
    size = partial(_TAG.sub, "")
    length = len(size(" ".join(words)))
    count = math.ceil(length / max(WIDTH, longest)) or 1
    lines: list[str] = []
    taken = 0
    for word in words:
        taken += len(size(word)) + 1
        middle = taken - (len(size(word)) + 1) / 2
        if lines and (len(lines) == count or middle <= len(lines) * length / count):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [text]
