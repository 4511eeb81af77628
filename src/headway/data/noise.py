"""Noise as in typed text: another case, typos, no full stop, no diacritics. Each is a function of its text and a seed.
Protected text stays, because a translation must copy it.

The training text gets noise when it is prepared (`data.noise`), a test set by `headway perturb`.
"""

import re
import unicodedata
from collections.abc import Callable
from random import Random
from typing import Literal, get_args

from headway.text.protected import joined, split_protected

NoiseKind = Literal["lower", "upper", "typos", "punctuation", "diacritics"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)
VERSIONS = 8
"""Number of times that training text with noise is prepared, each time with different noise."""
TYPOS = 0.1
QWERTY = "qwertyuiop asdfghjkl zxcvbnm"
DUBEOLSIK = "ㅂㅈㄷㄱㅅ ㅛㅕㅑㅐㅔ ㅁㄴㅇㄹㅎ ㅗㅓㅏㅣ ㅋㅌㅊㅍ ㅠㅜㅡ"
"""The rows of the Korean keyboard, consonants and vowels apart, because one never replaces the other."""
JAMO = {
    0x1100: "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ",
    0x1161: "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ",
    0x11A8: "ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ",
}
"""The initial consonants, vowels and final consonants, each at the code of the first that composes syllables."""
WITHOUT_DIACRITICS = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D"}
)
"""Letters that Unicode doesn't decompose."""
_DIACRITICS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"\S+")


def perturbed(text: str, kind: NoiseKind, seed: int, typos: float = TYPOS) -> str:
    """The text with noise of one kind, protected text as it is; unchanged if nothing else would be left of it. typos:
    the share of the words that get one, except words with a single letter."""
    random, elements = Random(f"{seed}\n{text}"), split_protected(text)

    def with_typos(words: str) -> str:
        return _WORD.sub(lambda word: with_typo(word[0], random) if random.random() < typos else word[0], words)

    changes: dict[NoiseKind, Callable[[str], str]] = {
        "lower": str.lower,
        "upper": str.upper,
        "typos": with_typos,
        "punctuation": without_final_punctuation,
        "diacritics": _without_diacritics,
    }
    first = len(elements) - 1 if kind == "punctuation" else 0
    changed = [changes[kind](one) if isinstance(one, str) else one for one in elements[first:]]
    found = joined([*elements[:first], *changed])
    return found if found.strip() else text


def with_typo(word: str, random: Random) -> str:
    """A word of two letters or more with two neighbours swapped, a letter dropped or repeated, or the key beside hit.
    In Hangul a final consonant drops before its syllable, and the key beside is that of one jamo."""
    places = [place for place, char in enumerate(word) if char.isalpha()]
    if len(places) < 2:
        return word
    for edit in random.sample(EDITS, len(EDITS)):
        place = random.choice(places[:-1] if edit == "swap" else places)
        before, char, after = word[:place], word[place], word[place + 1 :]
        jamo = unicodedata.normalize("NFD", char) if "가" <= char <= "힣" else ""
        match edit:
            case "swap":
                found = before + after[:1] + char + after[1:]
            case "drop":
                found = before + (unicodedata.normalize("NFC", jamo[:2]) if len(jamo) == 3 else "") + after
            case "repeat":
                found = before + char + char + after
            case _:
                hit = _beside(char, jamo)
                found = before + (random.choice(hit) if hit else char) + after
        if found != word:
            return found
    return word


def _beside(char: str, jamo: str) -> list[str]:
    """The characters by a key beside that of a letter, or of one of its jamo."""
    if not jamo:
        return [key.upper() if char.isupper() else key for key in NEIGHBOURS.get(char.lower(), ())]
    keys = [jamo[:part] + key + jamo[part + 1 :] for part, one in enumerate(jamo) for key in NEIGHBOURS[one]]
    return [unicodedata.normalize("NFC", one) for one in keys]


EDITS = ("swap", "drop", "repeat", "beside")
_KEYS = f" {QWERTY} {DUBEOLSIK} "
NEIGHBOURS = {key: (_KEYS[i - 1] + _KEYS[i + 1]).replace(" ", "") for i, key in enumerate(_KEYS) if key != " "}
"""The keys to the left and right of each key, and of each jamo that composes syllables."""
NEIGHBOURS |= {
    chr(first + place): "".join(chr(first + jamo.index(key)) for key in NEIGHBOURS.get(one, ""))
    for first, jamo in JAMO.items()
    for place, one in enumerate(jamo)
}


def without_final_punctuation(text: str) -> str:
    """The text without the punctuation and the white space at its end."""
    end = len(text)
    while end and (text[end - 1].isspace() or unicodedata.category(text[end - 1]).startswith("P")):
        end -= 1
    return text[:end]


def _without_diacritics(text: str) -> str:
    """The text without the marks of Latin, Greek and Cyrillic letters; in other scripts marks are no ornament."""
    bare = _DIACRITICS.sub("", unicodedata.normalize("NFD", text.translate(WITHOUT_DIACRITICS)))
    return unicodedata.normalize("NFC", bare)
