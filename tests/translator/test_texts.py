"""Texts from a program: what is no text, or no list of them, is told wherever texts are taken."""

import numpy as np
import pytest

from headway.translator.glossary import Glossary
from tests.translator.test_translator import translator


@pytest.fixture(scope="module")
def door():
    return translator()


class Shouting(str):
    """As web frameworks have texts that escape what is added to them."""

    __slots__ = ()

    def __add__(self, other):
        raise AssertionError

    __str__ = __format__ = strip = lstrip = partition = split = __add__  # type: ignore[assignment]


class Frame:
    """What a data frame is to others: iterating gives the names of its columns."""

    ndim = 2

    def __iter__(self):
        return iter(["the cat"])


LISTS = {
    "translate": (lambda door, texts: door.translate(texts, max_length=3), "text"),
    "prefix": (lambda door, texts: door.translate(["the cat"] * 2, prefix=texts, max_length=20), "prefix"),
    "sources": (lambda door, texts: door.score(texts, ["a dog"] * 2), "source"),
    "targets": (lambda door, texts: door.score(["a dog"] * 2, texts), "target"),
    "align sources": (lambda door, texts: door.align(texts, ["a dog"] * 2), "source"),
    "align targets": (lambda door, texts: door.align(["a dog"] * 2, texts), "target"),
    "aligner sources": (lambda door, texts: door.choose_aligner(texts, ["a dog"] * 2), "source"),
    "aligner targets": (lambda door, texts: door.choose_aligner(["a dog"] * 2, texts), "target"),
    "documents": (lambda door, texts: door.translate_documents(texts, max_length=3), "text"),
}
SINGLE = {
    "readable": lambda door, text: door.is_readable(text),
    "inspect": lambda door, text: door.inspect(text),
    "target": lambda door, text: door.inspect("the cat", ["a dog"] if text is None else text),
    "document": lambda door, text: door.translate_document(text),
    "order": lambda door, text: door.word_order(text),
}


@pytest.mark.parametrize("call", LISTS)
def test_what_is_no_text_is_named(door, call):
    take, name = LISTS[call]
    for wrong in (None, float("nan"), b"a dog", {"text": "a dog"}, 3, np.float64("nan"), ["a dog"]):
        with pytest.raises(TypeError, match=rf"^{name} 2 is not text \({type(wrong).__name__}\)$"):
            take(door, ["a dog", wrong])


@pytest.mark.parametrize("call", LISTS)
def test_what_is_no_list_is_told(door, call):
    take, name = LISTS[call]
    for wrong in ({"the cat": "a dog"}, {"the cat"}, frozenset(["the cat"]), None, 3, np.array("the cat"), Frame()):
        with pytest.raises(TypeError, match=rf"^{name}: a list of texts is needed, not {type(wrong).__name__}$"):
            take(door, wrong)
    for wrong in ("the cat", b"the cat"):
        if not (name == "prefix" and isinstance(wrong, str)):  # one prefix for all
            with pytest.raises(TypeError, match=r"for one text, give \[text\]"):
                take(door, wrong)


@pytest.mark.parametrize("call", LISTS)
def test_lists_of_every_kind_are_taken(door, call):
    take, _ = LISTS[call]
    texts = ["the cat", "a dog ran"]
    wanted = take(door, texts)
    for given in (tuple(texts), iter(texts), np.array(texts), dict.fromkeys(texts).keys(), map(Shouting, texts)):
        assert take(door, given) == wanted


@pytest.mark.parametrize("call", SINGLE)
def test_one_text_that_is_none_is_told(door, call):
    for wrong in (None, float("nan"), b"a dog", 3):
        with pytest.raises(TypeError, match=r"is not text \((NoneType|float|bytes|int|list)\)$"):
            SINGLE[call](door, wrong)
    SINGLE[call](door, Shouting("the cat"))


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([("cat", "Katze"), ("dog", None)], r"term 2, side 2 is not text \(NoneType\)"),
        ([(float("nan"), "Hund")], r"term 1, side 1 is not text \(float\)"),
        ({"ab": "cd"}, "term 1 must be a source and a target, not 'ab'"),
        ([("cat", "Katze", "f")], "term 1 must be a source and a target, not"),
        ([None], "term 1, side: a list of texts is needed, not NoneType"),
    ],
)
def test_a_glossary_of_what_is_no_text_is_told(pairs, says):
    with pytest.raises(TypeError, match=f"^glossary: {says}"):
        Glossary.of(pairs)
