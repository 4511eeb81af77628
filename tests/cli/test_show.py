"""`show` prints tables that a person reads, the values that hold, and JSON as it always was."""

import json
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from headway.cli import app
from headway.cli.files import with_plain_tables
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, save_model
from headway.text.words import WordTokenizer

CARD = """# A card

| | |
|---|---|
| validation BLEU | 16.47 (`nrefs:1|case:mixed`) |
| size | [red]small[/red] |

| left \\| right | 한국어 |
| :--- | ---: |
| a | b |
| 나 | c |

|no table| of one line
"""


@pytest.fixture
def model(tmp_path):
    words = WordTokenizer(["a", "b"])
    config = ModelConfig(6, 6, d_model=8, num_heads=2, d_ff=12, encoder_layers=1, decoder_layers=1)
    stored = StoredModel(
        model=Transformer(config),
        source_tokenizer=words,
        target_tokenizer=words,
        source_language="en",
        target_language="ko",
        decoding={},
        card=CARD,
    )
    save_model(tmp_path / "both", stored)
    other = replace(config, decoder_num_heads=4, decoder_d_ff=20)
    save_model(tmp_path / "other", replace(stored, model=Transformer(other)))
    return tmp_path / "both"


def show(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["show", *map(str, arguments)])
    assert done.exit_code == 0, done.exception
    return done.stdout


def row(text: str, name: str) -> str:
    """The value that stands after the name."""
    [line] = re.findall(rf"^ *{re.escape(name)} +(.+?) *$", text, flags=re.MULTILINE)
    return line


def test_values_are_those_that_hold(model):
    text = show(model)
    assert "None" not in text
    assert row(text, "decoder_num_heads") == "2 (as the encoder)"
    assert row(text, "decoder_d_ff") == "12 (as the encoder)"
    assert row(text, "d_model") == "8"
    other = show(model.parent / "other")
    assert row(other, "decoder_num_heads") == "4"
    assert row(other, "decoder_d_ff") == "20"


def test_tables_are_no_markdown_and_lose_nothing(model):
    text = show(model)
    assert not re.search(r"^ *\|(?!no table)", text, flags=re.MULTILINE)
    assert "---|" not in text
    assert row(text, "validation BLEU") == "16.47 (`nrefs:1|case:mixed`)"
    assert row(text, "size") == "[red]small[/red]"
    assert row(text, "left | right") == "한국어"
    assert "|no table| of one line" in text


def test_columns_are_aligned_as_wide_as_characters_are(model):
    lines = with_plain_tables(CARD).splitlines()
    for first, second in (("validation BLEU", "size"), ("left | right", "나")):
        starts = set()
        for name in (first, second):
            [line] = [line for line in lines if line.startswith(name)]
            starts.add(cell_len(line[: len(name) + len(re.match(" +", line[len(name) :])[0])]))
        assert len(starts) == 1


def test_what_is_no_table_stays_as_it_is():
    for text in (
        "",
        "|",
        "| a | b |",
        "| a | b |\n| c | d |",
        "| a |\ntext\n|---|",
        "a | b\n--- | ---",
        "|\n|",
        "    | a |\n    |---|",
    ):
        assert with_plain_tables(text) == text


def test_json_has_the_config_as_it_is(model):
    document = json.loads(show(model, "--json"))
    assert document["model"]["decoder_num_heads"] is None
    assert list(document) == [
        "folder",
        "source_language",
        "target_language",
        "parameters",
        "model",
        "training_flops",
        "decoding",
        "alignment",
        "int8",
        "weights",
    ]
