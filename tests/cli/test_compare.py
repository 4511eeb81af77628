"""`compare` of two runs whose models nobody trained, with and without a test set."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
import torch
from typer.testing import CliRunner

from headway.cli import app
from headway.cli.evaluate import tokenization_for
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.recipe.reading import make_recipe
from headway.storage import StoredModel, save_model
from headway.text.words import WordTokenizer
from headway.training.run_directory import write_recipe

CONFIG = ModelConfig(7, 7, d_model=8, num_heads=2, d_ff=12, encoder_layers=1, decoder_layers=1, output_bias=True)


def a_run(folder: Path, seed: int, validations: dict[int, tuple[float, float]]) -> None:
    folder.mkdir()
    texts = {"source": "a.en", "target": "a.ko"}
    recipe = make_recipe({"data": {"train": texts, "valid": texts}, "training": {"max_steps": 9, "seed": seed}})
    write_recipe(folder, recipe)
    entries = [{"step": step, "valid_loss": loss, "valid_bleu": bleu} for step, (loss, bleu) in validations.items()]
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in entries))
    torch.manual_seed(seed)
    words = WordTokenizer(["a", "b", "c"])
    untrained = Transformer(CONFIG)
    with torch.no_grad():
        untrained.output.bias[3 + seed] = 9.0  # each writes another word, so that their scores differ
    model = StoredModel(
        model=untrained,
        source_tokenizer=words,
        target_tokenizer=words,
        source_language="en",
        target_language="ko",
        decoding={"max_length": 6},
        card="",
    )
    save_model(folder / "models" / "step-00000004", model)
    (folder / "best.json").write_text('{"model": "step-00000004"}')


@pytest.fixture
def folder(own_folder) -> Path:
    """The current folder, with two runs and a test set."""
    a_run(own_folder / "one", 1, {2: (4.0, 3.0), 4: (3.0, 12.5)})
    a_run(own_folder / "two", 2, {2: (4.5, 2.0)})
    (own_folder / "test.en").write_text("a b\nc\nb a c\n")
    (own_folder / "test.ko").write_text("b a\nc\nc a b\n")
    (own_folder / "toy.py").write_text("def ratio(sources, found, _):\n    return [len(one) for one in found]\n")
    return own_folder


TEST_SET = ("--source", "test.en", "--reference", "test.ko", "--device", "cpu")


def run(*arguments: str) -> tuple[str, str]:
    """What goes to the two streams."""
    done = CliRunner().invoke(app, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout, done.stderr


def compare(*arguments: str) -> str:
    out, err = run("compare", *arguments)
    assert not err
    return out


def cells(text: str, name: str) -> list[str]:
    """Those of the row of this name."""
    [line] = [line for line in text.splitlines() if line.startswith(f"  {name}  ")]
    return re.split(r" {2,}", line.strip())[1:]


def test_recipes_and_curves_side_by_side(folder):
    text = compare("one", "two")
    assert (cells(text, "A"), cells(text, "B")) == (["one"], ["two"])
    assert cells(text, "training.seed") == ["1", "2"]
    assert "training.max_steps" not in text
    assert cells(text, "last step") == ["4", "2"]
    assert cells(text, "best valid_loss") == ["3.000 at step 4", "4.500 at step 2"]
    assert cells(text, "best valid_bleu") == ["12.50 at step 4", "2.00 at step 2"]
    assert len(re.findall(r"^valid_(?:loss|bleu) by step$", text, flags=re.MULTILINE)) == 2


def test_as_json(folder):
    document = json.loads(compare("one", "two", "--json"))
    assert document["runs"] == ["one", "two"]
    assert document["recipe"] == {"training.seed": [1, 2]}
    assert document["last_step"] == [4, 2]
    assert document["curves"][0] == {"valid_loss": {"2": 4.0, "4": 3.0}, "valid_bleu": {"2": 3.0, "4": 12.5}}
    assert "test_set" not in document


def test_scores_are_those_of_evaluate(folder):
    (folder / "again").mkdir()
    for file in ("recipe.yaml", "log.jsonl", "best.json"):
        (folder / "again" / file).write_bytes((folder / "one" / file).read_bytes())
    (folder / "one" / "models").rename(folder / "again" / "models")
    a_run(folder / "three", 3, {})
    options = (*TEST_SET, "--metric", "toy:ratio", "--tokenize", "13a", "--json")
    found = json.loads(run("compare", "again", "two", "three", *options)[0])["test_set"]
    assert found["lines"] == 3
    for run_, of_run in zip(("two", "three"), found["comparison"], strict=True):
        assert of_run == json.loads(run("evaluate", run_, *options, "--compare", "again")[0])["comparison"]
        assert [one["metric"] for one in of_run] == ["BLEU", "chrF", "toy:ratio"]
        assert of_run[1]["score"] != of_run[1]["other"]


def test_scores_stand_in_a_table(folder):
    run("evaluate", "one", *TEST_SET, "--output", "found.ko")
    text, err = run("compare", "one", "two", *TEST_SET)
    assert all(line.endswith("are cut off") for line in err.splitlines())
    found, references = ((folder / name).read_text().splitlines() for name in ("found.ko", "test.ko"))
    bleu = sacrebleu.corpus_bleu(found, [references], tokenize="none", force=True).score
    first, second = cells(text, "BLEU")
    assert first == f"{bleu:.2f}"
    assert re.fullmatch(r"\d+\.\d\d: [+-]\d+\.\d\d, p = [01]\.\d{3} \((significant|may be chance)\)", second)
    assert "tok:none" in text  # of whole words


def test_curves_as_a_picture(folder):
    for suffix in ("svg", "png"):
        compare("one", "two", "--output", f"curves.{suffix}")
        assert (folder / f"curves.{suffix}").stat().st_size > 2000


def test_runs_without_curves_are_told_and_the_rest_is_compared(folder):
    (folder / "two" / "log.jsonl").unlink()
    out, err = run("compare", "one", "two")
    assert err == "warning: two: has no log.jsonl; nothing is known of its validations\n"
    assert cells(out, "last step") == ["4", "-"]
    assert cells(out, "best valid_loss") == ["3.000 at step 4", "-"]
    run("compare", "one", "two", "--output", "curves.svg")
    (folder / "one" / "log.jsonl").write_text("")
    assert "by step" not in run("compare", "one", "two")[0]
    with pytest.raises(UserError, match=r"no run has a validation in its log\.jsonl, so there are no curves to draw"):
        run("compare", "one", "two", "--output", "other.svg")
    assert not (folder / "other.svg").exists()


def test_equal_recipes(folder):
    (folder / "two" / "recipe.yaml").write_bytes((folder / "one" / "recipe.yaml").read_bytes())
    assert "the recipes are the same" in compare("one", "two")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("one",), "give 2 to 26 runs to compare, not 1"),
        (("one", "./one"), "one: is given twice"),
        (("one", "absent"), "absent: no such folder; give the folder"),
        (("one", "one/models"), "one/models: holds no run"),
        (("one", "two", "--beam-size", "2"), "--beam-size is for a test set; give --source"),
        (("one", "two", "--metric", "toy:ratio", "--json"), "--metric is for a test set"),
        (("one", "two", "--output", "curves.gif"), r"must end in \.svg, \.png"),
        (("one", "two", *TEST_SET, "--tokenize", "latin"), "unknown to sacreBLEU"),
        (("one", "two", *TEST_SET, "--metric", "toy:absent"), "module toy has no function absent"),
    ],
)
def test_what_makes_no_sense_is_one_line(folder, arguments, told):
    with pytest.raises(UserError, match=told):
        run("compare", *arguments)


def test_a_run_without_a_model_is_told_before_any_has_translated(folder, monkeypatch):
    monkeypatch.setattr("headway.cli.compare.load_translator", pytest.fail)
    (folder / "two" / "best.json").unlink()
    with pytest.raises(UserError, match="two: this run has no model yet"):
        run("compare", "one", "two", *TEST_SET)


def test_translations_that_would_be_tokenised_differently(folder, monkeypatch):
    kinds = iter(("13a", "zh"))
    monkeypatch.setattr("headway.cli.evaluate.tokenization_for", lambda *_: next(kinds))
    with pytest.raises(UserError, match=r"differently \(one as 13a, two as zh\); choose with --tokenize"):
        run("compare", "one", "two", *TEST_SET)


@pytest.mark.parametrize(
    ("asked", "tags", "target", "wanted"),
    [
        (None, [], "zh_CN", "zh"),
        (None, ["de", "ja-JP"], "mul", "char"),
        ("de", ["de", "ja-JP"], "mul", "13a"),
        ("ja", ["de", "ja-JP"], "mul", "char"),
    ],
)
def test_the_tokenisation_of_all_that_a_model_writes(asked, tags, target, wanted):
    tokenizer = SimpleNamespace(kind="bpe", target_tags=tags)
    stored: Any = SimpleNamespace(target_language=target, source_tokenizer=tokenizer, target_tokenizer=tokenizer)
    assert tokenization_for(stored, asked) == wanted
