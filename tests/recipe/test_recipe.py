"""Recipes: precedence, paths, and one line for each mistake."""

from pathlib import Path

import pytest

from headway.data.noise import KINDS
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.recipe.reading import load_recipe, make_recipe
from headway.storage import StoredModel, save_model
from headway.text.words import WordTokenizer
from headway.training.rates import rate_of_step
from headway.training.run import rate_jumps
from headway.training.run_directory import refuse_changes

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


@pytest.mark.parametrize(
    ("key", "possible", "impossible"),
    [
        ("tokenizer.vocab_size", [1], [0]),
        ("tokenizer.min_frequency", [1], [0]),
        ("training.max_steps", [1], [0]),
        ("training.max_epochs", [1], [0]),
        ("training.max_minutes", [1e-9], [0.0]),
        ("training.tokens_per_batch", [1], [0]),
        ("training.tokens_per_micro_batch", [1, 4096], [0, 4097]),
        ("training.learning_rate", [1e-9], [0.0]),
        ("training.warmup_steps", [0], [-1]),
        ("training.adam_beta2", [1e-9, 0.999999], [0.0, 1.0]),
        ("training.label_smoothing", [0.0, 0.999999], [-1e-9, 1.0]),
        ("training.risk_samples", [0], [-1, 1, 1001]),
        ("training.max_gradient_norm", [0.0], [-1e-9]),
        ("training.seed", [0, 2**63 - 1], [-1, 2**63]),
        ("training.validate_every", [1], [0]),
        ("training.save_every", [1], [0]),
        ("training.patience", [1], [0]),
        ("training.ema_decay", [0.0, 0.999999], [-1e-9, 1.0]),
        ("decoding.beam_size", [1, 1000], [0, 1001]),
        ("decoding.length_penalty", [0.0, 10.0], [-1e-9, 10.000001]),
        ("decoding.max_length", [1, 1023], [0, 1024, 2**20 + 1]),
        ("decoding.no_repeat_ngram", [0], [-1]),
        ("data.train.weight", [1e-9, 1000.0], [0.0, 1000.000001]),
        ("data.temperature", [1.0, 100.0], [0.999999, 100.000001]),
        ("data.filters.max_ratio", [1.000001], [1.0]),
        ("data.filters.language", [1e-9, 0.999999], [0.0, 1.0]),
        ("data.noise.share", [1e-9, 1.0], [0.0, 1.000001]),
    ],
)
def test_the_least_and_the_most_of_each_number(recipe_file, key, possible, impossible):
    for value in possible:
        load_recipe(recipe_file, [f"{key}={value}"])
    for value in impossible:
        with pytest.raises(UserError, match=key.split(".")[-1]):
            load_recipe(recipe_file, [f"{key}={value}"])


def test_of_several_mistakes_one_is_told_as_if_it_were_alone():
    files = {"source": "a.de", "target": "b.en"}

    def told(mistakes: dict[str, str], *overrides: str) -> str:
        document = {"data": {"train": files, "valid": files, **mistakes}, "training": {"max_steps": 1}}
        with pytest.raises(UserError) as error:
            make_recipe(document, overrides)
        return str(error.value)

    colour, shape = {"colour": "red"}, {"shape": "round"}
    assert told({**colour, **shape}) in {told(colour), told(shape)}
    assert told({}, "data.colour=red", "data.shape=round") in {
        told({}, "data.colour=red"),
        told({}, "data.shape=round"),
    }


def test_the_highest_learning_rate_that_the_reference_names_is_the_default(recipe_file):
    """docs/reference/recipe.md; after a linear warm-up."""
    training = load_recipe(recipe_file, ["training.learning_rate=null", "training.warmup_steps=1000"]).training
    assert rate_of_step(1000, training, 512, None) == 1e-3
    assert rate_of_step(3, training, 512, None) == pytest.approx(3e-6)
    paper = load_recipe(recipe_file, ["training.learning_rate=null", "training.schedule=paper"]).training
    assert rate_of_step(1000, paper, 512, None) == pytest.approx((512 * 1000) ** -0.5)


