"""Beam search: exhaustive search on tiny tables, greedy search, and the length penalty's published figures."""

import itertools
import math
from collections import Counter

import pytest
import torch

from headway.decoding import TorchEngine, greedy
from headway.decoding.beam import beam_search, length_penalty
from headway.model import ModelConfig, Transformer
from headway.text.batches import pad

BOS, EOS, SYMBOLS, STEPS = 0, 1, 5, 4


class TableEngine:
    """Next-token log-probabilities that depend on all tokens so far, drawn once for each history."""

    bos_id, eos_id = BOS, EOS

    def __init__(self, seed: int) -> None:
        self.seed, self.steps = seed, 0

    def log_probabilities(self, history: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, *history)) % 2**31)
        return (2 * torch.randn(SYMBOLS, generator=generator)).log_softmax(-1)

    def start(self, source):
        return {"histories": [()] * source.size(0)}

    def step(self, state, tokens):
        self.steps += 1
        state["histories"] = [
            (*history, token) for history, token in zip(state["histories"], tokens.tolist(), strict=True)
        ]
        return torch.stack([self.log_probabilities(history) for history in state["histories"]])

    def select(self, state, rows):
        state["histories"] = [state["histories"][row] for row in rows.flatten().tolist()]


def exhaustive(engine: TableEngine, alpha: float) -> tuple[list[int], float]:
    """The best of every translation that ends by <eos> within STEPS tokens and <eos>."""
    best, best_worth = ([], 0.0), -math.inf
    for length in range(STEPS):
        for ids in itertools.product([token for token in range(SYMBOLS) if token != EOS], repeat=length):
            history, score = (BOS,), 0.0
            for token in (*ids, EOS):
                score += engine.log_probabilities(history)[token].item()
                history = (*history, token)
            worth = score / length_penalty(length + 1, alpha)
            if worth > best_worth:
                best, best_worth = (list(ids), score), worth
    return best


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(10))
def test_a_beam_as_wide_as_the_tree_finds_the_optimum(alpha, seed):
    engine = TableEngine(seed)
    [found] = beam_search(engine, torch.zeros(1, 1), [STEPS - 1], beam_size=SYMBOLS**STEPS, alpha=alpha)
    ids, score = exhaustive(engine, alpha)
    assert found[0].ids == ids
    assert found[0].score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_cap_that_the_best_just_reaches_changes_nothing(seed):
    free = beam_search(TableEngine(seed), torch.zeros(1, 1), [STEPS], beam_size=8, n_best=8)[0][0]
    assert free.stopped == "eos"
    [capped, *others] = beam_search(
        TableEngine(seed), torch.zeros(1, 1), [max(1, len(free.ids))], beam_size=8, n_best=8
    )[0]
    assert capped == free
    assert free.ids not in [other.ids for other in others]
    [alone] = greedy(TableEngine(seed), torch.zeros(1, 1), [STEPS])
    if alone.stopped == "eos" and alone.ids:
        assert greedy(TableEngine(seed), torch.zeros(1, 1), [len(alone.ids)]) == [alone]


def test_hypotheses_are_distinct_and_ranked():
    [found] = beam_search(TableEngine(3), torch.zeros(1, 1), [STEPS], beam_size=6, n_best=6, alpha=0.6)
    assert len({tuple(hypothesis.ids) for hypothesis in found}) == len(found) == 6
    worths = [
        hypothesis.score / length_penalty(len(hypothesis.ids) + 1, 0.6)
        for hypothesis in found
        if hypothesis.stopped == "eos"
    ]
    assert worths == sorted(worths, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_stopping_where_nothing_better_can_come_changes_nothing(alpha):
    steps, best = Counter(), {}
    for n_best in (1, 2, 6):
        engines = [TableEngine(seed) for seed in range(30)]
        options = {"beam_size": 6, "n_best": n_best, "alpha": alpha}
        best[n_best] = [beam_search(engine, torch.zeros(1, 1), [12], **options)[0] for engine in engines]
        steps[n_best] = sum(engine.steps for engine in engines)
    for n_best in (1, 2):
        assert best[n_best] == [found[:n_best] for found in best[6]]
    assert steps[1] <= steps[2] <= steps[6]
    if alpha == 0.0:
        assert steps[1] < 0.8 * steps[6]


@pytest.mark.parametrize(("length", "penalty"), [(5, 1.358655), (10, 1.732862), (20, 2.354362), (50, 3.778565)])
def test_length_penalty(length, penalty):
    assert length_penalty(length, 0.6) == pytest.approx(penalty, abs=1e-6)
    assert length_penalty(length, 0.0) == 1.0


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(0)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 2}
    net = Transformer(ModelConfig(source_vocab_size=40, target_vocab_size=40, output_bias=True, **options)).eval()
    with torch.no_grad():
        net.output.weight.mul_(4)
        net.output.bias[3] = 1.0  # sentences end now and then
    return net


def sources(model, lengths=(1, 4, 9, 2, 30, 4)):
    return [[*torch.randint(4, 40, (length,)).tolist(), 3] for length in lengths]


def rows(sequences):
    return torch.from_numpy(pad(sequences))


def test_a_beam_of_one_is_greedy(model):
    texts = sources(model)
    caps = [20, 5, 30, 1, 12, 40]
    engine = TorchEngine(model)
    narrow = beam_search(engine, rows(texts), caps, beam_size=1)
    for [found], wanted in zip(narrow, greedy(engine, rows(texts), caps), strict=True):
        assert found.ids == wanted.ids
        assert found.stopped == wanted.stopped
        assert found.score == pytest.approx(wanted.score, abs=1e-4)


@pytest.mark.parametrize("beam_size", [2, 5])
def test_a_sentence_does_not_depend_on_its_batch(model, beam_size):
    texts = sources(model)
    caps = [20, 5, 30, 1, 12, 40]
    engine = TorchEngine(model)
    together = beam_search(engine, rows(texts), caps, beam_size=beam_size, n_best=beam_size, alpha=0.6)
    for text, cap, found in zip(texts, caps, together, strict=True):
        [alone] = beam_search(engine, rows([text]), [cap], beam_size=beam_size, n_best=beam_size, alpha=0.6)
        assert [hypothesis.ids for hypothesis in alone] == [hypothesis.ids for hypothesis in found]
        for one, other in zip(alone, found, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


@torch.inference_mode()
def test_scores_are_those_of_the_model(model):
    [text, *_] = sources(model, (7,))
    [found] = beam_search(TorchEngine(model), rows([text]), [15], beam_size=4, n_best=4)
    for hypothesis in found:
        given = [*hypothesis.ids, 3]
        logits = model(torch.tensor([text]), torch.tensor([[2, *given[:-1]]]))[0].log_softmax(-1)
        assert hypothesis.score == pytest.approx(
            sum(logits[place, token].item() for place, token in enumerate(given)), abs=1e-3
        )
