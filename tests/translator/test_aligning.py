"""Alignments are where the attention of the record is, and the choice finds the attention that aligns."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.insight.maps import attention_names
from headway.insight.recording import record_pass
from headway.model import ModelConfig, Transformer
from headway.storage import Aligner
from headway.translator import aligning as module
from headway.translator.aligning import align, choose_aligner
from headway.translator.reading import PlainReader, Reader, TorchReader
from tests.properties.models import EOS, FIRST_WORD, SEEDS, VOCABULARY, configs, random_model

WORDS = st.lists(st.integers(FIRST_WORD, VOCABULARY - 1), max_size=6)
PAIRS = st.lists(st.tuples(WORDS.filter(bool), WORDS), min_size=1, max_size=4)


def plain_reader(model: Transformer) -> Reader:
    return PlainReader(model.config, {name: one.detach().numpy() for name, one in model.named_parameters()})


@given(
    configs(),
    SEEDS,
    PAIRS,
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([TorchReader, plain_reader]),
    st.data(),
)
def test_alignments_of_many_are_where_the_record_of_each_looks(
    config, seed, pairs, shifted, eos_is_nothing, skipped, reader_of, data
):
    model = random_model(config, seed)
    layer = data.draw(st.sampled_from([None, *range(config.decoder_layers)]))
    head = data.draw(st.sampled_from([None, *range(config.decoder_num_heads or config.num_heads)]))
    sources, targets = zip(*pairs, strict=True)
    found = align(
        reader_of(model), Aligner(layer, head, shifted, eos_is_nothing), sources, targets, [skipped] * len(pairs)
    )
    for source, target, places in zip(sources, targets, found, strict=True):
        arrays = record_pass(model, [*source, EOS], [*target, EOS])
        maps = np.stack([arrays[name] for name in attention_names(config)["cross"]])  # (layers, heads, query, key)
        assert len(places) == len(target)
        for number, place in enumerate(places):
            row = maps[:, :, number + shifted].astype(float)
            row = row if layer is None else row[layer : layer + 1]
            row = (row if head is None else row[:, head : head + 1]).mean(axis=(0, 1))
            readable = range(skipped, len(source)) if skipped < len(source) else range(len(source))
            choices = {key: row[key] for key in readable} | ({None: row[len(source)]} if eos_is_nothing else {})
            assert choices[place] == pytest.approx(max(choices.values()), abs=1e-6)


LAYERS, HEADS = 3, 2
READER = TorchReader(
    Transformer(
        ModelConfig(VOCABULARY, VOCABULARY, d_model=8, num_heads=HEADS, encoder_layers=1, decoder_layers=LAYERS, d_ff=8)
    )
)


def translated(count, blank=False):
    """Pairs of a word-for-word translation in another order, and where each target token comes from; with `blank` every
    other target token stands for nothing in the source."""
    draw = random.Random(1)
    for _ in range(count):
        source = [draw.randrange(4, 30) for _ in range(draw.randrange(2, 8))]
        places = draw.sample(range(len(source)), len(source))
        if blank:
            places = [one for place in places for one in (place, len(source))]
        yield source, [100 if place == len(source) else 50 + source[place] for place in places], places


@pytest.mark.parametrize(
    ("layer", "head", "shifted", "blank"),
    [*product(range(LAYERS), range(HEADS), [False, True], [False]), (2, 1, False, True), (0, 0, True, True)],
)
def test_the_choice_finds_the_head_that_aligns(monkeypatch, layer, head, shifted, blank):
    """Attention in which one head looks at the translated token and all others look anywhere."""
    pairs = list(translated(200, blank))
    noise = np.random.default_rng(1)

    def attention(reader, sources, targets):
        for number, (source, target, places) in enumerate(pairs):
            assert (sources[number], targets[number]) == (source, target)
            weights = noise.dirichlet(np.full(len(source) + 1, 0.05), size=(LAYERS, HEADS, len(target) + 1))
            for step, place in enumerate(places, start=shifted):
                weights[layer, head, step] = np.eye(len(source) + 1)[place] * 0.7 + 0.3 / (len(source) + 1)
            yield number, weights.astype(np.float32)

    monkeypatch.setattr(module, "_cross_weights", attention)
    found = choose_aligner(READER, [source for source, _, _ in pairs], [target for _, target, _ in pairs])
    assert (found.layer, found.head, found.shifted) == (layer, head, shifted)
    assert found.eos_is_nothing or not blank


def test_nothing_to_choose_by_leaves_the_default():
    assert choose_aligner(READER, [], []) == choose_aligner(READER, [[], [5]], [[5], []]) == Aligner()


def test_shared_information_of_each_token_by_all_others():
    sources, targets = np.array([1, 1, 1, 2, 2, 2, 2, 3]), np.array([7, 7, 8, 8, 8, 8, 9, 9])

    def surprise(tokens, given):
        total = 0.0
        kinds = len(set(tokens))
        for i, token in enumerate(tokens):
            others = [j for j in range(len(tokens)) if j != i]
            alone = (sum(tokens[j] == token for j in others) + 0.1) / (len(others) + 0.1 * kinds)
            if given is None:
                total -= np.log(alone)
            else:
                like = [j for j in others if given[j] == given[i]]
                total -= np.log((sum(tokens[j] == token for j in like) + alone) / (len(like) + 1))
        return total / len(tokens)

    shared = sum(surprise(a, None) - surprise(a, b) for a, b in ((sources, targets), (targets, sources))) / 2
    together = shared + surprise(sources, targets) + surprise(targets, sources)
    assert module._shared_information(sources, targets) == pytest.approx(shared / together)


def test_shared_information_is_little_where_there_is_none_and_much_where_all_is_known():
    draw = np.random.default_rng(1)
    sources = draw.integers(0, 20, 5000)
    assert module._shared_information(sources, sources[::-1]) < 0.02
    assert module._shared_information(sources, (7 * sources + 3) % 20) > 0.98
    assert module._shared_information(np.zeros(5000, int), sources) == pytest.approx(0, abs=0.01)
    once = np.arange(5000)
    assert module._shared_information(once, once[::-1]) < 0.1  # seen once each: no evidence
