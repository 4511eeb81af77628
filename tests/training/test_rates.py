"""Learning rates against published constants and hand-worked numbers."""

from itertools import pairwise

import pytest

from headway.training.rates import learning_rate, paper_peak


@pytest.mark.parametrize(
    ("d_model", "step", "expected"),
    [(512, 1, 1.746928e-7), (512, 4000, 6.987712e-4), (512, 100_000, 1.397542e-4), (1024, 4000, 4.941059e-4)],
)
def test_schedule_of_the_paper(d_model, step, expected):
    assert learning_rate(step, "paper", paper_peak(d_model, 4000), 4000) == pytest.approx(expected, rel=1e-6)


def test_other_schedules():
    assert learning_rate(50, "constant", 1.0, 100) == 0.5
    assert learning_rate(500, "constant", 1.0, 100) == 1.0
    assert learning_rate(1, "constant", 1.0, 0) == 1.0
    assert learning_rate(400, "inverse_sqrt", 1.0, 100) == 0.5
    assert learning_rate(550, "cosine", 1.0, 100, 1000) == pytest.approx(0.5)
    assert learning_rate(1000, "cosine", 1.0, 100, 1000) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="last_step"):
        learning_rate(101, "cosine", 1.0, 100)


def test_warm_up_stable_decay():
    """Hägele et al. (2024): 1 - sqrt of the part of the decay that is done."""
    rates = [learning_rate(step, "wsd", 1.0, 100, 1000) for step in range(1, 1001)]
    assert rates[:100] == pytest.approx([step / 100 for step in range(1, 101)])
    assert set(rates[99:800]) == {1.0}, "a constant rate until the last fifth"
    assert [rates[step - 1] for step in (850, 900, 1000)] == pytest.approx([0.5, 1 - 0.5**0.5, 0.0])
    assert all(after < before for before, after in pairwise(rates[799:]))
    assert learning_rate(2000, "wsd", 1.0, 100, 1000) == 0.0, "epochs are longer than was estimated"


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "paper", "wsd"])
@pytest.mark.parametrize("decay_steps", [50, 400, 4000])
def test_a_decay_of_any_schedule(schedule, decay_steps):
    """Continuous, also where it begins within the warm-up, or before the first step; the schedule's own rate before it
    begins, and zero at the end."""
    last, warmup = 1000, 200
    whole = [learning_rate(step, schedule, 1.0, warmup) for step in range(1, last + 1)]
    rates = [learning_rate(step, schedule, 1.0, warmup, last, decay_steps) for step in range(1, last + 1)]
    begin = max(0, last - decay_steps)
    assert rates[:begin] == whole[:begin]
    assert rates[-1] == 0.0
    assert all(0 <= rate <= full for rate, full in zip(rates, whole, strict=True))
    steepest = 1 / warmup + 1 / decay_steps**0.5  # of the root, at its beginning
    assert max(abs(after - before) for before, after in pairwise(rates)) <= steepest + 1e-12
