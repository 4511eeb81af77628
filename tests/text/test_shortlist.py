"""Which target tokens a source token may become: a dictionary that the text was made with, and model 1 by its book."""

import random
from collections import defaultdict

import pytest

from headway.errors import UserError
from headway.text import shortlist
from headway.text.shortlist import learn_shortlist
from headway.text.words import WordTokenizer

SOURCE = WordTokenizer(list("abcdefghij"))
TARGET = WordTokenizer([*"klmnopqrst", "a"])  # `a` is on both sides


def dictionary_text(count: int, seed: int = 1) -> list[tuple[list[int], list[int]]]:
    """The i-th source word becomes the i-th target word, in any order."""
    chooser = random.Random(seed)
    pairs = []
    for _ in range(count):
        words = [chooser.randrange(10) for _ in range(chooser.randint(1, 6))]
        pairs.append(([4 + word for word in words], [4 + word for word in chooser.sample(words, len(words))]))
    return pairs


def test_each_word_becomes_that_of_the_dictionary():
    found = learn_shortlist(dictionary_text(300), SOURCE, TARGET)
    assert found.of_token[4:, 0].tolist() == list(range(4, 14))


def test_probabilities_are_those_of_model_1(monkeypatch):
    """Against expectation maximisation over dictionaries, word by word."""
    pairs = dictionary_text(12)
    t: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(shortlist.ROUNDS):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in pairs:
            for f in target:
                whole = sum(t[e, f] for e in source)
                for e in source:
                    counts[e, f] += t[e, f] / whole
        totals: dict[int, float] = defaultdict(float)
        for (e, _), count in counts.items():
            totals[e] += count
        t = defaultdict(float, {(e, f): count / totals[e] for (e, f), count in counts.items()})
    table = learn_shortlist(pairs, SOURCE, TARGET).of_token
    for e in {e for e, _ in t}:
        ids = [f for f in table[e, :-1].tolist() if f >= 0]
        wanted = [f for one, f in t if one == e]
        assert sorted(ids) == sorted(wanted)
        probabilities = [t[e, f] for f in ids]
        assert probabilities == pytest.approx(sorted(probabilities, reverse=True), abs=1e-9)


def test_a_word_may_stay_as_it_is():
    found = learn_shortlist(dictionary_text(5), SOURCE, TARGET)
    assert TARGET.vocabulary[found.of_token[4, -1]] == "a"
    assert (found.of_token[5:, -1] == -1).all()


def test_frequent_words_are_for_every_sentence(monkeypatch):
    monkeypatch.setattr(shortlist, "OF_TOKEN", 1)
    monkeypatch.setattr(shortlist, "ALWAYS", 2)
    pairs = [*dictionary_text(300), *[([4], [4])] * 500, *[([5], [5])] * 400]
    found = learn_shortlist(pairs, SOURCE, TARGET)
    assert found.always.tolist() == [4, 5]
    assert found.of_token[10:13, 0].tolist() == [10, 11, 12]


def test_no_more_is_read_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(shortlist, "MOST_LINKS", 50)
    read = []

    def pairs():
        for pair in dictionary_text(300):
            read.append(pair)
            yield pair

    learn_shortlist(pairs(), SOURCE, TARGET)
    assert len(read) < 30


@pytest.mark.parametrize("pairs", [[], [([], [4])], [([4], [])]])
def test_text_without_pairs_is_refused(pairs):
    with pytest.raises(UserError, match="no pair with text on both sides"):
        learn_shortlist(pairs, SOURCE, TARGET)
