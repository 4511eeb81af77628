"""What commands refuse before they work, each in a line with its remedy."""

import sys

import pytest

from headway.cli import _run
from headway.errors import UserError
from headway.insight.analyses import read_analyses


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "train --source a.de --target a.en --minutes inf --output run",
            "'--minutes': must be at most 1000000",
        ),
        ("show run He should be greater than or equal to 1", "(He should be greater than or equal to 1)"),
        ("check --source a.de --target a.en --column 2 --column 3", "--column chooses columns of files that hold both"),
        ("split --source a.de --target a.en --column 1 --column 2 --output b", "leave it out with a.en"),
        ("check .", ".: is a folder; give files"),
        ("check a.de", "a.de: target is missing; give its translation, or one file of both sides"),
        ("import nope --output model", "nope: no such folder; give one that was downloaded from Hugging Face"),
        ("bench foo", "Invalid value for 'what': 'foo' is not one of 'train', 'translate'."),
        (
            "train a.de",
            "a.de: must hold the sections data, tokenizer, model, training, decoding; for text: headway train --so",
        ),
        (
            "train a.de a.en",
            "one recipe at a time, not a.de and a.en; changes are key.path=value, text files go with --s",
        ),
        ("train --resume run --minutes 3", "--resume RUN --minutes N --finish ends a run"),
    ],
)
def test_a_command_says_what_is_wrong(line, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for side in ("de", "en"):
        (tmp_path / f"a.{side}").write_text("ant\n")
    monkeypatch.setattr(sys, "argv", ["headway", *line.split()])
    assert _run() == 2
    [said] = capsys.readouterr().err.splitlines()
    assert told in said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.de", "a.en"]


@pytest.mark.parametrize("asked", ["erasure", ["foo"]])
def test_an_unknown_analysis_is_named_with_those_that_there_are(asked):
    with pytest.raises(UserError, match="'foo' is unknown; there are .*'erasure'" if asked == ["foo"] else "list"):
        read_analyses(asked)


def test_columns_are_chosen_for_a_check(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.tsv").write_text("".join(f"name{number}\t고양이 {number}\tcat {number}\n" for number in range(3)))
    monkeypatch.setattr(sys, "argv", ["headway", "check", str(tmp_path / "a.tsv"), "--column", "2", "--column", "3"])
    assert _run() == 0
    assert "source: 6 words, 2.0 a line, at most 2" in (said := capsys.readouterr().out)
    assert "mainly HANGUL" in said
