"""Plans by hand, by what they must keep in proportion, and against runs that were measured."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.model import ModelConfig
from headway.recipe.planning import (
    BUSY,
    HARDWARE,
    Corpus,
    Devices,
    paper_trainings,
    plan_serving,
    plan_training,
    plan_translating,
    work_per_sentence,
)
from headway.recipe.recipe import TrainingSection

SMALL, BASE = (ModelConfig.preset(name, source_vocab_size=8000, target_vocab_size=8000) for name in ("small", "base"))


def corpus_of(pairs: float, source_length: float, target_length: float) -> Corpus:
    """With ids of two bytes and offsets of eight. Lengths count the end symbol, ids don't."""
    bytes_of_pair = 2 * (source_length + target_length - 2) + 16
    return Corpus(pairs, pairs, (source_length, target_length), bytes_of_pair)


def training(tokens_per_batch: int, tokens_per_micro_batch: int | None = None, **options) -> TrainingSection:
    sizes = {"tokens_per_batch": tokens_per_batch, "tokens_per_micro_batch": tokens_per_micro_batch}
    return TrainingSection(**sizes, **options or {"patience": 1})


WMT = corpus_of(4.5e6, 31, 31)
STEPS = {"tokens_per_batch": 50_000, "tokens_per_micro_batch": 25_000, "max_steps": 100_000}


def planned(count: int = 8, *, corpus=WMT, options=None, **changes):
    devices = Devices(count, bf16=True, peak=4e14, efficiency=0.25)
    return plan_training(BASE, corpus, options or TrainingSection(**{**STEPS, **changes}), devices)


def on_cpu(**speed: float) -> Devices:
    return Devices(on_cpu=True, bf16=True, **speed)


def test_efficiencies_of_the_paper_by_hand():
    """0.945e18 FLOPs in 12 hours and 9.63e18 in 3.5 days, on 8 devices of 9.5 TFLOP/s."""
    found = paper_trainings()
    limits = {preset: (one["steps"], one["hours"]) for preset, one in found.items()}
    assert limits == {"base": (100_000, 12), "big": (300_000, 84)}
    shares = {preset: one["efficiency"] for preset, one in found.items()}
    assert shares["base"] == pytest.approx(0.945e18 / (12 * 3600 * 8 * 9.5e12), rel=0.01)
    assert shares["big"] == pytest.approx(9.63e18 / (3.5 * 86400 * 8 * 9.5e12), rel=0.01)


def test_the_papers_time_comes_back_from_its_efficiency():
    """Where rows have no padding and scores are few."""
    config = ModelConfig.preset("base", source_vocab_size=37_000, target_vocab_size=37_000)
    devices = Devices(8, peak=HARDWARE["p100"].fp32, efficiency=paper_trainings()["base"]["efficiency"])
    found = plan_training(config, WMT, TrainingSection(**STEPS), devices)
    assert found["hours"] == pytest.approx(0.95 * 12, rel=0.02)


def test_a_training_by_hand():
    """1,000 pairs of 10 + 10 tokens in steps of 100 places, of which 95 are tokens: 211 steps an epoch."""
    config = ModelConfig(10, 10, d_model=1, num_heads=1, encoder_layers=0, decoder_layers=0)
    devices = Devices(peak=4e6, efficiency=0.25)
    found = plan_training(config, corpus_of(1000, 10, 10), training(100), devices)
    work = sum(found["work"].values())
    assert found["steps"] == 211
    assert found["target_tokens"] == pytest.approx(211 * 95 / 2)
    assert work == pytest.approx(6 * 10 * found["target_tokens"])  # an output layer of ten weights
    assert found["hours"] * 3600 == pytest.approx(work / 1e6)
    assert found["tokens_per_second"] == pytest.approx(1e6 / 60)
    assert found["network"] is None


