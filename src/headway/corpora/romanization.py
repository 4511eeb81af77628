"""A generated corpus of transliteration: Korean names in Hangul, and in the Revised Romanization of Korean.

The names are syllables drawn at random, and the target is a function of the source: the rules of the National Institute
of Korean Language (Notification 2000-8 of the Ministry of Culture and Tourism), which write a name as it is pronounced.
Syllables end in a vowel or in one of the seven final consonants with which Korean writes loanwords; the rules say what
each becomes before each initial consonant. They don't cover what depends on the word and not on its letters: 신문로 is
Sinmunno, because it is 신문 and 로, but 신라 is Silla. No name is in two of train, valid and test.
"""

import random
from collections.abc import Iterator
from itertools import islice

from headway.corpora import SPLITS, SplitCorpus, files_of

LANGUAGES = ("ko", "rr")
FILES = files_of(*LANGUAGES)
SYLLABLES = (2, 3, 4)
INITIALS = ("g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "", "j", "jj", "ch", "k", "t", "p", "h")
VOWELS = "a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i".split()  # noqa: SIM905
"""Initial consonants and vowels in the order by which Unicode counts syllables."""
FINALS = {0: "", 1: "k", 4: "n", 8: "l", 16: "m", 17: "p", 19: "t", 21: "ng"}
"""The final consonants ㄱ, ㄴ, ㄹ, ㅁ, ㅂ, ㅅ and ㅇ by their numbers in Unicode, as written where no vowel follows."""
BEFORE_A_VOWEL = {"k": "g", "l": "r", "p": "b", "t": "s"}
"""A final consonant becomes the initial one of the next syllable. ㅅ is written as t only at the end of a word and
before a consonant; ㅇ stays ng."""
NASAL = {"k": "ng", "p": "m", "t": "n"}
"""Nasals that ㄱ, ㅂ and ㅅ become before a nasal."""
NUM_FINALS = 28
"""Number of final consonants in Unicode, with none."""
FIRST_SYLLABLE, LAST_SYLLABLE = "가", "힣"


def romanization_corpus(*, sizes: tuple[int, int, int] = (60_000, 500, 2_000), seed: int = 1) -> SplitCorpus:
    """Makes the corpus. sizes: pairs of train, valid and test."""
    names, counts = _names(random.Random(seed)), zip(SPLITS, sizes, strict=True)
    pairs = {split: [(name, romanized(name)) for name in islice(names, count)] for split, count in counts}
    return SplitCorpus(*LANGUAGES, pairs)


def romanized(name: str) -> str:
    """The name, which is Hangul with FINALS alone, by the Revised Romanization, with a capital letter."""
    written, final = "", ""
    for syllable in name:
        rest, number = divmod(ord(syllable) - ord(FIRST_SYLLABLE), NUM_FINALS)
        initial, vowel = divmod(rest, len(VOWELS))
        written += _between(final, INITIALS[initial]) + VOWELS[vowel]
        final = FINALS[number]
    return (written + final).capitalize()


def _between(final: str, initial: str) -> str:
    """The letters of a final consonant and the initial consonant of the next syllable."""
    if initial == "":
        return BEFORE_A_VOWEL.get(final, final)
    if final + initial in ("nr", "lr", "ln"):
        return "ll"
    if initial in ("m", "n") or (initial == "r" and final):
        return NASAL.get(final, final) + ("m" if initial == "m" else "n")
    return final + initial


def _names(randomness: random.Random) -> Iterator[str]:
    """Names without end, each once."""
    every = map(chr, range(ord(FIRST_SYLLABLE), ord(LAST_SYLLABLE) + 1))
    written = [one for one in every if (ord(one) - ord(FIRST_SYLLABLE)) % NUM_FINALS in FINALS]
    # among the 2,350 common syllables of the standard KS X 1001, which EUC-KR writes with two bytes
    syllables, seen = [one for one in written if len(one.encode("euc_kr")) == 2], set[str]()
    while True:
        name = "".join(randomness.choices(syllables, k=randomness.choice(SYLLABLES)))
        if name not in seen:
            seen.add(name)
            yield name
