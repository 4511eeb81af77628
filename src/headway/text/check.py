"""What may be wrong with a parallel corpus, found before anything is trained on it.

Nothing here is an error: a corpus may have all of it and be good. Each finding names the lines.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from headway.text.characters import has_invisible, is_blank
from headway.text.corpus import Pair

EXAMPLES = 5
"""Lines that a finding names."""
LONG_WORDS = 200
LONG_RATIO = 4.0
"""Times the corpus's own ratio of lengths."""
SHORT_CHARACTERS = 20
"""Pairs below have no meaningful ratio."""


@dataclass
class Finding:
    """One kind of doubt about the corpus, and the pairs that have it."""

    name: str
    meaning: str
    count: int = 0
    places: list[str] = field(default_factory=list)
    """The first few, as "file:line"."""

    def add(self, pair: Pair) -> None:
        self.count += 1
        if len(self.places) < EXAMPLES:
            self.places.append(f"{pair.file}:{pair.line}")


@dataclass
class SideSummary:
    """One side of the corpus, blank lines aside."""

    words: int
    characters: int
    longest_words: int
    longest_place: str
    script: str
    """The script that most of its letters are in, such as LATIN or HANGUL."""


@dataclass
class CorpusCheck:
    """All that was found."""

    pairs: int
    usable: int
    """Pairs with text on both sides."""
    source: SideSummary
    target: SideSummary
    character_ratio: float
    """Target characters for each source character, of all pairs together."""
    findings: list[Finding]
    """Those with at least one pair."""


def check_corpus(pairs: Sequence[Pair], held_out: Iterable[Pair] = ()) -> CorpusCheck:
    """Looks at every pair. `held_out` are the pairs that one validates or tests on: they shouldn't be in the corpus."""
    full = [pair for pair in pairs if not is_blank(pair.source) and not is_blank(pair.target)]
    sides = _summary(full, "source"), _summary(full, "target")
    ratio = sides[1].characters / max(1, sides[0].characters)
    held_out = list(held_out)
    tests: list[tuple[str, str, Callable[[Pair], bool]]] = [
        ("blank", "one side is blank, or all invisible; training drops the pair", _half_blank),
        ("both blank", "both sides are blank, or all invisible; training drops the pair", _both_blank),
        ("long", f"more than {LONG_WORDS} words on a side", _is_long),
        (
            "ratio",
            f"lengths differ {LONG_RATIO:.0f} times more than usual; perhaps not a translation",
            _odd_ratio(ratio),
        ),
        ("copied", "source and target are the same text", lambda pair: pair.source.strip() == pair.target.strip()),
        ("source script", f"source not mainly in {sides[0].script}", _other_script("source", sides[0].script)),
        ("target script", f"target not mainly in {sides[1].script}", _other_script("target", sides[1].script)),
        ("not UTF-8", "bytes that aren't UTF-8: training refuses the file; convert it, as with iconv", _is_not_utf8),
        ("replaced characters", "U+FFFD: an earlier conversion lost characters; convert the original", _is_replaced),
        ("encoding", "text that was once decoded wrongly", _is_mojibake),
        ("invisible characters", "controls, zero-width spaces, soft hyphens: a model doesn't get them", _has_invisible),
        ("repeated pair", "the pair stands in the corpus already", _repeats()),
        ("repeated source", "the source stands there already, with another translation", _another_translation()),
        ("held-out source", "a source of the held-out text: scores will be too good", _among(held_out, "source")),
        ("held-out target", "a target of the held-out text: scores will be too good", _among(held_out, "target")),
    ]
    findings = [Finding(name, meaning) for name, meaning, _ in tests]
    for pair in pairs:
        for finding, (name, _, test) in zip(findings, tests, strict=True):
            if (name in ("blank", "both blank") or not (is_blank(pair.source) or is_blank(pair.target))) and test(pair):
                finding.add(pair)
    return CorpusCheck(
        len(pairs), len(full), sides[0], sides[1], ratio, [finding for finding in findings if finding.count]
    )


