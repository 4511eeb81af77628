"""`perturb`: each line by itself, from a file or standard input, and what it refuses."""

import pytest
from typer.testing import CliRunner

from headway.cli import app
from headway.errors import UserError
from headway.text.noise import perturbed

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
    found = perturb(str(tmp_path / "test.de"), "--kind", kind, "--seed", "5")
    assert found.splitlines() == [perturbed(line, kind, 5) for line in LINES]
    assert perturb("--kind", kind, "--seed", "5", text=text) == found
    output = tmp_path / "noisy.de"
    assert perturb(str(tmp_path / "test.de"), "--kind", kind, "--seed", "5", "--output", str(output)) == ""
    assert output.read_text() == found


def test_typos_and_their_seed():
    text = "ein langer satz mit vielen wörtern\n" * 20
    every = perturb("--kind", "typos", "--typos", "1", text=text)
    assert all(a != b for a, b in zip(every.split(), text.split(), strict=True))
    assert perturb("--kind", "typos", "--typos", "1", "--seed", "2", text=text) != every


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "typo"], "--kind typo: there are lower, upper, typos"),
        (["--kind", "lower", "--typos", "0.5"], "--typos is for --kind typos"),
        (["--kind", "typos", "--typos", "0"], "above 0"),
        (["nowhere.de", "--kind", "typos"], "nowhere.de: no such file"),
    ],
)
def test_what_it_refuses(arguments, message):
    with pytest.raises(UserError, match=message):
        perturb(*arguments)
