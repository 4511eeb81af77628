"""Recipes: precedence, paths, and one line for each mistake."""

from pathlib import Path

import pytest

from headway.errors import UserError
from headway.training.recipe import load_recipe, make_recipe, refuse_changes

RECIPES = Path(__file__).parents[2] / "recipes"
TEXT = """
data:
  train: {source: a.de, target: a.en}
  valid: {source: [b.de, c.de], target: [b.en, /abs/c.en]}
training: {max_steps: 10, learning_rate: 5e-4}
"""


@pytest.fixture
def recipe_file(tmp_path) -> Path:
    path = tmp_path / "sub" / "recipe.yaml"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def test_defaults_file_and_command_line(recipe_file):
    recipe = load_recipe(recipe_file, ["training.max_steps=20", "model.preset=tiny", "model.norm=pre"])
    assert recipe.training.label_smoothing == 0.1
    assert recipe.training.learning_rate == 5e-4
    assert recipe.training.max_steps == 20
    options = recipe.model_options()
    assert (options["name"], options["norm"], options["d_model"]) == ("tiny", "pre", 128)


def test_paths_are_relative_to_their_origin(recipe_file, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe(recipe_file, ["data.train.source=mine.de"])
    assert recipe.data.train.source == [tmp_path / "mine.de"]
    assert recipe.data.train.target == [recipe_file.parent / "a.en"]
    assert recipe.data.valid.target == [recipe_file.parent / "b.en", Path("/abs/c.en")]


def test_paths_of_a_dictionary_are_relative_to_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    files = {"source": "a", "target": "b"}
    recipe = make_recipe({"data": {"train": files, "valid": files}, "training": {"max_steps": 1}})
    assert recipe.data.valid.target == [tmp_path / "b"]


def test_languages_are_the_suffixes(recipe_file):
    recipe = load_recipe(recipe_file, ["data.train.target=x.fr.gz"])
    assert (recipe.data.source_language, recipe.data.target_language) == ("de", "fr")


def test_resolved_recipe_is_the_same_recipe(recipe_file, tmp_path):
    recipe = load_recipe(recipe_file)
    assert recipe.training.learning_rate == 5e-4
    assert "d_model: 256" in recipe.to_yaml()  # what the preset says is written out
    (tmp_path / "resolved.yaml").write_text(recipe.to_yaml())
    assert load_recipe(tmp_path / "resolved.yaml") == recipe


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.learning_rat=1", "unknown key training.learning_rat; did you mean training.learning_rate?"),
        ("trainin={}", "unknown key trainin; did you mean training?"),
        ("trainin.seed=1", "unknown key trainin; did you mean training?"),
        ("model.d_mdel=64", "did you mean model.d_model?"),
        ("data.train.sorce=x", "did you mean data.train.source?"),
        ("training.max_steps=many", "training.max_steps"),
        ("training.max_steps=0", "training.max_steps"),
        ("training.label_smoothing=1.5", "training.label_smoothing"),
        ("training.schedule=linear", "training.schedule"),
        ("training.schedule=paper", "leave learning_rate out"),
        ("model.num_heads=7", "d_model=256 is not divisible by num_heads=7"),
        ("model.preset=huge", "model.preset"),
        ("tokenizer.lowercase=true", "lowercase is for kind: word"),
        ("training.tokens_per_micro_batch=100000", "is more than tokens_per_batch"),
        ("decoding.max_length=5000", "decoding.max_length=5000 must be less than model.max_length=1024"),
        ("data.train.source=[x,y]", "2 source files but 1 target files"),
        ("training", "must be key.path=value"),
        ("training.seed.x=1", "training.seed"),
    ],
)
def test_mistakes_are_one_line(recipe_file, override, message):
    with pytest.raises(UserError) as error:
        load_recipe(recipe_file, [override])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "- a", "a: [", "data: 3", "\x00"])
def test_what_is_no_recipe(tmp_path, text):
    path = tmp_path / "r.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"r\.yaml"):
        load_recipe(path)


def test_something_must_end_the_run(recipe_file):
    with pytest.raises(UserError, match="max_steps, max_epochs, max_minutes or patience"):
        load_recipe(recipe_file, ["training.max_steps=null"])
    with pytest.raises(UserError, match="cosine must know its last step"):
        load_recipe(recipe_file, ["training.max_steps=null", "training.max_minutes=1", "training.schedule=cosine"])


def test_one_vocabulary_or_one_a_side(recipe_file):
    with pytest.raises(UserError, match=r"share_embeddings: all needs one vocabulary.*tokenizer.joint: true"):
        load_recipe(recipe_file, ["tokenizer.joint=false", "model.share_embeddings=all"])
    assert load_recipe(recipe_file, ["tokenizer.joint=false"]).model_options()["share_embeddings"] == "decoder"


def test_a_resumed_run_may_change_its_limits_alone(recipe_file):
    before = load_recipe(recipe_file)
    refuse_changes(before, load_recipe(recipe_file, ["training.max_steps=99", "training.patience=3"]))
    with pytest.raises(UserError, match=r"model.d_ff \(512 -> 64\), training.seed \(1 -> 2\)"):
        refuse_changes(before, load_recipe(recipe_file, ["training.seed=2", "model.d_ff=64"]))


def test_a_missing_section_is_named():
    with pytest.raises(UserError, match=r"data.valid is missing"):
        make_recipe({"data": {"train": {"source": "a", "target": "b"}}, "training": {"max_steps": 1}})


def test_a_misspelt_section_is_suggested_though_another_is_missing():
    files = {"source": "a", "target": "b"}
    with pytest.raises(UserError, match=r"unknown key trainig; did you mean training\?"):
        make_recipe({"data": {"train": files, "valid": files}, "trainig": {"max_steps": 1}})


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_our_own_recipes_are_valid(path):
    recipe = load_recipe(path)
    assert "data/multi30k" in str(recipe.data.train.source[0])
