"""The end of a run that chose for its user: the search, the card, and a kill in the midst of it."""

import json
import math
import re
import shutil

import pytest
from tests.training.test_loop import files, recipe
from typer.testing import CliRunner

from headway.cli import app
from headway.data.corpus import CorpusFiles
from headway.errors import UserError
from headway.recipe.reading import load_recipe, make_recipe
from headway.recipe.recipe import TokenizerSection
from headway.storage import find_model, load_model
from headway.training import finishing
from headway.training.finishing import BEAMS, EXAMPLES, PENALTIES, UnseenText, choose_search
from headway.training.loop import train
from headway.training.reporter import Reporter
from headway.translator import Translation, Translator, confidence, int8

__all__ = ["files"]

TIMED = re.compile(rb"^\| speed .*$|\"README.md\": \"\w+\"", re.MULTILINE)


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    """A run that translates into Chinese, by name, with subwords."""
    wanted = recipe(files, max_steps=120, validate_every=120, save_every=120)
    data = wanted.data.model_copy(update={"target_language": "zh"})
    wanted = wanted.model_copy(update={"data": data, "tokenizer": TokenizerSection(vocab_size=300)})
    run = tmp_path_factory.mktemp("finishing") / "run"
    train(wanted, run, Reporter())
    return run


@pytest.fixture(autouse=True)
def few_are_enough(tmp_path, monkeypatch):
    for module in (finishing, int8, confidence):
        monkeypatch.setattr(module, "FEWEST", 12)
    monkeypatch.setattr(confidence, "ACCEPTABLE", 30.0)
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def finish(run, tell, files=None, minutes=math.inf):
    """Ends the run; its scores are those of the training text, if files are given."""
    held_out = {} if files is None else {"source": str(files / "train.src"), "target": str(files / "train.tgt")}
    changes = [f"data.held_out={json.dumps(held_out)}"] if held_out else []
    finishing.finish(load_recipe(run / "recipe.yaml", changes), run, tell, minutes)


def corpus(files):
    return CorpusFiles([files / "train.src"], [files / "train.tgt"])


def contents(run):
    """Every file of the best model, but for the speed and the checksum of the card that has it."""
    return {file.name: TIMED.sub(b"", file.read_bytes()) for file in find_model(run).iterdir()}


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_a_beam_that_is_ranked_anew_is_the_search_with_that_penalty(run, files, engine):
    sources = [pair.source for pair in corpus(files).pairs()][:40]
    translator = Translator(load_model(run), engine=engine, device="cpu", precision="fp32")
    for beam in BEAMS[1:]:
        found = translator.translate(sources, beam_size=beam, n_best=beam, length_penalty=0)
        for penalty in PENALTIES:
            wanted = [one.text for one in translator.translate(sources, beam_size=beam, length_penalty=penalty)]
            ranked = [finishing._best_text(penalty, one) for one in found]
            if engine == "ctranslate2":
                assert ranked == wanted
            else:  # which ends a search for one translation earlier
                assert sum(one == other for one, other in zip(ranked, wanted, strict=True)) >= 36


class Scripted:
    """A translator whose beams of each size translate so many of 1,000 sentences as their reference is."""

    def translate(self, sources, beam_size, **_):
        right = {1: 500, 2: 520, 4: 521, 8: 900}[beam_size]
        return [Translation("a b c d e" if i < right else "x y z v w", -1.0, "eos") for i in range(len(sources))]


@pytest.mark.parametrize(("beams", "chosen"), [((1,), 1), ((1, 2, 4), 2), ((2, 4), 2), ((1, 2, 4, 8), 8)])
def test_a_wider_beam_must_earn_its_time(beams, chosen):
    pairs = UnseenText(["s"] * 1000, ["a b c d e"] * 1000, "13a")
    options, why = choose_search(Scripted(), pairs, beams)
    assert options == {"beam_size": chosen, "length_penalty": 1.0}, "of equal ones the default"
    assert all(f" with {beam}" in why for beam in beams)


