"""`aligner` writes the model with the attention that training would have chosen."""

from dataclasses import replace

import pytest
from tests.page.test_inspecting import random_translator
from typer.testing import CliRunner

from headway.cli import app
from headway.cli.make import PAIRS, aligner
from headway.errors import UserError
from headway.storage import load_model, save_model
from headway.translator.aligning import choose_aligner
from headway.translator.reading import TorchReader

NOTICE = "has no chosen attention"


@pytest.fixture
def model(tmp_path):
    """Without a choice, as an imported one."""
    save_model(tmp_path / "model", replace(random_translator().stored, aligner=None))
    return tmp_path / "model"


def headway(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


def test_the_choice_is_that_of_training(model, tmp_path):
    stored = load_model(model)
    words = ["the", "cat", "a", "dog", "ran", "after", "it"]
    lines = [" ".join(words[(i * i + j) % len(words)] for j in range(1 + i % 5)) for i in range(PAIRS + 20)]
    targets = [" ".join(reversed(line.split())) for line in lines]
    files = [tmp_path / "lines.src", tmp_path / "lines.tgt"]
    for file, side in zip(files, (lines, targets), strict=True):
        file.write_text("".join(f"{line}\n" for line in ["", *side]), encoding="utf-8")
    sides = ("--source", files[0], "--target", files[1])
    aligned = tmp_path / "aligned"
    said = headway("aligner", model, *sides, "--output", aligned)
    tokenizer = stored.source_tokenizer
    wanted = choose_aligner(
        TorchReader(stored.model), *(tokenizer.encode_all(side[:PAIRS]) for side in (lines, targets))
    )
    assert load_model(aligned).aligner == wanted
    assert str(wanted) in said.stderr
    assert NOTICE in headway("score", model, *sides, "--alignments").stderr
    assert NOTICE not in headway("score", model, *sides).stderr
    assert NOTICE not in headway("score", aligned, *sides, "--alignments").stderr


def test_what_can_not_be_chosen(model, tmp_path):
    blank = tmp_path / "blank"
    blank.write_text("\n\n")
    for output, said in ((tmp_path / "new", "no pair has text on both sides"), (model, "is there already")):
        with pytest.raises(UserError, match=said):
            aligner(model, output, blank, blank, "cpu")
    assert not (tmp_path / "new").exists()
