"""The program as a person runs it."""

from __future__ import annotations

import fcntl
import os
import random as chance
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from headway import Translator
from tests.system.browsing import Window, chromium, random_translator, write_page
from tests.system.running import run_headway

ROOT = Path(__file__).parent.parent.parent

if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)  # under `nohup`: the programs that are tested hear it all the same


def reversed_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """A task that is learned in seconds: words of three letters, in reverse order."""
    chooser = chance.Random(seed)
    words = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibx", "jay"]
    sentences = [[chooser.choice(words) for _ in range(chooser.randint(1, 5))] for _ in range(count)]
    return [(" ".join(sentence), " ".join(reversed(sentence))) for sentence in sentences]


@dataclass
class Corpus:
    folder: Path

    def file(self, name: str) -> Path:
        return self.folder / name

    @property
    def train_options(self) -> list[object]:
        names = ("source", "target", "valid-source", "valid-target")
        files = ("train.src", "train.tgt", "valid.src", "valid.tgt")
        given = [item for name, file in zip(names, files, strict=True) for item in (f"--{name}", self.file(file))]
        return [*given, *LANGUAGES]


LANGUAGES = ("data.source_language=src", "data.target_language=tgt")
"""Of text in no language that people speak."""


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Corpus:
    """The reverse task as four text files, and two more to test on."""
    folder = tmp_path_factory.mktemp("reverse")
    for split, count, seed in (("train", 8000, 1), ("valid", 50, 2), ("test", 100, 3)):
        pairs = reversed_pairs(count, seed)
        (folder / f"{split}.src").write_text("".join(f"{source}\n" for source, _ in pairs))
        (folder / f"{split}.tgt").write_text("".join(f"{target}\n" for _, target in pairs))
    return Corpus(folder)


TINY = ["model.preset=tiny", "model.d_model=64", "model.encoder_layers=2", "model.decoder_layers=2"]
QUICK = [*TINY, "tokenizer.vocab_size=300", "training.learning_rate=3e-3", "training.warmup_steps=50"]


@pytest.fixture(scope="session")
def trained(corpus, tmp_path_factory) -> Path:
    """A run that has learned the reverse task, trained by the command line; one for all of pytest's workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    run = folder / "reverse"
    with (folder / "reverse.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not run.exists():
            made = folder / "reverse.partial"
            outcome = run_headway(
                *("train", *corpus.train_options, "--out", made, *QUICK, "training.schedule=cosine"),
                *("training.max_steps=600", "model.norm=post", "training.tokens_per_batch=1024"),
                "training.finish=false",
            )
            assert outcome.code == 0, outcome.err
            made.rename(run)
    return run


@pytest.fixture(scope="session")
def with_languages(trained, tmp_path_factory) -> Path:
    """The model of `trained` with codes of languages that Argos Translate can have."""
    from headway.storage import load_model, save_model

    model = tmp_path_factory.mktemp("models") / "de-en"
    save_model(model, replace(load_model(trained), source_language="de", target_language="en"))
    return model


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def random() -> Translator:
    """A translator of random weights."""
    return random_translator()


@pytest.fixture
def opened(browser, tmp_path):
    """-> show(document, language): a window on its page, with what it may show"""
    windows = []

    def show(document, language="en", address="", **context) -> Window:
        window = Window(browser, **context)
        windows.append(window)
        window.page.goto(write_page(document, tmp_path / f"page{len(windows)}.html", language) + address)
        return window

    yield show
    for window in windows:
        window.close()
