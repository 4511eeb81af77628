"""When a run validates and when it ends, by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.recipe.recipe import TrainingSection
from headway.training.checkpoint import Progress
from headway.training.run import last_step, limit_reached, share_done_and_minutes_left, steps_between_validations

FAR = {"max_steps": 1000, "max_epochs": 10, "max_minutes": 60.0, "patience": 5}


def here(**changes) -> Progress:
    """In the third epoch, after a hundred steps, a quarter of an hour and two validations without a better model."""
    return Progress(**{"step": 100, "epoch": 2, "step_in_epoch": 20, "validations_without_better": 2, **changes})


def test_a_run_goes_on_until_a_limit():
    assert limit_reached(TrainingSection(**FAR), here(), minutes=15.0, epoch_over=False) is None


def test_a_large_limit_is_told_to_its_last_digit():
    done = here(step=1_234_567)
    assert limit_reached(TrainingSection(max_steps=1_234_567), done, 0.0, epoch_over=False) == (
        "training.max_steps=1234567"
    )


@pytest.mark.parametrize(
    ("name", "limit", "before"),
    [("max_steps", 100, 101), ("max_epochs", 2, 3), ("max_minutes", 15.0, 15.1), ("patience", 2, 3)],
)
def test_each_limit_ends_it_once_it_is_reached(name, limit, before):
    assert (
        limit_reached(TrainingSection(**{**FAR, name: limit}), here(), 15.0, epoch_over=False)
        == f"training.{name}={limit:g}"
    )
    assert limit_reached(TrainingSection(**{**FAR, name: before}), here(), 15.0, epoch_over=False) is None
    assert limit_reached(TrainingSection(**{name: before}), here(), 15.0, epoch_over=False) is None


def test_an_epoch_is_done_with_its_last_step():
    options = TrainingSection(max_epochs=3)
    assert limit_reached(options, here(), 0.0, epoch_over=False) is None
    assert limit_reached(options, here(), 0.0, epoch_over=True) == "training.max_epochs=3"


@pytest.mark.parametrize(
    ("limits", "last"),
    [
        ({"max_steps": 70}, 70),
        ({"max_epochs": 3}, 120),
        ({"max_steps": 70, "max_epochs": 3}, 70),
        ({"max_steps": 500, "max_epochs": 3}, 120),
        ({"max_minutes": 1.0}, None),
        ({"patience": 1}, None),
    ],
)
def test_the_last_step_is_that_of_the_nearer_limit(limits, last):
    assert last_step(TrainingSection(**limits), steps_per_epoch=40) == last


@pytest.mark.parametrize(
    ("epoch", "every"), [(1, 100), (99, 100), (101, 101), (1999, 1999), (2001, 2000), (10**6, 2000)]
)
def test_validation_comes_once_an_epoch_within_bounds(epoch, every):
    assert steps_between_validations(TrainingSection(max_steps=1), epoch) == every
    assert steps_between_validations(TrainingSection(max_steps=1, validate_every=7), epoch) == 7


def test_the_outlook_is_that_of_the_nearest_limit():
    """A quarter of the steps in 15 minutes are 45 minutes more; half of 30 minutes are 15 more."""
    progress = here(minutes=15.0)
    assert share_done_and_minutes_left(TrainingSection(max_steps=400), progress, 400) == (0.25, 45.0)
    assert share_done_and_minutes_left(TrainingSection(max_steps=400, max_minutes=30.0), progress, 400) == (0.5, 15.0)
    assert share_done_and_minutes_left(TrainingSection(max_minutes=60.0), progress, None) == (0.25, 45.0)
    assert share_done_and_minutes_left(TrainingSection(patience=3), progress, None) == (None, None)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(1e-3, 1e5), st.floats(1e-3, 1e5) | st.none())
def test_an_outlook_is_never_beyond_the_end(step, last, minutes, most):
    """Though epochs differ in length, and the last step overshoots the minutes."""
    done, left = share_done_and_minutes_left(
        TrainingSection(patience=1, max_minutes=most), Progress(step=step, minutes=minutes), last
    )
    assert 0 < done <= 1
    assert left >= 0
    assert (minutes + left) * done == pytest.approx(minutes)
    assert (left == 0) == (step >= last or (most or math.inf) <= minutes)
