"""Recipes with stages: what each stage's recipe is, what is refused, and a run that goes through all of them."""

import json
import random
import shutil

import pytest
import yaml

from headway.data.prepare import prepare
from headway.data.two_sided import NO_LANGUAGES
from headway.errors import UserError
from headway.recipe.reading import load_recipe, make_recipe
from headway.recipe.recipe import stage_folder
from headway.recipe.sizes import work_of_update
from headway.storage import find_model, load_model
from headway.storage.atomic import write_json
from headway.storage.steps import step_folders
from headway.training import loop, run_directory
from headway.training.checkpoint import read_state
from headway.training.loop import train
from headway.training.processes import Interrupted
from headway.training.reporter import Reporter, read_run
from headway.training.run_directory import has_begun, refuse_used_folder
from headway.training.synthetic import write_synthetic
from headway.translator import Translator

WORDS = ["ant", "bee", "cat", "dog", "elk", "fox"]
NAMES = ["both", "direction", "risk", "student"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, chance = tmp_path_factory.mktemp("corpus"), random.Random(1)
    for split, count in (("train", 80), ("valid", 8)):
        texts = [[chance.choice(WORDS) for _ in range(chance.randint(2, 5))] for _ in range(count)]
        (folder / f"{split}.de").write_text("".join(" ".join(words) + "\n" for words in texts))
        (folder / f"{split}.en").write_text("".join(" ".join(reversed(words)) + "\n" for words in texts))
    return folder


def document(files, **changes):
    """A recipe with a stage of every kind; changes: to stages, by name."""
    parts = {
        "both": {"data": {"both_directions": True}, "training": {"max_steps": 8}},
        "direction": {"start": "both", "training": {"max_steps": 5, "adapter": {"rank": 2}}},
        "risk": {"start": "direction", "model": {"dropout": 0.0}, "training": {"max_steps": 2, "risk_samples": 2}},
        "student": {
            "start": "risk",
            "teacher": "risk",
            "model": {"decoder_layers": 1},
            "training": {"max_epochs": 1},
            "decoding": {"beam_size": 1},
        },
    }
    split = {
        side: {"source": str(files / f"{side}.de"), "target": str(files / f"{side}.en")} for side in ("train", "valid")
    }
    return {
        "data": split,
        "tokenizer": {"vocab_size": 300},
        "model": {
            "preset": "tiny",
            "d_model": 32,
            "d_ff": 64,
            "num_heads": 2,
            "encoder_layers": 1,
            "decoder_layers": 2,
        },
        "training": {
            "schedule": "cosine",
            "tokens_per_batch": 300,
            "learning_rate": 3e-3,
            "warmup_steps": 2,
            "validate_every": 4,
            "save_every": 2,
            "precision": "fp32",
            "device": "cpu",
        },
        "decoding": {"max_length": 8},
        "stages": [{"name": name, **parts[name], **changes.get(name, {})} for name in NAMES],
    }


def of(recipe, run, name):
    [stage] = [one for one in recipe.stages if one.name == name]
    return recipe.of_stage(stage, run)


def test_a_stage_is_the_recipe_with_its_changes(files, tmp_path):
    recipe = make_recipe(document(files))
    both, direction, risk, student = (of(recipe, tmp_path, name) for name in NAMES)
    assert both.training.init_from is None
    assert (direction.training.init_from, direction.training.max_steps) == (tmp_path / "stages/both", 5)
    assert (direction.training.learning_rate, direction.model.dropout, risk.model.dropout) == (3e-3, 0.1, 0.0)
    assert (student.model.decoder_layers, student.decoding.beam_size, direction.decoding.beam_size) == (1, 1, 5)
    [distilled] = student.data.distilled
    assert distilled.teacher == student.training.init_from == tmp_path / "stages" / "risk"
    assert distilled.source == student.data.train[0].source
    assert all(file.parent == tmp_path / "stages" / "student" for file in distilled.target)
    assert not any(part.stages for part in (both, direction, risk, student))


def test_a_folder_may_have_the_name_of_a_pattern(files, tmp_path):
    """That of the run, and that of the text."""
    folder = shutil.copytree(files, tmp_path / "text[1]")
    recipe, run = make_recipe(document(folder)), tmp_path / "part-*"
    student = of(recipe, run, "student")
    assert student.data.distilled[0].target == [run / "stages" / "student" / "distilled-0-0"]
    (run / "stages" / "student").mkdir(parents=True)
    assert [*student.data.files_of(student.data.distilled[0]).targets] == student.data.distilled[0].target
    (tmp_path / "recipe.yaml").write_text(student.to_yaml())
    assert load_recipe(tmp_path / "recipe.yaml") == student
    with pytest.raises(UserError, match=r"stage student: teacher: .*tr\*\.de is a pattern; name each file"):
        make_recipe(document(folder), [f"data.train={{source: '{folder}/tr*.de', target: '{folder}/tr*.en'}}"])


def test_the_written_recipe_is_the_same_recipe(files, tmp_path):
    """Also where a stage has another preset, whose sizes differ."""
    changes = {
        "both": {
            "model": {"preset": "small", "norm": "pre"},
            "training": {"max_steps": 3, "schedule": "paper", "learning_rate": None},
        }
    }
    given = document(files, **changes)
    given["stages"] = given["stages"][:1]
    recipe = make_recipe(given, ["training.seed=7"])
    (tmp_path / "recipe.yaml").write_text(recipe.to_yaml())
    again = load_recipe(tmp_path / "recipe.yaml")
    assert again == recipe
    both = of(again, tmp_path, "both")
    assert (both.model.d_ff, both.model.num_heads, both.model.norm) == (64, 2, "pre")
    assert (both.model.preset, both.training.learning_rate, both.training.seed) == ("small", None, 7)


def test_the_command_line_is_for_every_stage_or_for_one(files, tmp_path):
    changes = ["training.max_steps=3", "stages.risk.training.max_steps=1", "stages.risk.data.filters.copies=true"]
    recipe = make_recipe(document(files), changes)
    assert [of(recipe, tmp_path, name).training.max_steps for name in NAMES] == [3, 3, 1, 3]
    assert [of(recipe, tmp_path, name).data.filters.copies for name in NAMES] == [False, False, True, False]
    assert recipe.training.max_steps == 3
    fewer = make_recipe(document(files), ["stages.student=null", "stages.risk=null"])
    assert [stage.name for stage in fewer.stages] == ["both", "direction"]
    assert not make_recipe(document(files), ["stages=null", "training.max_steps=3"]).stages


@pytest.mark.parametrize(
    ("stage", "change", "message"),
    [
        (
            "risk",
            {"training": {"max_stpes": 1}},
            "stage risk: unknown key training.max_stpes; did you mean training.max_s",
        ),
        ("risk", {"trainig": {}}, "stage risk: unknown key trainig; did you mean training?"),
        ("risk", {"training": {"max_steps": 0}}, "stage risk: training.max_steps: must be at least 1"),
        ("risk", {"training": {"risk_samples": 2}}, "stage risk: training: nothing ends the run: set max_steps"),
        (
            "both",
            {"training": {"max_steps": 1, "risk_samples": 2}},
            "stage both: training: risk_samples needs init_from",
        ),
        ("both", {"start": "risk"}, "stage both: start: risk is no earlier stage; there is none"),
        ("risk", {"start": "risk"}, "stage risk: start: risk is no earlier stage; there are both, direction"),
        ("risk", {"teacher": "student"}, "stage risk: teacher: student is no earlier stage; there are both, direction"),
        ("risk", {"name": "both"}, "stages: two are named both"),
        ("risk", {"name": "../up"}, "stage ../up: name: must be a name of letters, digits, - and _"),
        (
            "risk",
            {"training": {"max_steps": 1, "init_from": "x"}},
            "stage risk: start and training.init_from exclude each other",
        ),
        (
            "risk",
            {"model": {"d_model": 64}},
            "stage risk: can't start from stage direction: model.d_model is 32, the recipe has 64",
        ),
        (
            "risk",
            {"tokenizer": {"vocab_size": 99}},
            "can't start from stage direction: its tokenizer.vocab_size is 300, the recipe has 99",
        ),
        (
            "student",
            {"model": {"decoder_layers": 3}},
            "can't start from stage risk: model.decoder_layers is 2, the recipe has 3",
        ),
        (
            "student",
            {"data": {"train": {"source": "x.tsv"}, "source_language": "de", "target_language": "en"}},
            "x.tsv: holds both sides",
        ),
        (
            "student",
            {"data": {"both_directions": True}},
            "stage student: teacher: both_directions is for data.train without",
        ),
        ("both", {"data": {"prepared": "x"}}, "stage both: data.prepared: a stage prepares its own text"),
    ],
)
def test_mistakes_are_one_line_that_names_the_stage(files, stage, change, message):
    with pytest.raises(UserError) as error:
        make_recipe(document(files, **{stage: change}), origin="mine.yaml")
    assert str(error.value).startswith("mine.yaml: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stages.bth.training.seed=2", "stages.bth: no stage has this name; there are both, direction, risk, student"),
        ("stages.risk=null", "stage student: start: risk is no earlier stage; there are both, direction"),
        ("stages.risk.training.sed=2", "stage risk: unknown key training.sed"),
        ("stages.risk.start=both", "stage risk: a change of it is stages.NAME.section.key=value"),
        ("data.prepared=x", "data.prepared isn't for a recipe with stages"),
    ],
)
def test_mistakes_on_the_command_line_are_its_own(files, override, message):
    with pytest.raises(UserError) as error:
        make_recipe(document(files), [override], origin="mine.yaml")
    assert str(error.value).startswith(f"{override}: ")
    assert message in str(error.value)


