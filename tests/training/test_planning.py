"""Plans by hand, by what they must keep in proportion, and against runs that were measured."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.model import ModelConfig
from headway.text import shards
from headway.training.planning import (
    BUSY,
    HARDWARE,
    PAPER,
    Batches,
    Corpus,
    Devices,
    plan_serving,
    plan_training,
    plan_translating,
    work_per_sentence,
    work_per_target_token,
)

SMALL, BASE = (ModelConfig.preset(name, source_vocab_size=8000, target_vocab_size=8000) for name in ("small", "base"))
WMT = Corpus(4.5e6, 31, 31)
BATCHES = Batches(50_000, 25_000, max_steps=100_000)


def planned(count: int = 8, *, config=BASE, corpus=WMT, batches=BATCHES, **options):
    return plan_training(config, corpus, batches, Devices(count, 1e14, 4e14), **{"bf16": True, **options})


def test_it_needs_no_torch():
    script = "import sys, headway.training.planning; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_efficiencies_of_the_paper_by_hand():
    """0.945e18 FLOPs in 12 hours and 9.63e18 in 3.5 days, on 8 devices of 9.5 TFLOP/s."""
    configs = {
        name: ModelConfig.preset(name, source_vocab_size=37_000, target_vocab_size=37_000) for name in ("base", "big")
    }
    assert [(one.preset, one.steps, one.hours) for one in PAPER] == [("base", 100_000, 12), ("big", 300_000, 84)]
    shares = {one.preset: one.efficiency(configs[one.preset]) for one in PAPER}
    assert shares["base"] == pytest.approx(0.945e18 / (12 * 3600 * 8 * 9.5e12), rel=0.01)
    assert shares["big"] == pytest.approx(9.63e18 / (3.5 * 86400 * 8 * 9.5e12), rel=0.01)


def test_the_papers_time_comes_back_from_its_efficiency():
    """Where rows have no padding and scores are few."""
    [base, _] = PAPER
    config = ModelConfig.preset("base", source_vocab_size=37_000, target_vocab_size=37_000)
    speed = base.efficiency(config) * HARDWARE["p100"].fp32
    found = plan_training(config, WMT, BATCHES, Devices(8, speed), bf16=False)
    assert found.hours == pytest.approx(0.95 * 12, rel=0.02)


def test_an_epoch_has_at_least_a_step():
    tiny = Corpus(1, 5, 5)
    assert [Batches(100, 100).steps_of_epochs(tiny, epochs) for epochs in (1, 3)] == [1, 3]
    assert Batches(100, 100).steps_of_epochs(Corpus(1000, 10, 10)) == 211


def test_a_training_by_hand():
    """1,000 pairs of 10 + 10 tokens in steps of 100 places, of which 95 are tokens: 211 steps an epoch."""
    config = ModelConfig(10, 10, d_model=1, num_heads=1, encoder_layers=0, decoder_layers=0)
    found = plan_training(config, Corpus(1000, 10, 10), Batches(100, 100), Devices(1, 1e6), bf16=False)
    assert found.steps == 211
    assert found.target_tokens == pytest.approx(211 * 95 / 2)
    assert found.work.total == pytest.approx(6 * 10 * found.target_tokens)  # an output layer of ten weights
    assert found.hours * 3600 == pytest.approx(found.work.total / 1e6)
    assert found.tokens_per_second == pytest.approx(1e6 / 60)
    assert found.network is None


def test_a_second_pass_costs_as_much_as_the_first():
    once, twice = planned(), planned(passes=2)
    assert twice.work.total == 2 * once.work.total
    assert twice.hours == 2 * once.hours
    assert (twice.steps, twice.target_tokens) == (once.steps, once.target_tokens)
    assert twice.memory == once.memory


def test_the_first_limit_ends_it():
    corpus = Corpus(1000, 10, 10)
    assert Batches(100, 100).steps(corpus) == Batches(100, 100, max_epochs=1).steps(corpus) == 211
    assert Batches(100, 100, max_steps=5000).steps(corpus) == 5000
    assert Batches(100, 100, max_steps=5000, max_epochs=2).steps(corpus) == 422
    assert Batches(100, 100, max_steps=300, max_epochs=2).steps(corpus) == 300


@given(st.integers(1, 200))
def test_twice_the_devices_take_half_the_time(devices):
    one, two = planned(devices), planned(2 * devices)
    assert two.hours == pytest.approx(one.hours / 2)
    assert two.tokens_per_second == pytest.approx(2 * one.tokens_per_second)
    assert two.steps == one.steps
    assert two.disk.bandwidth == pytest.approx(2 * one.disk.bandwidth)


@given(st.integers(1, 1000), st.integers(1, 100_000), st.integers(1, 100_000))
def test_the_devices_share_a_step(devices, batch, micro_batch):
    passes, places = Batches(batch, min(batch, micro_batch)).on_device(devices)
    assert places <= micro_batch
    assert batch <= devices * passes * places
    assert devices * (passes - 1) * micro_batch < batch + devices * micro_batch


def test_network_of_ddp_by_hand():
    """A ring of 4: each sends 3 quarters of the gradients to have them added up, and 3 quarters of the sums."""
    found = planned(4)
    assert found.network.bytes_per_step == 2 * 4 * found.parameters * 3 / 4
    backward = found.seconds_per_step / found.micro_batches * 2 / 3
    assert found.network.bandwidth == pytest.approx(found.network.bytes_per_step / backward)


def test_network_of_fsdp_by_hand():
    """For each micro-batch weights in bf16 twice and gradients in fp32 once, all but a device's own part."""
    found = planned(2, batches=replace(BATCHES, tokens_per_micro_batch=12_500), sharding="full")
    assert found.micro_batches == 2
    assert found.network.bytes_per_step == 2 * (2 * 2 + 4) * found.parameters / 2
    assert planned(4, sharding="full", bf16=False).network.bytes_per_step == 3 * 4 * found.parameters * 3 / 4


