"""The arithmetic of `headway bench`, on contenders whose times are known."""

from types import SimpleNamespace

import pytest
import torch

from headway.bench.contenders import race
from headway.bench.training import RandomText, bench_training, in_batches, make_headway, speeds
from headway.bench.translating import bench_translating
from headway.cli.plan import recipe_of
from headway.errors import UserError


class Fake:
    """A contender of known times, in seconds; a None fails."""

    def __init__(self, name, *times, log=None):
        self.name, self._times, self._log = name, list(times), log if log is not None else []

    def work(self, *request):
        self._log.append((self.name, *request))
        if (spent := self._times.pop(0)) is None:
            raise UserError(f"{self.name}: out of memory")
        return spent, None


def test_contenders_take_turns_and_the_first_rounds_do_not_count():
    log = []
    contenders = [Fake("a", 9.0, 1.0, 2.0, log=log), Fake("b", 8.0, 3.0, 4.0, log=log)]
    told = []
    seconds, failures = race(contenders, lambda one: (one.name * 2,), rounds=2, warm_up=1, tell=told.append)
    assert seconds == {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    assert failures == {}
    assert log == [("a", "aa"), ("b", "bb")] * 3
    assert told == ["round 1 of 3: a, b", "round 2 of 3: a, b", "round 3 of 3: a, b"]


def test_a_contender_that_fails_leaves_the_others_racing():
    contenders = [Fake("a", 1.0, 1.0, 1.0), Fake("b", 1.0, None)]
    told = []
    seconds, failures = race(contenders, lambda one: (), rounds=2, warm_up=1, tell=told.append)
    assert seconds["a"] == [1.0, 1.0]
    assert failures == {"b": "b: out of memory"}
    assert told[-1] == "round 3 of 3: a"
    rows = list(speeds(contenders, seconds, failures, 100, 0.001))
    assert rows[1] == {"name": "b", "failed": "b: out of memory"}


def test_speeds_are_those_of_the_median_round():
    contenders = [SimpleNamespace(name="headway"), SimpleNamespace(name="peer")]
    seconds = {"headway": [2.0, 1.0, 50.0], "peer": [8.0, 8.0, 1.0]}
    first, second = speeds(contenders, seconds, {}, tokens=1_000, share_of_token=0.0005)
    assert first["target_tokens_per_second"] == 500
    assert first["share_of_peak"] == pytest.approx(0.25)
    assert first["headway_is_times_as_fast"] == 1
    assert second["target_tokens_per_second"] == 125
    assert second["headway_is_times_as_fast"] == 4


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        (bench_training, "tokenizer.vocab_size=4"),
        (bench_translating, "tokenizer.vocab_size=4"),
        (bench_translating, "model.max_length=30"),
    ],
)
def test_what_has_no_room_for_the_text_is_refused(measure, change, monkeypatch):
    monkeypatch.setattr("headway.bench.training.Contender", None)
    monkeypatch.setattr("headway.bench.translating.Contender", None)
    with pytest.raises(UserError, match=f"^{change}: .*use more"):
        measure(recipe_of(["tiny", "training.device=cpu", change]), print)


def test_layers_are_compiled_where_a_contender_asks_for_it(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda call: compiled.append(call) or call)
    recipe = recipe_of(["tiny", "model.d_model=32", "tokenizer.vocab_size=40", "training.tokens_per_batch=200"])
    config = recipe.transformer_config((40, 40))
    text = RandomText.of(config, recipe.training)
    for asked, count in ((False, 0), (True, config.encoder_layers + config.decoder_layers)):
        make_headway(config, recipe.training, "cpu", text, compiled=asked)(1)
        assert len(compiled) == count


@pytest.mark.parametrize(("kind", "compiled"), [("cpu", False), ("cuda", True)])
def test_only_a_card_of_nvidia_is_asked_for_compiled_layers(monkeypatch, kind, compiled):
    """Where it was measured, on CPU, it is slower."""
    made = []

    class Made(Fake):
        def __init__(self, name, *_, device):
            super().__init__(name, *[0.1] * 20)
            made.append(name)

        def end(self):
            return None

    monkeypatch.setattr("headway.bench.training.pick_device", lambda _: kind)
    monkeypatch.setattr("headway.bench.training.Contender", Made)
    monkeypatch.setattr("headway.bench.training.matrix_peak", lambda *_: 1e12)
    monkeypatch.setattr("headway.bench.training.fastest_dtype", lambda _: torch.float32)
    monkeypatch.setattr("headway.bench.training.device_name", str)
    monkeypatch.setattr("headway.bench.training.training_dtype", lambda *_: torch.float32)
    found = bench_training(recipe_of(["tiny", "training.tokens_per_batch=200"]), print)
    assert [row["name"] for row in found["rows"]] == made
    assert ("headway, layers compiled" in made) == compiled


def test_padded_batches_keep_to_their_tokens_and_lose_no_pair():
    pairs = [([5] * x + [3], [6] * y + [3]) for x, y in ((1, 2), (4, 4), (9, 1), (2, 12), (7, 7))]
    batches = in_batches(pairs, 30, 0)
    assert all(source.numel() + target[:, 1:].numel() <= 30 for source, target in batches)
    assert sum(int((source == 3).sum()) for source, _ in batches) == len(pairs)
    found = [row[row != 0].tolist() for source, _ in batches for row in source]
    assert found == [source for source, _ in pairs]
