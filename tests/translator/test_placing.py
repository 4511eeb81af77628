"""Links and tags in translations: by hand, and through the front door with a random model."""

import re
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decoding import Sampling
from headway.translator import Translator
from tests.translator.test_translator import translator


@pytest.fixture(scope="module")
def door() -> Translator:
    torch.manual_seed(1)
    return translator()


SYNTAX = [
    "[the cat](https://a.de/b_(c))",
    "![the mat](a.png)",
    "[a dog][1]",
    "<0>sat</0>",
    "<b>the <i>cat</i></b>",
    '<a href="x y">ran</a>',
    "<1/>",
    "{n, plural, one {# cat} other {# cats on {name}}}",
    "{g, select, male {he ran} other {{n, plural, one {a} other {b}}}}",
]
TEXTS = st.lists(st.sampled_from([*SYNTAX, "the", "sat", "mat,", "{name}", "%s"]), min_size=1, max_size=5).map(" ".join)


SYNTAX_PART = re.compile(r"!?\[|\]\([^ ]*\)|\]\[1\]|</?\w[^>]*>|[{}]|%s")


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), how=st.sampled_from(["beam", "greedy", "sample", "cut"]))
def test_all_syntax_is_there_and_encloses_words(door, texts, how):
    options = {
        "beam": {"n_best": 2},
        "greedy": {"beam_size": 1},
        "sample": {"sample": Sampling()},
        "cut": {"max_length": 3},
    }[how]
    for text, one in zip(texts, door.translate(texts, **options), strict=True):
        for translation in (one, *one.alternatives):
            found = Counter(SYNTAX_PART.findall(translation.text))
            assert Counter(SYNTAX_PART.findall(text)) <= found, "the model may write a bracket of its own"
            assert not re.search(r"(\[|<[^/<>]+>)\s*(\][(\[]|</)", translation.text), "there are words inside"


@pytest.mark.parametrize("text", ["[the cat](https://a.de) sat", "<b>{name} sat</b>", "<0>the mat</0>"])
def test_the_model_gets_the_text_without_the_syntax(door, text):
    """If its translation has places for all of it."""
    plain = re.sub(r"\[|\]\(.*\)|<.*?>", "", text)
    for found, one in zip(door.translate([text], n_best=2), door.translate([plain], n_best=2), strict=True):
        assert re.sub(r"\[|\]\(.*\)|<.*?>", "", found.text) == one.text
        assert found.stopped == one.stopped
        if "{" not in text:  # else it is made of its runs, and scored as it stands
            assert found.score == one.score


def test_a_plural_keeps_its_form_and_its_messages_are_translated_each(door):
    head, middle, end = "{count, plural, one {", "} other {", "}}"
    [found] = door.translate([f"{head}# cat{middle}# the mat{end}"])
    one, other = (door.translate([text])[0].text.rstrip(" .") for text in ("# cat", "# the mat"))
    assert found.text == f"{head}{one}{middle}{other}{end}"


def test_the_tokens_are_those_of_the_text_with_the_syntax(door):
    [found] = door.translate(["[the cat](https://a.de) sat"])
    assert "".join(found.text[one.start : one.end] for one in found.tokens) == found.text.replace(" ", "")
    assert len(found.alignment) == len(found.tokens)


def test_a_link_whose_address_is_longer_than_the_model_can_read(door):
    address = f"https://a.de/{'x' * 2000}"
    [found] = door.translate([f"[the cat]({address}) sat"])
    assert found.text.count(f"]({address})") == 1


@pytest.mark.parametrize(
    "text", ["[the cat](https://a.de) sat", "the mat [the cat](https://a.de)", "<b>cat</b> sat <0>a</0>"]
)
def test_a_document_keeps_links_at_the_edges_of_a_sentence_whole(door, text):
    found = door.translate_document(text).text
    assert found == door.translate([text])[0].text