def test_prepared_data_is_as_large_as_it_is_said(tmp_path):
    """Ids and offsets as they are written."""

    class Words:
        def encode(self, text, tagged=False):
            return [5] * len(text.split())

    lines = [("a b c", "d e"), ("f", "g h i j")] * 10
    pairs = [shards.Pair(source, target, "file", number) for number, (source, target) in enumerate(lines)]
    shards.write_ids(tmp_path, [pairs], Words(), Words(), max_length=50, max_tokens=100)
    written = sum(file.stat().st_size for file in tmp_path.iterdir() if file.suffix in (".ids", ".offsets"))
    ids = shards.ParallelIds(tmp_path)
    assert Corpus(len(ids), *np.array(ids.mean_lengths) + 1, bytes_per_id=4).bytes_on_disk == written


def test_weights_change_what_is_read_but_not_what_is_prepared():
    """Half of the pairs in an epoch: half the steps of an epoch and half of its reading, in as much on disk."""
    half = replace(WMT, weighted_pairs=WMT.pairs / 2)
    assert half.bytes_on_disk == WMT.bytes_on_disk
    assert half.bytes_per_epoch == WMT.bytes_on_disk / 2
    one_epoch = replace(BATCHES, max_steps=None, max_epochs=1)
    assert planned(corpus=half, batches=one_epoch).hours == pytest.approx(
        planned(corpus=WMT, batches=one_epoch).hours / 2, rel=0.001
    )


@given(st.integers(1, 10**6), st.integers(100, 10**5))
def test_an_epoch_has_as_many_steps_as_a_training_of_one(pairs, places):
    found = planned(corpus=Corpus(pairs, 21, 19), batches=Batches(places, places, max_epochs=1))
    assert found.steps == found.steps_per_epoch >= 1
    assert found.source_tokens >= 0.99 * 21 * pairs


