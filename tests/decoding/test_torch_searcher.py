"""The searcher on torch: each source with its own prefix, cap and number of hypotheses, in whatever batch it is."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headway.decoding import Phrase, RequiredPhrases, Sampling, SearchOptions, TorchEngine, TorchSearcher
from headway.model import ModelConfig
from tests.pretend_device import PretendTensor
from tests.properties.models import EOS, PAD, VOCABULARY, random_model

WORDS = st.integers(EOS + 1, VOCABULARY - 1)
SEARCHES = [
    SearchOptions(beam_size=1),
    SearchOptions(beam_size=3, n_best=3),
    SearchOptions(sample=Sampling(temperature=2.0), n_best=3),
]


@pytest.fixture(scope="module")
def searcher() -> TorchSearcher:
    config = ModelConfig(VOCABULARY, VOCABULARY, d_model=16, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1)
    engine = TorchEngine(random_model(config, seed=1), dtype=torch.float64)
    return TorchSearcher(engine, PAD, torch.device("cpu"))


@pytest.mark.parametrize("options", SEARCHES, ids=["greedy", "beam", "sample"])
@given(
    asked=st.lists(
        st.tuples(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, max_size=3), st.integers(4, 9)),
        min_size=1,
        max_size=4,
    )
)
def test_each_source_has_its_own_prefix_and_cap(searcher, options, asked):
    sources, prefixes, caps = map(list, zip(*asked, strict=True))
    together = searcher.search(sources, options, caps, prefixes)
    for (source, prefix, cap), found in zip(asked, together, strict=True):
        assert len(found) == options.n_best
        assert all(one.ids[: len(prefix)] == prefix and len(one.ids) <= cap for one in found)
        [alone] = searcher.search([source], options, [cap], [prefix])
        assert [one.ids for one in found] == [one.ids for one in alone]
        assert [one.score for one in found] == pytest.approx([one.score for one in alone], abs=1e-5)
        assert [one.score for one in found] == pytest.approx(
            searcher.score([source] * len(found), [one.ids for one in found]), abs=1e-5
        )


def test_a_source_without_room_for_its_phrases_is_searched_without_them(searcher):
    sources, caps, prefixes = [[5, 6], [6, 7, 8]], [2, 9], [[], []]
    required = RequiredPhrases([(Phrase((4, 5, 6)),), (Phrase((4,)),)], np.zeros(VOCABULARY, dtype=bool))
    options = SearchOptions(beam_size=2)
    [found], [other] = searcher.search(sources, options, caps, prefixes, required)
    [[free]] = searcher.search(sources[:1], options, caps[:1], prefixes[:1])
    assert (found.ids, found.score) == (free.ids, pytest.approx(free.score, abs=1e-5))
    assert 4 in other.ids


@pytest.mark.parametrize("beam_size", [1, 4])
def test_sources_that_are_done_leave_the_others_what_they_must_have(searcher, beam_size):
    """Many are done before others; each has other phrases, another cap and another prefix."""
    chance = np.random.default_rng(1)

    def words(most: int) -> list[int]:
        return chance.integers(EOS + 1, VOCABULARY, chance.integers(1, most + 1)).tolist()

    sources, caps = [words(6) for _ in range(24)], [int(cap) for cap in chance.integers(8, 20, 24)]
    prefixes = [words(2) if number % 3 == 0 else [] for number in range(24)]
    phrases = [tuple(Phrase(tuple(words(2))) for _ in range(1 + number % 2)) for number in range(24)]
    required, options = RequiredPhrases(phrases, np.zeros(VOCABULARY, dtype=bool)), SearchOptions(beam_size=beam_size)
    together = searcher.search(sources, options, caps, prefixes, required)
    assert len({len(found[0].ids) for found in together}) > 4
    for number, [found] in enumerate(together):
        [[alone]] = searcher.search(
            [sources[number]], options, [caps[number]], [prefixes[number]], required.of([number])
        )
        assert found.ids == alone.ids
        assert found.score == pytest.approx(alone.score, abs=1e-5)
        assert required.found_in(number, found.ids)
        [score] = searcher.score([sources[number]], [found.ids])
        assert found.score == pytest.approx(score, abs=1e-5)


def test_the_cores_of_a_search_leave_other_threads_theirs(searcher, monkeypatch):
    """Also threads that use torch for the first time: meanwhile, or for a search of their own at the same time."""
    before, real, workers, others = torch.get_num_threads(), searcher._search_batch, [], []

    def search_batch(*arguments):
        workers.append(torch.get_num_threads())
        with ThreadPoolExecutor(1) as new:
            others.append(new.submit(torch.get_num_threads).result())
        return real(*arguments)

    def search(_: int = 0) -> int:
        searcher.search([[EOS + 1] * 3] * 300, SearchOptions(beam_size=1), [4] * 300, [[]] * 300)
        return torch.get_num_threads()

    try:
        torch.set_num_threads(2)
        with monkeypatch.context() as patch:
            patch.setattr(searcher, "_search_batch", search_batch)
            assert search() == 2
        with ThreadPoolExecutor(4) as callers:
            assert {*callers.map(search, range(8))} == {2}
    finally:
        torch.set_num_threads(before)
    assert (workers, others) == ([1] * 3, [2] * 3)


@pytest.mark.parametrize(("gib", "times"), [(None, 1), (4, 1), (24, 3), (80, 8)])
def test_batches_are_larger_on_a_larger_card(searcher, pretend_device, monkeypatch, gib, times):
    """None: on the CPU. 128 sentences of up to 4,096 tokens, or 320 hypotheses, as often as the card has 8 GiB."""
    device = torch.device("cpu") if gib is None else pretend_device("cuda")
    monkeypatch.setattr(PretendTensor, "memory", (gib or 0) * 2**30)
    there, sizes = TorchSearcher(searcher._engine, PAD, device), []
    monkeypatch.setattr(there, "_search_batch", lambda work, *_: sizes.append(len(work.sources)) or [[]] * sizes[-1])
    for width, length in [(1, 5), (5, 5), (1, 1023)]:
        sources = [[EOS + 1] * length] * 3000
        there.search(sources, SearchOptions(beam_size=width), [9] * 3000, [[]] * 3000)
        assert sum(sizes) == 3000
        assert max(sizes) == times * min(128, 320 // width, 4096 // (length + 1))
        sizes.clear()
