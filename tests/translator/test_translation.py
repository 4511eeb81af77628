"""A translation is data; its pieces come when they are asked for."""

import copy
import dataclasses
import pickle

import pytest

from headway.text.numbers import NumberCheck
from headway.translator import Translation, Translator, searching
from tests.page.test_inspecting import TEXTS, random_translator


@pytest.fixture(scope="module")
def door() -> Translator:
    return random_translator()


@pytest.fixture
def found(door) -> Translation:
    return door.translate([TEXTS[1]], beam_size=3, n_best=2)[0]


def test_its_fields_are_data(found):
    shown = {field.name for field in dataclasses.fields(found) if not field.name.startswith("_")}
    assert shown == {"text", "score", "stopped", "alternatives", "confidence", "out_of_domain"}
    public = {name for name in dir(found) if not name.startswith("_")}
    assert {name for name in public if callable(getattr(found, name))} == {"to_dict"}
    assert repr(Translation("a", -1.0, "eos")) == (
        "Translation(text='a', score=-1.0, stopped='eos', alternatives=[], confidence=None, out_of_domain=None)"
    )


def test_its_wrong_numbers_are_told(found):
    assert found.numbers == NumberCheck()
    assert "numbers" not in found.to_dict()
    pieces = dataclasses.replace(found._pieces, source_text="244890 or 7")
    found = pickle.loads(pickle.dumps(dataclasses.replace(found, text="24,490 or 7", _pieces=pieces)))
    assert found.to_dict()["numbers"] == {"missing": ["244890"], "invented": ["24,490"]}


def test_nothing_is_found_before_it_is_asked_for_and_then_once(door, monkeypatch):
    asked = []

    def counted(name, function):
        def call(*arguments, **options):
            asked.append(name)
            return function(*arguments, **options)

        return call

    tokenizer = door.stored.source_tokenizer
    for name in ("encoded_pieces", "decoded_pieces"):
        monkeypatch.setattr(tokenizer, name, counted(name, getattr(tokenizer, name)))
    monkeypatch.setattr(searching, "align", counted("align", searching.align))
    [found] = door.translate([TEXTS[1]])
    assert asked == []
    for _ in range(2):
        assert found.source_tokens
        assert found.tokens
        assert found.alignment
    assert asked == ["encoded_pieces", "decoded_pieces", "align"]


def test_equal_is_what_says_the_same(found):
    plain = Translation(found.text, found.score, found.stopped, found.alternatives)
    assert found == plain
    assert repr(found) == repr(plain)
    assert found != dataclasses.replace(found, score=found.score - 1)
    assert (plain.tokens, plain.source_tokens, plain.alignment) == ([], [], [])


@pytest.mark.parametrize("same", [copy.copy, copy.deepcopy, dataclasses.replace])
def test_a_copy_has_the_pieces(found, same):
    other = same(found)
    assert other == found
    assert other.to_dict() == found.to_dict()
    assert other.alignment == found.alignment != []
    assert [one.alignment for one in other.alternatives] == [one.alignment for one in found.alternatives]


def test_pickled_it_has_its_pieces_and_no_model(door, found):
    data = pickle.dumps(found)
    other = pickle.loads(data)
    assert other == found
    assert other.to_dict() == found.to_dict()
    assert other.alignment == found.alignment
    assert pickle.loads(pickle.dumps(other)).alignment == found.alignment
    assert len(data) < min(tensor.nbytes for tensor in (door.model.output.weight, door.model.source_embedding.weight))
    assert b"torch" not in data


def test_a_field_may_be_replaced(found):
    better = dataclasses.replace(found, text="a cat", alternatives=[])
    assert (better.text, better.alternatives, better.score) == ("a cat", [], found.score)
    assert better.source_tokens == found.source_tokens


def test_its_tokens_are_counted_without_being_found(found):
    source, target = found.token_counts
    assert "target" not in vars(found._pieces)
    assert (source, target) == (len(found.source_tokens), len(found.tokens))
    assert source > 0
    assert target > 0
