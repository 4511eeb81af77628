"""`headway bench` from start to end, with a model so small that seconds suffice."""

import json
import sys

import pytest

from headway.bench import translating
from headway.cli import main
from tests.system.running import run_headway

SMALL = ("--preset", "textbook", "--device", "cpu", "model.d_model=16", "model.d_ff=16", "tokenizer.vocab_size=64")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(translating, "ROUNDS", 1)
    monkeypatch.setattr(translating, "SECONDS", 0.2)


def check_rows(rows, peers):
    assert peers <= {row["name"] for row in rows}
    for row in rows:
        assert 0 < row["share_of_peak"] < 1
        assert row["memory_mib"] > 50


def test_every_contender_of_training_has_a_row():
    outcome = run_headway("bench", "train", *SMALL, "training.tokens_per_batch=200", "--json")
    assert outcome.code == 0
    first, *rounds = outcome.err.splitlines()
    assert first == "notice: let nothing else run while this measures"
    assert [line.partition(":")[0] for line in rounds] == [f"round {number} of 6" for number in range(1, 7)]
    check_rows(json.loads(outcome.out)["rows"], {"torch.nn.Transformer"})


def test_every_contender_of_translating_has_a_row(quick, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["headway", "bench", "translate", *SMALL, "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    rows = json.loads(capsys.readouterr().out)["rows"]
    check_rows(rows, {"torch.nn.Transformer", "CTranslate2 int8"})
    assert {row["beam_size"] for row in rows} == {1, 5}


def test_a_change_without_a_value_is_refused():
    outcome = run_headway("bench", "train", "base")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "headway: base: bench takes key.path=value, and --preset for the model\n"
