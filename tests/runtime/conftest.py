"""The golden model, whose translations were computed by torch when it was made, and commands in an environment without
torch (`make test-runtime`)."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headway.storage import Calibration, read_model
from headway.storage.model_directory import write_model
from headway.text.domain import Domain

GOLDEN = Path(__file__).parents[1] / "golden"
MODEL = GOLDEN / "model"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))
TEXTS = EXPECTED["texts"]
GREEDY = EXPECTED["model"]["greedy"]
"""The translation of each of TEXTS."""


def headway(*arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return subprocess.run(
        [sys.executable, "-m", "headway", *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120"},
    )


def output(*arguments: object, text: str = "") -> str:
    """What the command prints; it succeeds."""
    done = headway(*arguments, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def source(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("texts") / "test.de"
    file.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def reference(source) -> Path:
    """Translations of the model itself."""
    file = source.with_name("test.en")
    file.write_text("".join(f"{one['text']}\n" for one in GREEDY), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory) -> Path:
    """The model with a calibration by which the mean log-probability alone decides."""
    read = read_model(Path(shutil.copytree(MODEL, tmp_path_factory.mktemp("calibrated") / "read")))
    counts = {id_: 1 for text in TEXTS for id_ in read.source_tokenizer.encode(text)}
    domain = Domain(counts, read.source_tokenizer.vocab_size, mean=(0.0, 0.0), precision=(1.0, 0.0, 1.0), farthest=1e9)
    path = read.folder.with_name("written")
    calibration = Calibration(weights=(1.0, 0.0, 0.0, 0.0, 0.0), bias=0.0, domain=domain)
    write_model(path, replace(read, calibration=calibration), read.config, read.weights())
    return path
