"""Each search option that a model can have as its own is a recipe key, and an option of commands that translate."""

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from headway.cli import app
from headway.cli.options import with_search_options
from headway.decoding.options import DefaultOptions, Sampling
from headway.recipe.recipe import Recipe

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", ["translate", "evaluate", "compare"])
@pytest.mark.parametrize("name", DefaultOptions.model_fields)
def test_it_is_an_option_with_its_help(command, name):
    [option] = [one for one in COMMANDS[command].params if one.name == name]
    assert option.opts == [f"--{name.replace('_', '-')}"]
    assert option.default is None
    help = " ".join(DefaultOptions.model_fields[name].description.split())
    assert option.help == f"{help} Default: the model's own."


def test_it_is_a_recipe_key_and_has_no_other_place():
    assert Recipe.model_fields["decoding"].annotation is DefaultOptions


@pytest.mark.parametrize(
    ("given", "search"),
    [
        ((), {}),
        (("--beam-size", "3", "--length-penalty", "0"), {"beam_size": 3, "length_penalty": 0.0}),
        (("--sample", "top_k=2,seed=7", "--max-length", "4"), {"sample": Sampling(top_k=2, seed=7), "max_length": 4}),
    ],
)
def test_a_command_gets_the_options_that_are_given(given, search):
    seen, toy = [], typer.Typer()

    @toy.command()
    @with_search_options
    def command(text: str, *, flag: Annotated[bool, typer.Option()] = False, search: dict[str, Any]) -> None:
        seen.append((text, flag, search))

    assert CliRunner().invoke(toy, ["text", *given, "--flag"]).exit_code == 0
    assert seen == [("text", True, search)]


def test_a_value_below_the_least_is_refused_by_the_command_line():
    assert CliRunner().invoke(app, ["translate", "model", "--beam-size", "0"]).exit_code == 2
