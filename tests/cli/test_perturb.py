"""`perturb`: each line by itself, from a file or standard input, and what it refuses."""

import pytest
from typer.testing import CliRunner

from headway.cli import app
from headway.data.noise import perturbed
from headway.errors import UserError

LINES = ["Ein Hund läuft.", "", "Zwei Männer schlafen auf der Straße!"]


def perturb(*arguments: str, text: str | None = None) -> str:
    done = CliRunner().invoke(app, ["perturb", *arguments], input=text)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


@pytest.mark.parametrize("kind", ["lower", "upper", "typos", "punctuation", "diacritics"])
def test_lines_of_a_file(tmp_path, kind):
    text = "".join(f"{line}\n" for line in LINES)
    (tmp_path / "test.de").write_text(text)
    found = perturb(kind, str(tmp_path / "test.de"), "--seed", "5")
    assert found.splitlines() == [perturbed(line, kind, 5) for line in LINES]
    assert perturb(kind, "--seed", "5", text=text) == found
    output = tmp_path / "noisy.de"
    assert perturb(kind, str(tmp_path / "test.de"), "--seed", "5", "--output", str(output)) == ""
    assert output.read_text() == found


def test_another_seed_has_other_typos():
    text = "".join(f"satz {number} mit vielen langen wörtern\n" for number in range(50))
    assert perturb("typos", "--seed", "1", text=text) == perturb("typos", text=text) != text
    assert perturb("typos", "--seed", "2", text=text) not in (text, perturb("typos", text=text))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["typo"], "KIND typo: unknown; choose one of lower, upper, typos"),
        (["typos", "nowhere.de"], "nowhere.de: no such file"),
    ],
)
def test_what_it_refuses(arguments, message):
    with pytest.raises(UserError, match=message):
        perturb(*arguments)
