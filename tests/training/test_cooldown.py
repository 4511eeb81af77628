"""How a run without an end is ended in the minutes that it is given. The run is the golden one, after 60 steps."""

import json
import shutil
from pathlib import Path

import pytest

from headway.errors import UserError
from headway.recipe.reading import load_recipe
from headway.training.finishing import SECONDS_TO_START, cooldown
from headway.training.rates import learning_rate
from headway.training.run import rate_jumps

GOLDEN = Path(__file__).parents[1] / "golden" / "run"
OF_STEP, OF_VALIDATION, EVERY = 0.1, 2.0, 30


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(GOLDEN, folder)
    write_log(folder, 0.02)
    return folder


def write_log(run, last_rate, seconds=OF_STEP):
    entries = [{"step": step, "loss": 1.0, "learning_rate": last_rate, "seconds": seconds} for step in range(1, 61)]
    entries += [{"step": step, "valid_loss": 1.0, "seconds": OF_VALIDATION} for step in (30, 60)]
    (run / "log.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in entries))


def recipe(run, *changes):
    limits = ("max_steps=null", "max_minutes=60", "patience=3", "schedule=wsd", "learning_rate=0.02")
    return load_recipe(run / "recipe.yaml", [f"training.{change}" for change in (*limits, *changes)])


@pytest.mark.parametrize("minutes", [1, 5, 60])
def test_steps_validations_and_the_start_fill_the_minutes(run, minutes):
    limits = cooldown(run, recipe(run), minutes)
    steps = limits["max_steps"] - 60
    seconds = steps * OF_STEP + (steps // EVERY + 1) * OF_VALIDATION + SECONDS_TO_START
    assert 60 * minutes - 2 * OF_VALIDATION - 1 <= seconds <= 60 * minutes
    assert limits["decay_steps"] == min(steps, limits["max_steps"] // 5), "a fifth, as far as there is time for it"
    assert [limits[name] for name in ("max_epochs", "max_minutes", "patience")] == [None] * 3


@pytest.mark.parametrize("schedule", ["wsd", "constant", "inverse_sqrt"])
@pytest.mark.parametrize("kept", [1.0, 0.75, 0.5, 0.1])
def test_the_rate_goes_on_from_what_it_is(run, schedule, kept):
    """kept: of the schedule's rate; less than all where a decay has begun."""
    warmup = recipe(run).training.warmup_steps
    rate = learning_rate(60, schedule, 0.02, warmup) * kept
    write_log(run, rate)
    before = recipe(run, f"schedule={schedule}")
    limits = cooldown(run, before, minutes=3)
    last, decay_steps = limits["max_steps"], limits["decay_steps"]
    assert learning_rate(60, schedule, 0.02, warmup, last, decay_steps) == pytest.approx(rate, rel=0.02)
    assert learning_rate(last, schedule, 0.02, warmup, last, decay_steps) == 0.0
    after = recipe(run, f"schedule={schedule}", *(f"{name}={json.dumps(value)}" for name, value in limits.items()))
    assert rate_jumps(before.model_dump(mode="json"), after.training, 7, 60) == (kept < 1), (
        "by the recipe, it didn't fall"
    )


def test_what_can_not_be_finished_is_told(run):
    for changes, minutes, fault in (
        ((), 0.1, r"0.1 minutes are too few to finish; 0.2 are the least"),
        (("schedule=cosine", "max_steps=90"), 1, "cosine ends at its own last step"),
    ):
        with pytest.raises(UserError, match=fault):
            cooldown(run, recipe(run, *changes), minutes)
    write_log(run, 0.0)
    with pytest.raises(UserError, match="is finished: its learning rate has reached zero"):
        cooldown(run, recipe(run), 5)
    shutil.copy(GOLDEN / "log.jsonl", run)  # of a version that logged no seconds
    with pytest.raises(UserError, match="no time of a step and of a validation yet"):
        cooldown(run, recipe(run), 5)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(UserError, match="has no checkpoint yet"):
        cooldown(run, recipe(run), 5)
