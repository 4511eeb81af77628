"""Several processes train one model: against one process, and when they are stopped, killed and started again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway.training.processes import free_port
from tests.faults.killing import entries, wait_until
from tests.system.conftest import QUICK
from tests.system.running import Begun, run_headway
from tests.system.test_training_runs import losses

EXACT = ["training.precision=fp32", "model.dropout=0.0", "training.learning_rate=3e-4"]
"""Where sums in another order stay close: without dropout, and with steps too small to magnify the last digits."""
WEIGHTS = """
import hashlib, os, sys
from pathlib import Path
from headway.training.loop import train
from headway.training import loop
from headway.recipe.reading import load_recipe
from headway.training.reporter import Reporter

def watched(run, *others):
    progress = run_loop(run, *others)
    digest = hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in run.model.parameters())).hexdigest()
    Path(sys.argv[3], f"rank-{run.ranks.number}").write_text(digest)
    return progress

run_loop, loop.run_loop = loop.run_loop, watched
overrides = sys.argv[4:] if os.environ["RANK"] != "0" else []
train(load_recipe(Path(sys.argv[1]), overrides), Path(sys.argv[2]), Reporter(quiet=True))
"""
"""Trains, and writes what the weights of each rank are in the end. All ranks but the first have other options."""


def train_options(corpus, steps: int) -> list[str]:
    own = {"max_steps": steps, "save_every": 10, "validate_every": 25, "tokens_per_batch": 600, "finish": "false"}
    changes = [*QUICK, "decoding.max_length=8", *(f"training.{key}={value}" for key, value in own.items())]
    return [*map(str, corpus.train_options), *changes]


def torchrun(count: int, *arguments: object, options: tuple[str, ...] = ()) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", *options]
    return [*launcher, *map(str, arguments)]


def ranks_of(parent: int) -> list[int]:
    """The processes that the launcher has started, first rank first."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status, environment = (folder / "status").read_text(), (folder / "environ").read_bytes()
        except OSError:
            continue
        if f"\nPPid:\t{parent}\n" in status and (rank := environment.partition(b"\0RANK=")[2][:1]):
            found[int(rank)] = int(folder.name)
    return [found[rank] for rank in sorted(found)]


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    """The losses of a run in one process, without chance."""
    run = tmp_path_factory.mktemp("runs") / "alone"
    assert run_headway("train", *train_options(corpus, 30), *EXACT, "--out", run).code == 0
    return losses(run)


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_have_the_losses_of_one_process(corpus, alone, tmp_path, count):
    options = [*train_options(corpus, 30), *EXACT, "training.finish=true"]
    outcome = run_headway("train", *options, "--out", tmp_path / "run", "--processes", count)
    assert outcome.code == 0, outcome.err
    assert f"{count} processes" in outcome.err
    assert [loss for _, loss in losses(tmp_path / "run")] == pytest.approx([loss for _, loss in alone], rel=1e-5)
    valid = [entry for entry in entries(tmp_path / "run") if "valid_bleu" in entry]
    assert [entry["step"] for entry in valid] == [25, 30]


@pytest.mark.parametrize("options", [[], ["model.d_model=32", "training.max_steps=3"]])
def test_ranks_have_equal_weights_and_share_micro_batches(corpus, tmp_path, options):
    """Two passes a step in one process are one pass in each of two, and the same step. All go by the first one's
    recipe, also where another has read an older one."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"""
data:
  train: {{source: {corpus.file("train.src")}, target: {corpus.file("train.tgt")}}}
  valid: {{source: {corpus.file("valid.src")}, target: {corpus.file("valid.tgt")}}}
  source_language: src
  target_language: tgt
