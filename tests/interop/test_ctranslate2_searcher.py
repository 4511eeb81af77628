"""`engine="ctranslate2"` behind the same door: the same texts, scores and rules as ours, or a refusal by name."""

import pytest
import torch
from tests.interop.test_ctranslate2 import stored

from headway.decoding import Sampling
from headway.errors import UserError
from headway.interop import ctranslate2_searcher
from headway.translator import Translator

pytest.importorskip("ctranslate2")

TEXTS = ["the cat sat", "a dog ran after the mat", "", "mat " * 30, "한국어 ☃", "x" * 1000, "the dog"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def both(cache):
    one = ending()
    return Translator(one), Translator(one, engine="ctranslate2")


def ending():
    """A random model of whose translations some end by themselves."""
    one = stored(output_bias=True)
    for _ in range(30):
        kinds = {translation.stopped for translation in Translator(one).translate(TEXTS, beam_size=1, max_length=12)}
        if {"eos", "max_length"} <= kinds:
            return one
        with torch.no_grad():
            one.model.output.bias[one.model.config.eos_id] += 0.5
    raise AssertionError("no such model was found")


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 1, "max_length": 5},
        {"beam_size": 4, "length_penalty": 0.0, "max_length": 20},
        {"beam_size": 3, "n_best": 3, "length_penalty": 0.0, "max_length": 6},
        {"beam_size": 1, "prefix": "the cat", "max_length": 12},
        {"beam_size": 1, "no_repeat_ngram": 2, "max_length": 12},
    ],
    ids=str,
)
def test_translations_are_ours(both, options):
    ours, theirs = (translator.translate(TEXTS, **options) for translator in both)
    for one, other in zip(ours, theirs, strict=True):
        if options["beam_size"] > 1 and one.stopped == "max_length":
            continue  # a beam that is cut is another one there
        assert (other.text, other.stopped) == (one.text, one.stopped)
        assert other.tokens == one.tokens
        assert other.source_tokens == one.source_tokens
        assert one.score - 2e-3 <= other.score <= one.score + 0.2 * (len(one.tokens) + 1)  # less <unk>
        assert len(other.alternatives) == len(one.alternatives)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_scores_are_log_probabilities_whatever_the_penalty(both, length_penalty):
    _, theirs = both
    options = {"beam_size": 4, "n_best": 4, "length_penalty": length_penalty, "max_length": 15}
    for source, translation in zip(TEXTS, theirs.translate(TEXTS, **options), strict=True):
        for one in [translation, *translation.alternatives] if translation.tokens else []:
            again = theirs.stored.target_tokenizer.encode(one.text)
            if again == [theirs.stored.target_tokenizer.vocabulary.index(piece.text) for piece in one.tokens]:
                [score] = both[0].score([source], [one.text])
                assert score - 2e-3 <= one.score <= score + 0.2 * (len(one.tokens) + 1)


def test_given_translations_have_the_same_score(both):
    targets = ["the mat", "ran ran", "", "after", "☃", "y", "a dog"]
    ours, theirs = (translator.score(TEXTS, targets) for translator in both)
    assert theirs == pytest.approx(ours, abs=2e-3, nan_ok=True)


def test_its_own_length_penalty_is_the_default(both):
    ours, theirs = both
    ours.stored.decoding["length_penalty"] = 0.3
    assert ours.search_options().length_penalty == 0.3
    assert theirs.search_options().length_penalty == ctranslate2_searcher.LENGTH_PENALTY
    assert theirs.search_options(length_penalty=0.2).length_penalty == 0.2


def test_int8_translates(cache):
    translator = Translator(stored(), engine="ctranslate2", precision="int8")
    assert translator.translate(["the cat sat"], beam_size=2)[0].text


def test_what_it_can_not_honour_is_refused_by_name(both, cache):
    with pytest.raises(UserError, match="ctranslate2 has no sample"):
        both[1].translate(["the cat"], sample=Sampling())
    with pytest.raises(UserError, match="ensemble"):
        Translator(stored(), engine="ctranslate2", ensemble=[stored()])
    with pytest.raises(UserError, match="int8 needs engine ctranslate2"):
        Translator(stored(), precision="int8")
    with pytest.raises(UserError, match="engine 'marian' is unknown"):
        Translator(stored(), engine="marian")


def test_it_is_exported_once_and_again_where_the_copy_is_damaged(cache, monkeypatch):
    exported = []
    real = ctranslate2_searcher.export_ctranslate2
    monkeypatch.setattr(
        ctranslate2_searcher, "export_ctranslate2", lambda *given: (exported.append(given), real(*given))
    )
    one = stored()
    for _ in range(2):
        Translator(one, engine="ctranslate2")
    assert len(exported) == 1
    [folder] = cache.iterdir()
    (folder / "model.bin").write_bytes(b"")
    Translator(one, engine="ctranslate2")
    assert len(exported) == 2
    with torch.no_grad():
        one.model.output.weight[5, 5] += 1  # another model is another copy
    Translator(one, engine="ctranslate2")
    assert len(exported) == 3
    assert len(list(cache.iterdir())) == 2


def test_without_a_cache_it_runs_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "file" / "cache"))
    assert Translator(stored(), engine="ctranslate2").translate(["the cat"], beam_size=1)