def test_paths_are_relative_to_their_origin(recipe_file, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe(recipe_file, ["data.train.source=mine.de"])
    assert recipe.data.train[0].source == [tmp_path / "mine.de"]
    assert recipe.data.train[0].target == [recipe_file.parent / "a.en"]
    assert recipe.data.valid[0].target == [recipe_file.parent / "b.en", Path("/abs/c.en")]


def test_paths_of_a_dictionary_are_relative_to_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    files = {"source": "a.de", "target": "b.en"}
    recipe = make_recipe({"data": {"train": files, "valid": files}, "training": {"max_steps": 1}})
    assert recipe.data.valid[0].target == [tmp_path / "b.en"]


def test_languages_are_the_suffixes(recipe_file):
    recipe = load_recipe(recipe_file, ["data.train.target=x.fr.gz"])
    assert (recipe.data.source_language, recipe.data.target_language) == ("de", "fr")


def test_resolved_recipe_is_the_same_recipe(recipe_file, tmp_path):
    recipe = load_recipe(recipe_file)
    assert recipe.training.learning_rate == 5e-4
    assert "d_model: 256" in recipe.to_yaml()  # what the preset says is written out
    (tmp_path / "resolved.yaml").write_text(recipe.to_yaml())
    assert load_recipe(tmp_path / "resolved.yaml") == recipe


def test_a_retired_key_is_taken_at_its_default(recipe_file):
    """Runs of earlier versions have it written out."""
    before = load_recipe(recipe_file)
    section = "tokenizer: {segmentations: %s, segmentation_alpha: 0.1}\n"
    recipe_file.write_text(TEXT + section % 1)
    assert load_recipe(recipe_file) == before
    recipe_file.write_text(TEXT + section % 16)
    with pytest.raises(UserError) as error:
        load_recipe(recipe_file)
    assert str(error.value) == (
        f"{recipe_file}: tokenizer.segmentations was retired; leave it out (only 1, its default, is still taken)"
    )


@pytest.mark.parametrize("stage", [False, True])
def test_a_retired_key_within_a_section_is_taken_at_its_default(recipe_file, stage):
    """Also in the changes of a stage."""
    of_stage = "stages: [{name: first, data: {noise: %s}}]\n"
    for noise in ("{share: 0.5}", "{share: 0.5, versions: 8}"):
        text = TEXT + of_stage % noise if stage else TEXT.replace("data:\n", f"data:\n  noise: {noise}\n")
        recipe_file.write_text(text)
        recipe = load_recipe(recipe_file)
        [trained] = [recipe.of_stage(one, recipe_file.parent) for one in recipe.stages] or [recipe]
        assert trained.data.noise.model_dump() == {"share": 0.5, "kinds": [*KINDS], "pairs": {}}
    recipe_file.write_text(text.replace("8", "4"))
    with pytest.raises(UserError, match=r"data.noise.versions was retired; leave it out \(only 8"):
        load_recipe(recipe_file)


SEVERAL = """
data:
  train:
    - {source: a.en, target: a.ko, tag: ko, weight: 2}
    - {source: a.tsv, tag: de}
  valid:
    - {source: b.en, target: b.ko, tag: ko}
training: {max_steps: 10}
"""


def test_several_corpora_with_tags_and_weights(tmp_path):
    (tmp_path / "r.yaml").write_text(SEVERAL)
    recipe = load_recipe(tmp_path / "r.yaml")
    assert recipe.data.tags == ["de", "ko"]
    assert [corpus.weight for corpus in recipe.data.train] == [2.0, 1.0]
    assert recipe.data.train[1].source == [tmp_path / "a.tsv"]
    assert (recipe.data.source_language, recipe.data.target_language) == ("en", "mul")
    (tmp_path / "resolved.yaml").write_text(recipe.to_yaml())
    assert load_recipe(tmp_path / "resolved.yaml") == recipe


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (", tag: de}", "}", "some training corpora have a tag and others don't"),
        ("b.ko, tag: ko", "b.ko, tag: fr", "a validation corpus has tag 'fr', the training corpora have 'de', 'ko'"),
        ("a.tsv", "a.txt", "a.txt: target is missing; give its translation, or one file of both sides"),
        ("weight: 2", "weight: 0", "data.train.weight"),
        ("tag: de", "tga: de", "unknown key data.train.1.tga; did you mean data.train.1.tag?"),
        ("training:", "tokenizer: {kind: word}\ntraining:", "tags need tokenizer.kind: bpe or unigram"),
    ],
)
def test_impossible_corpora(tmp_path, old, new, message):
    (tmp_path / "r.yaml").write_text(SEVERAL.replace(old, new))
    with pytest.raises(UserError) as error:
        load_recipe(tmp_path / "r.yaml")
    assert message in str(error.value)


