"""Looks for possible mistakes in a parallel corpus before anything is trained on it.

None of the findings is an error: a good corpus may have all of them. Each names its lines.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headway.data.corpus import Pair
from headway.data.filters import Test, either, is_untranslated, other_script, outside, texts_of, uneven, words
from headway.text.characters import has_invisible, is_blank
from headway.text.detection import script_of_character

EXAMPLES = 5
_RAW_BYTE, _REPLACED = re.compile("[\udc80-\udcff]"), re.compile("\ufffd")
"""A byte that was read as a surrogate (PEP 383), and the replacement character."""
LONG_WORDS = 200
LONG_RATIO = 4.0
"""A multiple of the corpus's own ratio of lengths."""


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
    pairs: int
    usable: int
    """Pairs with text on both sides."""
    source: SideSummary
    target: SideSummary
    character_ratio: float
    """Target characters for each source character, of all pairs together."""
    findings: list[Finding]


def check_corpus(pairs: Sequence[Pair], held_out: Iterable[Pair] = ()) -> CorpusCheck:
    """Looks at every pair. held_out: the pairs for validation and tests, which shouldn't be in the corpus."""
    full = [pair for pair in pairs if not is_blank(pair.source) and not is_blank(pair.target)]
    source, target = _summary(full, "source"), _summary(full, "target")
    ratio = target.characters / max(1, source.characters)
    odd_ratio, too_good = uneven(LONG_RATIO, ratio), "of the held-out text: scores will be too good"
    checks = (_RAW_BYTE.search, _REPLACED.search, _was_utf8, has_invisible)
    bad_bytes, lost, mojibake, invisible = (either(check, check) for check in checks)
    other_source, other_target = (_of_readable(other_script(side.script)) for side in (source, target))
    known = [(pair.source, pair.target) for pair in held_out]
    sources, targets = texts_of(known, 0), texts_of(known, 1)
    uses: Counter[tuple[str, str]] = Counter()
    first: dict[str, str] = {}

    def retranslated(source: str, target: str) -> bool:
        return first.setdefault(source, target) != target

    half_blank = Finding("blank", "one side is blank, or all invisible; training drops the pair")
    blank = Finding("both blank", "both sides are blank, or all invisible; training drops the pair")
    tests: list[tuple[str, str, Test]] = [
        ("long", f"more than {LONG_WORDS} words on a side", outside((0, LONG_WORDS), words)),
        ("ratio", f"lengths differ {LONG_RATIO:.0f} times more than usual; perhaps not a translation", odd_ratio),
        ("copied", "source and target are the same text", is_untranslated),
        ("source script", f"source not mainly in {source.script}", other_source),
        ("target script", f"target not mainly in {target.script}", lambda text, other: other_target(other, text)),
        ("not UTF-8", "bytes that aren't UTF-8: training refuses the file; convert it, as with iconv", bad_bytes),
        ("replaced characters", "U+FFFD: an earlier conversion lost characters; convert the original", lost),
        ("encoding", "text that was once decoded wrongly", mojibake),
        ("invisible characters", "controls, zero-width spaces, soft hyphens: a model doesn't get them", invisible),
        ("repeated pair", "the pair stands in the corpus already", lambda one, other: uses[one, other] > 1),
        ("repeated source", "the source stands there already, with another translation", retranslated),
        ("held-out source", f"a source {too_good}", lambda text, _: text.strip() in sources),
        ("held-out target", f"a target {too_good}", lambda _, text: text.strip() in targets),
    ]
    findings = [(Finding(name, meaning), test) for name, meaning, test in tests]
    for pair in pairs:
        if is_blank(pair.source) or is_blank(pair.target):
            (blank if is_blank(pair.source) and is_blank(pair.target) else half_blank).add(pair)
            continue
        uses[pair.source, pair.target] += 1
        for finding, test in findings:
            if test(pair.source, pair.target):
                finding.add(pair)
    found = [one for one in (half_blank, blank, *(finding for finding, _ in findings)) if one.count]
    return CorpusCheck(len(pairs), len(full), source, target, ratio, found)


def _of_readable(test: Test) -> Test:
    """The test, false for text that isn't valid UTF-8."""
    return lambda text, other: not _RAW_BYTE.search(text) and test(text, other)


def _summary(pairs: Sequence[Pair], side: str) -> SideSummary:
    count = characters = longest = 0
    place = ""
    scripts: Counter[str] = Counter()
    for pair in pairs:
        text: str = getattr(pair, side)
        count, characters = count + words(text), characters + len(text)
        if not _RAW_BYTE.search(text):
            scripts.update(map(script_of_character, text))
        if words(text) > longest:
            file = pair.target_file if side == "target" and pair.target_file else pair.file
            longest, place = words(text), f"{file}:{pair.line}"
    del scripts[""]
    script = scripts.most_common(1)[0][0] if scripts else "any script"
    return SideSummary(count, characters, longest, place, script)


def _was_utf8(text: str) -> bool:
    """Whether the text is UTF-8 that was read as Latin-1 or Windows-1252, such as "Ã¤" for "ä"."""
    for encoding in ("latin-1", "cp1252"):
        try:
            if len(text.encode(encoding).decode("utf-8")) < len(text):
                return True
        except UnicodeError:
            continue
    return False
