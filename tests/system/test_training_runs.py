"""Runs: resuming, being stopped, being refused."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.faults.killing import Kills, check_exact_resume, entries, final_files, options, start, wait_until
from tests.system.conftest import LANGUAGES, QUICK
from tests.system.running import Begun, complaint, run_headway


def losses(run):
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [(entry["step"], entry["loss"]) for entry in entries if "loss" in entry]


def stop(process, signal_number):
    """What it says until it ends, within the 10 seconds that are promised."""
    os.kill(process.pid, signal_number)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 128 + signal_number
    return errors


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """The options of a run, and the losses that it has when nothing stops it."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    options = [*corpus.train_options, *QUICK, "training.max_steps=40", "training.validate_every=15"]
    options += ["training.finish=false", "decoding.max_length=8"]
    assert run_headway("train", *options, "--out", run).code == 0
    return options, losses(run)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stopped_run_goes_on_where_it_was(whole, tmp_path, signal_number):
    (options, expected), run = whole, tmp_path / "parts"
    process = Begun("train", *options, "--out", run)
    wait_until(process, lambda: len(entries(run)) > 10)
    assert "--resume" in stop(process, signal_number)
    assert losses(run)[-1][0] < 40
    assert run_headway("train", "--resume", run).code == 0
    assert losses(run) == expected


def test_a_reader_that_goes_away_costs_nothing(whole, tmp_path):
    """As in `headway train ... 2>&1 | tee log`, where Ctrl-C ends tee first; here before the lines of a validation."""
    (options, expected), run = whole, tmp_path / "parts"
    process = Begun("train", *options, "training.finish=true", "--out", run)
    wait_until(process, lambda: len(entries(run)) > 3)
    process.stderr.close()
    wait_until(process, lambda: len(entries(run)) > 20)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=10) == 130
    assert int(max((run / "checkpoints").iterdir()).name.removeprefix("step-")) == losses(run)[-1][0] < 40
    process = Begun("train", "--resume", run)
    process.stderr.close()
    assert process.wait(timeout=300) == 0
    assert losses(run) == expected


def test_a_run_that_is_moved_away_ends_and_goes_on_where_it_is(whole, tmp_path):
    (options, expected), run, moved = whole, tmp_path / "run", tmp_path / "moved"
    process = Begun("train", *options, "--out", run)
    wait_until(process, lambda: len(entries(run)) > 20)
    run.rename(moved)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "was moved or removed" in errors.splitlines()[-1]
    assert not run.exists()
    assert run_headway("train", "--resume", moved).code == 0
    assert losses(moved) == expected


def test_a_validation_is_left_within_ten_seconds(corpus, tmp_path):
    """One that would take minutes."""
    run = tmp_path / "run"
    valid = ["--valid-source", corpus.file("train.src"), "--valid-target", corpus.file("train.tgt")]
    options = [*corpus.train_options[:4], *valid, *LANGUAGES, *QUICK, "model.preset=small", "training.max_steps=9"]
    process = Begun("train", *options, "training.validate_every=2", "--out", run)
    wait_until(process, lambda: len(entries(run)) == 2 and bool(list((run / "checkpoints").glob("step-00000002"))))
    time.sleep(3)
    assert "SIGTERM: saved" in stop(process, signal.SIGTERM)
    assert [step for step, _ in losses(run)] == [1, 2]
    assert not list((run / "models").iterdir())