def test_a_second_pass_costs_as_much_as_the_first():
    """Samples of minimum-risk training go through the model again."""
    once, more = planned(), planned(risk_samples=3, init_from=Path("model"))
    assert sum(more["work"].values()) == pytest.approx(4 * sum(once["work"].values()))
    assert more["hours"] == pytest.approx(4 * once["hours"])
    assert (more["steps"], more["target_tokens"]) == (once["steps"], once["target_tokens"])
    assert more["memory"] == once["memory"]


def test_the_first_limit_ends_it():
    def steps(**limits: int) -> int:
        return planned(corpus=corpus_of(1000, 10, 10), options=training(100, **limits))["steps"]

    assert steps() == steps(max_epochs=1) == 211
    tiny = planned(corpus=corpus_of(1, 5, 5), options=training(100, max_epochs=3))
    assert (tiny["steps"], tiny["steps_per_epoch"]) == (3, 1)  # an epoch has at least one
    assert steps(max_steps=5000) == 5000
    assert steps(max_steps=5000, max_epochs=2) == 422
    assert steps(max_steps=300, max_epochs=2) == 300


@given(st.integers(1, 200))
def test_twice_the_devices_take_half_the_time(devices):
    one, two = planned(devices), planned(2 * devices)
    assert two["hours"] == pytest.approx(one["hours"] / 2)
    assert two["tokens_per_second"] == pytest.approx(2 * one["tokens_per_second"])
    assert two["steps"] == one["steps"]
    assert two["disk"]["bandwidth"] == pytest.approx(2 * one["disk"]["bandwidth"])


@given(st.integers(1, 1000), st.integers(62, 100_000), st.integers(1, 100_000))
def test_the_devices_share_a_step(devices, batch, micro_batch):
    found = planned(devices, options=training(batch, min(batch, micro_batch)))
    passes, places = found["micro_batches"], found["tokens_per_micro_batch"]
    assert places <= micro_batch
    assert batch <= devices * passes * places
    assert devices * (passes - 1) * micro_batch < batch + devices * micro_batch


def test_network_of_ddp_by_hand():
    """A ring of 4: each sends 3 quarters of the gradients to have them added up, and 3 quarters of the sums."""
    found = planned(4)
    assert found["network"]["bytes_per_step"] == 2 * 4 * found["parameters"] * 3 / 4
    backward = found["seconds_per_step"] / found["micro_batches"] * 2 / 3
    assert found["network"]["bandwidth"] == pytest.approx(found["network"]["bytes_per_step"] / backward)


def test_weights_change_what_is_read_but_not_what_is_prepared():
    """Half of the pairs in an epoch: half the steps of an epoch and half of its reading, in as much on disk."""
    options = training(50_000, max_epochs=1)
    half = planned(corpus=replace(WMT, pairs_of_epoch=WMT.pairs / 2), options=options)
    whole = planned(options=options)
    assert half["disk"]["bytes"] == whole["disk"]["bytes"]
    assert half["hours"] == pytest.approx(whole["hours"] / 2, rel=0.001)
    assert half["disk"]["bandwidth"] == pytest.approx(whole["disk"]["bandwidth"])


@given(st.integers(1, 10**6), st.integers(100, 10**5))
def test_an_epoch_has_as_many_steps_as_a_training_of_one(pairs, places):
    found = planned(corpus=corpus_of(pairs, 21, 19), options=training(places, max_epochs=1))
    assert found["steps"] == found["steps_per_epoch"] >= 1
    assert found["source_tokens"] >= 0.99 * 21 * pairs


def test_an_epoch_of_less_than_a_step_is_a_step():
    """Ten epochs of one pair: ten steps, each with the tokens of that pair."""
    found = planned(corpus=corpus_of(1, 10, 12), options=training(1000, max_epochs=10))
    assert (found["steps"], found["steps_per_epoch"], found["epochs"]) == (10, 1, 10)
    assert (found["source_tokens"], found["target_tokens"]) == (100, 120)


def test_disks_are_read_once_an_epoch():
    found = planned(options=training(50_000, max_epochs=3))
    assert found["disk"]["bandwidth"] * found["hours"] * 3600 == pytest.approx(3 * found["disk"]["bytes"], rel=1e-4)


