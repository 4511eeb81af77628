"""A recipe with stages by the command line: stopped, resumed, by several processes, and as one model."""

import json
import signal

import pytest

from headway.recipe.recipe import stage_folder
from tests.faults.killing import entries, wait_until
from tests.system.running import Begun, complaint, run_headway

STAGES = ["both", "direction", "student"]


@pytest.fixture(scope="module")
def recipe(corpus, tmp_path_factory):
    """Of three stages, each with something of its own to pass on."""
    file = tmp_path_factory.mktemp("recipes") / "mine.yaml"
    file.write_text(f"""
data:
  train: {{source: {corpus.file("valid.src")}, target: {corpus.file("valid.tgt")}}}
  valid: {{source: {corpus.file("test.src")}, target: {corpus.file("test.tgt")}}}
  source_language: src
  target_language: tgt
tokenizer: {{vocab_size: 300}}
model: {{preset: tiny, d_model: 64, encoder_layers: 2, decoder_layers: 2}}
training:
  {{learning_rate: 3e-3, warmup_steps: 10, tokens_per_batch: 400, save_every: 5, validate_every: 12, precision: fp32}}
decoding: {{max_length: 10, beam_size: 1}}
stages:
  - {{name: both, data: {{both_directions: true}}, training: {{max_steps: 24}}}}
  - {{name: direction, start: both, training: {{max_steps: 24, adapter: {{rank: 4}}}}}}
  - {{name: student, start: direction, teacher: direction, model: {{decoder_layers: 1}}, training: {{max_steps: 24}}}}
""")
    return file


@pytest.fixture(scope="module")
def whole(recipe, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "whole"
    outcome = run_headway("train", recipe, "--output", run)
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("done: 3 stages") == 1
    return run


def losses(run):
    return {
        name: [(one["step"], one["loss"]) for one in entries(stage_folder(run, name)) if "loss" in one]
        for name in STAGES
    }


def test_a_stopped_run_goes_on_in_its_stage(recipe, whole, tmp_path):
    """Three times: in each stage, by each signal, and the last time the whole is somewhere else."""
    run = tmp_path / "run"
    for name, number in zip(STAGES, (signal.SIGINT, signal.SIGTERM, signal.SIGKILL), strict=True):
        process = Begun("train", recipe, "--resume", run)
        wait_until(process, lambda name=name: len(entries(stage_folder(run, name))) > 6)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
        assert ("go on with" in errors and f"train --resume {run}" in errors) or number == signal.SIGKILL
    moved = run.rename(tmp_path / "moved")
    outcome = run_headway("train", "--resume", moved)
    assert outcome.code == 0, outcome.err
    assert losses(moved) == losses(whole)
    for name in STAGES:
        of_both = [
            {
                file.name: file.read_bytes()
                for file in max((stage_folder(one, name) / "checkpoints").iterdir()).glob("*.safetensors")
            }
            for one in (moved, whole)
        ]
        assert of_both[0] == of_both[1]


def test_processes_train_all_stages(recipe, tmp_path):
    run = tmp_path / "run"
    outcome = run_headway("train", recipe, "--output", run, "--processes", 2)
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("stage direction, 2 of 3") == 1
    assert outcome.err.count("2 processes") == 3
    assert [len(of_stage) for of_stage in losses(run).values()] == [24, 24, 24]
    outcome = run_headway("train", "--resume", run, "stages.student.training.max_steps=27", "--processes", 2)
    assert outcome.code == 0, outcome.err
    assert [len(of_stage) for of_stage in losses(run).values()] == [24, 24, 27]


def test_a_run_in_stages_is_a_model(whole, corpus, tmp_path):
    text = corpus.file("test.src").read_text()
    outputs = [run_headway("translate", run, input_=text).out for run in (whole, whole / "stages" / "student")]
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == text.count("\n")
    shown = run_headway("show", whole)
    assert "starts from" in shown.out
    assert "with earlier stages" in shown.out
    assert run_headway("average", whole, "--last", 2, "--output", tmp_path / "averaged").code == 0
    compared = run_headway("compare", whole, whole / "stages" / "direction", "--json")
    assert compared.code == 0, compared.err
    assert json.loads(compared.out)["last_step"] == [72, 24]
    evaluated = run_headway(
        "evaluate", whole, "--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt")
    )
    assert evaluated.code == 0, evaluated.err
    drawn = run_headway("inspect", whole, "ant bee", "--last", 2, "--output", tmp_path / "maps.svg")
    assert drawn.code == 0, drawn.err


def test_a_run_is_repeated_by_its_recipe(whole, tmp_path):
    again = tmp_path / "again"
    outcome = run_headway("train", whole / "recipe.yaml", "--output", again)
    assert outcome.code == 0, outcome.err
    assert losses(again) == losses(whole)


def test_what_does_not_go_with_stages_is_one_line(recipe, whole):
    assert "has stages, which prepare their own text" in complaint("prepare", recipe, "--output", "prepared")
    assert "isn't for a recipe with stages" in complaint("train", recipe, "--data", "prepared", "--output", "x")
    assert "can't change training.seed (1 -> 2)" in complaint("train", "--resume", whole, "training.seed=2")
    assert "has stages; --finish ends one" in complaint("train", "--resume", whole, "--minutes", 1, "--finish")
    assert "holds a run already" in complaint("train", recipe, "--output", whole)