model: {{preset: tiny, d_model: 64, encoder_layers: 2, decoder_layers: 2}}
tokenizer: {{vocab_size: 300}}
training: {{max_steps: 12, validate_every: 100, tokens_per_batch: 1200, tokens_per_micro_batch: 600}}
""")
    script = tmp_path / "watched.py"
    script.write_text(WEIGHTS)
    command = torchrun(2, script, recipe, tmp_path / "run", tmp_path, *options)
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    first, second = ((tmp_path / f"rank-{rank}").read_text() for rank in (0, 1))
    assert first == second


@pytest.fixture(scope="module")
def from_a_start(corpus, tmp_path_factory) -> list[object]:
    """Options that begin with a model."""
    run = tmp_path_factory.mktemp("runs") / "start"
    assert run_headway("train", *train_options(corpus, 20), "--out", run).code == 0
    return ["--init-from", run, "model.norm=pre"]


def test_ranks_draw_the_samples_of_one_process(corpus, from_a_start, tmp_path):
    """In minimum-risk training. The second step's depend on the first one's gradients, to the last digit."""
    more = [*from_a_start, "training.risk_samples=3", "training.precision=fp32"]
    for count in (1, 2, 3):
        options = [*train_options(corpus, 2), *more, "--out", tmp_path / str(count), "--processes", count]
        outcome = run_headway("train", *options)
        assert outcome.code == 0, outcome.err
    first, *others = (losses(tmp_path / str(count))[0] for count in (1, 2, 3))
    assert all(other == (first[0], pytest.approx(first[1], rel=1e-5)) for other in others)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_ranks_train_the_adapter_of_one_process(corpus, from_a_start, tmp_path, precision):
    """Frozen weights are bf16 if products are. Resumed as well."""
    more = [*from_a_start, "training.adapter.rank=4", *EXACT, f"training.precision={precision}"]
    to_the_end = "training.max_steps=16"
    options = [*train_options(corpus, 8), *more, "--processes", 2]
    for arguments in (
        [*options, "--out", tmp_path / "2"],
        ["--resume", tmp_path / "2", to_the_end, "--processes", 2],
        [*options, to_the_end, "--out", tmp_path / "whole"],
        [*options, to_the_end, "--out", tmp_path / "1", "--processes", 1],
    ):
        outcome = run_headway("train", *arguments)
        assert outcome.code == 0, outcome.err
    alone, together = ([loss for _, loss in losses(tmp_path / count)] for count in "12")
    assert len(alone) == 16
    assert together == pytest.approx(alone, rel=1e-5 if precision == "fp32" else 1e-2)
    whole, parts = (
        {file.name: file.read_bytes() for file in (tmp_path / run).glob("checkpoints/step-00000016/*.safetensors")}
        for run in ("whole", "2")
    )
    assert whole == parts != {}


def test_resumed_with_as_many_is_exact_and_with_others_is_close(corpus, tmp_path):
    """With noise, whose place in the text must be found again, too."""
    options = [*train_options(corpus, 20), "training.precision=fp32", "data.noise={share: 0.5}"]
    assert run_headway("train", *options, "--out", tmp_path / "whole", "--processes", 2).code == 0
    run = tmp_path / "parts"
    for steps in (12, 20):
        again = ["--resume", run] if steps == 20 else [*options, "--out", run]
        outcome = run_headway("train", *again, f"training.max_steps={steps}", "--processes", 2)
        assert outcome.code == 0, outcome.err
    assert losses(run) == losses(tmp_path / "whole")
    state = json.loads((run / "checkpoints" / "step-00000020" / "state.json").read_text())
    assert state["made_with"]["processes"] == 2
    outcome = run_headway("train", "--resume", run, "training.max_steps=26")
    assert outcome.code == 0
    assert "processes 2 -> 1: the last digits will differ" in outcome.err
    assert run_headway("train", "--resume", run, "training.max_steps=32", "--processes", 2).code == 0
    assert run_headway("train", *options, "training.max_steps=32", "--out", tmp_path / "one").code == 0
    of_parts, of_one = ([loss for _, loss in losses(folder)][20:] for folder in (run, tmp_path / "one"))
    assert of_parts == pytest.approx(of_one, rel=0.2)  # dropout draws otherwise


@pytest.mark.parametrize("victim", [0, 1])
def test_when_one_is_killed_the_others_end(corpus, tmp_path, victim):
    run = tmp_path / "run"
    process = Begun("train", *train_options(corpus, 100_000), "--out", run, "--processes", 2)
    wait_until(process, lambda: len(entries(run)) > 11)
    ranks = ranks_of(process.pid)
    os.kill(ranks[victim], signal.SIGKILL)
    began = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert process.returncode not in (0, None)
    assert not any(map(is_running, ranks))
    told = [line for line in errors.splitlines() if line.startswith("headway: ")]
    assert len(told) == 1
    assert "another process of this training has ended" in told[0]
    assert "Traceback" not in errors
    assert time.monotonic() - began < 30
    outcome = run_headway("train", "--resume", run, "training.max_steps=20")
    assert outcome.code == 0, outcome.err
    assert [step for step, _ in losses(run)] == list(range(1, 21))


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_training_saves_once_and_goes_on(corpus, tmp_path, signal_number):
    run, options = tmp_path / "run", train_options(corpus, 100_000)
    process = Begun("train", *options, "--out", run, "--processes", 2)
    wait_until(process, lambda: len(entries(run)) > 12)
    ranks = ranks_of(process.pid)
    process.send_signal(signal_number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + signal_number, errors
    assert errors.count("stopping: saving") == 1
    assert errors.count("saved; go on with") == 1
    assert "--processes 2" in errors
    assert not any(map(is_running, ranks))
    last = losses(run)[-1][0]
    assert int(max((run / "checkpoints").iterdir()).name.removeprefix("step-")) == last


def test_no_rank_outlives_its_parent(corpus, tmp_path):
    run = tmp_path / "run"
    process = Begun("train", *train_options(corpus, 100_000), "--out", run, "--processes", 2)
    wait_until(process, lambda: len(entries(run)) > 12)
    ranks = ranks_of(process.pid)
    assert len(ranks) == 2
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30
    while any(map(is_running, ranks)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert int(max((run / "checkpoints").iterdir()).name.removeprefix("step-")) == losses(run)[-1][0]


def test_a_rank_ends_without_the_end_of_the_interpreter(tmp_path):
    """That is where torch aborts a process that still holds tensors of an exchange."""
    script = tmp_path / "held.py"
    script.write_text("import atexit, os, headway.cli\natexit.register(os.abort)\nheadway.cli.main()\n")
    for ranks, code in (("2", 0), ("1", -signal.SIGABRT)):
        done = subprocess.run(
            [sys.executable, script, "--version"],
            env={**os.environ, "WORLD_SIZE": ranks},
            capture_output=True,
            check=False,
        )
        assert done.returncode == code
        assert done.stdout


def test_bad_input_gets_one_line(corpus, tmp_path):
    options = [*train_options(corpus, 30), "model.num_heads=7"]
    outcome = run_headway("train", *options, "--out", tmp_path / "run", "--processes", 2)
    assert outcome.code == 2
    assert len(outcome.err.splitlines()) == 1
    short = tmp_path / "short.tgt"
    short.write_text("ant\n")
    options = [short if item == corpus.file("valid.tgt") else item for item in corpus.train_options]
    outcome = run_headway(
        "train", *options, *QUICK, "training.max_steps=9", "--out", tmp_path / "other", "--processes", 2
    )
    assert outcome.code == 2
    assert [line for line in outcome.err.splitlines() if line.startswith("headway: ")] == outcome.err.splitlines()[-1:]
    assert "has 50 lines but" in outcome.err


def test_two_machines_meet(corpus, alone, tmp_path):
    """Two of torch's launchers on the loopback, as on two machines with one folder."""
    run = tmp_path / "run"
    command = [sys.executable, "-m", "headway", "train", *train_options(corpus, 20), *EXACT, "--out", str(run)]
    meeting = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    launchers = [
        subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", *meeting, *command[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    said = [launcher.communicate(timeout=240)[0] for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], said
    assert [loss for _, loss in losses(run)] == pytest.approx([loss for _, loss in alone[:20]], rel=1e-5)


def test_torchrun_goes_on_after_a_loss(corpus, tmp_path):
    run = tmp_path / "run"
    command = torchrun(
        2, "-m", "headway", "train", *train_options(corpus, 40), "--out", run, options=("--max-restarts=2",)
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        wait_until(process, lambda: len(entries(run)) > 15)
        os.kill(ranks_of(process.pid)[1], signal.SIGKILL)
        try:
            said, _ = process.communicate(timeout=240)
        finally:
            process.terminate()
    assert process.returncode == 0, said
    assert "resuming after step" in said
    assert [step for step, _ in losses(run)] == list(range(1, 41))
