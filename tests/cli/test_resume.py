"""`translate --resume` after a job has ended: what belongs to it is complete, and nothing else is."""

import os
from pathlib import Path

import pytest
import torch
from tests.translator.test_translator import translator
from typer.testing import CliRunner

from headway.cli import app
from headway.errors import UserError
from headway.storage import save_model

LINES = "the cat\na dog\nthe mat\n"


def save(path: Path, seed: int) -> None:
    torch.manual_seed(seed)
    save_model(path, translator(max_length=30).stored)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a finished job."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "model", 0)
    (tmp_path / "in").write_text(LINES)
    (tmp_path / "terms").write_text("cat\tcat\n")
    assert "complete" not in headway()
    return tmp_path


def headway(file: str = "in", output: str = "out", *more: str, text: str | None = None) -> str:
    """What a job with `--resume` tells."""
    command = ["translate", "model", file, "--output", output, "--resume", "--device", "cpu", "--glossary", "terms"]
    done = CliRunner().invoke(app, [*command, "--max-length", "2", *more], input=text)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stderr


def test_the_same_command_again(folder):
    whole = (folder / "out").read_bytes()
    assert headway() == f"notice: {folder / 'out'}: is complete already\n"
    os.utime(folder / "in", (1, 1))  # as a copy of the folder has it
    assert "is complete already" in headway()
    assert (folder / "out").read_bytes() == whole


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINES.replace("dog", "cat"), "is complete, but the input has changed since then"),
        ("the mat\na dog\nthe cat\n", "is complete, but the input has changed since then"),
        (f"{LINES}the cat\n", "is complete, but the input has changed since then"),
        ("the cat\n", "is complete, but the input has changed since then"),
    ],
)
def test_another_input(folder, text, message):
    whole = (folder / "out").read_bytes()
    (folder / "in").write_text(text)
    with pytest.raises(UserError, match=f"out.*{message}.*; give .*, or start again without --resume"):
        headway()
    assert (folder / "out").read_bytes() == whole
    (folder / "in").write_text(LINES)
    assert "is complete already" in headway()


def test_another_model_in_the_same_place_and_other_terms_in_the_same_file(folder):
    (folder / "terms").write_text("cat\tdog\n")
    with pytest.raises(UserError, match=r"was begun with other settings: options\.glossary"):
        headway()
    (folder / "terms").write_text("cat\tcat\n")
    (folder / "model").rename(folder / "before")
    save(folder / "model", 1)
    with pytest.raises(UserError, match=r"was begun with other settings: model"):
        headway()


def test_standard_input(folder):
    headway("-", "piped", text=LINES)
    assert "is complete already" in headway("-", "piped", text=LINES)
    with pytest.raises(UserError, match="the input has changed"):
        headway("-", "piped", text=f"{LINES}a dog\n")


def test_a_file_that_was_translated_into_itself(folder):
    headway("in", "in")
    whole = (folder / "in").read_bytes()
    assert whole != LINES.encode()
    assert "is complete already" in headway("in", "in")
    assert (folder / "in").read_bytes() == whole


def test_a_part_of_another_file(folder):
    headway("in", "part", "--shard", "1/2")
    assert "is complete already" in headway("in", "part", "--shard", "1/2")
    (folder / "in").write_text(LINES.replace("the cat", "the dog"))
    with pytest.raises(UserError, match="the input has changed"):
        headway("in", "part", "--shard", "1/2")
