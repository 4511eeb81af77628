"""The generated corpus of the demo: dates and times as people write them, from Unicode's locale data (Babel).

The target is a function of the source, so that a model can be right every time: whatever way the date is written in
the source language, the target is its long form, with the day of the week where the source has it, and the time of
day in words. Training, validation and test are split by calendar date: no date is in two of them.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_skeleton, format_time, get_date_format, get_time_format

from headway.errors import UserError

FIRST_DATE, LAST_DATE = datetime.date(1900, 1, 1), datetime.date(2100, 12, 31)
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class DatesCorpus:
    """Pairs for each split: `train`, `valid`, `test`."""

    source_language: str
    target_language: str
    pairs: dict[str, list[tuple[str, str]]]

    def write(self, folder: Path) -> None:
        """Writes `train.en`, `train.ko`, ...: one sentence a line."""
        folder.mkdir(parents=True, exist_ok=True)
        for split, pairs in self.pairs.items():
            for language, side in ((self.source_language, 0), (self.target_language, 1)):
                lines = "".join(f"{pair[side]}\n" for pair in pairs)
                (folder / f"{split}.{language}").write_text(lines, encoding="utf-8", newline="\n")


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
    pairs = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        pairs[split] = _sample(pools[split], size, source, target, randomness, seen)
    return DatesCorpus(source_language, target_language, pairs)


SourceWriter = Callable[[datetime.datetime, random.Random], tuple[str, bool, bool]]
"""Writes a moment in some way; says whether the day of the week and the time are in it."""
TargetWriter = Callable[[datetime.datetime, bool, bool], str]


def _sample(
    dates: list[datetime.date],
    size: int,
    source: SourceWriter,
    target: TargetWriter,
    randomness: random.Random,
    seen: dict[str, str],
) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    while len(pairs) < size:
        time = datetime.time(randomness.randrange(24), randomness.randrange(60))
        moment = datetime.datetime.combine(randomness.choice(dates), time)
        written, with_weekday, with_time = source(moment, randomness)
        translation = target(moment, with_weekday, with_time)
        if seen.setdefault(written, translation) == translation:  # else this locale writes two meanings alike
            pairs.append((written, translation))
    return pairs


def _writer_of_source(language: str) -> SourceWriter:
    locale = _locale(language)
    formats = [("full", True), ("long", False), ("medium", False)]
    formats = [(name, weekday) for name, weekday in formats if _has_whole_year(name, locale)]

    def write(moment: datetime.datetime, randomness: random.Random) -> tuple[str, bool, bool]:
        style, with_weekday = randomness.choice([*formats, ("yMMMEd", True)])
        if style == "yMMMEd":
            date = format_skeleton(style, moment, locale=locale)
        else:
            date = format_date(moment, style, locale)  # type: ignore[arg-type]
        clock = randomness.choice(["", "", "short", "Hm"])
        if not clock:
            return _clean(date), with_weekday, False
        time = (
            format_skeleton("Hm", moment, locale=locale)
            if clock == "Hm"
            else format_time(moment, "short", locale=locale)
        )
        return _clean(f"{date}, {time}"), with_weekday, True

    return write


def _writer_of_target(language: str) -> TargetWriter:
    locale = _locale(language)
    clock = get_time_format("short", locale).pattern.replace("a", "aaaa")  # 오후 rather than PM

    def write(moment: datetime.datetime, with_weekday: bool, with_time: bool) -> str:
        date = format_date(moment, "full" if with_weekday else "long", locale)
        return _clean(f"{date} {format_time(moment, clock, locale=locale)}" if with_time else date)

    return write


def _has_whole_year(style: str, locale: Locale) -> bool:
    pattern = get_date_format(style, locale).pattern  # type: ignore[arg-type]
    return "yy" not in pattern.replace("yyyy", "y")


def _locale(language: str) -> Locale:
    try:
        return Locale.parse(language, sep="-" if "-" in language else "_")
    except (UnknownLocaleError, ValueError):
        raise UserError(f"locale {language!r} is not known to Babel; use one such as en, de, fr, ja or ko") from None


def _clean(text: str) -> str:
    """Narrow and no-break spaces, which some locales put before AM and PM, as plain ones."""
    return " ".join(text.replace("\u202f", " ").replace("\xa0", " ").split())
