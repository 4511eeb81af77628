"""Lines in 40 languages and 28 scripts, made of the names, dates and numbers that Unicode's CLDR has in them."""

import random
from datetime import date, timedelta

from babel import Locale
from babel.dates import format_date
from babel.numbers import format_currency, format_decimal

LOCALES = (
    *(
        "am",
        "ar",
        "as",
        "bn",
        "bo",
        "chr",
        "cs",
        "de",
        "dz",
        "el",
        "en",
        "es",
        "fa",
        "fr",
        "gu",
        "he",
        "hi",
        "hy",
        "ja",
    ),
    *("ka", "km", "kn", "ko", "lo", "ml", "my", "ne", "or", "pa", "pl", "ru", "si", "ta", "te", "th", "uk", "ur"),
    *("vi", "zh", "zh_Hant"),
)


def lines_of(locale: str, count: int) -> list[str]:
    """Different lines in one language, of one name to eight."""
    data, chooser = Locale.parse(locale), random.Random(locale)
    names = sorted(
        {*data.languages.values(), *data.territories.values(), *data.currencies.values(), *data.variants.values()}
    )
    day = date(2017, 6, 12)
    found: list[str] = []
    while len(found) < count:
        number = chooser.randrange(10**7) / 100
        told = [
            *chooser.choices(names, k=chooser.randint(1, 8)),
            format_date(day + timedelta(chooser.randrange(9999)), chooser.choice(["full", "long", "short"]), locale),
            format_decimal(number, locale=locale),
            format_currency(-number, "KRW", locale=locale),
        ]
        chooser.shuffle(told)
        found.append(chooser.choice([" ", ", ", "; ", "-"]).join(told[: chooser.randint(1, len(told))]))
    return found


def lines_of_all(count: int) -> list[str]:
    """About so many lines, equally many of each language."""
    return [line for locale in LOCALES for line in lines_of(locale, count // len(LOCALES))]
