"""What two runs' folders tell, whatever has happened to their logs."""

import json
from pathlib import Path

import pytest

from headway.errors import UserError
from headway.recipe.reading import make_recipe
from headway.training.reporter import read_run
from headway.training.run_directory import differing_keys, write_recipe


def a_run(folder: Path, log: bytes | None = b"", **training: object) -> Path:
    folder.mkdir()
    (folder.parent / "a.de").touch()
    texts = {"source": str(folder.parent / "a.de"), "target": str(folder.parent / "a.en")}
    write_recipe(
        folder, make_recipe({"data": {"train": texts, "valid": texts}, "training": {"max_steps": 9, **training}})
    )
    if log is not None:
        (folder / "log.jsonl").write_bytes(log)
    return folder


def lines(*entries: dict) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in entries)


WHOLE = lines(
    {"step": 1, "loss": 5.0},
    {"step": 2, "loss": 4.0},
    {"step": 2, "valid_loss": 4.5, "valid_bleu": 1.0, "petaflop": 0.1},
    {"step": 4, "valid_loss": 3.5, "valid_bleu": 9.0},
    {"step": 6, "valid_loss": 3.75, "valid_bleu": 9.5},
    {"step": 7, "loss": 3.0},
)


def test_curves_and_the_best_of_them(tmp_path):
    record = read_run(a_run(tmp_path / "run", WHOLE), pytest.fail)
    assert record.curves == {"valid_loss": {2: 4.5, 4: 3.5, 6: 3.75}, "valid_bleu": {2: 1.0, 4: 9.0, 6: 9.5}}
    assert (record.best("valid_loss"), record.best("valid_bleu")) == ((4, 3.5), (6, 9.5))
    assert record.last_step == 7
    assert record.recipe["training.max_steps"] == 9
    assert record.recipe["data.source_language"] == "de"


def test_the_best_is_the_one_that_the_run_keeps_as_its_best(tmp_path):
    """A BLEU below 1 is noise, so the loss decides; of equal ones the first stays."""
    values = [(0.02, 5.0), (0.0, 4.0), (0.5, 4.5), (0.0, 4.0)]
    log = lines(*({"step": step, "valid_bleu": bleu, "valid_loss": loss} for step, (bleu, loss) in enumerate(values)))
    assert read_run(a_run(tmp_path / "run", log), pytest.fail).best("valid_bleu") == (1, 0.0)


def test_what_a_resumed_run_repeats_counts_once_and_in_order(tmp_path):
    repeated = lines({"step": 4, "valid_loss": 3.6, "valid_bleu": 8.0}, {"step": 3, "valid_loss": 4.0, "valid_bleu": 5})
    record = read_run(a_run(tmp_path / "run", WHOLE + repeated), pytest.fail)
    assert list(record.curves["valid_loss"].items()) == [(2, 4.5), (3, 4.0), (4, 3.5), (6, 3.75)]


@pytest.mark.parametrize("damage", [b"{\n", b"\xff\xfe\n", b"[]\n", b'{"step": 1e999}\n', b"\0\0\0\n"])
def test_damaged_lines_cost_no_other_and_are_told_in_one(tmp_path, damage):
    told = []
    run = a_run(tmp_path / "run", lines({"step": 1, "loss": 5.0}) + damage + WHOLE + damage + b'{"step": 9, "va')
    record = read_run(run, told.append)
    assert list(record.curves["valid_bleu"]) == [2, 4, 6]
    assert told == [f"warning: {run}/log.jsonl: 2 damaged lines are left out, the first is line 2"]


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (None, "has no log.jsonl; nothing is known of its validations"),
        (b"", "has no validation in its log.jsonl; it has no curves"),
        (lines({"step": 3, "loss": 1.0}), "has no validation in its log.jsonl; it has no curves"),
    ],
)
def test_a_run_without_validations_is_told_in_a_line(tmp_path, log, problem):
    told = []
    record = read_run(a_run(tmp_path / "run", log), told.append)
    assert told == [f"warning: {tmp_path}/run: {problem}"]
    assert record.curves == {"valid_loss": {}, "valid_bleu": {}}
    assert record.best("valid_loss") is None


def test_what_is_no_run(tmp_path):
    for name, problem in ((".", "holds no run"), ("absent", "no such folder")):
        with pytest.raises(UserError, match=f"{problem}.*; give the folder that `headway train --output` made"):
            read_run(tmp_path / name, pytest.fail)
    run = a_run(tmp_path / "run", WHOLE)
    (run / "recipe.yaml").write_text((run / "recipe.yaml").read_text() + "colour: red\n")
    with pytest.raises(UserError, match="unknown key colour"):
        read_run(run, pytest.fail)


def test_the_keys_that_differ_are_those_that_were_changed(tmp_path):
    changes = ({}, {"seed": 2, "label_smoothing": 0.3}, {"seed": 3})
    runs = [a_run(tmp_path / str(number), WHOLE, **change) for number, change in enumerate(changes)]
    found = differing_keys([read_run(run, pytest.fail).recipe for run in runs])
    assert found == {"training.seed": [1, 2, 3], "training.label_smoothing": [0.1, 0.3, 0.1]}
    assert differing_keys([{"a": 1, "b": [1]}, {"a": 1, "b": [1]}]) == {}
    assert differing_keys([{"a": 1}, {"b": 1}]) == {"a": [1, None], "b": [None, 1]}
