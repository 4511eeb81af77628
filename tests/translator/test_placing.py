"""Links and tags in translations: by hand, and through the front door with a random model."""

import re
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decoding import Sampling
from headway.text.protected import parted_at_syntax, split_protected
from headway.text.tokenizer import Piece
from headway.translator import Translator
from headway.translator.placing import MOST_ENCLOSED, WithoutSyntax
from headway.translator.translation import Pieces, Translation
from tests.translator.test_translator import translator


@pytest.fixture(scope="module")
def door() -> Translator:
    torch.manual_seed(1)
    return translator()


def without_syntax(text: str) -> WithoutSyntax | None:
    return WithoutSyntax.of(parted_at_syntax(split_protected(text)))


def pieces(text: str) -> list[Piece]:
    return [Piece(match[0], *match.span()) for match in re.finditer(r"\w+|[^\w\s]", text)]


def put_back(text: str, translation: str, alignment: list[int | None]) -> str | None:
    """alignment: for each word and punctuation mark of the translation the one of the source."""
    one = without_syntax(text)
    assert one is not None
    source, target = pieces(one.text), pieces(translation)
    assert len(alignment) == len(target)
    found = Pieces(lambda: target, lambda: source, lambda: alignment, one.text)
    return one.put_back(Translation(translation, 0.0, "eos", _pieces=found))


@pytest.mark.parametrize(
    ("text", "translation", "alignment", "wanted"),
    [
        ("[Ein Hund](a.b) läuft.", "A dog runs.", [0, 1, 2, 3], "[A dog](a.b) runs."),
        ("Heute läuft [ein Hund](a.b).", "A dog runs today.", [2, 3, 1, 0, 4], "[A dog](a.b) runs today."),
        ("Ein <0>Hund</0>, der läuft", "A dog, who runs", [0, 1, 2, 3, 4], "A <0>dog</0>, who runs"),
        ("[a](x) <b>b</b> c", "c b a", [2, 1, 0], "c <b>b</b> [a](x)"),
        ("<b>a <i>b</i> c</b> d", "d a b c", [3, 0, 1, 2], "d <b>a <i>b</i> c</b>"),
        ("<b><i>a</i></b> c", "a c", [0, 1], "<b><i>a</i></b> c"),
        ("![a b](x)", "b and a", [None, None, None], "![b and a](x)"),
        ("<b>a b.</b>", "a b.", [0, 1, 2], "<b>a b.</b>"),
        ("<b>a b</b>.", "a b.", [0, 1, 2], "<b>a b</b>."),
        ("x [a b][1] c", "x a and b c", [0, 1, None, 2, 3], "x [a and b][1] c"),
        ("x [a b](y) c", "a c b x b", [1, 3, 2, 0, 2], "[a](y) c b x b"),
        ("<b>a</b> c", "x c", [None, 1], None),
        ("<b>a</b><i>b</i> c", "ab c", [0, 1], None),
    ],
)
def test_links_and_tags_enclose_the_words_that_are_aligned_with_theirs(text, translation, alignment, wanted):
    assert put_back(text, translation, alignment) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "no syntax",
        "[](x) y",
        "a <1/> b",
        "a</b> c",
        "[a <b>c](x) d</b>",
        "{n, plural, one {a} other {b}}",
        "[a](b) " * (MOST_ENCLOSED + 1),
    ],
)
def test_what_has_no_words_or_no_partner_is_not_put_back(text):
    assert without_syntax(text) is None


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
        assert (found.score, found.stopped) == (one.score, one.stopped)


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
