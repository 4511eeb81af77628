"""What training sums, averages and schedules, against the formulas."""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from headway.data.batches import MicroBatch
from headway.model import ModelConfig, Transformer
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import TrainingSection
from headway.storage import StoredModel, load_model, save_model
from headway.text.words import WordTokenizer
from headway.training.averaging import MovingAverage, average_models
from headway.training.ranks import SingleProcess
from headway.training.rates import learning_rate, paper_peak, rate_of_step
from headway.training.run import Run
from headway.training.start import start
from headway.training.step import accumulate
from tests.properties.models import SEEDS

PAIRS = 12
SMOOTHING = 0.1


@dataclass
class Accumulation:
    """A run, and what each of its pairs adds to the loss and the gradients: by torch, alone, from all logits."""

    run: Run
    losses: list[float]
    gradients: list[list[Tensor]]
    tokens: list[int]


@pytest.fixture(scope="module", params=[torch.float32, torch.float64])
def accumulation(request, tmp_path_factory) -> Accumulation:
    folder = tmp_path_factory.mktemp("corpus")
    random = np.random.default_rng(1)
    for name in ("source", "target"):
        texts = [" ".join(random.choice(list("abcdefg"), random.integers(1, 15))) for _ in range(PAIRS)]
        (folder / name).write_text("\n".join(texts) + "\n")
    corpus = {"source": str(folder / "source"), "target": str(folder / "target")}
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    training = {"device": "cpu", "precision": "fp32", "label_smoothing": SMOOTHING, "max_steps": 1}
    recipe = make_recipe(
        {
            "data": {"train": corpus, "valid": corpus, "source_language": "x", "target_language": "y"},
            "tokenizer": {"kind": "word"},
            "model": {"preset": "tiny", **sizes},
            "training": training,
        }
    )
    run = start(recipe, folder / "run", print, SingleProcess())
    model, data = run.model.to(request.param), run.data.train
    found = Accumulation(run, [], [], [])
    for pair in range(PAIRS):
        source, target = data.source[pair].tolist(), data.target[pair].tolist()
        logits = model(torch.tensor([[*source, 3]]), torch.tensor([[2, *target]]))[0]
        given_tokens = torch.tensor([*target, 3])
        loss = F.cross_entropy(logits, given_tokens, reduction="sum", label_smoothing=SMOOTHING)
        found.losses.append(loss.item())
        found.gradients.append(list(torch.autograd.grad(loss, list(model.parameters()))))
        found.tokens.append(len(given_tokens))
    return found


@given(pairs=st.permutations(range(PAIRS)), ends=st.sets(st.integers(1, PAIRS), min_size=1), rows=st.integers(1, 3))
def test_micro_batches_give_the_mean_over_all_their_tokens(accumulation, pairs, ends, rows):
    """Some of the pairs, in some order, cut into micro-batches of any sizes, and these into rows."""
    run, parameters = accumulation.run, list(accumulation.run.model.parameters())
    tolerance = 1e-6 if parameters[0].dtype == torch.float32 else 1e-12
    *cuts, end = sorted(ends)
    run.model.zero_grad()
    parts = [np.array_split(part, rows) for part in np.split(np.array(pairs[:end]), cuts)]
    room = 16 * PAIRS  # a sentence has up to 14 words
    micro_batches = [MicroBatch(room, room, [row.tolist() for row in part]) for part in parts]
    tokens = run.train.target_tokens(micro_batches)
    losses = accumulate(run.loss_of, map(run.train.tensors, micro_batches), tokens, torch.float32)
    assert tokens == sum(accumulation.tokens[pair] for pair in pairs[:end])
    wanted_loss = sum(accumulation.losses[pair] for pair in pairs[:end]) / tokens
    assert losses.shape == (len(micro_batches),)
    assert losses.sum().item() / tokens == pytest.approx(wanted_loss, abs=tolerance)
    of_pairs = zip(*(accumulation.gradients[pair] for pair in pairs[:end]), strict=True)
    for parameter, gradients in zip(parameters, of_pairs, strict=True):
        torch.testing.assert_close(parameter.grad, sum(gradients) / tokens, atol=tolerance, rtol=0)


def small_model(seed: int) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"d_model": 4, "num_heads": 2, "d_ff": 3, "encoder_layers": 1, "decoder_layers": 1}
    return Transformer(ModelConfig(6, 6, **sizes))


def bits(model: Transformer) -> list[Tensor]:
    return [parameter.detach().clone().view(torch.int32) for parameter in model.parameters()]


@torch.no_grad()
def with_any_weights(model: Transformer) -> Transformer:
    """Finite numbers of every size: all bits are drawn, so that some are huge, some subnormal, some -0."""
    for parameter in model.parameters():
        drawn = torch.randint(-(2**31), 2**31, parameter.shape).to(torch.int32).view(torch.float32)
        drawn.flatten()[0] = -0.0
        parameter.copy_(drawn.where(drawn.isfinite(), 0.0))
    return model


