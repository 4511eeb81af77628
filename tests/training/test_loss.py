"""The loss of a model, one module: teacher forcing, label smoothing in training alone, and nothing but `forward`."""

import pytest
import torch
from tests.packed import teacher_forced

from headway.model import ModelConfig, Transformer
from headway.training.loss import TranslationLoss


@pytest.fixture
def model() -> Transformer:
    options = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    return Transformer(ModelConfig(source_vocab_size=20, target_vocab_size=20, **options)).double()


SOURCE = torch.tensor([[5, 6, 12, 3], [8, 3, 0, 0]])
TARGET = torch.tensor([[2, 9, 10, 3], [2, 11, 3, 0]])


def test_teacher_forcing_shifts_by_one(model):
    """The sum over places of -log p(next | source, what came before), each asked from the plain model."""
    expected = 0.0
    for source, target in (([5, 6, 12, 3], [2, 9, 10, 3]), ([8, 3], [2, 11, 3])):
        log_p = model(torch.tensor([source]), torch.tensor([target[:-1]])).log_softmax(-1)[0]
        expected -= sum(log_p[place, token].item() for place, token in enumerate(target[1:]))
    assert TranslationLoss(model)(*teacher_forced(SOURCE, TARGET)).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_label_smoothing_is_for_training_alone(model, smoothing):
    """In training the loss is (1 - epsilon) of the cross-entropy and epsilon of the mean over the vocabulary."""
    loss_of, log_p = TranslationLoss(model, smoothing), model(SOURCE, TARGET[:, :-1]).log_softmax(-1)
    given = TARGET[:, 1:]
    real = given != 0
    plain = -log_p.gather(2, given[..., None])[..., 0][real].sum()
    smoothed = (1 - smoothing) * plain - smoothing * log_p.mean(-1)[real].sum()
    torch.testing.assert_close(loss_of.train()(*teacher_forced(SOURCE, TARGET)), smoothed)
    torch.testing.assert_close(loss_of.eval()(*teacher_forced(SOURCE, TARGET)), plain)


@pytest.mark.parametrize("pad_id", [0, 7])
def test_padding_is_what_the_config_says(pad_id):
    """Two sentences cost what they cost alone, whatever id fills the places that are left."""
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    torch.manual_seed(1)
    loss_of = TranslationLoss(Transformer(ModelConfig(20, 20, pad_id=pad_id, **sizes))).double()
    source, target = SOURCE.clone(), TARGET.clone()
    source[source == 0] = target[target == 0] = pad_id
    parts = (SOURCE[:1], TARGET[:1]), (SOURCE[1:, :2], TARGET[1:, :3])
    alone = sum(loss_of(*teacher_forced(*part, pad_id)) for part in parts)
    torch.testing.assert_close(loss_of(*teacher_forced(source, target, pad_id)), alone)
