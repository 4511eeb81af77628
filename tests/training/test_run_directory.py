"""The folder of a run: what a start that failed leaves there goes, what somebody else put there stays."""

import pytest

from headway.training.run_directory import MARK, open_run

LEFT = ("data", "tensorboard", "log.jsonl", "best.json")


def leave(run):
    for name in LEFT:
        if "." in name:
            (run / name).write_text("left\n")
        else:
            (run / name).mkdir(parents=True)
            (run / name / "part").write_text("left\n")


@pytest.mark.parametrize("ours", [True, False])
def test_what_a_failed_start_left_goes_and_nothing_of_others(tmp_path, ours):
    leave(tmp_path)
    (tmp_path / "recipe.yaml").write_text(f"{MARK if ours else ''}data: {{}}\n")
    assert open_run(tmp_path, print) is None
    assert [(tmp_path / name).exists() for name in LEFT] == [not ours] * len(LEFT)
    assert (tmp_path / "recipe.yaml").exists()