@given(SEEDS, st.integers(1, 7))
def test_the_mean_of_equal_models_is_the_model_to_the_last_bit(seed, count):
    model, words = with_any_weights(small_model(seed)), WordTokenizer(["a", "b"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(
            folder / "one",
            StoredModel(
                model=model, source_tokenizer=words, target_tokenizer=words, source_language="x", target_language="y"
            ),
        )
        average_models([folder / "one"] * count, folder / "mean")
        found = load_model(folder / "mean").model
    assert all(torch.equal(*pair) for pair in zip(bits(model), bits(found), strict=True))


@given(SEEDS, st.floats(0.0, 1.0), st.integers(1, 50))
def test_the_moving_average_of_equal_weights_is_exactly_the_weights(seed, decay, steps):
    model = with_any_weights(small_model(seed))
    average, before = MovingAverage(model, decay), [parameter.detach().clone() for parameter in model.parameters()]
    for step in range(1, steps + 1):
        average.update(step)
    with average.in_model():
        assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


@given(st.floats(0.0, 1.0), st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=60))
def test_the_moving_average_is_its_formula(decay, weights):
    """Each weight with 1 - decay of its step and the decays of all the steps after it."""
    model = small_model(1)

    def set_to(value: float) -> None:
        with torch.no_grad():
            model.output.weight.fill_(value)

    set_to(weights[0])
    average = MovingAverage(model, decay)
    for step, value in enumerate(weights[1:], start=1):
        set_to(value)
        average.update(step)
    decays = [0.0, *(min(decay, step / (step + 9)) for step in range(1, len(weights)))]
    wanted = sum(
        (1 - own) * math.prod(decays[place + 1 :]) * value
        for place, (own, value) in enumerate(zip(decays, weights, strict=True))
    )
    found = average.named_tensors()["source_embedding.weight"]  # which is the output layer's too
    torch.testing.assert_close(found, torch.full_like(found, wanted), atol=1e-5, rtol=0)


STEPS, WARMUPS = st.integers(1, 10**6), st.integers(1, 20_000)


@given(STEPS, WARMUPS, st.sampled_from([1, 128, 512, 1024]))
def test_the_schedule_of_the_paper_is_equation_3(step, warmup, d_model):
    wanted = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert learning_rate(step, "paper", paper_peak(d_model, warmup), warmup) == pytest.approx(wanted, rel=1e-9)


@given(STEPS, WARMUPS | st.just(0), st.floats(1e-6, 1.0), st.integers(1, 10**6))
def test_every_schedule_is_its_formula(step, warmup, peak, after):
    last = warmup + after
    rise = step / warmup if warmup else math.inf
    cosine = 0.5 + 0.5 * math.cos(math.pi * min(1.0, max(0, step - warmup) / after))
    wanted = {
        "constant": min(1.0, rise),
        "inverse_sqrt": min(rise, math.sqrt(max(1, warmup) / step)),
        "cosine": rise if step <= warmup else cosine,
        "wsd": min(1.0, rise) * (1 - math.sqrt(min(1.0, max(0.0, (step - last) / max(1, last // 5) + 1)))),
    }
    for schedule, share in wanted.items():
        found = learning_rate(step, schedule, peak, warmup, last)
        assert found == pytest.approx(peak * share, rel=1e-9, abs=1e-12)


SHARES = {
    "paper": lambda step, warmup, last: min(step / warmup, math.sqrt(warmup / step)),
    "inverse_sqrt": lambda step, warmup, last: min(step / warmup, math.sqrt(warmup / step)),
    "constant": lambda step, warmup, last: min(step / warmup, 1.0),
    "cosine": lambda step, warmup, last: (
        step / warmup if step <= warmup else math.cos(math.pi / 2 * min(1.0, (step - warmup) / (last - warmup))) ** 2
    ),
    "wsd": lambda step, warmup, last: (
        min(step / warmup, 1.0) * (1 - math.sqrt(min(1.0, max(0.0, 1 - (last - step) / (last // 5)))))
    ),
}
"""What part of the highest rate a step has; cos(x / 2)^2 is (1 + cos(x)) / 2."""


@pytest.mark.parametrize("schedule", SHARES)
@given(
    step=STEPS,
    warmup=st.integers(1, 100),
    last=st.integers(101, 10**5),
    highest=st.floats(1e-6, 1.0),
    d_model=st.sampled_from([128, 512]),
)
def test_a_step_has_the_rate_that_the_recipe_asks_for(schedule, step, warmup, last, highest, d_model):
    """The schedule's part of the recipe's own highest rate; the paper has its own, (d_model * warm-up)^-0.5."""
    given_rate = None if schedule == "paper" else highest
    options = TrainingSection(max_steps=last, schedule=schedule, warmup_steps=warmup, learning_rate=given_rate)
    peak = 1 / math.sqrt(d_model * warmup) if schedule == "paper" else highest
    wanted = peak * SHARES[schedule](step, warmup, last)
    assert rate_of_step(step, options, d_model, last) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