def test_a_run_that_starts_from_a_model_has_its_sizes_unless_it_says_otherwise(recipe_file, tmp_path):
    words = WordTokenizer(["a", "b"])
    config = ModelConfig.preset("tiny", source_vocab_size=6, target_vocab_size=6, d_ff=96)
    save_model(
        tmp_path / "model",
        StoredModel(
            model=Transformer(config),
            source_tokenizer=words,
            target_tokenizer=words,
            source_language="de",
            target_language="en",
        ),
    )
    recipe = load_recipe(recipe_file, [f"training.init_from={tmp_path / 'model'}"])
    options = recipe.model_options()
    assert (options["d_model"], options["d_ff"]) == (128, 96)
    assert (recipe.tokenizer.kind, recipe.tokenizer.joint) == ("word", True)
    start = f"training.init_from={tmp_path / 'model'}"
    changed = load_recipe(recipe_file, [start, "model.dropout=0.3", "tokenizer.vocab_size=6"])
    assert changed.model_options() == {**options, "dropout": 0.3}
    assert (recipe.tokenizer.vocab_size, changed.tokenizer.vocab_size) == (6, 6)
    with pytest.raises(UserError, match=r"vocab_size=99: tokenizer.vocab_size: .*model keeps its 6 tokens"):
        load_recipe(recipe_file, [start, "tokenizer.vocab_size=99"])
    assert load_recipe(recipe_file, [start, "model.preset=tiny"]).model_options()["d_ff"] == 256


BOUNDS = [
    ("tokenizer.vocab_size", 1, 0),
    ("training.max_steps", 1, 0),
    ("training.max_epochs", 1, 0),
    ("training.max_minutes", 0.01, 0),
    ("training.tokens_per_batch", 1, 0),
    ("training.tokens_per_micro_batch", 1, 0),
    ("training.learning_rate", 1e-9, 0),
    ("training.warmup_steps", 0, -1),
    ("training.adam_beta2", 0.001, 0),
    ("training.adam_beta2", 0.9999, 1),
    ("training.label_smoothing", 0, -0.1),
    ("training.label_smoothing", 0.99, 1),
    ("training.max_gradient_norm", 0, -0.1),
    ("training.seed", 0, -1),
    ("training.seed", 2**63 - 1, 2**63),
    ("training.validate_every", 1, 0),
    ("training.save_every", 1, 0),
    ("training.patience", 1, 0),
    ("training.ema_decay", 0, -0.1),
    ("training.ema_decay", 0.99, 1),
    ("decoding.beam_size", 1, 0),
    ("decoding.length_penalty", 0, -0.1),
    ("decoding.length_penalty", 10, 10.1),
    ("decoding.max_length", 1, 0),
]
"""Of each key: the last value that is taken, the first that is not."""


