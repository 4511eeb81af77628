"""What a translation must begin with and must not repeat, in every search, and that it has a token."""

import numpy as np
import pytest
import torch

from headway.decoding import Constraints, Sampling, TorchEngine, beam_search, greedy, sample
from headway.decoding.engine import padded
from headway.model import ModelConfig, Transformer

CAPS = [20, 30, 12]


@pytest.fixture(scope="module")
def engine() -> TorchEngine:
    return TorchEngine(random_model())


def random_model() -> Transformer:
    torch.manual_seed(0)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
    return Transformer(ModelConfig(source_vocab_size=12, target_vocab_size=12, **options)).eval()


SOURCE = padded([[5, 6, 3], [7, 3], [8, 9, 4, 3]], 0)


def searches(engine, constraints, caps=CAPS):
    generators = [np.random.default_rng(seed) for seed in range(3)]
    yield greedy(engine, SOURCE, caps, constraints)
    yield [found[0] for found in beam_search(engine, SOURCE, caps, beam_size=4, constraints=constraints)]
    yield sample(engine, SOURCE, caps, Sampling(), generators, constraints)


def ngrams(ids, n):
    return [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_ngram_twice(engine, n):
    free = [hypothesis.ids for hypothesis in greedy(engine, SOURCE, CAPS)]
    assert any(len(set(ngrams(ids, n))) < len(ngrams(ids, n)) for ids in free)  # an untrained model repeats itself
    for hypotheses in searches(engine, Constraints(no_repeat_ngram=n)):
        for hypothesis in hypotheses:
            found = ngrams(hypothesis.ids, n)
            assert len(set(found)) == len(found)


def test_forbidden_tokens_by_hand():
    tokens = torch.tensor([[2, 4, 5, 4], [2, 6, 6, 6]])
    allowed = Constraints(no_repeat_ngram=2).apply(torch.zeros(2, 8), tokens, [0, 1]).isfinite()
    assert allowed.logical_not().nonzero().tolist() == [[0, 5], [1, 6]]


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_constraints_on_a_device_are_those_of_the_cpu(pretend_device, kind):
    here, there = random_model(), random_model().to(pretend_device(kind))
    constraints = Constraints([[4, 4, 4], [], [9]], no_repeat_ngram=2)
    found = greedy(TorchEngine(there), SOURCE.to(kind), CAPS, constraints)
    wanted = greedy(TorchEngine(here), SOURCE, CAPS, constraints)
    assert [one.ids for one in found] == [one.ids for one in wanted]


def test_prefixes_are_the_beginning_and_count_in_the_score(engine):
    prefixes = [[4, 4, 4], [], [9]]
    for hypotheses in searches(engine, Constraints(prefixes)):
        for hypothesis, prefix in zip(hypotheses, prefixes, strict=True):
            assert hypothesis.ids[: len(prefix)] == prefix
            assert np.isfinite(hypothesis.score)
    free, forced = greedy(engine, SOURCE, CAPS), greedy(engine, SOURCE, CAPS, Constraints(prefixes))
    assert forced[1].ids == free[1].ids
    assert forced[1].score == pytest.approx(free[1].score, abs=1e-4)
    own = greedy(engine, SOURCE, CAPS, Constraints([hypothesis.ids[:2] for hypothesis in free]))
    for one, other in zip(own, free, strict=True):
        assert one.ids == other.ids
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_a_prefix_may_repeat_itself(engine):
    constraints = Constraints([[4, 4, 4]] * 3, no_repeat_ngram=1)
    for hypotheses in searches(engine, constraints):
        assert all(hypothesis.ids[:3] == [4, 4, 4] and 4 not in hypothesis.ids[3:] for hypothesis in hypotheses)


@pytest.fixture(scope="module")
def hasty() -> TorchEngine:
    """A model that would always rather end at once."""
    torch.manual_seed(1)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, "output_bias": True}
    model = Transformer(ModelConfig(source_vocab_size=12, target_vocab_size=12, **options)).eval()
    with torch.no_grad():
        model.output.bias[model.config.eos_id] = 20.0
    return TorchEngine(model)


@pytest.mark.parametrize("caps", [CAPS, [1, 1, 1]])
def test_no_translation_is_empty_and_its_score_is_the_models(hasty, caps):
    nbest = beam_search(hasty, SOURCE, caps, beam_size=6, n_best=6)
    found = [*searches(hasty, None, caps), *zip(*nbest, strict=True)]
    assert len(found) == 3 + 6
    for hypotheses in found:
        assert [len(one.ids) for one in hypotheses] == [1, 1, 1]
        target = torch.tensor([[hasty.bos_id, *one.ids, hasty.eos_id] for one in hypotheses])
        assert [one.score for one in hypotheses] == pytest.approx(hasty.score(SOURCE, target).sum(1).tolist(), abs=1e-4)


def test_a_prefix_may_be_the_whole_translation_and_no_prefix_may_not(hasty):
    for hypotheses in searches(hasty, Constraints([[4, 5], [], [9]])):
        assert [one.ids for one in hypotheses][::2] == [[4, 5], [9]]
        assert len(hypotheses[1].ids) == 1
        assert {one.stopped for one in hypotheses} == {"eos"}
