"""A core of attention of the user's own: trained by its name, and never imported by a model directory itself."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from headway import ModelConfig, Transformer, Translator
from headway.cli import app
from headway.errors import UserError
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import Recipe
from headway.storage import load_model, read_model
from headway.training.loop import train as train_recipe
from headway.training.reporter import Reporter

CORE = """
from headway.model import ScaledDotProductAttention

class Even(ScaledDotProductAttention):
    def forward(self, queries, *others, **options):
        return super().forward(queries * 0, *others, **options)

class Weighted(ScaledDotProductAttention):
    def __init__(self, *options):
        super().__init__(*options)
        from torch import nn
        self.scale = nn.Parameter(nn.init.ones_(nn.Linear(1, 1).weight))
"""
NAME = "own_cores:Even"
TEXT = [f"{word} {other}" for word in "abcdefgh" for other in "abcdefgh"]


@pytest.fixture
def module(own_folder):
    """The folder with own_cores.py; nothing has imported it yet."""
    Path("own_cores.py").write_text(CORE)
    Path("text.src").write_text("".join(f"{line}\n" for line in TEXT))
    return own_folder


def recipe(core=NAME, **training) -> Recipe:
    pair = {"source": "text.src", "target": "text.src"}
    size = {"d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    return make_recipe(
        {
            "data": {"train": pair, "valid": pair, "source_language": "src", "target_language": "tgt"},
            "tokenizer": {"kind": "word"},
            "model": {**size, "core": core},
            "training": {"max_steps": 2, "device": "cpu", "precision": "fp32", "validate_every": 1, **training},
        }
    )


def train(recipe: Recipe, folder: Path) -> None:
    train_recipe(recipe, folder, Reporter())


def test_a_model_is_trained_with_it_and_loaded_only_with_its_name(module):
    train(recipe(), Path("run"))
    del sys.modules["own_cores"]
    with pytest.raises(UserError, match=f"{NAME}.*--core"):
        Translator.load("run").translate(["a b"])
    with pytest.raises(UserError, match="not own_cores:Other"):
        Translator.load("run", core="own_cores:Other")
    assert read_model(Path("run")).config.core == NAME
    assert "own_cores" not in sys.modules
    translator = Translator.load("run", core=NAME)
    core = translator.model.encoder.layers[0].self_attention.core
    assert (type(core).__name__, core.num_heads, core.dropout) == ("Even", 2, 0.0)
    assert translator.engine == "torch"
    [found] = translator.translate(["a b"])
    assert translator.score(["a b"], [found.text]) == pytest.approx([found.score], abs=1e-4)


def test_a_usual_model_has_none(module):
    train(recipe(core=None), Path("run"))
    assert "core" not in read_model(Path("run")).config.to_dict()
    with pytest.raises(UserError, match=f"the usual one, not {NAME}"):
        load_model(Path("run"), NAME)


def test_commands_take_it_and_exports_refuse_it(module):
    train(recipe(), Path("run"))
    run = CliRunner().invoke
    for command, options in (
        ("translate", ["text.src"]),
        ("evaluate", ["--source", "text.src", "--reference", "text.src"]),
        ("inspect", ["a b", "--output", "record.json"]),
        ("inspect", ["a b", "--kind", "encoder"]),
    ):
        done = run(app, [command, "run", *options, "--core", NAME])
        assert done.exit_code == 0, done.output
        assert done.output or "--output" in options
    done = run(app, ["inspect", "run", "a b", "--output", "page.html", "--core", NAME])
    assert done.exit_code != 0
    assert not Path("page.html").exists()
    assert run(app, ["show", "run"]).exit_code == 0
    for command in (["export", "run", "--to", "web", "--output", "page.html"], ["translate", "run", "text.src"]):
        done = run(app, command)
        assert NAME in str(done.exception or done.output)


def test_no_export_takes_a_model_in_memory(module):
    from headway.decoding.ctranslate2_model import export_ctranslate2
    from headway.page.export import export_web

    train(recipe(), Path("run"))
    stored = load_model(Path("run"), NAME)
    for export in (export_ctranslate2, export_web):
        with pytest.raises(UserError, match=NAME):
            export(stored, Path("exported"))
        assert not Path("exported").exists()


def test_a_usual_model_may_go_on_with_it(module):
    """The weights are the same; a model with another core is refused."""
    train(recipe(core=None), Path("usual"))
    usual = load_model(Path("usual")).model
    train(recipe(init_from="usual", learning_rate=1e-9, warmup_steps=0), Path("run"))
    changed = load_model(Path("run"), NAME).model
    torch.testing.assert_close(dict(changed.named_parameters()), dict(usual.named_parameters()))
    with pytest.raises(UserError, match=f"{NAME}.*model.core"):
        train(recipe(core="own_cores:Weighted", init_from="run"), Path("other"))


def test_a_core_has_no_weights_and_is_named(module):
    config = ModelConfig.preset("tiny", source_vocab_size=9, target_vocab_size=9, core="own_cores:Weighted")
    with pytest.raises(UserError, match="own_cores:Weighted: must be"):
        train(recipe(core="own_cores:Weighted"), Path("run"))
    with pytest.raises(UserError, match="give the class"):
        Transformer(config)
    with pytest.raises(UserError, match="give the class"):
        Transformer(replace(config, core=None), torch.nn.Identity)
