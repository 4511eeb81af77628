"""`extend`: files that hold both sides, and notices of what the new model lacks."""

from dataclasses import replace

import pytest
from tests.storage.test_calibration_file import CALIBRATION
from tests.storage.test_model_directory import stored
from typer.testing import CliRunner

from headway.cli import app
from headway.errors import UserError
from headway.storage import load_model, save_model


@pytest.fixture
def model(tmp_path):
    save_model(tmp_path / "model", replace(stored(), calibration=CALIBRATION))
    (tmp_path / "new.tsv").write_text("a penguin\ta mongoose\n" * 9)
    (tmp_path / "new.txt").write_text("a penguin\n" * 9)
    return tmp_path / "model"


def extend(model, *options: str) -> str:
    """What the command says."""
    files = [str(model.parent / one) if one.startswith("new.") else one for one in options]
    more = [] if "--keep-text" in options else ["--add-pieces", "40"]
    command = ["extend", str(model), *more, "--output", str(model.parent / "larger"), *files]
    done = CliRunner().invoke(app, command)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stderr


def test_without_text_there_is_nothing_to_learn(model):
    (model.parent / "new.empty").write_text("\n \n")
    with pytest.raises(UserError, match=r"new\.empty: has no text to learn tokens from"):
        extend(model, "--source", "new.empty")
    assert not (model.parent / "larger").exists()


def test_a_file_of_both_sides_teaches_both_and_a_calibration_is_left_out(model):
    said = extend(model, "--source", "new.tsv")
    assert "notice: the calibration is left out; after training, make one by `headway calibrate`" in said
    assert "shortlist" not in said
    larger = load_model(model.parent / "larger")
    for tokenizer, word in ((larger.source_tokenizer, "penguin"), (larger.target_tokenizer, "mongoose")):
        assert len(tokenizer.encode(word)) < 4
    assert not any("\t" in piece for piece in larger.source_tokenizer.vocabulary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--source", "new.tsv", "--target", "new.txt"], "new.tsv: holds both sides; give it as --source, without"),
        (["--target", "new.tsv"], "new.tsv: holds both sides; give it as --source, without"),
        (["--source", "new.txt", "--target", "new.tsv"], "new.tsv: holds both sides; give it as --source, without"),
        (["--source", "new.tsv", "--source", "new.txt"], "new.txt: target is missing; give its translation"),
    ],
)
def test_a_file_of_both_sides_stands_alone(model, options, message):
    with pytest.raises(UserError, match=message):
        extend(model, *options)
    assert not (model.parent / "larger").exists()


def test_a_vocabulary_is_cut_to_files_of_one_side_or_both(model):
    (model.parent / "new.more").write_text("mongoose cat\n")
    said = extend(model, "--keep-text", "new.more", "--keep-text", "new.tsv")
    before, after = load_model(model), load_model(model.parent / "larger")
    for side in ("source", "target"):
        old, new = getattr(before, f"{side}_tokenizer"), getattr(after, f"{side}_tokenizer")
        assert f"{side}: {old.vocab_size:,} -> {new.vocab_size:,} tokens" in said
        assert new.vocab_size < old.vocab_size
        for text in ("a penguin", "a mongoose", "mongoose cat"):
            assert [new.vocabulary[id_] for id_ in new.encode(text)] == [
                old.vocabulary[id_] for id_ in old.encode(text)
            ]
    assert "notice: the calibration is left out" in said
    assert "go on with" not in said


def test_a_cut_vocabulary_may_grow_at_once(model):
    said = extend(model, "--keep-text", "new.txt", "--add-pieces", "9", "--source", "new.tsv")
    new = load_model(model.parent / "larger").source_tokenizer
    assert len(new.encode("penguin")) < 4
    assert "go on with" in said


def test_text_that_is_blank_and_nothing_to_do_are_refused(model):
    (model.parent / "new.empty").write_text("\n \n")
    with pytest.raises(UserError, match=r"new\.empty: has no text to cut the vocabulary to"):
        extend(model, "--keep-text", "new.empty")
    command = ["extend", str(model), "--output", str(model.parent / "larger")]
    with pytest.raises(UserError, match="nothing to do: give --add-pieces N with new text, --add-language CODE, or"):
        app(command, standalone_mode=False)
    assert not (model.parent / "larger").exists()
