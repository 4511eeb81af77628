"""The examples under deploy/ are what they say: they parse, name options that exist, and give no rights away."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from headway.cli import app

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
FLAGS = {flag for one in typer.main.get_command(app).commands["serve"].params for flag in one.opts}


def documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def test_options_of_the_examples_exist():
    [compose] = documents("compose.yaml")
    container = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"][0]
    commands = [compose["services"]["headway"]["command"], container["args"]]
    given = {word for command in commands for word in command if word.startswith("--")}
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert given | {"--host"} <= FLAGS
    assert '"--host"' in dockerfile


def test_no_container_has_rights_that_it_does_not_need():
    [compose] = documents("compose.yaml")
    service = compose["services"]["headway"]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "ports" not in service, "only the proxy can be reached"
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    security = pod["containers"][0]["securityContext"]
    assert security == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert dockerfile.rindex("USER 10001") > dockerfile.rindex("RUN ")


def test_probes_ask_what_the_server_answers(serve):
    container = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"][0]
    server = serve()
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["timeoutSeconds"] > 1, "of which a busy server needs some"
        assert container[probe]["failureThreshold"] > 1
        assert server.get(container[probe]["httpGet"]["path"], headers={"host": "10.0.0.7:5000"}).status_code == 200
    scaled, monitor = documents("kubernetes.yaml")[3:]
    metric = scaled["spec"]["metrics"][0]["pods"]["metric"]["name"]
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert "--metrics-key" in container["args"]
    guarded = serve(api_keys={"other": None}, metrics_key="k")
    answer = guarded.get(endpoint["path"], headers={"host": "10.0.0.7:5000", "authorization": "Bearer k"})
    assert f"\n{metric} 0.0\n" in answer.text
    assert endpoint["port"] in [one["name"] for one in container["ports"]]


def test_as_many_workers_as_cores():
    """A request sets no quota, so all cores of the node are seen."""
    container = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "OMP_NUM_THREADS", "value": container["resources"]["requests"]["cpu"]} in container["env"]


def test_what_the_image_copies_is_there_and_is_all_that_a_wheel_needs():
    copies = re.findall(r"^COPY (?!--from)(.+)$", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    copied = {path for line in copies for path in line.split()[:-1]}
    assert {"constraints.txt", "pyproject.toml", "README.md", "LICENSE", "src"} <= copied
    for path in copied:
        assert (DEPLOY.parent / path).exists(), path


def test_the_unit_is_one_and_is_closed(tmp_path):
    """As systemd says, where it is installed; headway itself stands elsewhere here."""
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd is not installed")
    text = (DEPLOY / "headway.service").read_text()
    command = re.search(r"^ExecStart=(\S+) serve (.*)$", text, re.M)
    assert command
    assert set(re.findall(r"--[\w-]+", command[2])) <= FLAGS
    unit = tmp_path / "headway.service"
    unit.write_text(text.replace(command[1], sys.executable))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    checked = [analyze, "security", "--offline=true", "--threshold=20", str(unit)]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:]
