"""The sample that tokenizers are learned from: even over the corpora, always the same, all of a small text."""

import tracemalloc
from collections import Counter

import pytest

from headway.data import corpus as corpus_module
from headway.data.corpus import CorpusFiles
from headway.data.vocabulary import quotas, sample, sampled_texts
from headway.recipe.reading import make_recipe

SIZES = [40, 1000, 300]


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "LINES", 32)
    made = []
    for corpus, size in enumerate(SIZES):
        for side in "st":
            lines = "".join(f"{side} {corpus} {line}\n" for line in range(size))
            (tmp_path / f"{corpus}.{side}").write_text(lines)
        made.append(CorpusFiles((tmp_path / f"{corpus}.s",), (tmp_path / f"{corpus}.t",)))
    return made


def drawn(corpora, most):
    found = list(sample(corpora, most))
    for corpus, (source, target) in found:
        assert source.split()[:2] == ["s", str(corpus)]
        assert target == f"t{source[1:]}"
    places = [(corpus, int(source.split()[2])) for corpus, (source, _) in found]
    assert places == sorted(set(places))
    return places


def test_of_a_small_text_all_is_taken_in_order(corpora):
    assert len(drawn(corpora, sum(SIZES))) == len(drawn(corpora, 10**6)) == sum(SIZES)


@pytest.mark.parametrize("most", [1, 2, 3, 30, 200, 500, 700, 1339])
def test_each_corpus_gives_as_many_as_far_as_it_has_them(corpora, most):
    counts = Counter(corpus for corpus, _ in drawn(corpora, most))
    assert sum(counts.values()) == most
    taken = [counts[corpus] for corpus in range(3)]
    level = max(taken)
    assert all(count == size or level - count <= 1 for count, size in zip(taken, SIZES, strict=True))


def test_quotas_fill_up_what_small_corpora_leave():
    assert quotas([40, 1000, 300], 200) == [40, 80, 80]
    assert quotas([40, 1000, 300], 10**6) == [40, 1000, 300]
    assert quotas([5], 3) == [3]


def test_the_draw_is_the_same_again_and_as_likely_everywhere(corpora):
    assert drawn(corpora, 200) == drawn(corpora, 200)
    large = [line for corpus, line in drawn(corpora, 700) if corpus == 1]
    assert len(large) == 360
    quarters = Counter(line // 250 for line in large)
    assert all(60 < quarters[quarter] < 120 for quarter in range(4)), quarters  # 90, within four deviations


def test_text_that_is_not_drawn_is_not_kept(tmp_path, monkeypatch):
    """Of 3 MB on each side, in chunks of 0.1 MB."""
    monkeypatch.setattr(corpus_module, "LINES", 100)
    files = []
    for side in "st":
        files.append(tmp_path / side)
        files[-1].write_text(f"{side * 1_000}\n" * 3000)
    corpora = [CorpusFiles((files[0],), (files[1],))]
    tracemalloc.start()
    try:
        pairs = sample(corpora, 10)
        next(pairs)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


def test_what_filters_drop_is_not_learned_from(tmp_path):
    rows = ["good\tgut", "same\tsame", "\tblank", "long " * 30 + "\tx"]
    (tmp_path / "a.tsv").write_text("".join(f"{row}\n" for row in rows))
    files = {"source": str(tmp_path / "a.tsv")}
    filters = {"copies": True, "words": [1, 5]}
    data = {"train": files, "valid": files, "filters": filters, "source_language": "en", "target_language": "de"}
    document = {"data": data, "training": {"max_steps": 1}}
    recipe = make_recipe(document)
    corpora = [recipe.data.files_of(recipe.data.train[0])]
    assert sampled_texts(recipe.preparation(99), corpora, []) == [("good", "gut")]