def test_the_trial_of_the_largest_batch_is_left_within_ten_seconds(corpus, tmp_path):
    options = [*corpus.train_options, *QUICK, "training.tokens_per_batch=100000", "training.max_steps=9"]
    process = Begun("train", *options, "training.tokens_per_micro_batch=100000", "--out", tmp_path / "run")
    while "parameters" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.5)
    assert "SIGINT: saved" in stop(process, signal.SIGINT)
    assert not entries(tmp_path / "run")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_kills_change_nothing(corpus, tmp_path, precision):
    """Twenty of them are in tests/faults."""
    check_exact_resume(corpus, tmp_path, 40, precision, Kills(total=3, inside_a_save=1), seed=1)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_a_disk_that_is_full_costs_nothing(corpus, tmp_path):
    """No file may be larger than a limit, which the system tells a program as it tells of a full disk."""
    import resource

    command, run = options(corpus, 20, "fp32"), tmp_path / "run"
    assert run_headway("train", *command, "--out", tmp_path / "whole").code == 0
    assert run_headway("train", *command, "--out", run, "training.max_steps=9").code == 0
    before = final_files(run)
    outcome = subprocess.run(
        [sys.executable, "-m", "headway", "train", "--resume", str(run), "training.max_steps=20"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
    )
    assert outcome.returncode == 2
    assert "no space to write it: about" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert {name: data for name, data in final_files(run).items() if name in before} == before
    assert run_headway("train", "--resume", run, "training.max_steps=20").code == 0
    assert entries(run)[-1] == entries(tmp_path / "whole")[-1]


def test_a_second_trainer_in_the_same_folder_is_refused(corpus, tmp_path):
    command, run = options(corpus, 100_000, "fp32"), tmp_path / "run"
    process = start(command, run)
    try:
        wait_until(process, lambda: len(entries(run)) > 3)
        assert "another process trains in this folder" in complaint("train", "--resume", run)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_resumed_run_may_go_on_longer(corpus, tmp_path):
    run = tmp_path / "run"
    options = [*corpus.train_options, *QUICK, "training.max_steps=20", "training.validate_every=20"]
    assert run_headway("train", *options, "--out", run).code == 0
    assert "holds a run already" in complaint("train", *options, "--out", run)
    assert "can't change training.seed (1 -> 2)" in complaint("train", "--resume", run, "training.seed=2")
    assert run_headway("train", "--resume", run, "training.max_steps=25").code == 0
    assert [step for step, _ in losses(run)] == list(range(1, 26))


def test_a_longer_cosine_says_that_the_rate_jumps(corpus, tmp_path):
    run = tmp_path / "run"
    limits = ("training.warmup_steps=2", "training.max_steps=6")
    options = [*corpus.train_options, *QUICK, "training.schedule=cosine", *limits]
    assert run_headway("train", *options, "--out", run).code == 0
    outcome = run_headway("train", "--resume", run, "training.max_steps=8")
    assert outcome.code == 0
    assert "the learning rate jumps" in outcome.err


def test_a_run_ends_well_from_wherever_it_is(corpus, tmp_path):
    run, minutes = tmp_path / "run", 0.25
    assert "--resume RUN --minutes N --finish" in complaint("train", "--resume", run, "--finish")
    options = [*corpus.train_options, *QUICK, "training.schedule=wsd", "training.validate_every=20"]
    assert run_headway("train", *options, "--output", run, "training.max_minutes=0.1").code == 0
    before = len(losses(run))
    began = time.monotonic()
    assert run_headway("train", "--resume", run, "--minutes", minutes, "--finish").code == 0
    assert 0.5 * minutes < (time.monotonic() - began) / 60 < 1.3 * minutes
    steps = [entry for entry in entries(run) if "loss" in entry]
    rates = [entry["learning_rate"] for entry in steps]
    assert max(rates[50:before]) == rates[before - 1] == 3e-3, "constant until then"
    assert rates[before:] == sorted(rates[before:], reverse=True)
    assert rates[-1] == 0.0
    assert "valid_loss" in entries(run)[-1]
    assert "is finished" in complaint("train", "--resume", run, "--minutes", minutes, "--finish")


def test_a_recipe_trains(corpus, tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"""
data:
  train: {{source: {corpus.file("train.src")}, target: {corpus.file("train.tgt")}}}
  valid: {{source: {corpus.file("valid.src")}, target: {corpus.file("valid.tgt")}}}
  source_language: src
  target_language: tgt
model: {{preset: tiny, encoder_layers: 1, decoder_layers: 1}}
tokenizer: {{kind: unigram, vocab_size: 5000, joint: false}}
training: {{max_steps: 3}}
""")
    outcome = run_headway("train", recipe, "training.max_steps=2", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert "so the vocabulary is smaller" in outcome.err
    assert {file.name for file in (tmp_path / "runs" / "mine").iterdir()} >= {"recipe.yaml", "log.jsonl", "best.json"}
    assert len(losses(tmp_path / "runs" / "mine")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "give one of"),
        (["train", "absent.yaml"], "absent.yaml: can't be read"),
        (["train", "--source", "x"], "--output is missing"),
        (["train", "--source", "x", "--valid-source", "y", "--output", "z"], "target is missing"),
        (["train", "--resume", "absent"], "is not a run directory"),
        (["train", "--colour"], "--colour"),
        (["paint"], "paint"),
        (["translate", "absent"], "absent: no such folder"),
        (["translate", "."], "is not a model directory"),
        (["show", "."], "is not a model directory"),
        (["data", "wmt"], "'wmt' is unknown; there are multi30k, tatoeba-ko-en, dates and romanization"),
        (["data", "multi30k", "--from", "absent"], "absent: no such folder"),
        (["data", "dates", "--languages", "xx-ko"], "'xx'"),
        (["data", "multi30k", "--languages", "en-fr"], "only the corpus dates takes languages"),
        (["data", "wmt", "--languages", "en-fr"], "'wmt' is unknown"),
        (["demo", "--languages", "en"], "must be source-target"),
        (["data", "dates", "--languages", "en-en"], "the two must differ"),
    ],
)
def test_mistakes_are_one_line(tmp_path, arguments, message):
    assert message in complaint(*arguments, cwd=tmp_path)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\n", b"x\n", "has 2 lines but"),
        (b"a\n\xff\n", b"x\ny\n", "line 2: byte 0xff"),
        (b"", b"", "s: is empty; give a file"),
        (b"\n\n", b"x\ny\n", "holds no pair"),
        (None, b"x\n", "no such file"),
    ],
)
def test_a_corpus_that_is_wrong_names_file_and_line(tmp_path, source, target, message):
    for name, data in (("s", source), ("t", target)):
        if data is not None:
            (tmp_path / name).write_bytes(data)
    arguments = ["--source", "s", "--target", "t", "--valid-source", "s", "--valid-target", "t", "--out", "run"]
    assert message in complaint("train", *arguments, *LANGUAGES, cwd=tmp_path)