@pytest.mark.parametrize(("key", "last", "beyond"), BOUNDS)
def test_numbers_have_their_bounds(recipe_file, key, last, beyond):
    load_recipe(recipe_file, [f"{key}={last}"])
    with pytest.raises(UserError, match=f"{key}: must be (at least|at most|greater than|less than) "):
        load_recipe(recipe_file, [f"{key}={beyond}"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.init_from=nowhere", "nowhere"),
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
        ("tokenizer.segmentation_alpha=0.2", "tokenizer.segmentation_alpha was retired; leave it out (only 0.1, its"),
        ("data.noise={}", "data.noise: needs share or pairs"),
        ("data.noise.pairs={titel: 0.1}", "data.noise.pairs"),
        ("data.noise.pairs={title: 0}", "data.noise.pairs.title"),
        ("data.noise.pairs={title: 0.5, copy: 0.6}", "the shares of pairs are more than 1 together"),
        ("data.noise={share: 0.3, kinds: [typo]}", "data.noise.kinds"),
        ("training.tokens_per_micro_batch=100000", "is more than tokens_per_batch"),
        ("training.risk_samples=1", "risk_samples must be 0 or at least 2"),
        ("training.risk_samples=4", "risk_samples needs init_from"),
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


@pytest.mark.parametrize(
    ("overrides", "to_blame", "problem"),
    [
        (["trainig.max_minutes=20"], "trainig.max_minutes=20", "unknown key trainig; did you mean training?"),
        (["max_minutes=20"], "max_minutes=20", "unknown key max_minutes; did you mean training.max_minutes?"),
        (["training.dropout=0.2"], "training.dropout=0.2", "unknown key training.dropout; did you mean model.dropout?"),
        (["training.seed=2", "model.d_mdel=64"], "model.d_mdel=64", "unknown key model.d_mdel"),
        (
            ["training.patience=x", "training.seed=2"],
            "training.patience=x",
            "training.patience: must be a whole number",
        ),
        (["model.num_heads=7", "model.dropout=0.2"], "model.num_heads=7", "model: d_model=256 is not divisible"),
        (["training.max_steps=null"], "training.max_steps=null", "training: nothing ends the run"),
        (["training.seed=-1", "training.seed=-1"], "training.seed=-1 training.seed=-1", "training.seed"),
        (
            ["tokenizer.joint=false", "training.seed=2", "model.share_embeddings=all"],
            "tokenizer.joint=false model.share_embeddings=all",
            "model.share_embeddings: all needs one vocabulary",
        ),
        (
            ["tokenizer.kind=word", "training.seed=2", "tokenizer.segmentations=4"],
            "tokenizer.segmentations=4",
            "tokenizer.segmentations was retired; leave it out",
        ),
    ],
)
def test_an_argument_is_to_blame_for_its_own_slip(recipe_file, overrides, to_blame, problem):
    with pytest.raises(UserError) as error:
        load_recipe(recipe_file, overrides)
    assert str(error.value).startswith(f"{to_blame}: {problem}")


@pytest.mark.parametrize(
    ("slip", "problem"),
    [
        ("trainig: {max_minutes: 5}\n", "unknown key trainig; did you mean training?"),
        ("decoding: {beam_size: 0}\n", "decoding.beam_size: must be"),
        ("decoding: {max_length: 5000}\n", "decoding.max_length=5000 must be less"),
    ],
)
def test_the_file_is_to_blame_for_what_is_in_it(recipe_file, slip, problem):
    with open(recipe_file, "a", encoding="utf-8") as file:
        file.write(slip)
    for overrides in ([], ["training.seed=2"], ["training.max_steps=7", "model.dropout=0.2"]):
        with pytest.raises(UserError) as error:
            load_recipe(recipe_file, overrides)
        assert str(error.value).startswith(f"{recipe_file}: {problem}")


def test_a_path_through_a_link_is_the_systems(tmp_path):
    """`..` after a link is the folder above where the link leads."""
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "below")
    (tmp_path / "r.yaml").write_text(TEXT.replace("a.de", "link/../a.de"), encoding="utf-8")
    [source] = load_recipe(tmp_path / "r.yaml").data.train[0].source
    assert source.resolve() == tmp_path.resolve() / "elsewhere" / "a.de"


@pytest.mark.parametrize(
    ("section", "overrides", "problem"),
    [
        ("model: {num_heads: 7}\n", ["training.max_steps=3"], "model: d_model=256 is not divisible by num_heads=7"),
        ("model: {num_heads: 7}\n", ["training.max_steps=3", "training.seed=2"], "model: d_model=256 is not divisible"),
        ("", ["training.seed=3"], "training: nothing ends the run"),
    ],
)
def test_an_argument_that_lets_the_file_be_read_further_is_not_to_blame(tmp_path, section, overrides, problem):
    """Without the argument the file breaks earlier, which proves nothing."""
    document = TEXT.partition("training:")[0]
    (tmp_path / "r.yaml").write_text(document + section, encoding="utf-8")
    with pytest.raises(UserError) as error:
        load_recipe(tmp_path / "r.yaml", overrides)
    assert str(error.value).startswith(f"{tmp_path / 'r.yaml'}: {problem}")


def test_an_argument_that_mends_the_file_is_not_to_blame(tmp_path):
    (tmp_path / "r.yaml").write_text(TEXT.replace("max_steps", "warmup_steps"), encoding="utf-8")
    with pytest.raises(UserError) as error:
        load_recipe(tmp_path / "r.yaml", ["training.max_steps=5", "decoding.beam_size=0"])
    assert str(error.value).startswith("decoding.beam_size=0: decoding.beam_size: must be")


def test_a_key_may_not_stand_twice(tmp_path):
    (tmp_path / "r.yaml").write_text(TEXT + "training: {max_steps: 5}\n")
    with pytest.raises(UserError, match=r"r\.yaml, line \d: is not YAML: key 'training' stands twice"):
        load_recipe(tmp_path / "r.yaml")


@pytest.mark.parametrize("schedule", ["cosine", "inverse_sqrt", "wsd"])
def test_a_run_may_be_made_longer(recipe_file, schedule):
    """wsd jumps only where its decay had begun."""
    options = [f"training.schedule={schedule}", "training.warmup_steps=2", "training.max_steps=10"]
    before = load_recipe(recipe_file, options).model_dump(mode="json")
    changes = ("max_steps=20", {7: ("cosine",), 9: ("cosine", "wsd")}), ("max_minutes=1", {7: (), 9: ()})
    for change, jumping in changes:
        after = load_recipe(recipe_file, [*options, f"training.{change}"])
        refuse_changes(before, after)
        for step, schedules in jumping.items():
            assert rate_jumps(before, after.training, 5, step) == (schedule in schedules)


def test_a_longer_decay_makes_the_rate_jump_where_it_has_begun(recipe_file):
    options = ["training.schedule=wsd", "training.warmup_steps=2", "training.max_steps=10", "training.decay_steps=2"]
    before = load_recipe(recipe_file, options).model_dump(mode="json")
    after = load_recipe(recipe_file, [*options[:3], "training.decay_steps=6"])
    assert [step for step in range(1, 9) if rate_jumps(before, after.training, 5, step)] == [5, 6, 7, 8]


@pytest.mark.parametrize("text", ["", "training: 5", "- a", "a: [", "data: 3", "\x00"])
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
    endless = load_recipe(recipe_file, ["training.max_steps=null", "training.max_minutes=1", "training.schedule=wsd"])
    assert endless.training.decay_steps is None


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (["schedule=cosine"], "cosine falls to zero by itself"),
        (["schedule=wsd", "max_steps=null", "patience=2"], "decay_steps must know the last step"),
    ],
)
def test_a_decay_that_is_impossible(recipe_file, changes, fault):
    with pytest.raises(UserError, match=fault):
        load_recipe(recipe_file, ["training.decay_steps=3", *(f"training.{change}" for change in changes)])


