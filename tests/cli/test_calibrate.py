"""`calibrate` writes a model that says how likely its translations are acceptable."""

import json
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from headway.cli import app
from headway.errors import UserError
from headway.evaluation import sentence_chrf
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, load_model, save_model
from headway.text.words import WordTokenizer
from headway.training.averaging import average_models
from headway.translator import Translator


def headway(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.stdout


def test_a_calibrated_model(tmp_path, monkeypatch):
    """A model that nobody trained, and references of which every second one is its own translation."""
    words = WordTokenizer(["a", "b", "c", "d"])
    torch.manual_seed(4)
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    model = Transformer(ModelConfig(8, 8, d_model=8, num_heads=2, d_ff=12, encoder_layers=1, decoder_layers=1))
    save_model(
        tmp_path / "model",
        StoredModel(
            model=model,
            source_tokenizer=words,
            target_tokenizer=words,
            source_language="en",
            target_language="ko",
            decoding={"max_length": 6},
            card="",
        ),
    )
    sources = [" ".join("abcd"[number // 4**place % 4] for place in range(4)) for number in range(200)]
    translations = [one.text for one in Translator.load(tmp_path / "model", device="cpu").translate(sources)]
    references = [text if number % 2 and text else "§" for number, text in enumerate(translations)]
    for name, lines in (("valid.en", sources), ("valid.ko", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    files = ("--source", tmp_path / "valid.en", "--reference", tmp_path / "valid.ko", "--device", "cpu")
    headway("calibrate", tmp_path / "model", *files, "--output", tmp_path / "calibrated")
    found, known = load_model(tmp_path / "calibrated"), load_model(tmp_path / "model")
    assert found.calibration is not None
    words_of_all = " ".join(sources).split()
    assert found.calibration.domain.counts == {4 + place: words_of_all.count(word) for place, word in enumerate("abcd")}
    assert all(map(torch.equal, found.model.parameters(), known.model.parameters()))
    told = headway("translate", tmp_path / "calibrated", files[1], "--confidence", "--json", "--device", "cpu")
    lines = list(map(json.loads, told.splitlines()))
    confidences = [line["confidence"] for line in lines]
    pairs = zip(lines, references, strict=True)
    share = sum(sentence_chrf(line["text"], reference) >= 60 for line, reference in pairs) / 200
    assert share > 0.4
    assert sum(confidences) / 200 == pytest.approx(share, abs=1e-4), "what logistic regression with a bias promises"
    assert found.int8 is not None
    assert found.int8.pairs == 200
    assert str(found.int8) in found.card
    average_models([tmp_path / "calibrated", tmp_path / "model"], tmp_path / "mean")
    mean = load_model(tmp_path / "mean")
    assert mean.calibration is mean.int8 is None
    assert str(found.int8) not in mean.card
    pairs = ("--source", tmp_path / "valid.en", "--target", tmp_path / "valid.en")
    headway("shortlist", tmp_path / "calibrated", *pairs, "--output", tmp_path / "short")
    assert load_model(tmp_path / "short").int8 is None
    blocked = "import sys\nsys.modules['torch'] = None\nfrom headway.cli import main\nmain()"
    command = [*files, "--output", tmp_path / "without torch"]
    done = subprocess.run(
        [sys.executable, "-c", blocked, "calibrate", tmp_path / "model", *command], check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    calibration = load_model(tmp_path / "without torch").calibration
    assert calibration is not None
    assert calibration.weights == pytest.approx(found.calibration.weights, abs=1e-6)
    with pytest.raises(UserError, match="is there already"):
        headway("calibrate", tmp_path / "model", *files, "--output", tmp_path / "calibrated")
