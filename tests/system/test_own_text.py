"""Text alone on the command line: parts are set apart, a recipe is chosen, and the model is measured."""

import random
import signal
import subprocess
import sys

import pytest
import yaml

from headway.storage import find_model, load_model
from headway.training.finishing import HEADING
from tests.faults.killing import entries, wait_until
from tests.system.running import complaint, run_headway

LANGUAGES = ("data.source_language=de", "data.target_language=en")
KOREAN_TO_GERMAN = ("data.source_language=ko", "data.target_language=de")
SMALL = ("model.d_model=32", "model.encoder_layers=1", "model.decoder_layers=1", "training.precision=fp32")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Words and their translations, one for one: 1,500 pairs, some of them twice, and a column with where they are
    from."""
    chance, file = random.Random(1), tmp_path_factory.mktemp("text") / "pairs.tsv"
    texts = [[chance.randint(10, 99) for _ in range(chance.randint(3, 7))] for _ in range(1500)]
    rows = [
        f"f{i}\t{' '.join(f'wort{n}' for n in one)}\t{' '.join(f'word{n}' for n in one)}\n"
        for i, one in enumerate(texts)
    ]
    file.write_text("".join(rows + rows[:50]), "utf-8")
    return file


def train(pairs, *arguments):
    return run_headway("train", pairs, "--column", 2, "--column", 3, *LANGUAGES, *SMALL, *arguments)


@pytest.fixture(scope="module")
def run(pairs, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "mine"
    outcome = train(pairs, "--output", run, "training.max_steps=150", "training.validate_every=75")
    assert outcome.code == 0, outcome.err
    return run, outcome


def test_a_pair_of_columns_becomes_a_measured_model(run):
    folder, outcome = run
    parts = {part: len((folder / "text" / f"{part}.de").read_text("utf-8").splitlines()) for part in PARTS}
    assert parts["valid"] == parts["test"] == 150
    assert parts["train"] + 300 <= 1550
    recipe = yaml.safe_load((folder / "recipe.yaml").read_text("utf-8"))
    assert recipe["training"]["max_steps"] == 150
    assert recipe["model"]["d_model"] == 32
    assert recipe["tokenizer"]["vocab_size"] == 2000
    reasons = (folder / "choices.txt").read_text("utf-8")
    assert all(line in outcome.err for line in reasons.splitlines())
    assert "tokenizer.vocab_size: 2,000, for" in reasons
    model = load_model(folder)
    assert HEADING in model.card
    assert "| test BLEU |" in model.card
    assert "150 pairs" in model.card
    assert model.calibration is not None or "confidence isn't calibrated" in outcome.err
    assert not (folder / "choosing.json").exists()
    translated = run_headway("translate", folder, input_="wort11 wort12 wort13\n")
    assert translated.code == 0
    assert translated.out.count("\n") == 1


PARTS = ("train", "valid", "test")


def test_the_recipe_of_a_run_repeats_it(run, tmp_path):
    folder, _ = run
    outcome = run_headway("train", folder / "recipe.yaml", "--output", tmp_path / "again")
    assert outcome.code == 0, outcome.err
    for one, other in zip(entries(folder), entries(tmp_path / "again"), strict=True):
        assert one.get("loss") == other.get("loss")
        assert one.get("valid_bleu") == other.get("valid_bleu")
    assert load_model(folder).decoding == load_model(tmp_path / "again").decoding
    assert HEADING in load_model(tmp_path / "again").card


def test_a_finished_run_stays_as_it_is(run):
    folder, _ = run
    before = (find_model(folder) / "README.md").read_bytes()
    assert run_headway("train", "--resume", folder).code == 0
    assert (find_model(folder) / "README.md").read_bytes() == before


def test_minutes_decide_how_many_steps_there_are(pairs, tmp_path):
    outcome = train(pairs, "--output", tmp_path / "run", "--minutes", 0.2)
    assert outcome.code == 0, outcome.err
    assert "choosing a recipe for 0.2 minutes" in outcome.err
    assert "model.dropout: " in outcome.err
    recipe = yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text("utf-8"))
    trainings = [recipe["training"], *(stage.get("training", {}) for stage in recipe.get("stages") or [])]
    assert sum(one.get("max_steps") or 0 for one in trainings) > 20
    assert HEADING in load_model(tmp_path / "run").card


def test_a_kill_before_the_recipe_means_choosing_again(pairs, tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "-m", "headway", "train", pairs, "--column", "2", "--column", "3", *LANGUAGES, *SMALL]
    with subprocess.Popen(
        [*map(str, command), "--output", str(run), "--minutes", "0.3"], stderr=subprocess.DEVNULL
    ) as process:
        wait_until(process, (run / "measuring").exists)
        process.send_signal(signal.SIGKILL)
    assert (run / "choosing.json").exists()
    assert not (run / "recipe.yaml").exists()
    outcome = run_headway("train", "--resume", run, "training.max_steps=20")
    assert outcome.code == 0, outcome.err
    assert "is split already" in outcome.err
    assert not (run / "measuring").exists()
    assert HEADING in load_model(run).card


def test_ctrl_c_while_choosing_tells_how_to_go_on(pairs, tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "-m", "headway", "train", pairs, "--column", "2", "--column", "3", *LANGUAGES, *SMALL]
    with subprocess.Popen([*map(str, command), "--output", str(run)], stderr=subprocess.PIPE) as process:
        wait_until(process, (run / "measuring").exists)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read().decode().splitlines()
    assert process.returncode == 130, told
    assert told[-1].startswith("SIGINT: go on with ")
    assert told[-1].endswith(f" train --resume {run}")
    assert not (run / "measuring").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("multi30k-de-en", "--minutes", 5), "a recipe has limits"),
        (("multi30k-de-en", "--fast"), "--fast"),
        (("PAIRS", "--minutes", 5, "training.max_minutes=3"), "leave out training.max_steps and other limits"),
        (("PAIRS", "multi30k-de-en"), "give one of"),
        (("PAIRS", "--source", "PAIRS"), "give one of"),
        (("PAIRS", "--output", "RUN"), "data.source_language"),
        (("PAIRS", *LANGUAGES, "--column", 2, "--output", "RUN"), "--column 2 --column 3"),
        (("PAIRS", *LANGUAGES, "--output", "RUN", "data.prepared=x"), "--data is for a recipe"),
        (("FEW", *LANGUAGES, "--output", "RUN"), "to set some apart"),
        (("PAIRS", *LANGUAGES, "--valid-source", "PAIRS", "--document", 1), "--document is for setting parts apart"),
        (("PAIRS", "--output", "RUN", "data.source_language=german", "data.target_language=en"), "did you mean de?"),
        (
            (*("PAIRS", "--column", 2, "--column", 3, "--output", "RUN"), *KOREAN_TO_GERMAN),
            "source and target are mostly LATIN and LATIN, not HANGUL and LATIN; set data.source_language",
        ),
    ],
)
def test_what_does_not_belong_together_is_one_line(pairs, tmp_path, arguments, told):
    (tmp_path / "few.tsv").write_text("eins\tone\nzwei\ttwo\n", "utf-8")
    places = {"PAIRS": pairs, "RUN": tmp_path / "run", "FEW": tmp_path / "few.tsv"}
    assert told in complaint("train", *(places.get(one, one) for one in arguments), cwd=tmp_path)
    assert not (tmp_path / "run").exists()
