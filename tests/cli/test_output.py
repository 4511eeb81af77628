"""`--output` names what any command writes, and `--out` is the same."""

import pytest
import typer
from typer.testing import CliRunner

from headway.cli import app

COMMANDS = typer.main.get_command(app).commands
WRITE_NOTHING = {"score", "check", "serve", "show", "plan", "bench"}
"""Commands with results on standard output alone."""


def output_of(command: str, *arguments: str) -> str | None:
    """What the arguments name as the output."""
    context = typer.Context(COMMANDS[command])
    options, _, _ = COMMANDS[command].make_parser(context).parse_args(list(arguments))
    return options.get("output")


def test_the_other_commands_write():
    assert {name for name, command in COMMANDS.items() if "output" not in {one.name for one in command.params}} == (
        WRITE_NOTHING
    )


@pytest.mark.parametrize("flag", ["--output", "--out"])
@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - WRITE_NOTHING))
def test_every_command_that_writes_takes_both_spellings(command, flag):
    assert output_of(command, flag, "there") == output_of(command, f"{flag}=there") == "there"
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"}).stdout
    assert f"\n  {flag}, " in shown or f", {flag} " in shown


@pytest.mark.parametrize("flag", ["--output", "--out"])
def test_what_is_written_is_the_same(flag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["perturb", "upper", "-", flag, "there"], input="ant\n").exit_code == 0
    assert (tmp_path / "there").read_text() == "ANT\n"
    for refused in (tmp_path, "-"):
        done = CliRunner().invoke(app, ["draw", "masks", flag, str(refused)])
        assert str(done.exception).startswith(("--output -:", f"{tmp_path}: is a folder"))
