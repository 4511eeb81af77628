"""The reference pages are those of the code, every option says what it means, and options stay few."""

import dataclasses
import re
import runpy
from pathlib import Path

import pytest

from headway.model import ModelConfig

DOCS = Path(__file__).parent.parent / "docs"
MAKER = runpy.run_path(str(DOCS / "make_reference.py"), run_name="maker")


@pytest.mark.parametrize("name", list(MAKER["pages"]()))
def test_pages_are_up_to_date(name):
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == MAKER["pages"]()[name], "run `make reference`"


FIELDS = MAKER["field_docstrings"](ModelConfig)
MEANINGS = [
    *(
        (f"{name} {one.opts[0]}", one.help)
        for name, command in MAKER["commands"]().items()
        for one in MAKER["options"](command)
    ),
    *((key, meaning) for key, _, meaning in MAKER["recipe_rows"]()),
    *(
        (field.name, MAKER["field_docstrings"](ModelConfig).get(field.name))
        for field in dataclasses.fields(ModelConfig)
    ),
]


SAID_BY_ITS_NAME = {"encoder_layers", "decoder_layers"}


@pytest.mark.parametrize(("option", "meaning"), MEANINGS, ids=[option for option, _ in MEANINGS])
def test_every_option_says_what_it_means(option, meaning):
    """In a sentence, which says more than its name."""
    assert meaning
    assert meaning.endswith((".", "?")), meaning
    words = re.findall(r"\w+", meaning.lower())
    assert len(words) >= 3
    more = set(words) - set(re.split(r"[\W_]+", option.lower())) - {"the", "a", "of", "an", "is", "to", "in"}
    assert more or option in SAID_BY_ITS_NAME, meaning


WITH_OTHERS = ("export", "import", "serve", "plan")
"""Commands whose options are about other programs or other machines, not about training or translating."""


def test_options_stay_few():
    """Recipe keys and flags, each name once: `--beam-size` is `decoding.beam_size`."""
    corpora = ("data.train", "data.monolingual", "data.distilled", "data.valid", "data.held_out")
    sections = ("data", "tokenizer", "model", "training", "decoding")
    groups = (
        *corpora,
        "data.filters",
        "data.noise",
        "training.adapter",
        *(f"stages.{section}" for section in sections),
    )
    keys = {key for key in MAKER["recipe_keys"]() if key not in groups and not key.startswith("data.held_out.")}
    of_corpora = {key.removeprefix("data.train.") for key in keys if key.startswith("data.train.")}
    keys -= {f"data.{corpora}.{name}" for corpora in ("monolingual", "distilled") for name in of_corpora}
    known = {key.rpartition(".")[2] for key in keys} | {"d_model", "core"}  # keys of `model`, which are its fields
    known |= {f"valid_{side}" for side in ("source", "target")}
    flags = {
        flag.removeprefix("--").replace("-", "_")
        for command, flags in MAKER["flags"]().items()
        if command not in WITH_OTHERS
        for flag in flags
    }
    known |= {"server", "cluster", "shard"}  # of other programs, too: a server, Ray, a scheduler
    known |= {"data", "list"}  # data.prepared; and like --help, it sets nothing
    assert len(keys) + len(flags - known) <= 101
