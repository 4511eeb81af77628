"""What was seen before, against a plain set."""

import random

import numpy as np

from headway.data.encoding import SeenHashes, hash_of


def test_first_times_are_those_of_a_set():
    chooser = random.Random(5)
    seen, plain = SeenHashes(), set()
    for _ in range(60):
        hashes = [chooser.choice([chooser.randrange(300), 2**64 - 1 - chooser.randrange(9)]) for _ in range(30)]
        wanted = []
        for one in hashes:
            wanted.append(one not in plain)
            plain.add(one)
        assert seen.first(np.array(hashes, dtype=np.uint64)).tolist() == wanted
    assert seen.first(np.array([], dtype=np.uint64)).tolist() == []


def test_a_million_take_no_more_than_was_promised():
    seen = SeenHashes()
    for start in range(0, 2**20, 2**14):
        assert seen.first(np.arange(start, start + 2**14, dtype=np.uint64)).all()
    assert sum(part.nbytes for part in seen._sorted) == 8 * 2**20
    assert len(seen._sorted) < 20


def test_texts_that_differ_have_other_hashes():
    texts = [f"{number}{end}" for number in range(2000) for end in ("", " ", "\u00e4", "a\u0308")]
    assert len({hash_of(text) for text in texts}) == len(texts)
    assert all(0 <= hash_of(text) < 2**64 for text in texts)
