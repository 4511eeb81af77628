"""Averages of weights: the mean by hand, the identity for equal models, and what has no mean."""

from dataclasses import replace

import pytest
import torch

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, load_model, save_model
from headway.text.words import WordTokenizer
from headway.training.averaging import MovingAverage, average_models

pytestmark = pytest.mark.usefixtures("held_files_stay")


def stored(seed, words=("a", "b"), **changes) -> StoredModel:
    torch.manual_seed(seed)
    options = {"d_model": 8, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1, **changes}
    size = 4 + len(words)
    tokenizer = WordTokenizer(words)
    return StoredModel(
        model=Transformer(ModelConfig(size, size, **options)),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        source_language="x",
        target_language="y",
    )


def saved(folder, *models):
    folders = [folder / f"model-{number}" for number in range(len(models))]
    for path, model in zip(folders, models, strict=True):
        save_model(path, model)
    return folders


def test_the_mean_of_three(tmp_path):
    models = [stored(seed) for seed in range(3)]
    average_models(saved(tmp_path, *models), tmp_path / "mean")
    mean = load_model(tmp_path / "mean")
    for name, weight in mean.model.named_parameters():
        wanted = sum(model.model.get_parameter(name).double() for model in models) / 3
        torch.testing.assert_close(weight.double(), wanted, atol=1e-7, rtol=0)
    assert "the mean of those of 3 models" in mean.card


def test_the_mean_took_the_work_of_the_last(tmp_path):
    models = [replace(stored(seed), training_flops=flops) for seed, flops in enumerate((1e12, 3e12, 2e12))]
    average_models(saved(tmp_path, *models), tmp_path / "mean")
    assert load_model(tmp_path / "mean").training_flops == 3e12


@pytest.mark.parametrize(
    ("changes", "message"), [({"norm": "pre"}, "model config differs"), ({"words": ("a", "c")}, "vocabulary differs")]
)
def test_models_that_do_not_fit_have_no_mean(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        average_models(saved(tmp_path, stored(1), stored(1, **changes)), tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_moving_average_by_hand():
    model = stored(1).model
    weight = model.output.weight
    with torch.no_grad():
        weight.fill_(1.0)
    average = MovingAverage(model, decay=0.5)
    with torch.no_grad():
        weight.fill_(3.0)
    average.update(step=1)  # the first steps decay faster: 1 / 10 of the old
    average.update(step=100)
    wanted = 0.5 * (0.1 * 1.0 + 0.9 * 3.0) + 0.5 * 3.0
    with average.in_model():
        torch.testing.assert_close(weight, torch.full_like(weight, wanted))
    assert torch.equal(weight, torch.full_like(weight, 3.0))