def test_both_directions_are_all_pairs_twice_whichever_the_recipe_names(files, tmp_path):
    """As text in two files, and as a table in one."""
    sides = [(files / f"train.{side}").read_text().splitlines() for side in ("de", "en")]
    (tmp_path / "train.tsv").write_text("".join(f"{en}\t{de}\n" for de, en in zip(*sides, strict=True)))
    ids = []
    for number, (source, target) in enumerate([("de", "en"), ("en", "de")]):
        data = {
            **{
                part: {"source": str(files / f"{part}.{source}"), "target": str(files / f"{part}.{target}")}
                for part in ("train", "valid")
            },
            "both_directions": True,
        }
        given = {"data": data, "tokenizer": {"vocab_size": 300}, "training": {"max_steps": 1}}
        recipe = make_recipe(given)
        assert (recipe.data.source_language, recipe.data.target_language) == (source, target)
        assert recipe.data.languages == [("en", "de"), ("de", "en")]
        prepared = prepare(recipe.preparation(64), tmp_path / str(number), print, write_synthetic)
        pairs = [(prepared.train.source[one].tolist(), prepared.train.target[one].tolist()) for one in range(160)]
        assert [pair[::-1] for pair in pairs[80:]] == pairs[:80]
        assert [pair[::-1] for pair in prepared.valid_texts[8:]] == prepared.valid_texts[:8]
        ids.append(pairs)
    assert ids[0] == ids[1]
    table = {"train": {"source": str(tmp_path / "train.tsv")}, "source_language": "en", "target_language": "de"}
    recipe = make_recipe({**given, "data": {**data, **table}})
    prepared = prepare(recipe.preparation(64), tmp_path / "table", print, write_synthetic)
    assert [(prepared.train.source[one].tolist(), prepared.train.target[one].tolist()) for one in range(160)] == ids[0]


