"""A watched training: what it keeps is true of the models that the run saved, and the run is as without it."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from headway.data.corpus import read_lines
from headway.errors import UserError
from headway.page import watching
from headway.page.training_file import read_training
from headway.page.watching import Watcher, moments
from headway.plain import PlainTransformer
from headway.storage import load_model
from headway.training.loop import run_loop
from headway.training.processes import Interrupted
from headway.training.reporter import Reporter
from headway.translator import Translator
from tests.page.decoding import decoded
from tests.training.test_loop import StopAfter, begin, finish, recipe, weights
from tests.training.test_loop import files as files  # noqa: PLC0414  # a fixture


class AttentiveTransformer(PlainTransformer):
    """The model in numpy, which also keeps all weights of attention by name."""

    def _attention(self, name, *given):
        output, weights = super()._attention(name, *given)
        self.weights[f"{name}.kept"] = weights[0]
        return output, weights


def smoothed(files):
    """With label smoothing, and with averaged weights, which are validated and saved."""
    return recipe(files, label_smoothing=0.1, ema_decay=0.5)


def watched(recipe, folder, stop=None):
    stop = stop or StopAfter(1000)
    stop.opened = begin(recipe, folder)
    return run_loop(stop.opened, stop, Reporter(), Watcher())


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched") / "run"
    watched(smoothed(files), folder)
    return folder


@pytest.fixture(scope="module")
def document(run):
    return read_training(run)


@pytest.mark.parametrize("last", [800, 100_000])
def test_moments_are_ten_from_0_to_the_last_at_equal_factors(last):
    found = moments(last)
    assert (found[0], found[-1], len(found)) == (0, last, 10)
    factors = np.divide(found[2:], found[1:-1])
    assert np.allclose(factors, factors.mean(), rtol=0.03)


@pytest.mark.parametrize("last", [1, 2, 9])
def test_moments_of_a_short_run_are_distinct(last):
    assert moments(last) == sorted(set(moments(last)))
    assert {0, last} <= set(moments(last)) <= set(range(last + 1))


def test_the_last_moment_is_true_of_the_model_saved_at_its_step(run, document):
    moment = document["moments"][-1]
    stored = load_model(run / "models" / f"step-{moment['step']:08}")
    source, target = (document[side] for side in ("source", "target"))
    ids = [one["id"] for one in source["tokens"]], [one["id"] for one in target["tokens"]]
    assert ids[0] == [*stored.source_tokenizer.encode(source["text"]), stored.config.eos_id]
    assert ids[1] == [*stored.target_tokenizer.encode(target["text"]), stored.config.eos_id]
    plain = AttentiveTransformer(stored.config, dict(stored.weights()))
    read = np.array([[stored.config.bos_id, *ids[1][:-1]]])
    logits = torch.from_numpy(plain.logits(np.array([ids[0]]), read))[0]
    assert len(moment["arrays"]) == 3
    for name in moment["arrays"]:
        kept = plain.weights[name.replace(".weights", ".kept")]
        assert np.abs(decoded(moment["arrays"], name) - kept).max() < 1 / 253
    given = F.log_softmax(logits, -1)[range(len(ids[1])), ids[1]]
    assert moment["score"] == pytest.approx(float(given.sum()), rel=1e-4)
    [translation] = Translator(stored).translate([source["text"]], beam_size=1)
    assert moment["translation"] == translation.text


def test_losses_are_without_label_smoothing(run, files, document):
    """One pair after another, against what the batches of the run say."""
    stored = load_model(run / "models" / "step-00000024")
    total = tokens = 0
    for source, target in zip(*(list(read_lines(files / f"valid.{side}")) for side in ("src", "tgt")), strict=True):
        ids = [
            [*tokenizer.encode(text), 3]
            for tokenizer, text in zip(
                (stored.source_tokenizer, stored.target_tokenizer), (source, target), strict=True
            )
        ]
        logits = stored.model(torch.tensor([ids[0]]), torch.tensor([[stored.config.bos_id, *ids[1][:-1]]]))[0]
        total += F.cross_entropy(logits, torch.tensor(ids[1]), reduction="sum").item()
        tokens += len(ids[1])
    last = document["moments"][-1]
    assert last["validation_loss"] == pytest.approx(total / tokens, rel=1e-4)
    assert last["training_loss"] < document["moments"][0]["training_loss"]


@pytest.mark.parametrize("most", [None, 6 * 5 * 5, 1])
def test_the_pair_is_the_longest_with_few_enough_weights(run, files, most, monkeypatch):
    if most is not None:
        monkeypatch.setattr(watching, "MOST_WEIGHTS", most)
    pairs = list(zip(*(list(read_lines(files / f"valid.{side}")) for side in ("src", "tgt")), strict=True))
    places = 4 if most else 1000  # an array has a row and a column for <eos>
    fitting = [pair for pair in pairs if max(len(text.split()) for text in pair) <= places]
    assert fitting != []
    sizes = [len(source + target) for source, target in fitting]
    wanted = min(len(source + target) for source, target in pairs) if most == 1 else max(sizes)
    found = watching._pair(Translator.load(run, engine="torch"), pairs)
    assert found in pairs
    assert len("".join(found)) == wanted


def test_a_watched_run_has_the_weights_of_one_that_is_not(run, files, tmp_path):
    finish(begin(smoothed(files), tmp_path / "run"))
    assert weights(tmp_path / "run") == weights(run)


def test_a_stopped_and_resumed_run_keeps_the_same_moments(run, files, document, tmp_path):
    with pytest.raises(Interrupted):
        watched(smoothed(files), tmp_path / "run", StopAfter(10))
    assert len(read_training(tmp_path / "run")["moments"]) < len(document["moments"])
    watched(smoothed(files), tmp_path / "run")
    assert read_training(tmp_path / "run") == document


def test_the_record_of_the_runs_model_has_the_moments(run, document):
    record = Translator.load(run, engine="torch").inspect("one two")
    assert record.to_dict("layers")["training"] == document
    assert record.to_dict("none")["training"] is None
    assert "validation_loss" in record.to_page()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ('{"format": "headway-training", "format_version": 2, "moments": []}', "use a newer headway"),
        ('{"format": "another", "format_version": 1, "moments": []}', "remove it"),
        ('{"format": "headway-training", "format_version": 1}', "remove it"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, text, complaint):
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(UserError, match=complaint) as caught:
        read_training(tmp_path)
    assert str(tmp_path / "training.json") in str(caught.value)


def test_a_run_that_was_not_watched_has_none(tmp_path):
    assert read_training(tmp_path) is None
