"""Names of steps: a number comes back as it went, and other people's folders are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.storage.steps import step_folders, step_name, step_of

STEPS = st.integers(0, 10**12)


@given(STEPS)
def test_a_step_comes_back_from_its_name(step):
    assert step_of(step_name(step)) == step


@pytest.mark.parametrize("name", ["step-", "step-0000000x", "step-00000010-mine", "a-step-00000010", "best"])
def test_other_names_say_no_step(name):
    assert step_of(name) is None


def test_a_name_that_somebody_has_shortened_says_its_step_but_is_no_folder_of_ours(tmp_path):
    (tmp_path / "step-10").mkdir()
    assert step_of("step-10") == 10
    assert step_folders(tmp_path) == []


def test_folders_come_oldest_first(tmp_path):
    """By number: a run of more than 99,999,999 steps has names of more digits."""
    steps = [3, 10, 99_999_999, 100_000_000, 2_000_000_000]
    for step in reversed(steps):
        (tmp_path / step_name(step)).mkdir()
    assert [step_of(path.name) for path in step_folders(tmp_path)] == steps


def test_a_folder_with_a_name_of_somebody_else_is_never_ours(tmp_path):
    for name in ("step-00000010", "step-123456789", "step-00000010-mine", "step-10", "step-00000010.damaged"):
        (tmp_path / name).mkdir()
    assert {path.name for path in step_folders(tmp_path)} == {"step-00000010", "step-123456789"}
