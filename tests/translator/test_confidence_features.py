"""Features of translations, one by one, and the logistic regression against torch's own optimiser."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from headway.decoding import TorchEngine, TorchSearcher
from headway.model import ModelConfig, Transformer
from headway.storage import Calibration
from headway.storage.model_info import FEATURES
from headway.text.domain import Domain
from headway.translator import confidence as module
from headway.translator.confidence import confidence_features, fit_weights, probabilities
from headway.translator.reading import TorchReader
from tests.translator.test_aligning import plain_reader


def model() -> Transformer:
    torch.manual_seed(3)
    return Transformer(
        ModelConfig(
            40, 30, d_model=16, num_heads=2, d_ff=32, encoder_layers=1, decoder_layers=2, share_embeddings="decoder"
        )
    ).eval()


SOURCES = [[5, 6, 7, 8], [9], [10, 11], [12] * 9, [5, 6]]
TARGETS = [[4, 5], [], [6, 7, 8, 9, 10, 11], [20] * 3, [4]]


@pytest.mark.parametrize("reader_of", [TorchReader, plain_reader])
@pytest.mark.parametrize("at_once", [1, 1 << 22])
def test_features_of_each_alone(monkeypatch, at_once, reader_of):
    """Whatever they share a batch with. The sum of the log-probabilities is the score of a search."""
    monkeypatch.setattr(module, "LOGITS_AT_ONCE", at_once)
    one = model()
    found = confidence_features(reader_of(one), SOURCES, TARGETS)
    config = one.config
    scores = TorchSearcher(TorchEngine(one), config.pad_id, torch.device("cpu")).score(SOURCES, TARGETS)
    for source, target, row, score in zip(SOURCES, TARGETS, found, scores, strict=True):
        logits = one(torch.tensor([[*source, config.eos_id]]), torch.tensor([[config.bos_id, *target]]))[0]
        ids = torch.tensor([*target, config.eos_id])
        tokens = [-F.cross_entropy(step, id_).item() for step, id_ in zip(logits, ids, strict=True)]
        entropies = torch.distributions.Categorical(logits=logits).entropy()
        named = dict(zip(FEATURES, row, strict=True))
        assert named["mean_log_probability"] == pytest.approx(sum(tokens) / len(tokens), abs=1e-5)
        assert named["mean_log_probability"] * len(tokens) == pytest.approx(score, abs=1e-4)
        assert named["least_log_probability"] == pytest.approx(min(tokens), abs=1e-5)
        assert named["mean_entropy"] == pytest.approx(entropies.mean().item(), abs=1e-5)
        assert named["log_length_ratio"] == pytest.approx(math.log((len(target) + 1) / (len(source) + 1)))
        assert named["log_source_length"] == pytest.approx(math.log(len(source) + 1))


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Whose truth is a logistic regression: features of different scales, and what happened."""
    random = np.random.default_rng(1)
    features = random.normal([0, -3, 2, 0, 3], [1, 4, 0.5, 0.1, 0.6], (count, 5))
    chances = 1 / (1 + np.exp(-(features @ np.array([1.0, 0.3, -0.8, 0.0, 0.2]) + 1.5)))
    return features, random.random(count) < chances


def test_the_weights_are_the_best_ones():
    """torch's LBFGS finds no better ones for the same loss: cross-entropy, and the ridge on standardised features."""
    features, happened = data(300)
    weights, bias = fit_weights(features, happened)
    rows = torch.tensor((features - features.mean(axis=0)) / features.std(axis=0))
    labels = torch.tensor(happened, dtype=torch.float64)
    free = torch.zeros(6, dtype=torch.float64, requires_grad=True)

    def loss() -> torch.Tensor:
        logits = rows @ free[:5] + free[5]
        return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum") + free[:5].square().sum() / 2

    optimizer = torch.optim.LBFGS([free], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-14)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss().backward()
        return loss()

    optimizer.step(closure)
    expected = torch.sigmoid(rows @ free[:5] + free[5]).detach().numpy()
    calibration = Calibration(weights, bias, Domain({}, 30, (0.0, 0.0), (1.0, 0.0, 1.0), 1.0))
    assert probabilities(calibration, features) == pytest.approx(expected, abs=1e-5)


def test_with_much_data_the_probabilities_are_the_truth():
    features, happened = data(40_000)
    weights, bias = fit_weights(features, happened)
    assert weights == pytest.approx([1.0, 0.3, -0.8, 0.0, 0.2], abs=0.15)
    assert bias == pytest.approx(1.5, abs=0.2)


def test_data_that_one_feature_tells_apart_has_finite_weights():
    features = np.zeros((200, 5))
    features[:, 0] = np.linspace(-1, 1, 200)
    weights, bias = fit_weights(features, features[:, 0] > 0)
    assert np.isfinite([*weights, bias]).all()
    assert weights[0] > 1
    assert weights[1:] == pytest.approx((0, 0, 0, 0))