def test_translating_by_hand():
    """A billion lines at 100 a second are 2,778 hours of a device."""
    work = work_per_sentence(SMALL, corpus_of(1, 20, 20), beam_size=4)
    found = plan_translating(1e9, Devices(10, measured=100), work, None)
    assert found["hours"] == pytest.approx(1e9 / 100 / 3600 / 10)
    within = plan_translating(1e9, Devices(10, measured=100), work, within_hours=24)
    assert within["devices"] == 116
    fewer = plan_translating(1e9, Devices(115, peak=400 * work, efficiency=0.25), work, None)
    assert within["hours"] <= 24 < fewer["hours"]


def test_serving_by_hand():
    """A million a minute are 16,667 a second, 167 devices at 100 a second, and 239 if they work 70% of the time."""
    found = plan_serving(1e6, Devices(measured=100), work=1.0)
    assert found["devices"] == 239
    assert found["busy"] == pytest.approx(1e6 / 60 / 100 / 239)
    assert found["busy"] <= BUSY


def test_a_wider_beam_is_more_work_for_the_decoder_alone():
    corpus = corpus_of(1, 20, 20)
    one, two, three = (work_per_sentence(SMALL, corpus, beam) for beam in (1, 2, 3))
    assert three - two == pytest.approx(two - one)
    assert one < two < 2 * one


MULTI30K = corpus_of(29_000, 431_662 / 29_000 + 1, 415_305 / 29_000 + 1)
"""The training text of the recipe multi30k-de-en, tokenised: what the sizes of its files say."""
RECIPE = training(4096, max_epochs=13)


@pytest.mark.parametrize(
    ("config", "share", "peak", "measured"),
    [
        (SMALL, 0.41, 740e9, 8002),
        (SMALL, 0.39, 740e9, 7847),
        (BASE, 0.66, 740e9, 1565),
        (SMALL, 0.47, 808e9, 10_291),
        (BASE, 0.70, 785e9, 1871),
    ],
)
def test_speeds_are_those_that_were_measured(config, share, peak, measured):
    """docs/results.md, "Training as it is run" and "Speed": target tokens a second by the share of the peak."""
    found = plan_training(config, MULTI30K, RECIPE, on_cpu(peak=peak, efficiency=share))
    assert found["tokens_per_second"] == pytest.approx(measured, rel=0.15)


def test_minutes_are_those_that_were_measured():
    """docs/results.md: the recipe multi30k-de-en took 18.7 minutes with one thread, beside another training, where a
    step does 5,300 to 5,450 target tokens a second; its epochs have 231 steps."""
    found = plan_training(SMALL, MULTI30K, RECIPE, on_cpu(measured=5375))
    assert found["hours"] * 60 == pytest.approx(18.7, rel=0.15)
    assert found["steps"] == pytest.approx(13 * 231, rel=0.02)


@pytest.mark.parametrize(("config", "greedy", "beam"), [(SMALL, 1162, 424)])
def test_a_beam_costs_at_most_its_work(config, greedy, beam):
    """docs/results.md, "Speed", bf16: a beam of 5 is 2.7 times as slow where its work is 3.9 times as much."""
    one, five = (work_per_sentence(config, MULTI30K, size) for size in (1, 5))
    assert 1 < greedy / beam < five / one < 5


def test_the_measured_speed_includes_the_optimizer():
    """Muon's products make a step more work, but a speed that was measured with them is what it was."""
    adam, muon = (
        plan_training(SMALL, MULTI30K, training(4096, max_epochs=13, optimizer=optimizer), on_cpu(measured=5000))
        for optimizer in ("adam", "muon")
    )
    assert sum(muon["work"].values()) > 1.01 * sum(adam["work"].values())
    assert muon["speed"] > 1.01 * adam["speed"]
    assert adam["tokens_per_second"] == pytest.approx(5000, rel=0.01)
    assert muon["hours"] == pytest.approx(adam["hours"], rel=0.01)
