"""At the end of training the best model says what int8 costs it, and training is otherwise as it was."""

import pytest
from tests.training.test_loop import files, recipe, run, weights

from headway.storage import find_model, load_model
from headway.training import finishing
from headway.training.loop import train
from headway.training.processes import Interrupted
from headway.training.reporter import Reporter
from headway.translator import int8

__all__ = ["files"]


@pytest.fixture(autouse=True)
def few_are_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(int8, "FEWEST", 12)
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))


def test_the_best_model_says_it_and_the_run_is_the_same(files, tmp_path, capfd, monkeypatch):
    run(recipe(files), tmp_path / "without")
    train(recipe(files), tmp_path / "run", Reporter())
    best = load_model(tmp_path / "run")
    assert best.int8 is not None
    assert best.int8.pairs == 12
    assert str(best.int8) in best.card
    assert str(best.int8) in capfd.readouterr().err
    assert weights(tmp_path / "run") == weights(tmp_path / "without")
    others = [one for one in (tmp_path / "run" / "models").iterdir() if one != find_model(tmp_path / "run")]
    assert others
    assert {load_model(one).int8 for one in others} == {None}

    def never(*_):
        raise AssertionError

    monkeypatch.setattr(finishing, "judge_int8", never)
    train(recipe(files), tmp_path / "run", Reporter())
    assert load_model(tmp_path / "run").int8 == best.int8


def test_where_it_can_not_be_measured_a_line_says_why(files, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(int8, "FEWEST", 13)
    assert train(recipe(files), tmp_path / "run", Reporter()).step == 24
    assert load_model(tmp_path / "run").int8 is None
    assert "notice: int8 isn't compared with fp32: int8 needs 13 validation pairs or more" in capfd.readouterr().err


def test_a_stop_request_meanwhile_leaves_it_for_the_next_time(files, tmp_path, monkeypatch):
    def stopped(*_):
        raise Interrupted(15)

    with monkeypatch.context() as patch:
        patch.setattr(finishing, "judge_int8", stopped)
        with pytest.raises(Interrupted):
            train(recipe(files), tmp_path / "run", Reporter())
    assert load_model(tmp_path / "run").int8 is None
    train(recipe(files), tmp_path / "run", Reporter())
    assert load_model(tmp_path / "run").int8 is not None
