"""Noise of both sides of a training pair, of kinds that OpusTrainer has: capitals of a title, lines to copy, tags and
placeholders at aligned places, several sentences in one line. It teaches a model to keep what translations have exactly
as their sources do.

Words are aligned without a model: by a dictionary of the words that occur in the same pairs, and words that both sides
have. The sides get the same change, and protected text stays.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from random import Random
from string import ascii_lowercase
from typing import Literal, TypeAlias

from headway.data.noise import without_final_punctuation
from headway.text.protected import has_end, with_nulls

PairNoiseKind = Literal["title", "copy", "tags", "joined"]
Pair: TypeAlias = tuple[str, str]
Span: TypeAlias = tuple[int, int]
DICTIONARY_PAIRS = 20_000
"""Training pairs that the dictionary is made from."""
FEWEST_COMMON, LEAST_DICE = 4, 0.3
"""Minimum of common pairs of two words, and of their Dice coefficient. A few wrong entries only misplace a tag."""
_LATIN = r"a-zA-Z\u00c0-\u024f\d"
_WORD = re.compile(
    rf"(?<![{_LATIN}_./\\:@=&#~%$\0-])[{_LATIN}]++(?:[.,'’-][{_LATIN}]++)*+(?![{_LATIN}_/\\@=(\0]|[.:,-][{_LATIN}])"
    rf"|[^\W\d_{_LATIN}]+"
)
"""Words that aren't parts of code; \\0 stands for protected text. Korean endings follow Latin words without a space."""
_TITLED = re.compile(r"(?<!\S)(?:[^\w\s\0]|_)*[^\W\d_]")
"""The first letter of a word, with punctuation such as a quotation mark or an accelerator before it."""
_ELEMENTS = 'b,i,em,strong,code,tt,link,emph,a href="{}",span class="{}",g id={},0,1'.split(",")  # noqa: SIM905
_PLACEHOLDERS = "%s %d %1 %1$s %{{{}}} {{{}}} {{0}} ${{{}}} $({}) %({})s $[{}] {{{{{}}}}}".split()  # noqa: SIM905
_INNER = "\0"
"""Stands for the word in a change of it."""


def titled(text: str) -> str:
    """The text with a capital at the beginning of each word."""
    shown = with_nulls(text)
    for match in reversed([*_TITLED.finditer(shown)]):
        text = text[: match.start()] + match[0].title() + text[match.end() :]
    return text


def with_code(pair: Pair, random: Random) -> Pair:
    """A line that is copied: code, an address or numbers, half the time after the text of the pair and a colon."""
    line = code_of(random)
    if random.random() < 0.5:
        return line, line
    source, target = (f"{without_final_punctuation(text)}: {line}" for text in pair)
    return source, target


def code_of(random: Random) -> str:
    """A path, address, name, call, option, number or version number at random."""

    def word() -> str:
        return "".join(random.choices(ascii_lowercase, k=random.randint(2, 7)))

    number, small = random.randrange(10 ** random.randint(1, 7)), random.randrange(30)
    slash = "\\" * random.choice((1, 2, 4))
    return random.choice(
        (
            f"https://{word()}.{word()}.org/{word()}/{word()}.html",
            f"/{word()}/{word()}/{word()}.{word()[:3]}",
            f"{random.choice('cdCD')}:{slash}{word()} {word()}{slash}{word()}",
            f"-D{word()}={random.choice('cd')}:{slash}{word()}{slash}{word()} {word()}",
            f"--{word()}-{word()}={word()}",
            f"{word()}.{word()}@{word()}.com",
            f"{word()}_{word()}",
            f"{word().title()}{word().title()}",
            f"{word().upper()}({word()}; {number})",
            f"{word()}.{word()}({word()}, {small})",
            f"{small}.{random.randrange(20)}.{number}",
            f"{number / 100:.2f}",
            f"{number:,}",
            f"{number}",
            f"0x{number:x}",
        )
    )


