"""The loss and the schedules against hand-worked numbers and published constants."""

import math

import pytest
import torch

from headway.model import ModelConfig, Transformer
from headway.training.loss import cross_entropy, translation_loss
from headway.training.optim import learning_rate, paper_peak


@pytest.mark.parametrize(
    ("d_model", "step", "expected"),
    [(512, 1, 1.746928e-7), (512, 4000, 6.987712e-4), (512, 100_000, 1.397542e-4), (1024, 4000, 4.941059e-4)],
)
def test_schedule_of_the_paper(d_model, step, expected):
    assert learning_rate(step, "paper", paper_peak(d_model, 4000), 4000) == pytest.approx(expected, rel=1e-6)


def test_other_schedules():
    assert learning_rate(50, "constant", 1.0, 100) == 0.5
    assert learning_rate(500, "constant", 1.0, 100) == 1.0
    assert learning_rate(1, "constant", 1.0, 0) == 1.0
    assert learning_rate(400, "inverse_sqrt", 1.0, 100) == 0.5
    assert learning_rate(550, "cosine", 1.0, 100, 1000) == pytest.approx(0.5)
    assert learning_rate(1000, "cosine", 1.0, 100, 1000) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="last_step"):
        learning_rate(101, "cosine", 1.0, 100)


def test_cross_entropy_by_hand():
    logits = torch.tensor([[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]])
    expected = -math.log(math.exp(3) / (math.exp(1) + math.exp(2) + math.exp(3))) + math.log(3)
    assert cross_entropy(logits, torch.tensor([[2, 1, 0]]), pad_id=0).item() == pytest.approx(expected, abs=1e-6)


def test_least_smoothed_loss():
    """Reached where the prediction is the smoothed target itself: 0.9 + 0.01 on one class, 0.01 on the nine others."""
    best = torch.full((1, 10), 0.01)
    best[0, 4] = 0.91
    assert cross_entropy(best.log(), torch.tensor([4]), pad_id=-100, label_smoothing=0.1).item() == pytest.approx(
        0.500288, abs=1e-6
    )


@pytest.fixture
def model() -> Transformer:
    options = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    return Transformer(ModelConfig(source_vocab_size=20, target_vocab_size=20, **options)).double()


SOURCE = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
TARGET = torch.tensor([[2, 9, 10, 3], [2, 11, 3, 0]])


def test_teacher_forcing_shifts_by_one(model):
    """The sum over places of -log p(next | source, what came before), each asked from the plain model."""
    expected = 0.0
    for source, target in (([5, 6, 7, 3], [2, 9, 10, 3]), ([8, 3], [2, 11, 3])):
        log_p = model(torch.tensor([source]), torch.tensor([target[:-1]])).log_softmax(-1)[0]
        expected -= sum(log_p[place, token].item() for place, token in enumerate(target[1:]))
    assert translation_loss(model, SOURCE, TARGET).item() == pytest.approx(expected, abs=1e-6)


def test_accumulated_gradients_are_those_of_one_batch(model):
    translation_loss(model, SOURCE, TARGET, 0.1).backward()
    whole = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    for row, (source, target) in enumerate(((4, 4), (2, 3))):
        translation_loss(model, SOURCE[[row], :source], TARGET[[row], :target], 0.1).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, whole[name], atol=1e-9, rtol=0)
