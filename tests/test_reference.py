"""The reference pages are those of the code, every option says what it means, and options stay few."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
MAKER = runpy.run_path(str(DOCS / "make_reference.py"), run_name="maker")


@pytest.mark.parametrize("name", list(MAKER["pages"]()))
def test_pages_are_up_to_date(name):
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == MAKER["pages"]()[name], "run `make reference`"


@pytest.mark.parametrize("name", list(MAKER["pages"]()))
def test_every_option_says_what_it_means(name):
    for line in MAKER["pages"]()[name].splitlines():
        if line.startswith("| `"):
            assert len(line.split(" | ")[-1].strip(" |")) > 5, line


WITH_OTHERS = ("export", "import", "serve")
"""Commands whose options are about other programs, not about training or translating."""


def test_options_stay_few():
    """Recipe keys and flags, each name once: `--beam-size` is `decoding.beam_size`."""
    keys = {key for key in MAKER["recipe_keys"]() if key not in ("data.train", "data.valid")}  # those are groups
    known = {key.rpartition(".")[2] for key in keys} | {"d_model"}
    known |= {f"valid_{side}" for side in ("source", "target")}
    flags = {
        flag.removeprefix("--").replace("-", "_")
        for command, flags in MAKER["flags"]().items()
        if command not in WITH_OTHERS
        for flag in flags
    }
    known.add("server")  # in place of a model: another program, too
    known.add("list")  # like --help, it sets nothing
    assert len(keys) + len(flags - known) < 60


MANUALS = [*sorted(DOCS.parent.glob("README*.md")), *sorted(DOCS.glob("*.md"))]
OF_OTHERS = {"--hypothesis-profile", "--collect-only", "--tokens"}
"""Options of pytest and of a benchmark."""
COLOURS = re.compile("--(paper|ink|muted|accent|line|surface)")


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_options_that_are_named_exist(manual):
    """In a command those of that command, in a sentence those of any."""
    known = {
        name: {flag for one in MAKER["options"](command) for flag in (*one.opts, *one.secondary_opts)} | {"--help"}
        for name, command in MAKER["commands"]().items()
    }
    text = manual.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"\bheadway ([a-z]+)([^`|\n]*)", text):
        if name in known:
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]+", rest)) <= known[name], f"headway {name}{rest}"
    named = {one for one in re.findall(r"`(--[a-z][a-z-]+)", text) if not COLOURS.fullmatch(one)}
    assert named <= set().union(*known.values()) | OF_OTHERS