def with_tags(pair: Pair, dictionary: Mapping[str, str], random: Random) -> Pair:
    """The pair with changes at one or two aligned places, the same on both sides: a tag around the word, a placeholder
    or code instead of it, or other digits of a number. Without aligned words a tag is around the whole text."""
    places = aligned_words(pair, dictionary)
    changes: dict[tuple[Span, Span], str] = {}
    for place in random.sample(places, min(len(places), random.choice((1, 2)))):
        if not any(_overlap(place[side], done[side]) for done in changes for side in (0, 1)):
            changes[place] = _change(pair[0][slice(*place[0])], random)
    changes = changes or {((0, len(pair[0])), (0, len(pair[1]))): _tags(random)}
    made = list(pair)
    for side in (0, 1):
        for place in sorted(changes, key=lambda one: one[side], reverse=True):
            (start, end), text = place[side], made[side]
            made[side] = text[:start] + changes[place].replace(_INNER, text[start:end]) + text[end:]
    return made[0], made[1]


def _change(word: str, random: Random) -> str:
    if any(map(str.isdigit, word)):
        return re.sub(r"\d", lambda _: str(random.randrange(10)), word)
    match random.randrange(3):
        case 0:
            return random.choice(_PLACEHOLDERS).format(_name(random))
        case 1:
            return code_of(random)
        case _:
            return _tags(random)


def _tags(random: Random) -> str:
    element = random.choice(_ELEMENTS)
    return f"<{element.format(_name(random))}>{_INNER}</{element.split()[0]}>"


def _name(random: Random) -> str:
    return random.choice(("name", "file", "ARG1", "count", "value", "n", "title", "1", "officename", "path"))


def joined_pairs(pair: Pair, others: Sequence[Pair], random: Random) -> Pair:
    """The pair, if it is a sentence, with one or two others in one line; as it is, if only itself was drawn.
    others: by `sentences_of`."""
    if not others or not sentences_of([pair]):
        return pair
    chosen = [other for other in random.choices(others, k=random.choice((1, 2))) if other != pair]
    source, target = zip(pair, *chosen, strict=True)
    return _one_line(source), _one_line(target)


def sentences_of(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs whose sides end as sentences do."""
    return [pair for pair in pairs if all(has_end(side.rstrip()) for side in pair)]


def _one_line(texts: Iterable[str]) -> str:
    """The texts with a space between, which Chinese and Japanese sentences lack."""
    made = ""
    for text in map(str.strip, texts):
        made += text if not made or made.endswith(("\u3002", "\uff01", "\uff1f")) else f" {text}"
    return made


def dictionary_of(pairs: Sequence[Pair]) -> dict[str, str]:
    """Words of the source with those of the target that occur in the same pairs, by Dice's coefficient: each is the
    best of the other."""
    sides = [[set(_entries(text)) for text in pair] for pair in pairs]
    counts = [Counter(word for pair in sides for word in pair[side]) for side in (0, 1)]
    frequent = [{word for word, count in of_side.items() if count >= FEWEST_COMMON} for of_side in counts]
    together = Counter(both for one, other in sides for both in product(one & frequent[0], other & frequent[1]))
    best: tuple[dict[str, tuple[float, str]], ...] = ({}, {})
    for (one, other), count in together.items():
        dice = 2 * count / (counts[0][one] + counts[1][other])
        if count >= FEWEST_COMMON and dice >= LEAST_DICE:
            best[0][one] = max(best[0].get(one, (0.0, "")), (dice, other))
            best[1][other] = max(best[1].get(other, (0.0, "")), (dice, one))
    return {one: other for one, (_, other) in best[0].items() if best[1][other][1] == one}


def aligned_words(pair: Pair, dictionary: Mapping[str, str]) -> list[tuple[Span, Span]]:
    """The places of words that translate each other and occur once: by the dictionary, or the same on both sides."""
    source, target = map(_entries, pair)
    found: list[tuple[Span, Span]] = []
    for word, span in source.items():
        other = target.get(word)
        if other is None or pair[0][slice(*span)] != pair[1][slice(*other)]:
            other = target.get(dictionary.get(word, ""))
        if other is not None:
            found.append((span, other))
    return found


def _entries(text: str) -> dict[str, Span]:
    """The words that occur once outside protected text, in lower case, with their places. A Korean word also counts
    without its last syllables, which may be its ending."""
    found: dict[str, list[Span]] = {}
    for match in _WORD.finditer(with_nulls(text)):
        word, start = match[0].lower(), match.start()
        shortest = min(2, len(word)) if "가" <= word[0] <= "힣" else len(word)
        for length in range(shortest, len(word) + 1):
            found.setdefault(word[:length], []).append((start, start + length))
    return {word: spans[0] for word, spans in found.items() if len(spans) == 1}


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