def test_one_vocabulary_or_one_a_side(recipe_file):
    with pytest.raises(UserError, match=r"share_embeddings: all needs one vocabulary.*tokenizer.joint: true"):
        load_recipe(recipe_file, ["tokenizer.joint=false", "model.share_embeddings=all"])
    assert load_recipe(recipe_file, ["tokenizer.joint=false"]).model_options()["share_embeddings"] == "decoder"


def test_a_resumed_run_may_change_its_limits_alone(recipe_file):
    before = load_recipe(recipe_file).model_dump(mode="json")
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
    for corpus in (*recipe.data.train, *recipe.data.valid):
        assert all("/data/" in str(file) for file in (*corpus.source, *corpus.target))


@pytest.mark.parametrize("text", ["? [1, 2]\n: 3", "x: 2020-99-99", "[" * 100_000])
def test_what_yaml_can_not_build_is_one_line(tmp_path, text):
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"recipe\.yaml(, line 1)?: is not YAML"):
        load_recipe(path)


def test_a_value_that_yaml_can_not_build_is_one_line(recipe_file):
    with pytest.raises(UserError, match="the value is not YAML"):
        load_recipe(recipe_file, ["data.source_language=2020-99-99"])


def test_a_run_in_place_of_a_recipe_is_told_what_to_do(tmp_path):
    with pytest.raises(UserError, match="is a folder; give a recipe"):
        load_recipe(tmp_path)


def test_a_seed_that_torch_can_not_take_is_refused(recipe_file):
    with pytest.raises(UserError, match=r"training\.seed"):
        load_recipe(recipe_file, [f"training.seed={2**63}"])


def test_a_file_whose_name_is_no_text_is_refused(recipe_file):
    for key in ("train.source", "train.target", "held_out.source"):  # which without a target is wrong, too
        with pytest.raises(UserError, match=rf"^data\.{key}.*: its name is not UTF-8"):
            load_recipe(recipe_file, [f'data.{key}="b\\udcff.de"'])


def test_by_default_a_micro_batch_is_a_step(recipe_file):
    options = ["training.tokens_per_batch=400"]
    assert load_recipe(recipe_file, options).training.micro_batch_budget == 400
    options.append("training.tokens_per_micro_batch=150")
    assert load_recipe(recipe_file, options).training.micro_batch_budget == 150


@pytest.mark.parametrize("value", ["5", "null"])
def test_a_section_of_a_stage_must_have_keys(recipe_file, value):
    recipe_file.write_text(recipe_file.read_text() + "\nstages: [{name: one}, {name: two, start: one}]\n")
    with pytest.raises(UserError, match=r"stage two: a change of it is stages\.NAME\.section\.key=value"):
        load_recipe(recipe_file, [f"stages.two.training={value}"])
