"""The loop: it learns, it resumes exactly, it refuses numbers that are not finite, it fails early and clearly."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from headway.data.corpus import read_lines
from headway.data.options import NoiseSection
from headway.errors import UserError
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import TokenizerSection
from headway.recipe.sizes import work_of_step, work_of_update
from headway.storage import find_model, load_model
from headway.storage.atomic import write_json
from headway.storage.checksums import write_checksums
from headway.storage.steps import step_folders
from headway.text.words import WordTokenizer
from headway.training import run as run_module
from headway.training import saving
from headway.training import step as one_step
from headway.training.averaging import MovingAverage
from headway.training.loop import read_steps, run_loop, take_step, validate_and_keep
from headway.training.loss import TranslationLoss
from headway.training.processes import Interrupted, StopRequests
from headway.training.ranks import SingleProcess
from headway.training.reporter import Reporter, RunLog
from headway.training.run import Run
from headway.training.run_directory import open_run, refuse_used_folder
from headway.training.start import start
from headway.training.step import Batches, try_batch
from headway.translator import Translator

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A task of a few dozen pairs: the words in reverse."""
    folder = tmp_path_factory.mktemp("corpus")
    generator = torch.Generator().manual_seed(3)
    for split, count in (("train", 120), ("valid", 12)):
        sources, targets = [], []
        for _ in range(count):
            length = int(torch.randint(2, 6, (1,), generator=generator))
            words = [WORDS[i] for i in torch.randint(0, 10, (length,), generator=generator).tolist()]
            sources.append(" ".join(words) + "\n")
            targets.append(" ".join(reversed(words)) + "\n")
        (folder / f"{split}.src").write_text("".join(sources))
        (folder / f"{split}.tgt").write_text("".join(targets))
    return folder


