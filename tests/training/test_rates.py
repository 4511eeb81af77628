"""Learning rates against published constants and hand-worked numbers."""

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
