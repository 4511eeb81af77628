"""The examples of training on many machines under deploy/ are run, with programs in place of Slurm's and torchrun that
write down how they were called: torch's own parser reads the one, headway's the other."""

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
import typer
import yaml
from torch.distributed.run import parse_args
from typer.testing import CliRunner

from headway.cli import app

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
SLURM = {"SLURM_JOB_ID": "31337", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_GPUS_ON_NODE": "8"}


@pytest.fixture
def programs(tmp_path, monkeypatch) -> Path:
    """The folder where they write what they were told."""
    folder = tmp_path / "bin"
    folder.mkdir()
    scripts = {
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"',
        "scontrol": f'if [ "$1" = show ]; then echo n1; echo n2; else echo "$@" > {tmp_path}/scontrol; fi',
        "headway": f'printf "%s\\n" "$@" > {tmp_path}/headway; [ "$2" != wrong.yaml ] || exit 2',
        "torchrun": f'printf "%s\\n" "$@" > {tmp_path}/torchrun',
    }
    for name, script in scripts.items():
        write_program(folder / name, script)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def write_program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/bash\n{script}\n")
    file.chmod(0o755)


def documents() -> tuple[dict, dict]:
    service, job = yaml.safe_load_all((DEPLOY / "kubernetes" / "train-job.yaml").read_text())
    return service, job


def container() -> dict:
    [only] = documents()[1]["spec"]["template"]["spec"]["containers"]
    return only


def slurm_command() -> list[str]:
    return ["bash", str(DEPLOY / "slurm" / "train.sbatch")]


def kubernetes_command() -> list[str]:
    return [*container()["command"], *container()["args"]]


def started(programs: Path, command: list[str], run: str):
    """What torchrun and `headway train` were asked to do."""
    environment = {**os.environ, **SLURM, "RECIPE": "mine.yaml", "RUN": run}
    subprocess.run(command, cwd=programs, env=environment, check=True, timeout=60)
    torchrun = parse_args((programs / "torchrun").read_text().splitlines())
    assert torchrun.module
    assert torchrun.training_script == "headway"
    name, *arguments = torchrun.training_script_args
    given = typer.main.get_command(app).commands[name].make_context(name, arguments).params  # refuses what isn't there
    return torchrun, given


@pytest.mark.parametrize("command", [slurm_command, kubernetes_command])
def test_a_run_is_begun_or_resumed(programs, command):
    _, given = started(programs, command(), "runs/mine")
    assert (*given["arguments"], str(given["resume"])) == ("mine.yaml", "runs/mine")


def test_torchrun_under_slurm(programs):
    torchrun, _ = started(programs, slurm_command(), "runs/mine")
    assert (torchrun.nnodes, torchrun.nproc_per_node, torchrun.max_restarts) == ("2", "8", 3)
    assert (torchrun.rdzv_backend, torchrun.rdzv_endpoint) == ("c10d", "n1:21337")


def test_slurm_gives_a_machine_one_torchrun_and_signals_the_script_first():
    lines = (DEPLOY / "slurm" / "train.sbatch").read_text().splitlines()
    options = dict(shlex.split(line)[1].lstrip("-").partition("=")[::2] for line in lines if line.startswith("#SBATCH"))
    assert options["ntasks-per-node"] == "1"
    assert options["signal"] == "B:TERM@180"
    assert "requeue" in options
    [waited] = [int(line.partition("=")[2]) for line in lines if line.startswith("export TORCH_ELASTIC_SHUTDOWN")]
    assert waited < 180


def test_a_job_whose_time_is_over_saves_and_comes_back(programs):
    """SIGTERM to the script reaches torchrun, which may take its time; then the job is put back into the queue."""
    ended = programs / "ended"
    waiting = f"trap 'sleep 0.3; touch {ended}; exit 143' TERM\ntouch {programs}/ready\nwhile :; do sleep 0.05; done"
    write_program(programs / "bin" / "torchrun", waiting)
    environment = {**os.environ, **SLURM, "RECIPE": "mine.yaml", "RUN": "runs/mine"}
    with subprocess.Popen(slurm_command(), cwd=programs, env=environment) as job:
        deadline = time.monotonic() + 30
        while not (programs / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        assert job.wait(timeout=30) != 0
    assert ended.exists()
    assert (programs / "scontrol").read_text().split() == ["requeue", "31337"]


def test_a_training_that_fails_is_not_started_again_by_slurm(programs):
    write_program(programs / "bin" / "torchrun", "exit 1")
    environment = {**os.environ, **SLURM, "RECIPE": "mine.yaml", "RUN": "runs/mine"}
    assert subprocess.run(slurm_command(), cwd=programs, env=environment, check=False, timeout=60).returncode == 1
    assert not (programs / "scontrol").exists()


def test_a_variable_that_is_missing_is_named(programs):
    environment = {**os.environ, **SLURM, "RECIPE": "mine.yaml"}
    done = subprocess.run(
        slurm_command(), cwd=programs, env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == "train.sbatch: RUN is not set: the run directory, such as runs/mine\n"


@pytest.mark.parametrize("command", [slurm_command, kubernetes_command])
def test_a_wrong_recipe_fails_before_torchrun(programs, command):
    environment = {**os.environ, **SLURM, "RECIPE": "wrong.yaml", "RUN": "runs/mine"}
    assert subprocess.run(command(), cwd=programs, env=environment, check=False, timeout=60).returncode == 2
    assert not (programs / "torchrun").exists()


@pytest.mark.parametrize("command", [slurm_command, kubernetes_command])
def test_the_recipe_is_read_by_a_command_that_accepts_any_training(programs, command):
    """With nothing beside the recipe that could be refused: the smallest corpus, a device of any precision."""
    started(programs, command(), "runs/mine")
    arguments = (programs / "headway").read_text().splitlines()
    assert arguments[:2] == ["plan", "mine.yaml"]
    for recipe in ("multi30k-de-en", "wmt14-en-de-big"):
        done = CliRunner().invoke(app, ["plan", recipe, *arguments[2:], "training.tokens_per_batch=25000"])
        assert done.exit_code == 0, done.exception


def test_a_wrong_recipe_ends_the_kubernetes_job():
    """Its exit code, which torchrun doesn't have for a training that failed."""
    rules = documents()[1]["spec"]["podFailurePolicy"]["rules"]
    [codes] = [rule["onExitCodes"] for rule in rules if rule["action"] == "FailJob"]
    assert (codes["containerName"], codes["operator"], codes["values"]) == (container()["name"], "In", [2])


def test_torchrun_in_kubernetes_is_what_the_job_is(programs):
    """As many pods as it waits for, as many processes as GPUs, and the first pod's name as Kubernetes makes it."""
    torchrun, _ = started(programs, kubernetes_command(), "runs/mine")
    service, job = documents()
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert int(torchrun.nnodes) == spec["completions"] == spec["parallelism"]
    assert int(torchrun.nproc_per_node) == container()["resources"]["limits"]["nvidia.com/gpu"]
    [port] = service["spec"]["ports"]
    name = job["metadata"]["name"]
    assert torchrun.rdzv_endpoint == f"{name}-0.{pod['subdomain']}:{port['port']}"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}
    assert service["spec"]["clusterIP"] == "None"
    assert spec["completionMode"] == "Indexed"
    assert pod["restartPolicy"] == "Never", "podFailurePolicy needs it"


def test_a_pod_has_time_to_save_and_no_rights_that_it_does_not_need():
    pod = documents()[1]["spec"]["template"]["spec"]
    waited = {one["name"]: one["value"] for one in container()["env"]}
    assert int(waited["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"]) < pod["terminationGracePeriodSeconds"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {one["name"] for one in container()["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["volumes"]}
    assert all(Path(waited[name]).parts[1] in ("corpus", "runs") for name in ("RECIPE", "RUN"))
