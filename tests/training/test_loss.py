"""The loss of a model, one module: teacher forcing, label smoothing in training alone, and nothing but `forward`."""

import pytest
import torch
from tests.packed import teacher_forced
from torch.nn import functional as F

from headway.model import ModelConfig, Transformer
from headway.model.masks import cross_mask, padding_mask, target_mask
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


def plain_embedding(model: Transformer, ids: torch.Tensor, side: str, cut: torch.Tensor) -> torch.Tensor:
    embedding, positions = getattr(model, f"{side}_embedding"), getattr(model, f"{side}_positions")
    return embedding(ids) * ~cut[..., None] + positions(ids.size(1))


def test_consistency_is_that_of_plain_torch(model, monkeypatch):
    """With known cuts: the loss, and the gradient of every weight, of the cross-entropy and KL(p || q) by torch, where
    q is predicted without the embeddings of the tokens that were cut off."""
    cuts = iter([torch.tensor([[0, 1, 0, 1], [1, 1, 0, 0]]).bool(), torch.tensor([[1, 0, 1], [1, 0, 1]]).bool()])
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.where(next(cuts), 0.0, 1.0))
    loss_of = TranslationLoss(model, 0.1, consistency=1.5, cutoff_probability=0.5).train()
    loss = loss_of(*teacher_forced(SOURCE, TARGET))
    found = torch.autograd.grad(loss, list(model.parameters()))

    cut_sources = torch.tensor([[0, 1, 0, 0], [1, 0, 0, 0]]).bool()  # never <eos>
    cut_targets = torch.tensor([[0, 0, 1], [0, 0, 1]]).bool()  # never <bos>
    read, given = TARGET[:, :-1], TARGET[:, 1:]
    source_mask = padding_mask(SOURCE, 0)
    memory = model.encoder(plain_embedding(model, SOURCE, "source", cut_sources), source_mask)
    second = model.decoder(
        plain_embedding(model, read, "target", cut_targets), memory, target_mask(read, 0), cross_mask(source_mask)
    )
    log_p, log_q = model(SOURCE, read).log_softmax(-1), model.output(second).log_softmax(-1)
    real = given != 0
    wanted = F.cross_entropy(log_p[real], given[real], reduction="sum", label_smoothing=0.1)
    wanted = wanted + 1.5 * (log_p.exp() * (log_p - log_q)).sum(-1)[real].sum()
    torch.testing.assert_close(loss, wanted)
    for one, other in zip(found, torch.autograd.grad(wanted, list(model.parameters())), strict=True):
        torch.testing.assert_close(one, other)


def test_the_share_that_is_cut_off(model, monkeypatch):
    """As many tokens as the probability says, of the second pass alone, on both sides, and no control symbols."""
    seen = []
    plain = model.packed_hidden_states
    monkeypatch.setattr(model, "packed_hidden_states", lambda *sides: (seen.extend(sides), plain(*sides))[1])
    source, target = torch.full((200, 30), 5), torch.full((200, 30), 6)
    source[:, -1], target[:, 0] = 3, 2
    TranslationLoss(model, consistency=1.0, cutoff_probability=0.2).train()(*teacher_forced(source, target))
    for side, never in zip(seen, (3, 2), strict=True):
        first, second = side.cut.chunk(2)
        assert not first.any()
        assert not second[side.ids[200:] == never].any()
        assert second[side.ids[200:] != never].double().mean().item() == pytest.approx(0.2, abs=0.02)


def test_without_consistency_nothing_is_drawn(model):
    """So that runs of before are repeated to the bit; nor is anything in evaluation."""
    batch, before = teacher_forced(SOURCE, TARGET), torch.get_rng_state()
    plain = TranslationLoss(model, 0.1).train()(*batch)
    assert torch.equal(TranslationLoss(model, 0.1, cutoff_probability=0.5).train()(*batch), plain)
    evaluated = TranslationLoss(model, 0.1, consistency=2.0, cutoff_probability=0.5).eval()(*batch)
    assert torch.equal(evaluated, TranslationLoss(model).eval()(*batch))
    assert torch.equal(torch.get_rng_state(), before)
