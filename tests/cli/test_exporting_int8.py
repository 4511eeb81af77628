"""`export` tells what int8 costs, by the model or a run's validation text, and which search options are lost."""

import json
from dataclasses import replace

import pytest
from tests.decoding.test_ctranslate2_model import stored
from tests.storage.test_int8_check import CHECK
from typer.testing import CliRunner

from headway.cli import app
from headway.storage import save_model, with_int8
from headway.translator import int8


def told(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["export", *map(str, arguments)])
    assert done.exit_code == 0, done.exception
    return done.stderr


@pytest.mark.parametrize(
    ("tool", "quantization", "tells"),
    [("ctranslate2", "int8", True), ("argos", None, True), ("ctranslate2", None, False), ("argos", "float32", False)],
)
def test_an_export_tells_what_int8_costs(tmp_path, monkeypatch, tool, quantization, tells):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(int8, "FEWEST", 3)
    one, run = stored(), tmp_path / "run"
    save_model(tmp_path / "known", with_int8(one, CHECK))
    save_model(tmp_path / "unknown", one)
    save_model(run / "models" / "step-00000001", one)
    (run / "best.json").write_text('{"model": "step-00000001"}')
    (run / "data").mkdir()
    (run / "data" / "valid.json").write_text(json.dumps([["the cat", "the cat"]] * 3))
    given = ("--to", tool, *(("--quantization", quantization) if quantization else ()), "--output")
    assert (str(CHECK) in told(tmp_path / "known", *given, tmp_path / "1.argosmodel")) == tells
    assert ("over 3 validation pairs" in told(run, *given, tmp_path / "2.argosmodel")) == tells
    assert "int8 it translates" not in told(tmp_path / "unknown", *given, tmp_path / "3.argosmodel")


@pytest.mark.parametrize("tool", ["ctranslate2", "argos"])
def test_an_export_tells_of_search_options_that_it_loses(tmp_path, monkeypatch, caplog, tool):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    save_model(tmp_path / "model", replace(stored(), decoding={"beam_size": 3, "length_penalty": 1.0}))
    told(tmp_path / "model", "--to", tool, "--output", tmp_path / "1.argosmodel")
    assert [record.message.split()[-1] for record in caplog.records if tool in record.message] == ["beam_size=3"]


@pytest.mark.parametrize("decoding", [{"no_repeat_ngram": 1}, {"check_numbers": True}, {"n_best": 2}], ids=str)
def test_an_export_is_compared_with_the_same_search(tmp_path, monkeypatch, decoding):
    """Whatever the model's own options are."""
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    save_model(tmp_path / "model", replace(stored(), decoding={**decoding, "max_length": 20}))
    (tmp_path / "text").write_text("the cat sat on the mat\na dog ran after the cat\n")
    given = ("--to", "ctranslate2", "--output", tmp_path / "1")
    test_set = ("--source", tmp_path / "text", "--reference", tmp_path / "text")
    done = CliRunner().invoke(app, ["export", *map(str, (tmp_path / "model", *given, *test_set))])
    assert "; 2 of 2 lines are equal" in done.stdout, done.exception