def test_a_student_searches_no_wider_than_its_teacher_needs():
    """Its beam of 1 is enough, or the first that is, or none: then the best."""
    pairs = UnseenText(["s"] * 1000, ["a b c d e"] * 1000, "13a")
    scores = {size: choose_search(Scripted(), pairs, (size,))[1] for size in (1, 2)}
    bleu = {size: float(re.search(r"sizes? ([\d.]+) with", text)[1]) for size, text in scores.items()}
    for enough, beam in ((bleu[1] - 0.01, 1), (bleu[1] + 0.01, 2), (100.5, 8)):
        options, why = choose_search(Scripted(), pairs, (1, 2, 4, 8), enough)
        assert options["beam_size"] == beam
        assert ("beside its teacher" in why) == (beam < 8)


def test_the_figures_are_those_of_evaluate(run, files, monkeypatch):
    told = []
    finish(run, told.append, files)
    best = load_model(run)
    assert best.int8 is not None
    assert best.calibration is not None
    assert best.decoding["beam_size"] in BEAMS
    test = ["--source", str(files / "train.src"), "--reference", str(files / "train.tgt")]
    found = json.loads(CliRunner().invoke(app, ["evaluate", str(run), *test, "--json"]).stdout)
    assert "tok:zh" in found["bleu_signature"]
    shown = CliRunner().invoke(app, ["show", str(run)]).stdout
    for metric in ("bleu", "chrf"):
        [line] = [one for one in told if one.lower().startswith(f"test {metric}: {found[metric]:.2f} ± ")]
        name, _, text = line.partition(": ")
        assert found[f"{metric}_signature"] in line
        assert re.search(rf"^{name} +{re.escape(text)}$", shown, re.MULTILINE)
    examples = [line for line in told if line.startswith(finishing.SIDES)]
    assert len(examples) == 3 * EXAMPLES
    assert all(f"    {line}" in shown for line in examples)
    first = next(corpus(files).pairs())
    assert examples[0] == f"source       {first.source}"
    assert examples[2] == f"reference    {first.target}"
    assert [line.split()[2] for line in told[-3:]] == ["translate", "serve", "export"]

    monkeypatch.setattr(finishing, "Translator", None)  # once is enough
    finish(run, told.append, files)


def test_a_kill_leaves_the_model_and_the_next_time_is_as_good(run, files, tmp_path, monkeypatch):
    whole = shutil.copytree(run, tmp_path / "whole")
    finish(whole, lambda _: None, files)
    before = contents(run)
    for name in ("judge_int8", "learn_calibration", "score_margins", "save_model"):
        with monkeypatch.context() as patch:
            patch.setattr(finishing, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                finish(run, lambda _: None, files)
        assert contents(run) == before
    finish(run, lambda _: None, files)
    assert contents(run) == contents(whole)


def interrupted(*_):
    raise KeyboardInterrupt


def test_a_short_time_has_fewer_validation_pairs(run, files, monkeypatch):
    for module in (finishing, int8):
        monkeypatch.setattr(module, "FEWEST", 5)
    told = []
    finish(run, told.append, files, minutes=0.0)
    assert load_model(run).int8.pairs == 5
    assert any("confidence isn't calibrated: 5 pairs" in line for line in told)


def test_without_enough_validation_pairs_and_without_a_test_part(run, monkeypatch):
    for module in (finishing, int8, confidence):
        monkeypatch.setattr(module, "FEWEST", 13)
    before, told = load_model(run).decoding, []
    finish(run, told.append)
    after = load_model(run)
    assert (after.decoding, after.int8, after.calibration) == (before, None, None)
    assert told[0].startswith("notice: 12 validation pairs are too few")
    assert "| validation BLEU | " in after.card.partition(finishing.HEADING)[2]


def test_held_out_text_has_the_tag_of_its_corpus(files):
    one = {"source": str(files / "train.src"), "target": str(files / "train.tgt"), "tag": "ko"}
    data = {"train": one, "valid": one, "held_out": one, "source_language": "en"}
    sources, references = finishing.held_out_pairs(make_recipe({"data": data, "training": {"max_steps": 1}}))
    assert sources == [f">>ko<< {pair.source}" for pair in corpus(files).pairs()]
    assert references == [pair.target for pair in corpus(files).pairs()]
    for tag in ("ja", ""):
        data["held_out"] = {**one, "tag": tag}
        make_recipe({"data": data, "training": {"max_steps": 1}})  # which measures nothing on it
        with pytest.raises(UserError, match=f"data.held_out: the first corpus has tag '{tag}', the .* have 'ko'"):
            make_recipe({"data": data, "training": {"max_steps": 1, "finish": True}})
