"""Files of format_version 1 load, translate and resume as they did when they were written."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headway import Translator

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))


def processor():
    """What /proc/cpuinfo says of the first core; nothing where there is no such file."""
    file = Path("/proc/cpuinfo")
    first_core = file.read_text().partition("\n\n")[0] if file.exists() else ""
    said = dict(re.findall(r"^(\S.*?)\s*: (.*)$", first_core, re.MULTILINE))
    return [said.get(name, "") for name in ("model name", "cpu family", "model", "stepping")]


HERE_AND_NOW = {"torch": torch.__version__.partition("+")[0], "processor": processor()}


def number(value, made_with="made_with"):
    """Where the answers were made elsewhere, the last digits of a float32 differ."""
    return value if EXPECTED[made_with] == HERE_AND_NOW else pytest.approx(value, rel=1e-4, abs=1e-4)


def translations(name, **options):
    return [
        {
            "text": one.text,
            "score": one.score,
            "stopped": one.stopped,
            "tokens": [token.text for token in one.tokens],
            "alignment": one.alignment,
            "alternatives": [{"text": other.text, "score": other.score} for other in one.alternatives],
        }
        for one in Translator.load(HERE / name, device="cpu", engine="torch").translate(EXPECTED["texts"], **options)
    ]


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("model", "greedy", {"beam_size": 1}),
        ("model", "beam", {"beam_size": 3, "n_best": 3}),
        ("run", "greedy", {"beam_size": 1}),
        ("run", "beam", {"beam_size": 4, "n_best": 2}),
    ],
)
def test_translations_are_those_of_then(one_thread, name, kind, options):
    wanted = [
        {
            **one,
            "score": number(one["score"]),
            "alternatives": [{**other, "score": number(other["score"])} for other in one["alternatives"]],
        }
        for one in EXPECTED[name][kind]
    ]
    assert translations(name, **options) == wanted


def test_scores_are_those_of_then(one_thread):
    translator = Translator.load(HERE / "model", device="cpu", engine="torch")
    targets = ["The old dog paints the red ball."] * len(EXPECTED["texts"])
    assert translator.score(EXPECTED["texts"], targets) == [number(score) for score in EXPECTED["model"]["score"]]


SINCE_THEN = {"tokens_per_second", "seconds", "gradient_norm"}
"""Fields of the log that differ between machines, or that later versions have added."""


def test_a_resumed_run_goes_on_as_it_did_then(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(HERE / "run", run)
    command = [sys.executable, "-m", "headway", "train", "--resume", str(run), "training.max_steps=90"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    numbers = ("loss", "valid_loss", "learning_rate")
    wanted = [
        {name: number(value, "resumed_with") if name in numbers else value for name, value in one.items()}
        for one in EXPECTED["resumed"]
    ]
    went_on = [{name: one[name] for name in one.keys() - SINCE_THEN} for one in log if one["step"] > 60]
    assert went_on == wanted
    best = max((one for one in log if "valid_bleu" in one), key=lambda one: one["valid_bleu"])
    assert json.loads((run / "best.json").read_text(encoding="utf-8"))["model"] == f"step-{best['step']:08}"


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
