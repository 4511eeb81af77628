"""Subtitles, SubRip and WebVTT: the lines of a cue are translated together, its times and tags stay."""

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headway.documents.marked import Mark, MarkedText, Piece, Tag
from headway.documents.markup import escape
from headway.documents.segments import LINE, Languages, OpenedFile, decode_text
from headway.errors import UserError
from headway.translator.glossary import begins_anywhere

_TIMES = re.compile(r"\s*(?:\d+:)?\d+:\d+[.,]\d+\s*-->\s*(?:\d+:)?\d+:\d+[.,]\d+")
_TAG = re.compile(r"<(/?)([a-zA-Z]+)[^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")
_SPEECH = re.compile(r"(?:<[^<>]*>|\{[^{}]*\})*\s*[-‐-―]")
"""The beginning of a line where another person speaks."""
_WORD = re.compile(r"(?:<[^<>]*>|\{\\[^{}]*\}|\S)+")
WIDTH = 40
"""Characters that a line may have, if none of its cue has more."""


@dataclass
class _Speech:
    """Lines that are translated together."""

    lines: range
    width: int
    """The length of the longest."""
    text: MarkedText[Tag]


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

    def written(translations: Sequence[str]) -> bytes:
        made = list(lines)
        for speech, translation in zip(speeches, translations, strict=True):
            pieces = speech.text.restored(translation)
            text = "".join(_shown(one, is_web=is_web) for one in pieces)
            last = made[speech.lines[-1]]
            end = last[len(last.rstrip("\r\n")) :]
            break_ = end or "\n"
            made[speech.lines[0]] = break_.join(_wrapped(text, speech.width)) + end
            for number in speech.lines[1:]:
                made[number] = ""
        return found.encoded("".join(made))

    return OpenedFile([one.text.segment for one in speeches], written)


def _groups(lines: Sequence[str], *, is_web: bool) -> Iterator[range]:
    """The lines of each speech. In SubRip a blank line may stand within a cue."""
    times = [number for number, line in enumerate(lines) if _TIMES.match(line)]
    for start, stop in zip(times, [*times[1:], len(lines)], strict=True):
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


def _speech(lines: Sequence[str], group: range, *, is_web: bool) -> _Speech:
    text = ""
    for line in (lines[number].rstrip("\r\n") for number in group):
        text += line if not text or begins_anywhere(text[-1]) else f" {line}"
    return _Speech(group, max(len(_TAG.sub("", lines[one].strip())) for one in group), _marked(text, is_web=is_web))


def _marked(text: str, *, is_web: bool) -> MarkedText[Tag]:
    pieces: list[Piece[Tag]] = []
    opened: list[tuple[str, Tag]] = []
    place = 0
    words = html.unescape if is_web else str
    for match in _TAG.finditer(text):
        pieces += [words(text[place : match.start()])] if match.start() > place else []
        place = match.end()
        if match[1] and opened and opened[-1][0] == match[2]:
            _, tag = opened.pop()
            tag.end = match.group()
            pieces.append(Mark(tag, "end"))
        elif match[2] and not match[1]:
            opened.append((match[2], Tag(match.group())))
            pieces.append(Mark(opened[-1][1], "begin"))
        else:
            pieces.append(Mark(Tag(match.group())))
    unended = {id(tag) for _, tag in opened}
    alone = [
        Mark(one.thing) if isinstance(one, Mark) and id(one.thing) in unended else one
        for one in [*pieces, *([words(text[place:])] if place < len(text) else [])]
    ]
    return MarkedText(alone)


def _shown(piece: Piece[Tag], *, is_web: bool) -> str:
    if isinstance(piece, Mark):
        return piece.thing.end if piece.place == "end" else piece.thing.begin
    return escape(piece) if is_web else piece


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
