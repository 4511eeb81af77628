"""The Tatoeba split: nothing leaks from one part into another, whatever the order of the file."""

import random

import pytest

from headway.corpora.tatoeba import lay_out, split_pairs
from headway.errors import UserError


def corpus(count=2000, seed=1):
    """Sentences with several translations, and some that differ in case and punctuation alone."""
    chooser = random.Random(seed)
    pairs = []
    for i in range(count):
        english, korean = f"Sentence {chooser.randrange(count)}.", f"문장 {chooser.randrange(3 * count)}."
        pairs.append((english if i % 7 else english.upper().replace(".", "!"), korean, f"by {i}"))
    return pairs


def plain(text):
    return "".join(char for char in text.casefold() if char.isalnum())


def test_no_sentence_is_in_two_parts():
    parts = split_pairs(corpus())
    for side in (0, 1):
        seen = [{plain(pair[side]) for pair in pairs} for pairs in parts.values()]
        for i, sentences in enumerate(seen):
            assert not any(sentences & other for other in seen[i + 1 :])
    sizes = {part: len(pairs) for part, pairs in parts.items()}
    assert sum(sizes.values()) == 2000
    assert 0.05 < sizes["test"] / 2000 < 0.16
    assert 0.02 < sizes["valid"] / 2000 < 0.09


def test_the_split_does_not_depend_on_the_order():
    pairs = corpus()
    shuffled = random.Random(2).sample(pairs, len(pairs))
    first, second = split_pairs(pairs), split_pairs(shuffled)
    assert {part: set(found) for part, found in first.items()} == {part: set(found) for part, found in second.items()}


def test_files(tmp_path):
    (tmp_path / "kor.txt").write_text("".join("\t".join(pair) + "\n" for pair in corpus(200)), encoding="utf-8")
    counts, as_published = lay_out(tmp_path / "out", tmp_path)
    assert not as_published
    assert sum(counts.values()) == 200
    for part, count in counts.items():
        for language in ("en", "ko"):
            assert len((tmp_path / "out" / f"{part}.{language}").read_text(encoding="utf-8").splitlines()) == count
    assert "by 7" in (tmp_path / "out" / "attribution.tsv").read_text(encoding="utf-8")


@pytest.mark.parametrize(("data", "message"), [(b"one\ttwo\n", "line 1: must be English"), (b"\xff", "not UTF-8")])
def test_another_file_is_refused(tmp_path, data, message):
    (tmp_path / "kor.txt").write_bytes(data)
    with pytest.raises(UserError, match=message):
        lay_out(tmp_path / "out", tmp_path)
    with pytest.raises(UserError, match=r"has no kor\.txt"):
        lay_out(tmp_path / "out", tmp_path / "out")
