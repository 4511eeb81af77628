"""`headway plan`, as a person runs it."""

import json
from statistics import harmonic_mean

from tests.system.conftest import QUICK
from tests.system.running import complaint, run_headway


def test_a_plan_of_a_run_is_that_run(corpus, tmp_path):
    """Its steps within a tenth, and the work of its pairs; its data is counted, its speed that of its log."""
    run = tmp_path / "run"
    trained = run_headway("train", *corpus.train_options, "--out", run, *QUICK, "training.max_epochs=1")
    assert trained.code == 0, trained.err
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    steps = [one for one in log if "loss" in one]
    speed = harmonic_mean([one["tokens_per_second"] for one in steps])
    planned = run_headway(
        "plan", run / "recipe.yaml", "--data", run, "--hardware", "cpu", "--measured", speed, "--json"
    )
    assert planned.code == 0, planned.err
    found = json.loads(planned.out)
    assert abs(found["steps"] - len(steps)) <= max(1, len(steps) / 10)
    assert found["tokens_per_second"] * found["hours"] * 3600 > 8000  # pairs, each of one target token at least


def test_slips_end_with_2():
    assert complaint("plan", "nosuch", "--pairs", "1").startswith("headway: nosuch: no such file, and no preset")
    assert "--devices" in complaint("plan", "base", "--pairs", "1", "--hardware", "h100", "--devices", "0")
