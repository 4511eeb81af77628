"""The generated corpus of the demo: dates and times as people write them, from Unicode's locale data (Babel).

The target is a function of the source, so that a model can be right every time: whatever way the date is written in
the source language, the target is its long form, with the day of the week where the source has it, and the time of
day in words. Training, validation and test are split by calendar date: no date is in two of them.

The words of both sides say fields of the same moment, so that their alignment is known, too.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.dates import DateTimePattern, get_date_format, get_time_format, match_skeleton, parse_pattern

from headway.errors import UserError

FIRST_DATE, LAST_DATE = datetime.date(1900, 1, 1), datetime.date(2100, 12, 31)
SPLITS = ("train", "valid", "test")
FILES = tuple(f"{split}.{language}" for split in SPLITS for language in ("en", "ko"))
"""Of text, in the languages that `headway data dates` has by default."""
FIELDS = {
    **dict.fromkeys("Ecw", "weekday"),
    **dict.fromkeys("ML", "month"),
    "d": "day",
    **dict.fromkeys("yuG", "year"),
    **dict.fromkeys("hHkKms", "clock"),
    **dict.fromkeys("abB", "half"),
}
"""What the letters of a pattern of Unicode's locale data say of a moment; `half` of the day: AM or PM."""


@dataclass(frozen=True)
class DatesCorpus:
    """Pairs for each split: `train`, `valid`, `test`."""

    source_language: str
    target_language: str
    pairs: dict[str, list[tuple[str, str]]]
    alignments: dict[str, list[str]]
    """Of each pair the words that say the same, in Pharaoh format."""

    def write(self, folder: Path) -> None:
        """Writes `train.en`, `train.ko`, ...: one sentence a line; and `train.align`, ...: one alignment a line."""
        folder.mkdir(parents=True, exist_ok=True)
        for split, pairs in self.pairs.items():
            for language, side in ((self.source_language, 0), (self.target_language, 1)):
                lines = "".join(f"{pair[side]}\n" for pair in pairs)
                (folder / f"{split}.{language}").write_text(lines, encoding="utf-8", newline="\n")
            alignments = "".join(f"{one}\n" for one in self.alignments[split])
            (folder / f"{split}.align").write_text(alignments, encoding="utf-8", newline="\n")


