"""Noise as people make it when they type: another case, typos, no full stop, no diacritics. Each a function of its text
and a seed. Protected text stays, because a translation must copy it.

The training text gets it when it is prepared (`data.noise`), a test set by `headway perturb`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from headway.text.protected import Element, joined, split_protected

NoiseKind = Literal["lower", "upper", "typos", "punctuation", "diacritics"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)
TYPOS = 0.1
"""The share of the words that get a typo."""
QWERTY = "qwertyuiop asdfghjkl zxcvbnm"
DUBEOLSIK = "ㅂㅈㄷㄱㅅ ㅛㅕㅑㅐㅔ ㅁㄴㅇㄹㅎ ㅗㅓㅏㅣ ㅋㅌㅊㅍ ㅠㅜㅡ"
"""The Korean keyboard: its rows, consonants and vowels apart, because one never replaces the other."""
FIRST_SYLLABLE, LAST_SYLLABLE = "가", "힣"
JAMO = (
    "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ",
    "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ",
    "\0ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ",
)
"""The initial consonants, the vowels and the final consonants, in the order that Unicode counts syllables by. The first
final consonant is none."""
WITHOUT_DIACRITICS = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D"}
)
"""Letters that Unicode doesn't take apart."""
_DIACRITICS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Noise:
    """The noise of training text."""

    share: float
    """The share of the sentences that get noise."""
    kinds: tuple[NoiseKind, ...] = KINDS
    """A sentence gets one of them, or two."""
    versions: int = 1
    """Of each sentence, with different noise."""

    def applied(self, text: str, version: int) -> str:
        """The text with the noise of this version of it, or as it is."""
        random = Random(f"noise {version}\n{text}")  # other numbers than the typos get
        if random.random() >= self.share:
            return text
        count = min(random.choice((1, 2)), len(self.kinds))
        for kind in random.sample(self.kinds, count):
            text = perturbed(text, kind, version)
        return text


def perturbed(text: str, kind: NoiseKind, seed: int, typos: float = TYPOS) -> str:
    """The text with noise of one kind, protected text as it is; unchanged if nothing else would be left of it. typos:
    the share of the words that get one; of those with a single letter, none does."""
    random, elements = Random(f"{seed}\n{text}"), split_protected(text)
    changes: dict[NoiseKind, Callable[[str], str]] = {
        "lower": str.lower,
        "upper": str.upper,
        "typos": lambda words: _with_typos(words, random, typos),
        "diacritics": _without_diacritics,
    }
    if kind == "punctuation":
        found = joined(elements[:-1]) + _with_words(elements[-1:], _without_final_punctuation)
    else:
        found = _with_words(elements, changes[kind])
    return found if found.strip() else text


def _with_words(elements: Iterable[Element], change: Callable[[str], str]) -> str:
    """The text of the elements, with the change made to words alone."""
    return joined(change(one) if isinstance(one, str) else one for one in elements)


def _with_typos(words: str, random: Random, share: float) -> str:
    return _WORD.sub(lambda word: with_typo(word[0], random) if random.random() < share else word[0], words)


def with_typo(word: str, random: Random) -> str:
    """Two neighbours swapped, a letter dropped or repeated, or the key beside it hit. In Hangul a final consonant drops
    before its syllable, and the key beside is that of one jamo. A word with less than two letters stays as it is."""
    places = [place for place, char in enumerate(word) if char.isalpha()]
    if len(places) < 2:
        return word
    for edit in random.sample(EDITS, len(EDITS)):
        place = random.choice(places[:-1] if edit is _swapped else places)
        if (found := edit(word, place, random)) != word:
            return found
    return word


def _swapped(word: str, place: int, _: Random) -> str:
    return word[:place] + word[place + 1 : place + 2] + word[place] + word[place + 2 :]


def _dropped(word: str, place: int, _: Random) -> str:
    jamo = _jamo_of(word[place])
    left = _syllable((*jamo[:2], 0)) if jamo and jamo[2] else ""
    return word[:place] + left + word[place + 1 :]


def _repeated(word: str, place: int, _: Random) -> str:
    return word[: place + 1] + word[place:]


def _beside(word: str, place: int, random: Random) -> str:
    """With the letter in whose place a finger hits the key beside."""
    char = word[place]
    if jamo := _jamo_of(char):
        hit = [
            _syllable((*jamo[:part], JAMO[part].index(key), *jamo[part + 1 :]))
            for part in range(3)
            for key in NEIGHBOURS.get(JAMO[part][jamo[part]], ())
        ]
    else:
        hit = [key.upper() if char.isupper() else key for key in NEIGHBOURS.get(char.lower(), ())]
    return word[:place] + (random.choice(hit) if hit else char) + word[place + 1 :]


EDITS: tuple[Callable[[str, int, Random], str], ...] = (_swapped, _dropped, _repeated, _beside)


_KEYS = f" {QWERTY} {DUBEOLSIK} "
NEIGHBOURS = {key: (_KEYS[i - 1] + _KEYS[i + 1]).replace(" ", "") for i, key in enumerate(_KEYS) if key != " "}
"""For each key those to its left and right."""


def _jamo_of(char: str) -> tuple[int, int, int] | None:
    """The numbers of a syllable's initial consonant, vowel and final consonant; None for another character."""
    if not FIRST_SYLLABLE <= char <= LAST_SYLLABLE:
        return None
    rest, final = divmod(ord(char) - ord(FIRST_SYLLABLE), len(JAMO[2]))
    return *divmod(rest, len(JAMO[1])), final


def _syllable(jamo: Sequence[int]) -> str:
    """As `_jamo_of` gives them."""
    initial, vowel, final = jamo
    return chr(ord(FIRST_SYLLABLE) + (initial * len(JAMO[1]) + vowel) * len(JAMO[2]) + final)


def _without_final_punctuation(text: str) -> str:
    end = len(text)
    while end and (text[end - 1].isspace() or unicodedata.category(text[end - 1]).startswith("P")):
        end -= 1
    return text[:end]


def _without_diacritics(text: str) -> str:
    """Without the marks of Latin, Greek and Cyrillic letters. Those of other scripts are no ornament."""
    bare = _DIACRITICS.sub("", unicodedata.normalize("NFD", text.translate(WITHOUT_DIACRITICS)))
    return unicodedata.normalize("NFC", bare)