def recipe(files, **training):
    def split(name):
        return {"source": str(files / f"{name}.src"), "target": str(files / f"{name}.tgt")}

    options = {
        "max_steps": 24,
        "tokens_per_batch": 300,
        "warmup_steps": 4,
        "learning_rate": 3e-3,
        "device": "cpu",
        "precision": "fp32",
        "validate_every": 8,
        "save_every": 4,
    }
    size = {"d_model": 32, "num_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
    return make_recipe(
        {
            "data": {
                "train": split("train"),
                "valid": split("valid"),
                "source_language": "src",
                "target_language": "tgt",
            },
            "tokenizer": {"kind": "word"},
            "model": {"preset": "tiny", **size},
            "training": {**options, **training},
        }
    )


class StopAfter(StopRequests):
    """SIGTERM while a step is done, so that it comes before the validation after it."""

    opened: Run

    def __init__(self, step):
        super().__init__()
        self.step = step

    def __call__(self):
        return 15 if self.opened.progress.step >= self.step else None


def begin(recipe, folder, notice=None):
    return start(recipe, folder, notice or Reporter().line, SingleProcess())


def finish(opened, stop=None):
    return run_loop(opened, stop or StopRequests(), Reporter())


def run(recipe, folder, stop=None):
    stop = stop or StopRequests()
    stop.opened = begin(recipe, folder)
    return finish(stop.opened, stop)


def log(folder):
    return [json.loads(line) for line in read_lines(folder / "log.jsonl")]


def losses(folder):
    return [(entry["step"], entry.get("loss", entry.get("valid_loss"))) for entry in log(folder)]


def weights(folder):
    return (folder / "checkpoints" / "step-00000024" / "weights.safetensors").read_bytes()


def test_a_run_on_the_cpu_stays_there_whatever_device_there_is(files, tmp_path, pretend_device):
    """With its validations."""
    pretend_device("cuda")
    opened = begin(recipe(files, max_steps=3, validate_every=1), tmp_path / "run")
    finish(opened)
    assert sum("valid_loss" in entry for entry in log(tmp_path / "run")) == 3
    assert {parameter.device.type for parameter in opened.model.parameters()} == {"cpu"}


def test_loss_falls_and_the_run_directory_is_complete(files, tmp_path):
    progress = run(recipe(files), tmp_path / "run")
    entries = [entry for entry in log(tmp_path / "run") if "loss" in entry]
    assert [entry["step"] for entry in entries] == list(range(1, 25))
    assert entries[-1]["loss"] < 0.8 * entries[0]["loss"]
    assert set(entries[0]) >= {"step", "loss", "learning_rate", "tokens_per_second", "seconds"}
    validations = [entry for entry in log(tmp_path / "run") if "valid_loss" in entry]
    assert [entry["step"] for entry in validations] == [8, 16, 24]
    best = json.loads((tmp_path / "run" / "best.json").read_text())
    assert best["model"] == f"step-{progress.best_step:08d}"
    assert max(entry["valid_bleu"] for entry in validations) < 1, "noise, so the loss decides"
    assert round(best["valid_bleu"], 2) == min(validations, key=lambda entry: entry["valid_loss"])["valid_bleu"]
    translator = Translator.load(tmp_path / "run")
    assert translator.stored.source_language == "src"
    assert "validation BLEU" in translator.stored.card
    rows = [line for line in translator.stored.card.splitlines() if line.startswith("|")]
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {4}  # two cells, whatever a signature holds


def test_the_work_of_all_stages_is_counted(files, tmp_path):
    """A stopped and resumed run has that of all its steps; one that starts from a model goes on from the model's, and
    one that starts from a run, from that of all its steps, whichever model is the best."""
    whole = run(recipe(files), tmp_path / "whole")
    opened = begin(recipe(files), tmp_path / "counted")
    steps = [step for epoch in range(whole.epoch + 1) for step in opened.train.plan.steps(epoch)]
    by_hand = sum(work_of_step(opened.model.config, step) for step in steps[:24])
    assert whole.flops == pytest.approx(by_hand)
    with pytest.raises(Interrupted):
        run(recipe(files), tmp_path / "run", StopAfter(12))
    assert run(recipe(files), tmp_path / "run").flops == pytest.approx(by_hand)
    last = load_model(tmp_path / "run" / "models" / "step-00000024")
    assert last.training_flops == pytest.approx(by_hand)
    assert f"| matrix products in training, all stages | {by_hand / 1e15:.4g} PFLOP |" in last.card
    assert log(tmp_path / "run")[-1]["petaflop"] == round(by_hand / 1e15, 6)
    model = tmp_path / "run" / "models" / "step-00000008"
    before = sum(work_of_step(last.model.config, step) for step in steps[:8])
    assert load_model(model).training_flops == pytest.approx(before)
    (tmp_path / "run" / "best.json").write_text('{"model": "step-00000008"}')
    again = before + 8 * work_of_update(last.model.config, "muon")
    for place, work in ((model, before), (tmp_path / "run", by_hand)):
        options = {"init_from": str(place), "max_steps": 8, "optimizer": "muon"}
        second = run(recipe(files, **options), tmp_path / f"after-{place.name}")
        assert second.flops == pytest.approx(work + again)


@pytest.mark.usefixtures("held_files_stay")
@pytest.mark.parametrize(("optimizer", "precision"), [("adam", "fp32"), ("adam", "bf16"), ("muon", "bf16")])
@pytest.mark.parametrize("stop_after", [5, 12, 16])
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(files, tmp_path, precision, stop_after, optimizer):
    wanted = recipe(files, precision=precision, tokens_per_micro_batch=150, optimizer=optimizer)
    run(wanted, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(stop_after))
    assert losses(tmp_path / "parts")[-1][0] == stop_after
    torch.manual_seed(999)  # the state of the process does not matter
    run(wanted, tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


def test_a_decay_goes_on_where_it_was(files, tmp_path):
    """With wsd by default the last fifth of 24 steps."""
    wanted = recipe(files, schedule="wsd")
    run(wanted, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(22))
    run(wanted, tmp_path / "parts")
    rates, again = (
        [one["learning_rate"] for one in log(tmp_path / name) if "loss" in one] for name in ("whole", "parts")
    )
    assert again == rates
    assert rates[3:20] == [3e-3] * 17
    assert rates[20:] == pytest.approx([3e-3 * (1 - (done / 4) ** 0.5) for done in range(1, 5)])
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


@pytest.mark.parametrize("stop_after", [9, 16])
def test_a_run_with_noise_goes_on_as_if_nothing_had_been(files, tmp_path, stop_after):
    """Through three epochs, each with ids of its own."""
    wanted = recipe(files, tokens_per_batch=600)
    noise = NoiseSection(share=0.5)
    wanted = wanted.model_copy(update={"data": wanted.data.model_copy(update={"noise": noise})})
    wanted = wanted.model_copy(update={"tokenizer": TokenizerSection(kind="bpe", vocab_size=300)})
    whole = run(wanted, tmp_path / "whole")
    assert whole.epoch >= 2
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(stop_after))
    run(wanted, tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


class Pretended(SingleProcess):
    """This rank has the first micro-batch of each step alone; the others bring the losses to 50, and after the third
    step one of them was told to stop."""

    def __init__(self):
        self.given, self.summed = [], []

    def local_micro_batches(self, micro_batches):
        self.given.append(micro_batches)
        return micro_batches[:1]

    def all_reduce_sum(self, values):
        self.summed.append(values.sum().item())
        return torch.tensor([50.0])

    def all_reduce_max(self, asked, minutes):
        return (15 if len(self.summed) == 3 else asked), minutes


def test_ranks_share_the_work_the_sums_and_the_end(files, tmp_path):
    opened = begin(recipe(files, tokens_per_micro_batch=100), tmp_path / "run")
    plan, opened.ranks = list(opened.train.plan.steps(0)), Pretended()
    with torch.no_grad():
        opened.loss_of.train()
        first = opened.loss_of(*opened.train.tensors(plan[0][0])).item()
    with pytest.raises(Interrupted):
        finish(opened)
    assert opened.ranks.given == [[opened.largest], *plan[:3]]
    assert opened.ranks.summed[0] == pytest.approx(first, rel=0.2)  # dropout drew otherwise
    assert losses(tmp_path / "run") == [
        (number, 50.0 / opened.train.target_tokens(step)) for number, step in enumerate(plan[:3], start=1)
    ]
    assert [path.name for path in step_folders(tmp_path / "run" / "checkpoints")] == ["step-00000003"]


def test_a_reader_is_told_what_the_log_has(files, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(Reporter, "step", lambda self, *figures: told.append(figures))
    run(recipe(files, max_steps=8), tmp_path / "run")
    logged = [entry for entry in log(tmp_path / "run") if "loss" in entry]
    assert [(step, loss, round(speed)) for step, loss, speed, *_ in told] == [
        (entry["step"], f"smoothed loss {entry['loss']:.3f}", entry["tokens_per_second"]) for entry in logged
    ]
    assert [done for *_, done, _ in told] == pytest.approx([entry["step"] / 8 for entry in logged])


class AnotherAtItsLimit(SingleProcess):
    """Another rank has come to its limit of minutes after the fourth step."""

    def __init__(self):
        self.asked = 0

    def all_reduce_max(self, asked, minutes):
        self.asked += 1
        return asked, 100.0 if self.asked > 4 else minutes


def test_a_limit_that_another_rank_has_reached_ends_this_one(files, tmp_path):
    opened = begin(recipe(files, max_minutes=60.0), tmp_path / "run")
    opened.ranks = AnotherAtItsLimit()
    finish(opened)
    assert opened.progress.step == 4


def test_steps_after_the_last_checkpoint_are_done_again(files, tmp_path):
    run(recipe(files), tmp_path / "run")
    before = losses(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000024")
    run(recipe(files), tmp_path / "run")
    assert losses(tmp_path / "run") == before


def test_accumulation_is_one_large_batch(files, tmp_path):
    """The same plan cut finer gives another order, so a single step over the whole corpus is compared."""
    whole = recipe(files, tokens_per_batch=100_000, max_steps=1)
    fine = recipe(files, tokens_per_batch=100_000, tokens_per_micro_batch=200, max_steps=1)
    for name, wanted in (("whole", whole), ("fine", fine)):
        run(wanted.model_copy(update={"model": wanted.model.model_copy(update={"dropout": 0.0})}), tmp_path / name)
    [(_, first), *_], [(_, second), *_] = losses(tmp_path / "whole"), losses(tmp_path / "fine")
    assert first == pytest.approx(second, abs=1e-6)
    moments = [
        load_file(tmp_path / name / "checkpoints" / "step-00000001" / "optimizer.safetensors")
        for name in ("whole", "fine")
    ]
    for name, moment in moments[0].items():
        torch.testing.assert_close(
            moment, moments[1][name], atol=1e-6, rtol=0
        )  # a tenth of the gradient, and its square


def test_by_default_resuming_validates_at_the_same_steps(files, tmp_path):
    """Once an epoch, though epochs differ in length."""
    wanted = recipe(files, validate_every=None, save_every=None, max_steps=None, max_epochs=3, tokens_per_batch=14)
    run(wanted, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(150))
    run(wanted, tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert (tmp_path / "parts" / "best.json").read_bytes() == (tmp_path / "whole" / "best.json").read_bytes()


def test_a_start_without_a_checkpoint_begins_anew(files, tmp_path):
    wanted = recipe(files)
    run(wanted, tmp_path / "whole")
    opened = begin(wanted, tmp_path / "run")
    with RunLog(tmp_path / "run", 0, 0, print) as log_of_run:
        for micro_batch in next(opened.train.plan.steps(0))[:3]:
            read_steps(opened, [take_step(opened, [micro_batch])], log_of_run, Reporter())  # and then it is killed
    run(wanted, tmp_path / "run")
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")


def test_a_seed_that_the_end_could_not_use_is_refused_at_the_start(files, tmp_path, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "abc")
    with pytest.raises(UserError, match="SACREBLEU_SEED=abc: "):
        begin(recipe(files, max_steps=1), tmp_path / "run")


def test_what_came_after_the_checkpoint_is_taken_back(files, tmp_path):
    run(recipe(files), tmp_path / "run")
    for step in (24, 20):
        shutil.rmtree(tmp_path / "run" / "checkpoints" / f"step-000000{step}")
    save = recipe(files, max_steps=17)
    run(save, tmp_path / "other")
    shutil.copytree(
        tmp_path / "other" / "checkpoints" / "step-00000016", tmp_path / "run" / "checkpoints" / "step-00000016"
    )
    begin(recipe(files), tmp_path / "run")
    assert [path.name for path in step_folders(tmp_path / "run" / "models")][-1] == "step-00000016"
    best = json.loads((tmp_path / "run" / "best.json").read_text())["model"]
    assert (tmp_path / "run" / "models" / best).is_dir()


def test_the_best_of_every_checkpoint_is_kept(files, tmp_path, monkeypatch):
    """Should the last checkpoint be damaged, the one before it is resumed, and its best must still be there."""
    monkeypatch.setattr(saving, "MODELS_KEPT", 1)
    losses = iter([3.0, 4.0, 4.0, 2.0])
    monkeypatch.setattr(run_module, "mean_loss", lambda *_: next(losses))
    run(recipe(files, max_steps=16, save_every=4, validate_every=4, best_by="valid_loss"), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000016")
    again = begin(recipe(files, max_steps=16, save_every=4, validate_every=4, best_by="valid_loss"), tmp_path / "run")
    assert again.progress.best_step == 4
    assert [path.name for path in step_folders(tmp_path / "run" / "models")] == ["step-00000004"]


@pytest.mark.parametrize("split", ["train", "valid"])
def test_text_that_changed_under_a_run_is_told_when_it_goes_on(files, tmp_path, split):
    """The run has a copy of its own, so that it goes on as if nothing had happened."""
    corpus = shutil.copytree(files, tmp_path / "corpus")
    wanted, told = recipe(corpus, max_steps=8), []
    run(wanted, tmp_path / "run")
    changed = corpus / f"{split}.tgt"
    text = changed.read_bytes()
    os.utime(changed, ns=(1, 1))
    fingerprint = begin(wanted, tmp_path / "run", told.append).data.fingerprint
    assert not [line for line in told if "corpus" in line]
    changed.write_bytes(text.replace(b"one", b"two"))  # of the same size
    assert begin(wanted, tmp_path / "run", told.append).data.fingerprint == fingerprint
    [line] = [line for line in told if "corpus" in line]
    assert line == (
        f"notice: {changed}: was changed since {tmp_path / 'run' / 'data'} was prepared from it; "
        "training and validation use the text as it was prepared"
    )
    changed.with_suffix(".src").write_bytes(b"")
    told.clear()
    begin(wanted, tmp_path / "run", told.append)
    assert " (and 1 more like this); " in next(line for line in told if "corpus" in line)
    shutil.rmtree(corpus)  # text that was moved away or deleted is no matter
    told.clear()
    begin(wanted, tmp_path / "run", told.append)
    assert not [line for line in told if "corpus" in line]


@pytest.mark.parametrize("layers", [0, 2])
def test_a_decoder_of_any_depth_can_be_resumed(files, tmp_path, layers):
    wanted = recipe(files, max_steps=4)
    wanted = wanted.model_copy(update={"model": wanted.model.model_copy(update={"decoder_layers": layers})})
    run(wanted, tmp_path / "run")
    assert begin(wanted, tmp_path / "run").progress.step == 4


@pytest.mark.usefixtures("held_files_stay")
def test_a_run_with_an_average_resumes_exactly_and_keeps_the_average(files, tmp_path):
    wanted = recipe(files, ema_decay=0.9)
    run(wanted, tmp_path / "whole")
    run(recipe(files, ema_decay=0.9, max_steps=8), tmp_path / "parts")
    run(wanted, tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    average = load_file(tmp_path / "whole" / "checkpoints" / "step-00000024" / "average.safetensors")
    model = load_file(tmp_path / "whole" / "models" / "step-00000024" / "model.safetensors")
    trained = load_file(tmp_path / "whole" / "checkpoints" / "step-00000024" / "weights.safetensors")
    for name, weight in model.items():
        assert torch.equal(weight, average[name])
    assert any(not torch.equal(weight, trained[name]) for name, weight in model.items())
    run(recipe(files), tmp_path / "plain")  # an average changes nothing of the training itself
    assert weights(tmp_path / "plain") == weights(tmp_path / "whole")


def test_a_run_starts_from_a_model(files, tmp_path):
    run(recipe(files), tmp_path / "first")
    second = recipe(files, init_from=str(tmp_path / "first"), max_steps=1)
    opened = begin(second, tmp_path / "second")
    first = Translator.load(tmp_path / "first")
    for name, weight in opened.model.named_parameters():
        assert torch.equal(weight, first.model.get_parameter(name))
    assert opened.data.source_tokenizer.to_bytes() == first.stored.source_tokenizer.to_bytes()
    finish(opened)
    shutil.rmtree(tmp_path / "first")
    longer = second.training.model_copy(update={"max_steps": 2})
    assert run(second.model_copy(update={"training": longer}), tmp_path / "second").step == 2


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("model", {"d_ff": 32}, "model.d_ff is 64, the recipe has 32"),
        ("model", {"decoder_layers": 3}, "model.decoder_layers is 1, the recipe has 3"),
        ("tokenizer", {"kind": "bpe"}, "tokenizer.kind is word, the recipe has bpe"),
        ("tokenizer", {"joint": False}, "tokenizer.joint is True, the recipe has False"),
    ],
)
def test_a_model_of_another_kind_is_refused_as_a_start(files, tmp_path, section, changes, message):
    run(recipe(files, max_steps=1), tmp_path / "first")
    wanted = recipe(files, init_from=str(tmp_path / "first"))
    other = wanted.model_copy(update={section: getattr(wanted, section).model_copy(update=changes)})
    with pytest.raises(UserError, match=message):
        begin(other, tmp_path / "second")


@pytest.mark.parametrize(("encoder", "decoder"), [(2, 1), (1, 2), (1, 1), (2, 2)])
def test_a_smaller_model_starts_with_the_first_layers(files, tmp_path, encoder, decoder):
    """Of a model with two of each; it is told how many layers are taken."""

    def with_layers(wanted, encoder, decoder):
        sizes = {"encoder_layers": encoder, "decoder_layers": decoder}
        return wanted.model_copy(update={"model": wanted.model.model_copy(update=sizes)})

    run(with_layers(recipe(files, max_steps=1), 2, 2), tmp_path / "first")
    first, said = load_model(tmp_path / "first").model, []
    smaller = with_layers(recipe(files, init_from=str(tmp_path / "first")), encoder, decoder)
    model = begin(smaller, tmp_path / "second", said.append).model
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (encoder, decoder)
    for name, weight in model.named_parameters():
        assert torch.equal(weight, first.get_parameter(name))
    fewer = [side for side, layers in (("encoder", encoder), ("decoder", decoder)) if layers < 2]
    told = [line.partition("/first: ")[2] for line in said if line.endswith("are taken")]
    assert told == [f"{side} layers 1 to 1 of its 2 are taken" for side in fewer]


def test_dropout_may_differ_from_the_model_that_is_the_start(files, tmp_path):
    run(recipe(files, max_steps=1), tmp_path / "first")
    wanted = recipe(files, init_from=str(tmp_path / "first"))
    other = wanted.model_copy(update={"model": wanted.model.model_copy(update={"dropout": 0.3})})
    assert begin(other, tmp_path / "second").model.config.dropout == 0.3


OWN_LOSS = """
from headway.training.loss import TranslationLoss

class Halved(TranslationLoss):
    def forward(self, *batch):
        return super().forward(*batch) / (2 if self.training else 1)

class Other: ...
"""


@pytest.mark.usefixtures("own_folder")
def test_a_loss_of_ones_own(files, tmp_path):
    """Training minimises it, and logs the norm of its gradients; validation has the loss that it gives there."""
    Path("own_losses.py").write_text(OWN_LOSS)
    options = {"max_steps": 1, "max_gradient_norm": 0.0}
    run(recipe(files, **options), tmp_path / "plain")
    run(recipe(files, loss="own_losses:Halved", **options), tmp_path / "halved")
    (plain, plain_valid), (halved, halved_valid) = log(tmp_path / "plain"), log(tmp_path / "halved")
    assert halved["loss"] == pytest.approx(plain["loss"] / 2)
    assert halved["gradient_norm"] == pytest.approx(plain["gradient_norm"] / 2, rel=1e-3)
    assert plain["gradient_norm"] > 0
    assert halved_valid["valid_loss"] == pytest.approx(plain_valid["valid_loss"], rel=1e-3)
    for name, message in (("own_losses:Other", "must be a subclass of"), ("own_losses:Absent", "has no class Absent")):
        with pytest.raises(UserError, match=message):
            begin(recipe(files, loss=name, **options), tmp_path / "refused")
        assert not (tmp_path / "refused").exists(), "it is refused before data are prepared"


@pytest.mark.parametrize(("growth", "steps"), [(0.1, 3), (0.0, 3), (-0.1, 9)])
def test_patience_stops_when_neither_score_nor_loss_gets_better(files, tmp_path, monkeypatch, growth, steps):
    losses = [3.0 + growth * count for count in range(20)]
    monkeypatch.setattr(run_module, "mean_loss", lambda *_: losses.pop(0))
    wanted = recipe(files, patience=2, validate_every=1, learning_rate=1e-9, max_steps=9, ema_decay=0.999999)
    assert run(wanted, tmp_path / "run").step == steps


def test_epochs_stop(files, tmp_path):
    progress = run(recipe(files, max_steps=None, max_epochs=2), tmp_path / "run")
    assert {entry["epoch"] for entry in log(tmp_path / "run") if "epoch" in entry} == {1, 2}
    assert progress.epoch == 1


def test_a_loss_that_is_not_finite_stops_before_the_update(files, tmp_path):
    wanted = recipe(files)
    opened = begin(wanted, tmp_path / "run")
    with torch.no_grad():
        opened.model.decoder.layers[0].feed_forward.outer.bias[0] = float("inf")
    before = opened.model.encoder.layers[0].self_attention.query.weight.clone()
    with pytest.raises(UserError, match=r"step 1, epoch 1, batch 1: the loss is not finite"):
        finish(opened)
    assert torch.equal(opened.model.encoder.layers[0].self_attention.query.weight, before)
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_out_of_memory_comes_at_once_and_names_the_key(files, tmp_path, monkeypatch):
    opened = begin(recipe(files), tmp_path / "run")

    def fail(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr(TranslationLoss, "forward", fail)
    with pytest.raises(
        UserError, match=r"out of memory with \d+ sentences .*training.tokens_per_micro_batch \(now 300\)"
    ):
        finish(opened)


def test_the_largest_batch_is_tried_first_and_changes_nothing(files, tmp_path):
    opened = begin(recipe(files), tmp_path / "run")
    state, before = torch.get_rng_state(), opened.model.output.weight.clone()
    try_batch(opened.loss_of, opened.train, opened.largest, opened.dtype)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(opened.model.output.weight, before)
    assert all(parameter.grad is None for parameter in opened.model.parameters())


def test_a_run_whose_prepared_data_is_gone_makes_it_again(files, tmp_path):
    run(recipe(files), tmp_path / "whole")
    run(recipe(files, max_steps=8), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "data")
    run(recipe(files), tmp_path / "run")
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")


def test_a_run_whose_prepared_data_is_gone_keeps_its_vocabulary(files, tmp_path, monkeypatch):
    """That of its last model; nothing is learned again."""
    run(recipe(files, max_steps=8), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "data")
    monkeypatch.setattr(WordTokenizer, "train", None)
    assert run(recipe(files), tmp_path / "run").step == 24


def test_other_data_is_refused(files, tmp_path):
    shutil.copytree(files, tmp_path / "files")
    wanted = recipe(tmp_path / "files", max_steps=8)
    run(wanted, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "data")
    with open(tmp_path / "files" / "train.src", "a") as sources, open(tmp_path / "files" / "train.tgt", "a") as targets:
        sources.write("one two\n")
        targets.write("two one\n")
    with pytest.raises(UserError, match="isn't the data that the run began with"):
        run(wanted, tmp_path / "run")


def test_a_folder_that_is_not_ours_is_left_alone(files, tmp_path):
    """Somebody's own recipe.yaml beside somebody's own data/."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.txt").write_text("mine")
    (tmp_path / "recipe.yaml").write_text("data: {}\n")
    with pytest.raises(UserError, match="is not empty and holds no run"):
        refuse_used_folder(tmp_path)
    open_run(tmp_path, print)
    assert (tmp_path / "data" / "mine.txt").read_text() == "mine"
    assert (tmp_path / "recipe.yaml").exists()


def test_a_recipe_that_was_edited_is_refused(files, tmp_path):
    run(recipe(files, max_steps=4), tmp_path / "run")
    with pytest.raises(UserError, match=r"can't change training.seed \(1 -> 2\)"):
        run(recipe(files, seed=2), tmp_path / "run")
    assert run(recipe(files, max_steps=5, patience=3, save_every=1), tmp_path / "run").step == 5


def test_a_validation_that_was_left_comes_when_the_run_goes_on(files, tmp_path):
    """Also where a kill comes after it, before the next checkpoint: nothing is logged twice."""
    wanted = recipe(files)
    run(wanted, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(16))
    assert log(tmp_path / "parts")[-1]["step"] == 16
    assert "valid_loss" not in log(tmp_path / "parts")[-1]
    opened = begin(wanted, tmp_path / "parts")
    with RunLog(tmp_path / "parts", 16, 8, print) as log_of_run:
        validate_and_keep(opened, StopRequests(), log_of_run, Reporter())  # and then it is killed
    assert "valid_loss" in log(tmp_path / "parts")[-1]
    run(wanted, tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_a_stop_request_in_the_midst_of_a_validation_leaves_it_at_once(files, tmp_path, monkeypatch):
    stop = StopRequests()
    real = run_module.score

    def score(*arguments):
        if opened.progress.step == 8:
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("went on")
        return real(*arguments)

    monkeypatch.setattr(run_module, "score", score)
    opened = begin(recipe(files, ema_decay=0.9), tmp_path / "run")
    with pytest.raises(Interrupted), stop.listening():
        finish(opened, stop)
    monkeypatch.undo()
    run(recipe(files, ema_decay=0.9), tmp_path / "run")
    run(recipe(files, ema_decay=0.9), tmp_path / "whole")
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_a_stop_request_in_the_trial_of_the_largest_batch_leaves_it_at_once(files, tmp_path, monkeypatch):
    def accumulate(*_):
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("went on")

    opened, stop = begin(recipe(files), tmp_path / "run"), StopRequests()
    monkeypatch.setattr("headway.training.step.accumulate", accumulate)
    with pytest.raises(Interrupted), stop.listening():
        finish(opened, stop)


def test_a_stop_request_prints_nothing_from_within_the_step(files, tmp_path, monkeypatch):
    """The step may be in the midst of a line itself."""
    opened, stop, reporter, lines = begin(recipe(files), tmp_path / "run"), StopRequests(), Reporter(), []
    real = one_step.accumulate

    def accumulate(*arguments):
        if opened.progress.step == 3:
            before = len(lines)
            os.kill(os.getpid(), signal.SIGINT)
            assert len(lines) == before
        return real(*arguments)

    monkeypatch.setattr(one_step, "accumulate", accumulate)
    monkeypatch.setattr(reporter, "line", lines.append)
    with pytest.raises(Interrupted), stop.listening():
        run_loop(opened, stop, reporter)
    assert "stopping" in lines[-1]
    assert opened.progress.step == 4
    assert step_folders(tmp_path / "run" / "checkpoints")[-1].name == "step-00000004"


def test_weights_that_are_not_finite_are_never_saved(files, tmp_path, monkeypatch):
    """The gradients of step 5 are fine, the weights after it aren't."""
    opened = begin(recipe(files), tmp_path / "run")
    real = opened.optimizers[0].step

    def step():
        real()
        if opened.progress.step == 7:
            opened.model.output.weight.data[0, 0] = float("nan")

    monkeypatch.setattr(opened.optimizers[0], "step", step)
    with pytest.raises(UserError, match=r"step 8: weight .* is not finite, nothing of it was saved"):
        finish(opened)
    assert [path.name for path in step_folders(tmp_path / "run" / "checkpoints")] == ["step-00000004"]


def test_weights_that_are_not_finite_are_in_no_checkpoint_between_validations(files, tmp_path, monkeypatch):
    opened = begin(recipe(files, save_every=3, validate_every=20), tmp_path / "run")
    real = opened.optimizers[0].step

    def step():
        real()
        if opened.progress.step == 5:
            opened.model.output.weight.data[0, 0] = float("nan")

    monkeypatch.setattr(opened.optimizers[0], "step", step)
    with pytest.raises(UserError, match=r"step 6: weight .* is not finite, nothing of it was saved"):
        finish(opened)
    assert [path.name for path in step_folders(tmp_path / "run" / "checkpoints")] == ["step-00000003"]


def test_a_validation_loss_that_is_not_finite_is_no_model(files, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "mean_loss", lambda *_: float("nan"))
    with pytest.raises(UserError, match="step 8: the validation loss is not finite"):
        run(recipe(files), tmp_path / "run")
    assert not list((tmp_path / "run" / "models").iterdir())


def test_memory_that_runs_out_later_leaves_the_checkpoint(files, tmp_path, monkeypatch):
    """Wherever it is: in the sixth step, or in the validation after the eighth, which names its own batch."""
    corpus = tmp_path / "corpus"
    shutil.copytree(files, corpus)
    for side in ("src", "tgt"):
        (corpus / f"valid.{side}").write_text(" ".join(WORDS[:9]) + "\n")
    batch = r"with \d+ sentences of up to [3-6] source and [3-6] target tokens; .*tokens_per_micro_batch \(now 300\)"
    valid = r"with 1 sentences of up to 10 source and 10 target tokens; .*tokens_per_micro_batch \(now 300\)"
    translating = r"translating data.valid, a pair of 10 source tokens among them; .*decoding.max_length"
    for number, (owner, name, when, message) in enumerate(
        [
            (one_step, "accumulate", 5, batch),
            (torch.nn.utils, "clip_grad_norm_", 5, batch),
            (torch.optim.Adam, "step", 5, batch),
            (MovingAverage, "update", 5, batch),
            (Batches, "tensors", 8, valid),
            (Translator, "translate", 8, translating),
        ]
    ):
        wanted, folder = recipe(corpus, ema_decay=0.9), tmp_path / str(number)
        opened, real = begin(wanted, folder), getattr(owner, name)

        def fail(*arguments, opened=opened, real=real, when=when, **options):
            if opened.progress.step == when:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return real(*arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(owner, name, fail)
            with pytest.raises(UserError, match=f"^out of memory {message}"):
                finish(opened)
        assert begin(wanted, folder).progress.step == 4


@pytest.mark.usefixtures("held_files_stay")
def test_a_damaged_checkpoint_costs_only_the_way_from_the_one_before(files, tmp_path, capfd):
    run(recipe(files), tmp_path / "whole")
    run(recipe(files, max_steps=16), tmp_path / "run")
    weights_file = tmp_path / "run" / "checkpoints" / "step-00000016" / "optimizer.safetensors"
    data = bytearray(weights_file.read_bytes())
    data[len(data) // 2] ^= 1
    weights_file.write_bytes(bytes(data))
    run(recipe(files), tmp_path / "run")
    assert "optimizer.safetensors is damaged; going on from step-00000012" in " ".join(capfd.readouterr().err.split())
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_other_conditions_are_told(files, tmp_path, capfd):
    run(recipe(files, max_steps=4), tmp_path / "run")
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    begin(recipe(files, max_steps=5), tmp_path / "run")
    torch.set_num_threads(before)
    assert f"threads {before} -> {before + 1}: the last digits will differ" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "before", "now", "change"),
    [
        ("precision", torch.float32, torch.bfloat16, "precision float32 -> bfloat16"),
        ("device", "cuda", "cpu", "device cuda -> cpu"),
    ],
)
def test_what_auto_means_may_change_with_a_notice(files, tmp_path, monkeypatch, capfd, name, before, now, change):
    """On another machine. Where the recipe names the device or the precision, another one is a change of the recipe."""
    if name == "precision":
        monkeypatch.setattr("headway.training.start.training_dtype", lambda *_: before)
    else:
        device = torch.device(before)
        real = saving.conditions
        monkeypatch.setattr(saving, "conditions", lambda _, *others: real(device, *others))
    run(recipe(files, max_steps=4, **{name: "auto"}), tmp_path / "run")
    monkeypatch.undo()
    monkeypatch.setattr(
        "headway.training.start.training_dtype", lambda *_: now if name == "precision" else torch.float32
    )
    assert run(recipe(files, max_steps=5, **{name: "auto"}), tmp_path / "run").step == 5
    assert f"notice: resuming with {change}: the last digits will differ" in capfd.readouterr().err
    with pytest.raises(UserError, match=rf"can't change training.{name} \(auto -> "):
        run(recipe(files, max_steps=5), tmp_path / "run")


@pytest.mark.parametrize("step_in_epoch", [0, 1, 1000])
def test_the_rest_of_an_epoch_that_was_planned_otherwise_is_left_out(files, tmp_path, capfd, step_in_epoch):
    """By another version, which may have had more steps in an epoch than there are now. One that was not begun is done
    as it is planned now."""
    run(recipe(files, max_steps=4), tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints" / "step-00000004"
    state = json.loads((folder / "state.json").read_text())
    del state["made_with"]["plan"]
    state["progress"]["step_in_epoch"] = step_in_epoch
    write_json(folder / "state.json", state)
    write_checksums(folder)
    capfd.readouterr()
    progress = run(recipe(files, max_steps=5), tmp_path / "run")
    assert (progress.step, progress.epoch, progress.step_in_epoch) == (
        5,
        state["progress"]["epoch"] + bool(step_in_epoch),
        1,
    )
    told = " ".join(capfd.readouterr().err.split())
    assert "another version of headway began this epoch, with other batches; the rest of it is left out" in told
    assert "the last digits" not in told


def test_a_state_by_hand_is_told_what_it_lacks(files, tmp_path, capfd):
    """Conditions that it doesn't name, limits that its recipe hasn't."""
    run(recipe(files, max_steps=4), tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints" / "step-00000004"
    state = json.loads((folder / "state.json").read_text())
    del state["made_with"]["device"], state["recipe"]["training"]["max_steps"]
    write_json(folder / "state.json", {**state, "made_with": {**state["made_with"], "colour": "red"}})
    write_checksums(folder)
    begin(recipe(files, max_steps=4), tmp_path / "run")
    assert "notice: resuming with device unknown -> cpu: the last digits" in capfd.readouterr().err
    write_json(folder / "state.json", {**state, "recipe": {}})
    write_checksums(folder)
    with pytest.raises(UserError, match=r"can't change .*training.seed \(None -> 1\)"):
        begin(recipe(files, max_steps=4), tmp_path / "run")


def test_a_torn_line_costs_no_other(files, tmp_path, capfd):
    run(recipe(files), tmp_path / "whole")
    run(recipe(files, max_steps=8), tmp_path / "run")
    file = tmp_path / "run" / "log.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    torn = [lines[2][:15] + b"\n", b'{"step": 3}\x00' + b"\n", b"[]\n", lines[1], b'{"step": 1e999, "loss": 1}\n']
    file.write_bytes(b"".join([*lines[:2], *torn, *lines[3:], lines[5][:9]]))
    run(recipe(files), tmp_path / "run")
    assert losses(tmp_path / "run") == [place for place in losses(tmp_path / "whole") if place[0] != 3]
    told = [line for line in capfd.readouterr().err.splitlines() if "is damaged" in line]
    assert [line.split("log.jsonl, ")[1] for line in told] == [
        f"line {number}: is damaged, what it said is lost" for number in (3, 4, 5, 7)
    ]


def test_best_json_never_names_a_model_that_is_gone(files, tmp_path, monkeypatch):
    """Killed while a resumed run removes the models that will come again."""
    losses = iter([3.0, 2.0])
    monkeypatch.setattr(run_module, "mean_loss", lambda *_: next(losses))
    wanted = recipe(files, max_steps=8, save_every=4, validate_every=4, best_by="valid_loss")
    run(wanted, tmp_path / "run")
    assert find_model(tmp_path / "run").name == "step-00000008"
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000008")

    def killed(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(saving, "remove_directory", killed)
    with pytest.raises(KeyboardInterrupt):
        begin(wanted, tmp_path / "run")
    assert find_model(tmp_path / "run").name == "step-00000004"


def test_a_log_that_can_not_be_written_is_named(files, tmp_path, monkeypatch):
    run(recipe(files, max_steps=4), tmp_path / "run")
    log_of_run = RunLog(tmp_path / "run", 4, 4, print)
    log_of_run._file.close()
    with open("/dev/full", "ab", buffering=0) as log_of_run._file, pytest.raises(UserError, match="No space left"):
        log_of_run.write({"step": 5, "loss": 1.0})
