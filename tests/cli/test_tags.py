"""Files for a model of several target languages in which lines lack their tag: what each command makes of them."""

import json
from dataclasses import replace

import pytest
from sentencepiece import sentencepiece_model_pb2
from tests.translator.test_translator import tagged_translator
from typer.testing import CliRunner

from headway.cli import app
from headway.data.lines import LINES_AT_ONCE
from headway.errors import UserError
from headway.storage import save_model
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import is_tag, language_token

FAULT = "doesn't begin with the tag of a target language, such as >>de<<"
LATE = LINES_AT_ONCE + 2
"""The number of a line of the second chunk."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model, and a file in which two lines lack their tag; the current folder."""
    save_model(tmp_path / "model", tagged_translator(max_length=30).stored)
    lines = [">>ko<< the cat"] * (LATE + 3)
    lines[1], lines[LATE - 1] = "the cat", ">>fr<< the cat"
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "out.wanted").write_text("a dog\n" * len(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def headway(*arguments: str):
    done = CliRunner().invoke(app, [*arguments, "--device", "cpu"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_a_job_goes_on_and_ends(folder):
    command = ("translate", "model", "in", "--output", "out", "--resume", "--beam-size", "1", "--max-length", "2")
    done = headway(*command)
    assert done.exit_code == 2
    assert [line for line in done.stderr.splitlines() if "cut off" not in line] == [
        f"headway: line {number} {FAULT}; its translation is left blank" for number in (2, LATE)
    ]
    found = (folder / "out").read_text().split("\n")
    assert [number for number, line in enumerate(found, start=1) if not line] == [2, LATE, LATE + 4]
    again = headway(*command)
    assert again.exit_code == 2
    assert again.stderr == f"notice: {folder / 'out'}: is complete already\n"


def test_score_has_no_number_for_such_a_line(folder):
    command = ("score", "model", "--source", "in", "--target", "out.wanted")
    done = headway(*command)
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [f"headway: line {number} {FAULT}" for number in (2, LATE)]
    found = done.stdout.splitlines()
    assert [number for number, line in enumerate(found, start=1) if line == "nan"] == [2, LATE]
    documents = [json.loads(line) for line in headway(*command, "--json").stdout.splitlines()]
    assert [one["source"] for one in documents if one["score"] is None] == ["the cat", ">>fr<< the cat"]
    assert headway(*command, "--target-language", "ko").exit_code == 0


@pytest.mark.parametrize(
    ("command", "more"),
    [("evaluate", ("--reference", "out.wanted")), ("calibrate", ("--reference", "out.wanted", "--output", "new"))],
)
def test_what_needs_every_line_names_the_line(folder, command, more):
    with pytest.raises(UserError, match=f"in, line 2: {FAULT}; add it, or give --target-language"):
        headway(command, "model", "--source", "in", *more)


def test_the_aligner_names_the_line(folder):
    (folder / "in").write_text(f"\n{(folder / 'in').read_text()}")
    (folder / "out.wanted").write_text(f"\n{(folder / 'out.wanted').read_text()}")
    with pytest.raises(UserError, match=f"in, line 3: {FAULT}"):
        headway("aligner", "model", "--source", "in", "--target", "out.wanted", "--output", "new")


def test_both_languages_of_an_option_tell_the_sides_of_a_memory(folder):
    """Of a model with many source languages, whose own source isn't in the memory."""
    stored = tagged_translator(max_length=30).stored
    model = sentencepiece_model_pb2.ModelProto.FromString(stored.source_tokenizer.to_bytes())
    for piece in (one for one in model.pieces if is_tag(one.piece)):
        piece.piece = language_token(piece.piece[2:-2])
    tokenizer = SubwordTokenizer(model.SerializeToString())
    save_model(folder / "many", replace(stored, source_tokenizer=tokenizer, target_tokenizer=tokenizer))
    variants = "".join(
        f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("ko", "cat"), ("de", "dog"))
    )
    (folder / "pairs.tmx").write_text(f"<tmx version='1.4'><header/><body><tu>{variants}</tu></body></tmx>")
    for given, wanted in (("ko:de", ("cat", "dog")), ("de:ko", ("dog", "cat"))):
        done = headway("score", "many", "--source", "pairs.tmx", "--target-language", given, "--json")
        row = json.loads(done.stdout)
        assert (row["source"], row["target"]) == wanted
