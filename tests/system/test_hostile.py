"""Every command that takes a model refuses a hostile one with one line; what is made to take long does not."""

import json
import os
import time

import pytest

from headway.documents.parsing import parse_document
from tests.documents.test_parsing import HOSTILE as HOSTILE_TEXTS
from tests.documents.test_parsing import readable
from tests.faults.hostile import change_config, make_directory, piece, replace, subword_model
from tests.system.running import complaint, run_headway


@pytest.fixture
def commands(tmp_path):
    """Each command that takes a model, with all else that it needs."""
    text = tmp_path / "text"
    text.write_text("the cat\n")
    other = tmp_path / "other"
    other.write_text("a dog\n")
    both = ("--source", text, "--target", other)
    valid = ("--valid-source", text, "--valid-target", other, "--out", tmp_path / "run")
    return {
        "translate": lambda model: ("translate", model, text),
        "evaluate": lambda model: ("evaluate", model, "--source", text, "--reference", other),
        "score": lambda model: ("score", model, *both),
        "inspect": lambda model: ("inspect", model, "the cat"),
        "show": lambda model: ("show", model),
        "train": lambda model: ("train", *both, *valid, "--init-from", model),
    }


HOSTILE = {
    "translate": (lambda model: replace(model, "tokenizer.spm", subword_model(more=[piece(b"\xff")])), "tokenizer.spm"),
    "evaluate": (lambda model: replace(model, "decoding.json", b'{"beam_size": 1000000000}'), "beam_size=1000000000"),
    "score": (lambda model: os.truncate(model / "model.safetensors", 2**40), "1,099,511,627,776 bytes"),
    "inspect": (lambda model: change_config(model, lambda config: config["model"].update(d_model=10**9)), "d_model"),
    "show": (lambda model: change_config(model, lambda config: config.update(format_version=2)), "use a newer headway"),
    "train": (lambda model: replace(model, "model.safetensors", b"\x80\x04."), "model.safetensors"),
}


@pytest.mark.parametrize("command", HOSTILE)
def test_one_line_and_exit_code_2(commands, tmp_path, command):
    spoil, message = HOSTILE[command]
    model = make_directory(tmp_path / "m")
    spoil(model)
    outcome = run_headway(*commands[command](model))
    assert (outcome.code, outcome.out) == (2, "")
    [line] = outcome.err.splitlines()
    assert message in line
    assert not (tmp_path / "run").exists()


def test_nothing_of_a_stranger_steers_the_terminal(commands, tmp_path):
    model = make_directory(tmp_path / "m")
    replace(model, "README.md", b"\x1b[2J\x1b]0;owned\x07# card\n\ttext\n")
    shown = run_headway(*commands["show"](model))
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert "# card\n\ttext" in shown.out
    (model / "config.json").unlink()
    (model / "best.json").write_text(json.dumps({"model": "\x1b[2J"}))
    (model.rename(tmp_path / "\x1b[2J"))
    assert r"\x1b[2J" in complaint("translate", tmp_path / "\x1b[2J")


def test_many_members_take_no_longer_than_they_should(tmp_path):
    members = ",".join(f'"{number}": 0' for number in range(80_000))
    (tmp_path / "config.json").write_text(f'{{{members}, "79999": 0}}')
    start = time.perf_counter()
    assert "'79999' stands twice" in complaint("show", tmp_path)
    assert time.perf_counter() - start < 15


@pytest.mark.parametrize("unit", HOSTILE_TEXTS)
def test_hostile_texts_take_no_time(unit):
    text = (unit * 5000)[:5000]
    start = time.process_time()
    for format_ in ("text", "html"):
        parse_document(text, format_, "de", readable(500))
    assert time.process_time() - start < 1