def test_a_start_that_failed_can_be_mended(corpus, tmp_path):
    options = [*corpus.train_options, "--out", tmp_path / "run", *QUICK, "training.max_steps=1"]
    options[7] = tmp_path / "typo"
    assert "typo: no such file" in complaint("train", *options)
    options[7] = corpus.file("valid.tgt")
    assert run_headway("train", *options).code == 0


def test_a_folder_with_something_else_in_it_is_left_alone(corpus, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "my.partial").write_text("mine")
    assert "is not empty and holds no run" in complaint("train", *corpus.train_options, "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "my.partial"]
    assert "is a file" in complaint("train", *corpus.train_options, "--out", tmp_path / "my.partial")


def test_evaluate_says_what_is_wrong_before_it_works(trained, corpus, tmp_path):
    (tmp_path / "empty").touch()
    test = ["--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt")]
    assert "has no lines" in complaint(
        "evaluate", trained, "--source", tmp_path / "empty", "--reference", tmp_path / "empty"
    )
    assert "no such folder" in complaint("evaluate", trained, *test, "--output", tmp_path / "absent" / "x")
    assert "'13b' is unknown" in complaint("evaluate", trained, *test, "--tokenize", "13b")


def test_an_odd_corpus_of_ones_own(tmp_path):
    """Byte order mark, "\\r\\n", U+2028, control symbols, blank lines on one side, gzip: ten pairs, two dropped."""
    german, english = ("".join(f"{word} {number} <pad>\n" for number in range(6)) for word in ("drei", "three"))
    source = "\ufeffein Hund\r\n" + "<s> eins\u2028zwei\n" + "\n" + german + "vier\n"
    target = "a dog\r\n" + "<s> one\u2028two\n" + "lost\n" + english + "\t\n"
    (tmp_path / "own.de.gz").write_bytes(gzip.compress(source.encode()))
    (tmp_path / "own.en").write_text(target, newline="")
    files = ["--source", "own.de.gz", "--target", "own.en", "--valid-source", "own.de.gz", "--valid-target", "own.en"]
    outcome = run_headway("train", *files, "--out", "run", "training.max_steps=2", "model.preset=tiny", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert "train: 8 pairs, 2 dropped because a side is blank" in outcome.err
    assert "every validation pair is a training pair too" in outcome.err
    assert "de -> en" in run_headway("show", tmp_path / "run").out
