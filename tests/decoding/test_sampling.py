"""Sampling: frequencies are the probabilities, and the options cut and sharpen them as they say."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.decoding import EnsembleEngine, Sampling, TorchEngine, greedy, sample
from headway.decoding.engine import padded
from headway.decoding.greedy_search import draw_tokens
from headway.errors import UserError
from headway.model import ModelConfig, Transformer

PROBABILITIES = torch.tensor([0.1, 0.4, 0.2, 0.3])


def frequencies(sampling: Sampling, probabilities=PROBABILITIES) -> torch.Tensor:
    """Of tokens drawn at evenly spread chances, so exact to one part in the number of draws."""
    draws = 10_000
    chances = (torch.arange(draws)[:, None] + 0.5) / draws
    tokens = draw_tokens(probabilities.log().expand(draws, -1), chances, sampling)
    return torch.bincount(tokens, minlength=len(probabilities)) / draws


@pytest.mark.parametrize(
    ("sampling", "wanted"),
    [
        (Sampling(), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(temperature=0.5), [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        (Sampling(top_k=2), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_p=0.39), [0, 1, 0, 0]),
        (Sampling(top_p=0.41), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_p=0.95), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(top_k=3, top_p=0.75), [0, 4 / 9, 2 / 9, 3 / 9]),
        (Sampling(temperature=0.02), [0, 1, 0, 0]),
    ],
)
def test_frequencies_are_the_probabilities(sampling, wanted):
    torch.testing.assert_close(frequencies(sampling), torch.tensor(wanted, dtype=torch.float32), atol=2e-4, rtol=0)


def by_definition(probabilities: Sequence[float], sampling: Sampling) -> np.ndarray:
    """What is drawn how often: the k likeliest tokens, then as few of them, likeliest first, as have top_p together;
    all by the probabilities at this temperature."""
    at_temperature = np.array(probabilities) ** (1 / sampling.temperature)
    at_temperature /= at_temperature.sum()
    left, together = np.zeros(len(probabilities)), 0.0
    for token in np.argsort(-at_temperature)[: sampling.top_k or None]:
        assume(abs(together - sampling.top_p) > 1e-4)  # so that rounding decides nothing
        if together < sampling.top_p:
            left[token] = at_temperature[token]
        together += at_temperature[token]
    return left / left.sum()


@given(
    weights=st.lists(st.integers(1, 60), min_size=2, max_size=6, unique=True),
    sampling=st.builds(
        Sampling, st.sampled_from([0.3, 0.5, 1.0, 2.0, 4.0]), st.integers(0, 4), st.sampled_from([0.2, 0.5, 0.8, 1.0])
    ),
)
def test_the_nucleus_is_of_the_probabilities_at_the_temperature(weights, sampling):
    probabilities = [weight / sum(weights) for weight in weights]
    wanted = by_definition(probabilities, sampling)
    np.testing.assert_allclose(frequencies(sampling, torch.tensor(probabilities)), wanted, atol=3e-4)


def test_the_nucleus_ends_where_it_has_just_top_p():
    """Of two tokens that are equally likely, the first has the half by itself."""
    log_probabilities = torch.zeros(1, 2).log_softmax(-1)
    chances = torch.tensor([[0.1], [0.9]], dtype=torch.float64)
    for top_p, count in [(0.5, 1), (np.nextafter(0.5, 1.0), 2)]:
        drawn = draw_tokens(log_probabilities.expand(2, -1), chances, Sampling(top_p=float(top_p)))
        assert len(set(drawn.tolist())) == count


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [63, 64, 65, 1000, 5000])
@pytest.mark.parametrize("top_p", [1.0, 0.9])
def test_large_vocabularies(size, top_p, dtype):
    """Single chances draw what numpy finds in the sums of all probabilities."""
    random = np.random.default_rng(size)
    logits = random.normal(size=size) * 3
    logits[random.random(size) < 0.3] = -np.inf
    order = np.argsort(-logits) if top_p < 1 else np.arange(size)
    probabilities = np.exp(logits[order]) / np.exp(logits).sum()
    probabilities[probabilities.cumsum() - probabilities >= top_p] = 0.0
    ends = probabilities.cumsum()
    chances = random.random((300, 1))
    wanted = order[np.searchsorted(ends, chances[:, 0] * ends[-1], side="right")]
    rows = torch.tensor(logits, dtype=torch.float32).log_softmax(-1).expand(300, -1)
    found = draw_tokens(rows, torch.tensor(chances, dtype=dtype), Sampling(top_p=top_p))
    assert (found.numpy() == wanted).mean() > 0.99  # rounding may decide


def test_a_nucleus_may_have_most_of_a_vocabulary():
    rows = torch.zeros(300, 3000).log_softmax(-1)
    chances = torch.linspace(0, 1, 300, dtype=torch.float64)[:, None]
    drawn = draw_tokens(rows, chances, Sampling(top_p=0.5))
    assert len(set(drawn.tolist())) == 300
    rows = torch.cat([rows[:150], rows[:150].index_fill(1, torch.arange(1, 3000), -torch.inf)])
    assert set(draw_tokens(rows, chances, Sampling(top_p=0.5))[150:].tolist()) == {0}


def test_what_is_impossible_is_never_drawn():
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.5])
    assert frequencies(Sampling(temperature=100.0), probabilities)[[0, 2]].sum() == 0
    edge = draw_tokens(probabilities.log()[None], torch.tensor([[np.nextafter(1.0, 0.0)]]), Sampling())
    assert edge.item() in (1, 3)


def model(seed=0) -> Transformer:
    torch.manual_seed(seed)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
    return Transformer(ModelConfig(source_vocab_size=20, target_vocab_size=20, **options)).eval()


TEXTS = [[5, 6, 3], [7, 3], [8, 9, 4, 10, 11, 3]]


def generators(numbers=(0, 1, 2)):
    return [np.random.default_rng(number) for number in numbers]


def test_a_sample_does_not_depend_on_its_batch_and_its_score_is_the_models():
    engine = TorchEngine(model())
    sampling = Sampling(temperature=0.7, top_k=10)
    together = sample(engine, padded(TEXTS, 0), [9, 9, 9], sampling, generators())
    for number, (text, found) in enumerate(zip(TEXTS, together, strict=True)):
        [alone] = sample(engine, torch.tensor([text]), [9], sampling, generators([number]))
        assert alone.ids == found.ids
        given = [*found.ids, 3]
        total = engine.score(torch.tensor([text]), torch.tensor([[2, *given]])).sum().item()
        assert found.score == pytest.approx(total, abs=1e-4)


def test_another_seed_gives_another_sample():
    engine, source = TorchEngine(model()), padded(TEXTS, 0)
    drawn = [sample(engine, source, [9] * 3, Sampling(), generators([seed] * 3)) for seed in (1, 1, 2)]
    ids = [[hypothesis.ids for hypothesis in hypotheses] for hypotheses in drawn]
    assert ids[0] == ids[1] != ids[2]


def test_an_ensemble_is_the_mean_of_probabilities():
    engines = [TorchEngine(model(seed)) for seed in (1, 2, 3)]
    together = EnsembleEngine(engines)
    source, tokens = padded(TEXTS, 0), torch.tensor([2, 2, 2])
    mean = sum(engine.step(engine.start(source), tokens).exp() for engine in engines) / 3
    torch.testing.assert_close(together.step(together.start(source), tokens).exp(), mean)
    target = torch.tensor([[2, 5, 3]] * 3)
    probabilities = sum(engine.score(source, target).exp() for engine in engines) / 3
    torch.testing.assert_close(together.score(source, target).exp(), probabilities)


def test_an_ensemble_of_one_model_with_itself_is_the_model():
    engine = TorchEngine(model())
    source = padded(TEXTS, 0)
    alone, twice = greedy(engine, source, [9] * 3), greedy(EnsembleEngine([engine, engine]), source, [9] * 3)
    assert [one.ids for one in alone] == [one.ids for one in twice]


def test_scores_of_given_targets_are_those_of_the_whole_model():
    net = model()
    targets = [[2, 5, 6, 3], [2, 3], [2, 9, 3]]
    scores = TorchEngine(net).score(padded(TEXTS, 0), padded(targets, 0))
    assert scores.shape == (3, 3)
    for text, target, row in zip(TEXTS, targets, scores, strict=True):
        logits = net(torch.tensor([text]), torch.tensor([target[:-1]]))[0].log_softmax(-1)
        wanted = logits.gather(1, torch.tensor(target[1:])[:, None])[:, 0]
        torch.testing.assert_close(row[: len(wanted)], wanted)
        assert not row[len(wanted) :].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"temperature": 1e-38}, "temperature=1e-38"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"top_k": -1}, "top_k=-1: must be at least 0"),
        ({"seed": 1.5}, "seed=1.5"),
    ],
)
def test_impossible_sampling(options, message):
    with pytest.raises(UserError, match=message):
        Sampling(**options)


@pytest.mark.parametrize(("options", "last"), [({"top_k": 2}, 3), ({"top_p": 0.6}, 3), ({}, 3)])
def test_the_highest_chance_draws_the_last_token_that_may_be_drawn(options, last):
    """A chance below 1 may be rounded to it."""
    ranked = torch.tensor([[0.1, 0.4, 0.2, 0.3, 0.0]]).log()  # the likeliest come first only if few may be drawn
    assert draw_tokens(ranked, torch.ones(1, 1), Sampling(**options)).tolist() == [last]
