"""Commands and Python of the pages for tasks run, one after the other, on small files with the names of the page.
Trainings are two steps of a tiny model. Only what needs a network is left out: the page's files are there instead.
"""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from headway.cli import app

DOCS = Path(__file__).parents[2] / "docs"
QUICK = [
    *("training.max_steps=2", "training.validate_every=2", "training.warmup_steps=1", "model.preset=tiny"),
    *("model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1"),
    *("decoding.beam_size=1", "decoding.max_length=9"),
]
RECIPE = "mine.yaml"
LINES = {"own-corpus": 90, "korean": 30, "multilingual": 60, "presets": 0, "other-tasks": 60}
"""The pages, and how many lines a training file of theirs has here."""
SHORT = 8
"""Lines of the other files."""


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and code."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def write_files(page: str) -> None:
    """Those that the page takes for granted, in the current folder."""
    chooser = random.Random(1)
    words = ["ein", "Hund", "läuft", "über", "die", "Wiese", "학교에", "갔다", "A", "dog", "snow", "runs"]
    folder = Path("data/multi30k/raw") if page == "other-tasks" else Path()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("corpus", "train", "train2", "valid", "val", "test", "test_2016_flickr"):
        for suffix in ("de", "en", "fr", "ko"):
            count = LINES[page] if name.startswith(("train", "corpus")) else SHORT
            lines = [" ".join(chooser.choices(words, k=chooser.randint(4, 9))) for _ in range(count)]
            (folder / f"{name}.{suffix}").write_text("".join(f"{line}.\n" for line in lines), encoding="utf-8")
    if page == "other-tasks":
        for name, count in (("train", LINES[page]), ("valid", SHORT), ("test", SHORT)):
            Path(f"{name}.tsv").write_text("".join(f"{name} {i}\t{i} {name}\n" for i in range(count)), encoding="utf-8")


def shorten(folder: Path) -> None:
    """The files of a generated corpus, so that what a model of two steps makes of them takes no time."""
    for file in folder.glob("*.*"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(lines[: 200 if file.stem == "train" else SHORT]), encoding="utf-8")


def headway(words: list[str], given: str = "") -> str:
    """What the command prints."""
    if words[0] == "train":
        if "--minutes" in words:  # which chooses the steps
            words = words[: words.index("--minutes")] + words[words.index("--minutes") + 2 :]
        words = [*words, *QUICK]
    done = CliRunner().invoke(app, words, input=given, catch_exceptions=False)
    assert done.exit_code == 0, (words, done.output)
    if words[0] == "data":
        shorten(Path("data") / words[1])
    return done.stdout


def run_line(line: str) -> None:
    """A line of the shell: what is before `| headway` runs there, headway itself here."""
    feeding, pipe, fed = line.partition(" | headway ")
    if pipe:
        given = shell(feeding)
        assert headway(shlex.split(fed), given).count("\n") == given.count("\n") > 0
    elif not line.startswith("headway "):
        shell(line)
    elif line != "headway data multi30k":
        headway(shlex.split(line)[1:])


def shell(line: str) -> str:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("page", LINES)
def test_the_page_runs(page, own_folder, monkeypatch):
    monkeypatch.setenv("HEADWAY_THREADS", str(torch.get_num_threads()))
    write_files(page)
    if page == "korean":  # it evaluates a model that another page has trained
        files = "--source train.en --target train.ko --valid-source valid.en --valid-target valid.ko"
        run_line(f"headway train {files} --out runs/mine")
    printed = ""
    for language, block in blocks(page):
        if language == "yaml" and not Path(RECIPE).exists():
            Path(RECIPE).write_text(block, encoding="utf-8")
        elif language == "python" and block.startswith("def "):
            Path("my_metrics.py").write_text(block, encoding="utf-8")
        elif language == "python":
            printed = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=True).stdout
        elif language == "text":
            assert block == printed
        elif language == "":
            for line in block.splitlines():
                run_line(line)


@pytest.mark.parametrize("page", LINES)
def test_both_languages_have_the_same_code(page):
    assert blocks(page) == blocks(f"{page}.ko")