def test_an_epoch_of_less_than_a_step_is_a_step():
    """Ten epochs of one pair: ten steps, each with the tokens of that pair."""
    found = planned(corpus=Corpus(1, 10, 12), batches=Batches(1000, 1000, max_epochs=10))
    assert (found.steps, found.steps_per_epoch, found.epochs) == (10, 1, 10)
    assert (found.source_tokens, found.target_tokens) == (100, 120)


def test_disks_are_read_once_an_epoch():
    found = planned(batches=replace(BATCHES, max_steps=None, max_epochs=3))
    assert found.disk.bandwidth * found.hours * 3600 == pytest.approx(3 * WMT.bytes_on_disk, rel=1e-4)


def test_translating_by_hand():
    """A billion lines at 100 a second are 2,778 hours of a device."""
    work = work_per_sentence(SMALL, Corpus(1, 20, 20), beam_size=4)
    device = Devices(10, 100 * work)
    assert plan_translating(1e9, device, work).hours == pytest.approx(1e9 / 100 / 3600 / 10)
    within = plan_translating(1e9, device, work, within_hours=24)
    assert within.devices == 116
    assert within.hours <= 24 < plan_translating(1e9, Devices(115, 100 * work), work).hours


def test_serving_by_hand():
    """A million a minute are 16,667 a second, 167 devices at 100 a second, and 239 if they work 70% of the time."""
    found = plan_serving(1e6, Devices(1, 100.0), work=1.0)
    assert found.devices == 239
    assert found.busy == pytest.approx(1e6 / 60 / 100 / 239)
    assert found.busy <= BUSY


def test_a_wider_beam_is_more_work_for_the_decoder_alone():
    corpus = Corpus(1, 20, 20)
    one, two, three = (work_per_sentence(SMALL, corpus, beam) for beam in (1, 2, 3))
    assert three - two == pytest.approx(two - one)
    assert one < two < 2 * one


MULTI30K = Corpus(29_000, 431_662 / 29_000 + 1, 415_305 / 29_000 + 1)
"""The training text of the recipe multi30k-de-en, tokenised: what the sizes of its files say."""
RECIPE = Batches(4096, 4096, max_epochs=13)


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
    found = plan_training(config, MULTI30K, RECIPE, Devices(1, share * peak, peak, on_cpu=True), bf16=True)
    assert found.tokens_per_second == pytest.approx(measured, rel=0.15)


def test_minutes_are_those_that_were_measured():
    """docs/results.md: the recipe multi30k-de-en took 18.7 minutes with one thread, beside another training, where a
    step does 5,300 to 5,450 target tokens a second; its epochs have 231 steps."""
    speed = 5375 * work_per_target_token(SMALL, MULTI30K, RECIPE)
    found = plan_training(SMALL, MULTI30K, RECIPE, Devices(1, speed, on_cpu=True), bf16=True)
    assert found.hours * 60 == pytest.approx(18.7, rel=0.15)
    assert found.steps == pytest.approx(13 * 231, rel=0.02)


@pytest.mark.parametrize(("config", "greedy", "beam"), [(SMALL, 1162, 424)])
def test_a_beam_costs_at_most_its_work(config, greedy, beam):
    """docs/results.md, "Speed", bf16: a beam of 5 is 2.7 times as slow where its work is 3.9 times as much."""
    one, five = (work_per_sentence(config, MULTI30K, size) for size in (1, 5))
    assert 1 < greedy / beam < five / one < 5


def test_the_measured_speed_includes_the_optimizer():
    """Muon's products make a step more work, but a speed that was measured with them is what it was."""
    hours = []
    for optimizer in ("adam", "muon"):
        speed = 5000 * work_per_target_token(SMALL, MULTI30K, RECIPE, optimizer=optimizer)
        devices = Devices(1, speed, on_cpu=True)
        found = plan_training(SMALL, MULTI30K, RECIPE, devices, bf16=True, optimizer=optimizer)
        hours.append(found.hours)
        assert found.tokens_per_second == pytest.approx(5000, rel=0.01)
    assert hours[0] == pytest.approx(hours[1], rel=0.01)
