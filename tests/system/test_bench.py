"""`headway bench` from start to end, with a model so small that seconds suffice."""

import json

import pytest

from tests.system.running import run_headway

SMALL = ("--preset", "textbook", "--device", "cpu", "model.d_model=16", "model.d_ff=16", "tokenizer.vocab_size=64")


@pytest.mark.parametrize(
    ("what", "peers"),
    [("train", {"torch.nn.Transformer"}), ("translate", {"torch.nn.Transformer", "CTranslate2 int8"})],
)
def test_every_contender_has_a_row(what, peers):
    outcome = run_headway("bench", what, *SMALL, "training.tokens_per_batch=200", "--json")
    assert outcome.code == 0
    assert outcome.err == "headway: measuring; let nothing else run meanwhile\n"
    found = json.loads(outcome.out)
    assert peers <= {row["name"] for row in found["rows"]}
    for row in found["rows"]:
        assert 0 < row["share_of_peak"] < 1
        assert row["memory_mib"] > 50
    assert {row.get("beam_size") for row in found["rows"]} == ({1, 5} if what == "translate" else {None})


def test_a_change_without_a_value_is_refused():
    outcome = run_headway("bench", "train", "base")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "headway: base: bench takes key.path=value, and --preset for the model\n"
