"""Fine-tuning as a person does it: a larger vocabulary and a new language, then a recipe that repeats nothing."""

import json
import random

import pytest

from headway.storage import load_model
from tests.system.conftest import reversed_pairs
from tests.system.running import complaint, run_headway

NEW_WORDS = ["lemming", "mongoose", "nuthatch", "octopus", "penguin"]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """What the model knows, words in reverse order; the same with new words; and a new language, capitals."""
    folder = tmp_path_factory.mktemp("corpora")
    chooser = random.Random(3)
    new = [chooser.choices(NEW_WORDS, k=chooser.randint(1, 4)) for _ in range(600)]
    pairs = {
        "old": reversed_pairs(600, 7),
        "new": [(" ".join(words), " ".join(reversed(words))) for words in new],
        "capitals": [(source, target.upper()) for source, target in reversed_pairs(600, 8)],
    }
    for name, all_pairs in pairs.items():
        for split, some in (("train", all_pairs[50:]), ("valid", all_pairs[:50])):
            (folder / f"{name}-{split}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in some))
    return folder


@pytest.fixture(scope="module")
def extended(trained, corpora, tmp_path_factory):
    output = tmp_path_factory.mktemp("extended") / "model"
    new = ("--source", corpora / "new-train.tsv", "--source", corpora / "capitals-train.tsv")
    outcome = run_headway("extend", trained, "--add-pieces", 40, "--add-language", "upper", *new, "--output", output)
    assert outcome.code == 0, outcome.err
    assert ">>tgt<< >>upper<<" in outcome.err
    return output


RECIPE = """
data:
  train:
    - {{source: {folder}/new-train.tsv, tag: tgt, weight: 2}}
    - {{source: {folder}/old-train.tsv, tag: tgt}}
    - {{source: {folder}/capitals-train.tsv, tag: upper}}
  valid:
    - {{source: {folder}/new-valid.tsv, tag: tgt}}
    - {{source: {folder}/capitals-valid.tsv, tag: upper}}
training:
  init_from: {model}
  max_steps: 250
  validate_every: 125
  learning_rate: 2e-3
  schedule: cosine
  warmup_steps: 20
  tokens_per_batch: 2048
"""


@pytest.fixture(scope="module")
def tuned(extended, corpora, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "recipe.yaml").write_text(RECIPE.format(folder=corpora, model=extended))
    outcome = run_headway("train", folder / "recipe.yaml", "--out", folder / "run")
    assert outcome.code == 0, outcome.err
    return folder


def test_what_is_new_is_learned_and_what_was_known_is_kept(tuned, corpora, trained, extended):
    def bleu(model, name, *language):
        found = run_headway(
            *("evaluate", model, "--source", corpora / f"{name}-valid.tsv", "--json", "--beam-size", 1, *language)
        )
        return json.loads(found.out)["bleu"]

    assert bleu(trained, "new") < 20
    before = bleu(trained, "old")
    found = {name: bleu(tuned / "run", name, "--target-language", "tgt") for name in ("old", "new")}
    found["capitals"] = bleu(tuned / "run", "capitals", "--target-language", "upper")
    assert found["new"] > 80
    assert found["capitals"] > 80
    assert found["old"] > before - 5
    stored = load_model(tuned / "run")
    assert (stored.source_language, stored.target_language) == ("src", "mul")
    assert stored.source_tokenizer.to_bytes() == load_model(extended).source_tokenizer.to_bytes()


def test_a_contradiction_is_one_line(tuned, extended):
    for change, problem in (
        ("model.d_model=96", "model.d_model is 64, the recipe has 96"),
        ("tokenizer.kind=unigram", "its tokenizer.kind is bpe, the recipe has unigram"),
        ("tokenizer.joint=false", "joint"),
    ):
        said = complaint("train", tuned / "recipe.yaml", "--out", tuned / "other", change)
        assert problem in said


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "nothing to do"),
        (["--add-pieces", 5], "needs new text"),
        (["--add-language", "fr", "--source", "some.txt"], "--add-pieces, which is missing"),
        (["--add-language", "upper"], "has the tag >>upper<< already"),
        (["--add-language", "<fr>"], "is not the code of a language"),
        (["--add-pieces", 5, "--source", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_what_can_not_be_extended_is_one_line(extended, tmp_path, options, problem):
    assert problem in complaint("extend", extended, *options, "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()