def dates_corpus(
    source_language: str = "en",
    target_language: str = "ko",
    *,
    sizes: tuple[int, int, int] = (24_000, 500, 500),
    seed: int = 1,
) -> DatesCorpus:
    """Makes the corpus; `sizes` are the pairs of train, valid and test. Raises UserError for an unknown locale."""
    source, target = _writer_of_source(source_language), _writer_of_target(target_language)
    randomness = random.Random(seed)
    days = (LAST_DATE - FIRST_DATE).days + 1
    dates = [FIRST_DATE + datetime.timedelta(days=day) for day in range(days)]
    randomness.shuffle(dates)
    held_out = max(days // 20, 1)
    pools = {"valid": dates[:held_out], "test": dates[held_out : 2 * held_out], "train": dates[2 * held_out :]}
    seen: dict[str, str] = {}
    pairs, alignments = {}, {}
    for split, size in zip(SPLITS, sizes, strict=True):
        sample = _sample(pools[split], size, source, target, randomness, seen)
        pairs[split] = [(one.text, other.text) for one, other in sample]
        alignments[split] = [_alignment(one.fields, other.fields) for one, other in sample]
    return DatesCorpus(source_language, target_language, pairs, alignments)


@dataclass(frozen=True)
class Written:
    """A moment as it is written."""

    text: str
    fields: list[set[str]]
    """What each word says, of the values of FIELDS."""

    def says(self, field: str) -> bool:
        return any(field in word for word in self.fields)


SourceWriter = Callable[[datetime.datetime, random.Random], Written]
"""Writes a moment in some way."""
TargetWriter = Callable[[datetime.datetime, bool, bool], Written]
"""Writes a moment, with the day of the week and the time or without."""


def _sample(
    dates: list[datetime.date],
    size: int,
    source: SourceWriter,
    target: TargetWriter,
    randomness: random.Random,
    seen: dict[str, str],
) -> list[tuple[Written, Written]]:
    pairs: list[tuple[Written, Written]] = []
    while len(pairs) < size:
        time = datetime.time(randomness.randrange(24), randomness.randrange(60))
        moment = datetime.datetime.combine(randomness.choice(dates), time)
        written = source(moment, randomness)
        translation = target(moment, written.says("weekday"), written.says("clock"))
        known = seen.setdefault(written.text, translation.text)
        if known == translation.text:  # else this locale writes two meanings alike
            pairs.append((written, translation))
    return pairs


def _alignment(source: list[set[str]], target: list[set[str]]) -> str:
    """The words that say the same. Where one side has no word for the half of the day, its clock says it."""
    clocks = [{"clock", "half"} if not any("half" in word for word in side) else {"clock"} for side in (source, target)]
    said = [
        [word | clock if "clock" in word else word for word in side]
        for side, clock in zip((source, target), clocks, strict=True)
    ]
    return " ".join(f"{i}-{j}" for i, one in enumerate(said[0]) for j, other in enumerate(said[1]) if one & other)


def _writer_of_source(language: str) -> SourceWriter:
    locale = _locale(language)
    styles = [style for style in ("full", "long", "medium") if _has_whole_year(style, locale)]
    dates = [*(_date_pattern(style, locale) for style in styles), _skeleton("yMMMEd", locale)]
    clocks = {"short": get_time_format("short", locale), "Hm": _skeleton("Hm", locale)}

    def write(moment: datetime.datetime, randomness: random.Random) -> Written:
        date = randomness.choice(dates)
        clock = randomness.choice(["", "", "short", "Hm"])
        return _written([date, parse_pattern(", "), clocks[clock]] if clock else [date], moment, locale)

    return write


def _writer_of_target(language: str) -> TargetWriter:
    locale = _locale(language)
    clock = get_time_format("short", locale).pattern.replace("a", "aaaa")  # 오후 rather than PM

    def write(moment: datetime.datetime, with_weekday: bool, with_time: bool) -> Written:
        date = _date_pattern("full" if with_weekday else "long", locale)
        return _written([date, parse_pattern(" "), parse_pattern(clock)] if with_time else [date], moment, locale)

    return write


def _written(patterns: list[DateTimePattern], moment: datetime.datetime, locale: Locale) -> Written:
    """Narrow and no-break spaces, which some locales put before AM and PM, become plain ones."""
    words: list[str] = []
    fields: list[set[str]] = []
    inside = False
    for pattern in patterns:
        for number, part in enumerate(re.split(r"%\((\w+)\)s", str(pattern.format))):
            is_field = number % 2 == 1
            text = parse_pattern(part).apply(moment, locale) if is_field else part.replace("%%", "%")
            for character in text:
                if character.isspace():
                    inside = False
                    continue
                if not inside:
                    words.append("")
                    fields.append(set())
                inside = True
                words[-1] += character
                if is_field:
                    fields[-1].add(FIELDS[part[0]])
    return Written(" ".join(words), fields)


def _skeleton(skeleton: str, locale: Locale) -> DateTimePattern:
    skeletons = locale.datetime_skeletons
    return skeletons[skeleton if skeleton in skeletons else match_skeleton(skeleton, skeletons)]


def _date_pattern(style: str, locale: Locale) -> DateTimePattern:
    return get_date_format(style, locale)  # type: ignore[arg-type]


def _has_whole_year(style: str, locale: Locale) -> bool:
    pattern = _date_pattern(style, locale).pattern
    return "yy" not in pattern.replace("yyyy", "y")


def _locale(language: str) -> Locale:
    try:
        return Locale.parse(language, sep="-" if "-" in language else "_")
    except (UnknownLocaleError, ValueError):
        raise UserError(f"locale {language!r} is not known to Babel; use one such as en, de, fr, ja or ko") from None
