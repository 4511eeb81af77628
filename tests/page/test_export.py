"""`headway export --to web` as far as Python sees it: what is written, what is refused, and that the check checks."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from py_mini_racer import JSEvalException
from typer.testing import CliRunner

from headway.cli import app
from headway.cli.export import SENTENCES
from headway.data.prepared import VALID_TEXTS
from headway.errors import UserError
from headway.insight.analyses.head_importance import head_importance
from headway.model import ModelConfig, Transformer
from headway.page import export
from headway.page.export import NEEDS_A_HOST, as_precision, export_web, open_web
from headway.storage import StoredModel, save_model
from headway.text.subwords import SubwordTokenizer
from headway.text.words import WordTokenizer
from tests.page.engines import VOCABULARY, random_model

WORDS = [f"word{number}" for number in range(VOCABULARY - 4)]


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch):
    monkeypatch.setattr("headway.decoding.faithful.LENGTHS", (1, 9))


@pytest.fixture(scope="module")
def stored() -> StoredModel:
    tokenizer = WordTokenizer(WORDS)
    card = "# A card\n\n</script><!-- with 한글 in it -->\n"
    return StoredModel(
        model=random_model(),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        source_language="de",
        target_language="en",
        decoding={"beam_size": 3},
        card=card,
        name="step-00000007",
    )


def header(file: bytes) -> dict:
    sum_, length = (int.from_bytes(file[at : at + 4], "little") for at in (8, 12))
    assert file[:8] == b"HEADWAY2"
    assert sum_ == zlib.crc32(file[12:])
    return json.loads(file[16 : 16 + length])


def test_a_folder_for_any_static_host(stored, tmp_path):
    training = {"moments": [{"step": 3}]}
    export_web(stored, tmp_path / "page", examples=["word1 word2"], training=training)
    about = header((tmp_path / "page" / "model.headway").read_bytes())
    assert about["config"] == stored.model.config.to_dict()
    assert about["decoding"]["beam_size"] == 3
    assert about["examples"] == ["word1 word2"]
    assert about["step"] == 7
    assert about["training"] == training
    assert {tensor["precision"] for tensor in about["tensors"]} == {"int8", "float32"}
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert all(text in page for _, text in NEEDS_A_HOST)
    assert "default-src 'none'" in page
    for link in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert link == "data:," or (tmp_path / "page" / link).is_file()
    assert (tmp_path / "page" / "README.md").read_text(encoding="utf-8") == stored.card


def test_every_module_finds_those_that_it_imports(stored, tmp_path):
    export_web(stored, tmp_path / "page")
    for module in (tmp_path / "page").rglob("*.js"):
        for file in re.findall(r'(?:from|URL\()\s*"(\.[^"]+)"', module.read_text(encoding="utf-8")):
            assert (module.parent / file).is_file(), f"{module}: {file}"


@pytest.mark.parametrize("precision", ["int8", "float16", "float32"])
def test_one_file_holds_everything(stored, tmp_path, precision):
    export_web(stored, tmp_path / "page.html", precision)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    worker, model, script = scripts
    assert worker[0] == ' type="text/plain" id="worker"'
    assert script[0] == ""
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for kind, text in (("script-src", script[1]), ("style-src", style)):
        sum_ = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{sum_}'" in page
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy
    assert "connect-src" not in policy  # default-src is 'none'
    assert header(base64.b64decode(model[1]))["card"] == stored.card
    assert not re.search(r'(?:src|href)="(?!data:,")', page)
    assert list(tmp_path.iterdir()) == [tmp_path / "page.html"]


@pytest.mark.parametrize("name", ["page.html", "page"])
@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_what_was_exported_can_be_asked(stored, tmp_path, name, precision):
    export_web(stored, tmp_path / name, precision)
    exported = open_web(stored, tmp_path / name)
    read, target = [5, 6, 7, 3], [9, 8]
    with torch.inference_mode():
        logits = stored.model(torch.tensor([read]), torch.tensor([[2, *target]]))[0]
    wanted = logits.log_softmax(dim=-1)[range(3), [*target, 3]].numpy()
    off = np.abs(exported.score(read[:-1], target) - wanted).max()
    assert off <= 1e-4 if precision == "float32" else 1e-4 < off <= 0.3


def test_a_model_that_is_too_large_is_refused(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "LARGEST", 30_000)
    with pytest.raises(UserError, match=r"in float32, a page can have .* --precision int8"):
        export_web(stored, tmp_path / "page", "float32")
    monkeypatch.setattr(export, "LARGEST", 3_000)
    with pytest.raises(UserError, match=r"no memory for it$"):
        export_web(stored, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_precision_is_refused():
    assert as_precision(None) == "int8"
    assert as_precision("float16") == "float16"
    with pytest.raises(UserError, match=r"'int4' is unknown; there are int8, float16, float32"):
        as_precision("int4")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("EPSILON = 1e-5", "EPSILON = 1e-1"),
        ("1 / Math.sqrt(dHead)", "1 / dHead"),
        ("key <= query", "key < query"),
        ("kernel[rows === ROWS", "kernel[rows !== ROWS"),
    ],
)
def test_an_engine_that_is_not_the_model_is_refused(stored, tmp_path, monkeypatch, right, wrong):
    script = export.script

    def broken(entry: str) -> str:
        text = script(entry)
        assert right in text
        return text.replace(right, wrong)

    monkeypatch.setattr(export, "script", broken)
    with pytest.raises(UserError, match="nothing was exported"):
        export_web(stored, tmp_path / "page")
    assert list(tmp_path.iterdir()) == []


def test_the_heads_are_measured_on_validation_pairs_when_a_page_is_made(stored, tmp_path):
    pairs = [(f"word{number} word{number % 7}", "word3 word4 word5") for number in range(130)]
    run = tmp_path / "run"
    save_model(run, stored)
    (run / "data").mkdir()
    (run / "data" / VALID_TEXTS).write_text(json.dumps([("", ""), *pairs, ("word1 " * 41, "word1")]))
    done = CliRunner().invoke(app, ["export", str(run), "--to", "web", "--output", str(tmp_path / "page")])
    assert done.exit_code == 0, done.output
    found = open_web(stored, tmp_path / "page").call("analyses", ["head_importance"], [5, 6, 3], [7, 3], 9)
    fields = found["analyses"]["head_importance"]
    assert fields["sentences"] == SENTENCES
    chosen = [pairs[place * 130 // SENTENCES] for place in range(SENTENCES)]  # from the first to the last
    ids = [[[*stored.source_tokenizer.encode(text), 3] for text in side] for side in zip(*chosen, strict=True)]
    wanted = head_importance(stored.model, *ids)
    assert fields["log_probability"] == pytest.approx(wanted.log_probability, abs=1e-4)
    for kind, ablation in wanted.ablation.items():
        array = found["arrays"][f"analyses.head_importance.ablation.{kind}"]
        assert np.reshape(array["values"], array["shape"]) == pytest.approx(ablation, abs=1e-5)
        array = found["arrays"][f"analyses.head_importance.gradient.{kind}"]
        assert np.reshape(array["values"], array["shape"]) == pytest.approx(wanted.gradient[kind], abs=1e-5)


def test_without_validation_pairs_a_page_says_that_it_has_no_importance_of_heads(stored, tmp_path):
    export_web(stored, tmp_path / "page")
    with pytest.raises(JSEvalException, match="head_importance is measured when the page is made"):
        open_web(stored, tmp_path / "page").call("analyses", ["head_importance"], [5, 6, 3], [7, 3], 9)


def test_tokenizers_of_their_own_for_each_side(stored, tmp_path: Path):
    other = WordTokenizer([word.upper() for word in WORDS])
    two = StoredModel(
        model=stored.model,
        source_tokenizer=stored.source_tokenizer,
        target_tokenizer=other,
        source_language="de",
        target_language="en",
    )
    export_web(two, tmp_path / "page")
    tokenizers = header((tmp_path / "page" / "model.headway").read_bytes())["tokenizers"]
    assert tokenizers["source"]["pieces"][4:] == WORDS
    assert tokenizers["target"]["pieces"][4:] == [word.upper() for word in WORDS]


def test_the_example_of_a_model_with_several_target_languages_has_a_tag(tmp_path):
    tokenizer = SubwordTokenizer.train(["A dog is running."] * 20, "bpe", 280, ["ko", "de"])
    model = Transformer(ModelConfig(tokenizer.vocab_size, tokenizer.vocab_size, d_model=16, num_heads=2)).eval()
    save_model(
        tmp_path / "model",
        StoredModel(
            model=model,
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="mul",
        ),
    )
    done = CliRunner().invoke(
        app, ["export", str(tmp_path / "model"), "--to", "web", "--output", str(tmp_path / "page")]
    )
    assert done.exit_code == 0, done.output
    assert header((tmp_path / "page" / "model.headway").read_bytes())["examples"] == [">>ko<< A dog is running."]
