"""What is like known text and what isn't, against the Mahalanobis distance as numpy computes it."""

import math
from collections import Counter
from random import Random

import numpy as np
import pytest

from headway.text.domain import FALSE_ALARMS, LEAST_VARIANCE, UNSEEN, Domain, learn_domain
from headway.text.subwords import SubwordTokenizer

WORDS = ["der", "die", "hund", "katze", "läuft", "schläft", "auf", "einer", "wiese", "straße", "und", "mit", "bällen"]


def sentences(count: int, seed: int) -> list[str]:
    random = Random(seed)
    return [" ".join(random.choice(WORDS) for _ in range(random.randint(4, 12))) for _ in range(count)]


TOKENIZER = SubwordTokenizer.train(sentences(300, 1), "bpe", 330)


def encoded(texts: list[str]) -> list[list[int]]:
    return [TOKENIZER.encode(text) for text in texts]


@pytest.fixture(scope="module")
def domain() -> Domain:
    known = sentences(400, 2)
    return learn_domain(known, encoded(known), TOKENIZER.vocab_size)


def test_the_distance_is_mahalanobis(domain):
    """Of looks that are computed here from the text alone: each known text by the counts of all others, a further one
    by those of all."""
    known, further = sentences(400, 2), [*sentences(5, 3), "quarks xylophon", "the dog runs"]
    ids = encoded(known)
    counts = Counter(id_ for one in ids for id_ in one)

    def look(text: str, pieces: list[int], counted: Counter) -> list[float]:
        total = sum(counted.values()) + UNSEEN * TOKENIZER.vocab_size
        surprise = -sum(math.log((counted[id_] + UNSEEN) / total) for id_ in pieces) / len(pieces)
        return [math.log(len(pieces) / len(text.replace(" ", ""))), surprise]

    looks = np.array([look(text, one, counts - Counter(one)) for text, one in zip(known, ids, strict=True)])
    inverse = np.linalg.inv(np.cov(looks.T) + LEAST_VARIANCE * np.eye(2))

    def distance(one: np.ndarray) -> float:
        away = one - looks.mean(axis=0)
        return math.sqrt(away @ inverse @ away)

    farthest = np.quantile([distance(one) for one in looks], 1 - FALSE_ALARMS)
    expected = [distance(np.array(look(text, TOKENIZER.encode(text), counts))) / farthest for text in further]
    assert domain.distances(further, encoded(further)) == pytest.approx(expected)


def test_known_and_unknown_text(domain):
    further = sentences(1000, 4)
    assert 0.01 < (domain.distances(further, encoded(further)) > 1).mean() < 0.07
    random = Random(5)
    shuffled = ["".join(random.sample(text, len(text))) for text in further]
    foreign = [
        "a man in an orange hat looks at something",
        "하얀 개가 잔디밭에서 뛴다",
        *shuffled,
        *map(str.upper, further),
    ]
    assert (domain.distances(foreign, encoded(foreign)) > 1).mean() > 0.98


def test_white_space_and_unicode_forms_do_not_matter(domain):
    texts = ["die straße  und die bällen", "die straße und die ba\u0308llen", " die straße und die bällen"]
    distances = domain.distances(texts, encoded(texts))
    assert distances == pytest.approx(distances[0])


def test_every_text_needs_its_pieces(domain):
    texts = sentences(9, 4)
    for fewer in (texts, encoded(texts)[:-1]), (texts[:-1], encoded(texts)):
        with pytest.raises(ValueError, match="zip"):
            domain.distances(*fewer)
        with pytest.raises(ValueError, match="zip"):
            learn_domain(*fewer, TOKENIZER.vocab_size)


def test_text_that_is_all_alike_has_a_domain():
    domain = learn_domain(["der hund"] * 200, encoded(["der hund"] * 200), TOKENIZER.vocab_size)
    near, far = domain.distances(["der hund", "xyz"], encoded(["der hund", "xyz"]))
    assert math.isfinite(near)
    assert math.isfinite(far)
    assert near <= 1
    assert domain.distances([], []).shape == (0,)
