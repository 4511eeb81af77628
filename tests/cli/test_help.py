"""What `--help` says: a line for each command, a meaning of its own for each option, sizes that are counted."""

import inspect
import re

import pytest
import torch
import typer
from typer.testing import CliRunner

from headway.cli import app
from headway.model import ModelConfig, Transformer
from headway.model.config import PRESETS

COMMANDS = typer.main.get_command(app).commands


def shown_help(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_told_in_a_whole_line_of_80_columns(name):
    [line] = [line for line in shown_help().splitlines() if line.startswith(f"  {name} ")]
    first_line = inspect.cleandoc(COMMANDS[name].help).splitlines()[0]
    assert first_line.endswith(".")
    assert line.split(maxsplit=1)[1] == first_line
    assert len(line) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_something_of_its_own(name):
    meanings = [one.help for one in COMMANDS[name].params if one.param_type_name == "option"]
    assert len(set(meanings)) == len(meanings)


def test_presets_tell_their_parameters():
    told = dict(re.findall(r"(\w+) \((\d+\.\d)M", " ".join(shown_help("train").split())))
    assert told.keys() == PRESETS.keys()
    for name, millions in told.items():
        with torch.device("meta"):
            model = Transformer(ModelConfig.preset(name, source_vocab_size=8000, target_vocab_size=8000))
        assert f"{sum(parameter.numel() for parameter in model.parameters()) / 1e6:.1f}" == millions, name
