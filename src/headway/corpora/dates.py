"""The generated corpus of the demo: dates and times as people write them, from Unicode's locale data (Babel).

The target is a function of the source, so that a model can be right every time: however the source writes the date, the
target is its long form, with the day of the week if the source has it, and the time of day in words. In some forms only
the order has meaning: 03/04/1999 is a day in March for `en`, in April for `en_GB`. No date is in two of train, valid
and test. Both sides write fields of the same moment, so that the alignment of their words is known, too.
"""

import datetime
import random
import re
from itertools import groupby

from headway.corpora import SPLITS, SplitCorpus, files_of
from headway.errors import UserError, needing_extra

with needing_extra("torch"):
    from babel import Locale, UnknownLocaleError
    from babel.dates import DateTimePattern, get_date_format, get_time_format, match_skeleton, parse_pattern

FIRST_DATE, LAST_DATE = datetime.date(1900, 1, 1), datetime.date(2100, 12, 31)
FILES = files_of("en", "ko")
"""Files of text in the default languages of `headway data dates`."""
FIELDS = {
    **dict.fromkeys("Ecw", "weekday"),
    **dict.fromkeys("ML", "month"),
    "d": "day",
    **dict.fromkeys("yuG", "year"),
    **dict.fromkeys("hHkKms", "clock"),
    **dict.fromkeys("abB", "half"),
}
"""Fields of a moment by the letters of a pattern of Unicode's locale data. `half`: AM or PM."""


Written = tuple[str, list[set[str]]]
"""A moment as text, and the fields that each of its words expresses."""


def dates_corpus(
    source_language: str = "en",
    target_language: str = "ko",
    *,
    sizes: tuple[int, int, int] = (24_000, 500, 500),
    seed: int = 1,
) -> SplitCorpus:
    """Makes the corpus. sizes: pairs of train, valid and test. Raises UserError for an unknown locale."""
    source, target = _locale(source_language), _locale(target_language)
    forms, clocks = _forms(source), [None, None, get_time_format("short", source), _skeleton("Hm", source)]
    spoken = get_time_format("short", target).pattern.replace("a", "aaaa")  # 오후 rather than PM
    randomness = random.Random(seed)
    days = (LAST_DATE - FIRST_DATE).days + 1
    dates = [FIRST_DATE + datetime.timedelta(days=day) for day in range(days)]
    randomness.shuffle(dates)
    held_out = max(days // 20, 1)
    pools = {"valid": dates[:held_out], "test": dates[held_out : 2 * held_out], "train": dates[2 * held_out :]}

    def drawn(pool: list[datetime.date]) -> tuple[Written, Written]:
        time = datetime.time(randomness.randrange(24), randomness.randrange(60))
        moment = datetime.datetime.combine(randomness.choice(pool), time)
        form, clock = randomness.choice(forms), randomness.choice(clocks)
        written = _written([form, parse_pattern(", "), clock] if clock else [form], moment, source)
        fields = set().union(*written[1])
        parts = [get_date_format("full" if "weekday" in fields else "long", target)]
        parts += [parse_pattern(" "), parse_pattern(spoken)] if "clock" in fields else []
        return written, _written(parts, moment, target)

    seen: dict[str, str] = {}
    pairs: dict[str, list[tuple[str, str]]] = {split: [] for split in SPLITS}
    alignments: dict[str, list[str]] = {split: [] for split in SPLITS}
    for split, size in zip(SPLITS, sizes, strict=True):
        while len(pairs[split]) < size:
            (text, fields), (translation, translated_fields) = drawn(pools[split])
            if seen.setdefault(text, translation) == translation:  # else this locale writes two meanings alike
                pairs[split].append((text, translation))
                alignments[split].append(_alignment(fields, translated_fields))
    return SplitCorpus(source_language, target_language, pairs, alignments)


def _alignment(source: list[set[str]], target: list[set[str]]) -> str:
    """Links between words that express the same field; a clock has the half of the day if no word of its side has."""

    def expressed(side: list[set[str]]) -> list[set[str]]:
        clock = {"clock"} if any("half" in word for word in side) else {"clock", "half"}
        return [word | clock if "clock" in word else word for word in side]

    sides = enumerate(expressed(source)), list(enumerate(expressed(target)))
    return " ".join(f"{i}-{j}" for i, one in sides[0] for j, other in sides[1] if one & other)


def _forms(locale: Locale) -> list[DateTimePattern]:
    """The ways to write a date, with its whole year: in words, and in figures in the order of the locale (3/4/1999,
    03/04/1999, and 03 / 04 / 1999, as on a form, which has the same words and tokens as 04 / 03 / 1999)."""
    styles = [get_date_format(style, locale) for style in ("full", "long", "medium")]
    whole = [style for style in styles if "yy" not in style.pattern.replace("yyyy", "y")]
    short = _skeleton("yMd", locale)
    two_digits = re.sub(r"([Md])+", r"\1\1", short.pattern)
    apart = re.sub(r"(?<=\w)([/-])(?=\w)", r" \1 ", two_digits)
    apart = re.sub(r"\.(?=\w)", ". ", apart)
    return [*whole, _skeleton("yMMMEd", locale), short, parse_pattern(two_digits), parse_pattern(apart)]


def _written(patterns: list[DateTimePattern], moment: datetime.datetime, locale: Locale) -> Written:
    """Narrow and no-break spaces, which some locales put before AM and PM, become plain ones."""
    characters: list[tuple[str, str]] = []  # with their fields
    for pattern in patterns:
        for number, part in enumerate(re.split(r"%\((\w+)\)s", str(pattern.format))):
            if number % 2 == 0:
                characters += [(character, "") for character in part.replace("%%", "%")]
            else:
                characters += [(character, FIELDS[part[0]]) for character in parse_pattern(part).apply(moment, locale)]
    words = [[*word] for is_space, word in groupby(characters, lambda one: one[0].isspace()) if not is_space]
    text = " ".join("".join(character for character, _ in word) for word in words)
    return text, [{field for _, field in word if field} for word in words]


def _skeleton(skeleton: str, locale: Locale) -> DateTimePattern:
    skeletons = locale.datetime_skeletons
    return skeletons[skeleton if skeleton in skeletons else match_skeleton(skeleton, skeletons)]


def _locale(language: str) -> Locale:
    try:
        return Locale.parse(language, sep="-" if "-" in language else "_")
    except (UnknownLocaleError, ValueError):
        raise UserError(f"locale {language!r} is not known to Babel; use one such as en, de, fr, ja or ko") from None