def script_of(text: str) -> str:
    """The script that most letters of the text are in, by the first word of their Unicode names; "" without letters."""
    if text.isascii():  # whose letters are all of one script
        return "LATIN" if any(map(str.isalpha, text)) else ""
    counts: dict[str, int] = {}
    for char, count in Counter(text).items():
        script = _SCRIPTS[char]
        counts[script] = counts.get(script, 0) + count
    counts.pop("", None)
    return max(counts, key=counts.__getitem__, default="")


def _summary(pairs: Sequence[Pair], side: str) -> SideSummary:
    words = characters = longest = 0
    place = ""
    scripts: Counter[str] = Counter()
    for pair in pairs:
        text: str = getattr(pair, side)
        count = len(text.split())
        words, characters = words + count, characters + len(text)
        scripts.update(_scripts(text))
        if count > longest:
            file = pair.target_file if side == "target" and pair.target_file else pair.file
            longest, place = count, f"{file}:{pair.line}"
    script = scripts.most_common(1)[0][0] if scripts else "any script"
    return SideSummary(words, characters, longest, place, script)


_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "FULLWIDTH": "LATIN"}
"""Scripts that one text mixes; Japanese would be in two of them otherwise."""


class _Scripts(dict[str, str]):
    """The script of each character that was asked for, "" of one that is no letter."""

    def __missing__(self, char: str) -> str:
        name = unicodedata.name(char, "") if char.isalpha() else ""
        script = name.split(" ")[0].split("-")[0]
        self[char] = _TOGETHER.get(script, script)
        return self[char]


_SCRIPTS = _Scripts()


def _scripts(text: str) -> Iterator[str]:
    """The script of each letter."""
    return filter(None, map(_SCRIPTS.__getitem__, text))


def _half_blank(pair: Pair) -> bool:
    return is_blank(pair.source) != is_blank(pair.target)


def _both_blank(pair: Pair) -> bool:
    return is_blank(pair.source) and is_blank(pair.target)


def _is_long(pair: Pair) -> bool:
    return max(len(pair.source.split()), len(pair.target.split())) > LONG_WORDS


def _odd_ratio(usual: float) -> Callable[[Pair], bool]:
    def test(pair: Pair) -> bool:
        source, target = len(pair.source) * usual, len(pair.target)
        return max(source, target) > SHORT_CHARACTERS and not 1 / LONG_RATIO < target / max(1.0, source) < LONG_RATIO

    return test


def _other_script(side: str, script: str) -> Callable[[Pair], bool]:
    return lambda pair: script_of(getattr(pair, side)) not in (script, "")


def _is_not_utf8(pair: Pair) -> bool:
    """Whether a byte was read as a surrogate (PEP 383)."""
    return any("\udc80" <= char <= "\udcff" for char in pair.source + pair.target)


def _is_replaced(pair: Pair) -> bool:
    return "\ufffd" in pair.source + pair.target


def _is_mojibake(pair: Pair) -> bool:
    return any(map(_was_utf8, (pair.source, pair.target)))


def _was_utf8(text: str) -> bool:
    """Whether the text is UTF-8 that somebody read as Latin-1 or Windows-1252, such as "Ã¤" for "ä"."""
    for encoding in ("latin-1", "cp1252"):
        try:
            if len(text.encode(encoding).decode("utf-8")) < len(text):
                return True
        except UnicodeError:
            continue
    return False


def _has_invisible(pair: Pair) -> bool:
    return has_invisible(pair.source) or has_invisible(pair.target)


def _repeats() -> Callable[[Pair], bool]:
    seen: set[tuple[str, str]] = set()

    def test(pair: Pair) -> bool:
        size = len(seen)
        seen.add((pair.source, pair.target))
        return len(seen) == size

    return test


def _another_translation() -> Callable[[Pair], bool]:
    first: dict[str, str] = {}
    return lambda pair: first.setdefault(pair.source, pair.target) != pair.target


def _among(held_out: Sequence[Pair], side: str) -> Callable[[Pair], bool]:
    texts = {getattr(pair, side).strip() for pair in held_out} - {""}
    return lambda pair: getattr(pair, side).strip() in texts