def test_a_table_with_named_columns_is_read_in_both_directions(tmp_path):
    (tmp_path / "t.tsv").write_text("de\ten\nein Hund\ta dog\n")
    (tmp_path / "t.jsonl").write_text('{"source": "ein Hund", "target": "a dog"}\n')
    for name in ("t.tsv", "t.jsonl"):
        files = {"source": str(tmp_path / name)}
        data = {
            "train": files,
            "valid": files,
            "source_language": "de",
            "target_language": "en",
            "both_directions": True,
        }
        data = make_recipe({"data": data, "training": {"max_steps": 1}}).data
        read = [[(one.source, one.target) for one in data.files_of(corpus).pairs()] for corpus in data.corpora]
        assert read == [[("a dog", "ein Hund")], [("ein Hund", "a dog")]]
        assert data.files_of(data.corpora[1]).languages != NO_LANGUAGES


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    """A run that nothing has stopped."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    train(make_recipe(document(files)), run, Reporter(quiet=True))
    return run


def last_checkpoint(run, name):
    return step_folders(stage_folder(run, name) / "checkpoints")[-1]


def content(run):
    """All that doesn't tell the time: of each stage its log, the models' weights, and its last checkpoint."""
    found = {}
    for name in NAMES:
        folder = stage_folder(run, name)
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        found[name] = [
            {key: value for key, value in one.items() if key not in ("tokens_per_second", "seconds")} for one in lines
        ]
        weights = [*folder.glob("models/*/*.safetensors"), *last_checkpoint(run, name).glob("*.safetensors")]
        found |= {str(file.relative_to(run)): file.read_bytes() for file in weights}
    return found


def test_a_run_has_all_stages_and_is_its_last_one(files, whole):
    assert json.loads((whole / "best.json").read_text()) == {"stage": "student"}
    assert find_model(whole) == find_model(whole / "stages" / "student")
    models = {name: load_model(whole / "stages" / name) for name in NAMES}
    assert {(one.source_language, one.target_language) for one in models.values()} == {("de", "en")}
    assert models["student"].model.config.decoder_layers == 1
    texts = [Translator.load(run).translate(["ant bee"])[0].text for run in (whole, whole / "stages" / "student")]
    assert texts[0] == texts[1]
    vocabularies = [one.source_tokenizer.vocabulary for one in models.values()]
    assert all(one == vocabularies[0] for one in vocabularies)
    progress = {name: read_state(last_checkpoint(whole, name)).progress for name in NAMES}
    assert [progress[name].step for name in NAMES[:3]] == [8, 5, 2]
    minutes = [progress[name].minutes for name in NAMES]
    assert progress["student"].all_minutes == pytest.approx(sum(minutes))
    assert f"(with earlier stages {sum(minutes):.1f})" in models["student"].card
    assert "| starts from | risk |" in models["student"].card
    assert not list(files.glob("distilled*"))


def test_the_work_of_each_stage_counts_once(files, tmp_path):
    """Where two start from one, and a third is made with both."""
    given = document(files)
    given["data"]["valid"] = given["data"]["train"]
    given["stages"] = [
        {"name": "a", "training": {"max_steps": 4}},
        {"name": "b", "start": "a", "training": {"max_steps": 4}},
        {"name": "c", "start": "a", "teacher": "b", "training": {"max_steps": 4}},
    ]
    train(make_recipe(given), tmp_path / "run", Reporter(quiet=True))
    flops = [read_state(last_checkpoint(tmp_path / "run", name)).progress.flops for name in "abc"]
    own = flops[0]
    assert flops[1] == pytest.approx(2 * own, rel=0.05)
    assert flops[2] == pytest.approx(3 * own, rel=0.05)
    assert own > 4 * work_of_update(load_model(tmp_path / "run").model.config, "adam")


class Killed(BaseException):
    """As a process that is killed: nothing of ours catches it."""


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_change_nothing(files, whole, tmp_path, monkeypatch, seed):
    """Within stages, between them, while a model or a checkpoint is saved. The run directory is moved each time."""
    chance, recipe, number = random.Random(seed), make_recipe(document(files)), 0
    kills, calls = {"steps": 0, "between": 0}, [0, 10**9]

    def dying(module, name, what):
        real = getattr(module, name)

        def call(*arguments, **options):
            calls[0] += 1
            if calls[0] >= calls[1]:
                kills[what] += 1
                raise Killed
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, call)

    for module, name, what in [
        (loop, "take_step", "steps"),
        (loop, "save_run", "steps"),
        (loop, "validate_and_keep", "steps"),
        (loop, "end_run", "between"),
        (loop, "start", "between"),
        (run_directory, "write_recipe", "between"),
    ]:
        dying(module, name, what)
    run = tmp_path / "run-0"
    while True:
        calls[:] = [0, chance.randint(2, 14)]
        try:
            train(recipe, run, Reporter(quiet=True))
            break
        except Killed:
            number += 1
            if run.exists():
                run = run.rename(tmp_path / f"run-{number}")
            recipe = load_recipe(run / "recipe.yaml") if (run / "recipe.yaml").exists() else recipe
    assert number >= 3
    assert content(run) == content(whole)


def test_a_done_stage_stays_as_it_is_and_a_later_one_may_go_on_longer(files, whole, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    lines = []
    reporter = Reporter(quiet=True)
    reporter.line = lines.append
    changed = load_recipe(
        run / "recipe.yaml", ["stages.both.training.max_steps=99", "stages.student.training.max_epochs=2"]
    )
    train(changed, run, reporter)
    assert lines[0].startswith("notice: stage both is done and stays as it is")
    assert last_checkpoint(run, "both").name == "step-00000008"
    assert read_state(last_checkpoint(run, "student")).progress.epoch == 1
    assert load_recipe(run / "recipe.yaml") == changed
    with pytest.raises(UserError, match=r"can't change stages.student.training.seed \(None -> 3\)"):
        train(load_recipe(run / "recipe.yaml", ["stages.student.training.seed=3"]), run, reporter)
    assert load_recipe(run / "recipe.yaml") == changed
    own = make_recipe(
        {key: value for key, value in document(files).items() if key != "stages"}, ["training.max_steps=1"]
    )
    with pytest.raises(UserError, match="choose another --output"):
        train(own, run, reporter)
    assert last_checkpoint(run, "student").exists()


def test_a_stage_that_was_resumed_by_itself_keeps_what_it_was_told(files, whole, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    folder = run / "stages" / "student"
    train(load_recipe(folder / "recipe.yaml", ["training.max_epochs=2"]), folder, Reporter(quiet=True))
    steps = read_state(last_checkpoint(run, "student")).progress.step
    assert json.loads((run / "best.json").read_text()) == {"stage": "student"}
    train(load_recipe(run / "recipe.yaml"), run, Reporter(quiet=True))
    assert read_state(last_checkpoint(run, "student")).progress.step == steps


def test_a_stage_that_has_no_model_yet_leaves_the_one_before(files, tmp_path, monkeypatch):
    run, real = tmp_path / "run", loop.validate_and_keep

    def interrupted(opened, *others):
        if opened.folder.name == "direction":
            raise Interrupted(2)
        real(opened, *others)

    monkeypatch.setattr(loop, "validate_and_keep", interrupted)
    with pytest.raises(Interrupted):
        train(make_recipe(document(files)), run, Reporter(quiet=True))
    assert find_model(run).parents[1] == run / "stages" / "both"
    assert has_begun(run)
    with pytest.raises(UserError, match="holds a run already"):
        refuse_used_folder(run)


def test_only_teachers_and_the_last_stage_are_judged(files, tmp_path, monkeypatch):
    judged = []
    monkeypatch.setattr(loop, "end_run", lambda recipe, folder, minutes, tell: judged.append(folder.name))
    train(make_recipe(document(files)), tmp_path / "run", Reporter(quiet=True))
    assert judged == ["risk", "student"]


def test_a_refused_start_leaves_no_folder(files, tmp_path):
    given = document(files)
    given["data"]["valid"] = {"source": str(files / "gone.de"), "target": str(files / "gone.en")}
    with pytest.raises(UserError, match=r"gone.*: no such file"):
        train(make_recipe(given), tmp_path / "run", Reporter(quiet=True))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("best", "message"),
    [
        ({"stage": "gone"}, r"best.json: names 'gone', which is not in .*stages"),
        ({"stage": ["student"]}, r"best.json: names \['student'\]"),
        ({"stage": ".."}, r"best.json: names '..'"),
    ],
)
def test_a_best_stage_that_is_none_is_named(whole, tmp_path, best, message):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    write_json(run / "best.json", best)
    with pytest.raises(UserError, match=message):
        find_model(run)
    (run / "stages" / "loop").symlink_to(run, target_is_directory=True)
    write_json(run / "best.json", {"stage": "loop"})
    with pytest.raises(UserError):
        find_model(run)


def test_a_log_has_the_steps_of_all_stages(whole):
    record = read_run(whole, pytest.fail)
    parts = [read_run(whole / "stages" / name, pytest.fail) for name in NAMES]
    assert record.last_step == sum(one.last_step for one in parts)
    before = record.last_step - parts[-1].last_step
    step, value = parts[-1].best("valid_loss")
    assert record.best("valid_loss") == (before + step, value)
    assert len(record.curves["valid_loss"]) == sum(len(one.curves["valid_loss"]) for one in parts)
    assert record.recipe["stages.risk.training.max_steps"] == 2


def test_a_stage_is_yaml_without_what_it_does_not_say(files):
    first = yaml.safe_load(make_recipe(document(files)).to_yaml())["stages"][0]
    assert first == {"name": "both", "data": {"both_directions": True}, "training": {"max_steps": 8}}
