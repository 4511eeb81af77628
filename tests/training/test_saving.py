"""What a run keeps: which models stay, which is the best, and that best.json says so."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.storage.steps import step_folders, step_name, step_of
from headway.training.checkpoint import FORMAT_VERSION, Progress, State
from headway.training.saving import MODELS_KEPT, is_better, remove_models_after, sweep_models, write_best

pytestmark = pytest.mark.usefixtures("held_files_stay")

NUMBERS = st.floats(1, 20)
NOISE = st.floats(0, 1, exclude_max=True)


def better(best: Progress, best_by: str, bleu: float, loss: float) -> bool:
    return is_better(best, loss, bleu, best_by)


def make_models(run, steps):
    for step in steps:
        (run / "models" / step_name(step)).mkdir(parents=True)


def make_checkpoint(run, step, best_step):
    folder = run / "checkpoints" / step_name(step)
    folder.mkdir(parents=True)
    state = State(Progress(step=step, best_step=best_step), {}, "", {})
    (folder / "state.json").write_text(json.dumps({"format_version": FORMAT_VERSION, **asdict(state)}))


def models(run):
    return [step_of(path.name) for path in step_folders(run / "models")]


def test_the_last_models_stay_and_the_best_of_every_checkpoint(tmp_path):
    make_models(tmp_path, range(10, 130, 10))
    make_checkpoint(tmp_path, 110, best_step=20)
    make_checkpoint(tmp_path, 120, best_step=50)
    sweep_models(tmp_path)
    assert models(tmp_path) == [20, 50, *range(130 - 10 * MODELS_KEPT, 130, 10)]
    sweep_models(tmp_path)
    assert models(tmp_path) == [20, 50, *range(130 - 10 * MODELS_KEPT, 130, 10)]


def test_a_checkpoint_that_can_not_be_read_needs_no_model(tmp_path):
    make_models(tmp_path, range(10, 130, 10))
    make_checkpoint(tmp_path, 110, best_step=20)
    make_checkpoint(tmp_path, 120, best_step=50)
    (tmp_path / "checkpoints" / step_name(110) / "state.json").write_text("{")
    sweep_models(tmp_path)
    assert models(tmp_path)[:2] == [50, 130 - 10 * MODELS_KEPT]


def test_models_of_later_steps_are_removed(tmp_path):
    make_models(tmp_path, [8, 16, 24, 99_999_999, 100_000_000])
    (tmp_path / "models" / "mine").mkdir()
    remove_models_after(tmp_path, 16)
    assert models(tmp_path) == [8, 16]
    assert (tmp_path / "models" / "mine").is_dir()


@pytest.mark.parametrize(("best_by", "score"), [("valid_bleu", 31.5), ("valid_loss", -1.25)])
def test_best_json_names_the_best_and_its_figure(tmp_path, best_by, score):
    write_best(tmp_path, Progress(step=30, best_step=20, best_score=score), best_by)
    assert json.loads((tmp_path / "best.json").read_text()) == {"model": "step-00000020", best_by: abs(score)}
    write_best(tmp_path, Progress(step=30), best_by)
    assert not (tmp_path / "best.json").exists()


def test_the_first_model_is_the_best():
    assert better(Progress(), "valid_bleu", bleu=0.0, loss=99.0)
    assert better(Progress(), "valid_loss", bleu=0.0, loss=99.0)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_the_higher_bleu_is_better_or_the_lower_loss(bleu, loss, best_bleu, best_loss):
    by_bleu = Progress(best_score=best_bleu, best_loss=best_loss)
    by_loss = Progress(best_score=-best_loss, best_loss=best_loss)
    assert better(by_bleu, "valid_bleu", bleu, loss) == (bleu > best_bleu or (bleu == best_bleu and loss < best_loss))
    assert better(by_bleu, "valid_bleu", best_bleu, loss) == (loss < best_loss)
    assert better(by_loss, "valid_loss", bleu, loss) == (loss < best_loss)


@given(NOISE, NOISE, NUMBERS, NUMBERS, NUMBERS)
def test_a_bleu_below_1_is_noise(noise, other_noise, bleu, loss, best_loss):
    """Between two of them the loss decides; any other BLEU is better than all of them."""
    assert better(Progress(best_score=noise, best_loss=best_loss), "valid_bleu", other_noise, loss) == (
        loss < best_loss
    )
    assert better(Progress(best_score=noise, best_loss=best_loss), "valid_bleu", bleu, loss)
    assert not better(Progress(best_score=bleu, best_loss=best_loss), "valid_bleu", noise, loss)


@pytest.mark.parametrize("best_by", ["valid_bleu", "valid_loss"])
@given(st.lists(st.tuples(st.floats(0, 3), st.floats(1, 3)), min_size=1, max_size=8))
def test_none_is_better_than_the_best_in_whatever_order_they_come(best_by, validations):
    """Whether one is better never goes round in a circle."""
    for order in (validations, validations[::-1]):
        best = None
        for bleu, loss in order:
            score = bleu if best_by == "valid_bleu" else -loss
            if best is None or better(best, best_by, bleu, loss):
                best = Progress(best_score=score, best_loss=loss)
        assert best is not None
        assert not any(better(best, best_by, bleu, loss) for bleu, loss in validations)
