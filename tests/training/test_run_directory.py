"""The folder of a run: what a start that failed leaves there goes, what somebody else put there stays."""

import pytest

from headway.errors import UserError
from headway.training.run_directory import MARK, open_run, remove_if_refused

LEFT = ("data", "log.jsonl", "best.json")


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


@pytest.mark.parametrize("left", [None, "data/part", "checkpoints/step-00000001/state.json", "notes.txt"])
def test_a_refused_run_leaves_no_folder_unless_something_is_in_it(tmp_path, left):
    run = tmp_path / "run"
    open_run(run, print)
    (run / "recipe.yaml").write_text(f"{MARK}data: {{}}\n")
    if left is not None:
        (run / left).parent.mkdir(parents=True, exist_ok=True)
        (run / left).write_text("left\n")
    with pytest.raises(UserError, match="refused"), remove_if_refused(run):
        raise UserError("refused")
    assert run.exists() == (left is not None)
    assert left is None or ((run / left).exists() and (run / "recipe.yaml").exists())
